// The HTTP library's own server on the loopback, and a transport to it.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "kube/http_transport.h"

namespace httplib {
class Server;
}  // namespace httplib

namespace kube {

// Serves from start() until it goes out of scope.
class TestServer {
 public:
  TestServer();
  // Port 0: any free one.
  explicit TestServer(std::unique_ptr<httplib::Server> server, int port = 0);
  ~TestServer();

  httplib::Server& operator*() { return *server_; }
  httplib::Server* operator->() { return server_.get(); }
  void start();
  void stop();
  int port() const { return port_; }
  std::string url(const char* scheme = "http") const {
    return std::string{scheme} + "://127.0.0.1:" + std::to_string(port_);
  }

 private:
  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

// Returns a transport by the system's clock; the test fails if there can be none.
std::unique_ptr<HttpTransport> transport_to(TransportConfig config);

}  // namespace kube
