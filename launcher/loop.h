// Waits for file descriptors and calls who watches them. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace launcher {

class Loop {
 public:
  using Ready = std::function<void(std::uint32_t events)>;  // of epoll

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void watch(int fd, std::uint32_t events, Ready ready);
  // REQUIRES: it is watched. No events: it waits until there are some.
  void change(int fd, std::uint32_t events);
  // Before it is closed; also from within a call.
  void forget(int fd);
  // Calls those that are ready; at most `timeout_ms` pass before, -1 is no limit.
  void wait(int timeout_ms);

 private:
  int epoll_;
  std::map<int, std::shared_ptr<Ready>> watched_;
};

}  // namespace launcher
