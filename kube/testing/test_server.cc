#include "kube/testing/test_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <utility>

#include "kube/clock.h"
#include "kube/login.h"

namespace kube {

TestServer::TestServer() : TestServer{std::make_unique<httplib::Server>()} {}

TestServer::TestServer(std::unique_ptr<httplib::Server> server, int port)
    : server_{std::move(server)} {
  server_->set_keep_alive_timeout(1);  // s; stop() waits for it
  server_->set_tcp_nodelay(true);      // as Go's server has it; before the socket is made
  port_ = port == 0 ? server_->bind_to_any_port("127.0.0.1") : port;
  if (port != 0) {
    EXPECT_TRUE(server_->bind_to_port("127.0.0.1", port));
  }
}

TestServer::~TestServer() {
  stop();
}

// The library ignores a stop() before it listens, so start() waits until it does.
void TestServer::start() {
  thread_ = std::thread{[this] { server_->listen_after_bind(); }};
  while (!server_->is_running()) std::this_thread::yield();
}

void TestServer::stop() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

std::unique_ptr<HttpTransport> transport_to(TransportConfig config) {
  static const SystemClock kClock;
  config.login = personal_login();
  auto transport = HttpTransport::create(config, kClock);
  if (!transport.ok()) {
    ADD_FAILURE() << transport.error().message;
    return nullptr;
  }
  return std::move(*transport);
}

}  // namespace kube
