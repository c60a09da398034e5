// A proxy on the loopback for tests: CONNECT, and SOCKS 5 with and without a password. It carries
// bytes until either side closes.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kube {

class TestProxy {
 public:
  enum class Kind { kHttp, kSocks };

  // All connections go to 127.0.0.1:`target_port`, whatever is asked for. With `user` it wants that
  // user with the password "secret".
  TestProxy(Kind kind, int target_port, std::string user = {});
  ~TestProxy();

  int port() const { return port_; }
  // The targets that were asked for, "host:port" each, and the whole head of the last HTTP request.
  std::vector<std::string> asked() const;
  std::string last_head() const;

 private:
  void serve();
  void carry(int client);
  bool accept_http(int client);
  bool accept_socks(int client);

  const Kind kind_;
  const int target_port_;
  const std::string user_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_{false};

  mutable std::mutex mu_;
  std::vector<std::string> asked_;     // guarded by mu_
  std::string last_head_;              // guarded by mu_
  std::vector<std::thread> carriers_;  // only of the serving thread, until that has ended
  std::thread thread_;
};

}  // namespace kube
