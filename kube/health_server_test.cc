#include "kube/health_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kube/http_transport.h"
#include "kube/run_loop.h"

namespace kube {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// The server on a free port of the loopback, in a thread of its own that ends with the fixture.
class HealthServerTest : public testing::Test {
 protected:
  void start(HealthServer::Probes probes, base::Duration patience = std::chrono::seconds{5}) {
    auto created =
        HealthServer::create({.address = "127.0.0.1", .patience = patience}, std::move(probes));
    ASSERT_TRUE(created.ok()) << created.error().message;
    server_ = std::move(*created);
    loop_.start("health", [this](std::stop_token stop) {
      server_->serve(stop);
      return base::Duration{};
    });
  }
  // Makes a connection for each request, as curl and kubelet make them.
  Response get(const std::string& path) {
    const SystemClock clock;
    auto transport = HttpTransport::create(
        {.server = "http://127.0.0.1:" + std::to_string(server_->port())}, clock);
    return (*transport)->send({.path = path}).value();
  }

  // Connects a client that does as it likes. Its reads have a limit, so that a test ends.
  os::FileDescriptor connect() const {
    os::FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static bool send(const os::FileDescriptor& socket, std::string_view text) {
    return ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Returns all that comes until the server hangs up.
  static std::string receive(const os::FileDescriptor& socket) {
    std::string text;
    char piece[1024];
    for (ssize_t count; (count = ::recv(socket.get(), piece, sizeof piece, 0)) > 0;) {
      text.append(piece, static_cast<std::size_t>(count));
    }
    return text;
  }

  std::unique_ptr<HealthServer> server_;
  RunLoop loop_;
};

// Without a probe the answer is yes: /healthz has none here. The probe's sentence is the body, for
// people who ask with curl: kubelet looks at the status alone.
TEST_F(HealthServerTest, AnswersWhatTheProbesSay) {
  start({.ready = [] {
    return base::Status{base::Error{base::Code::kUnavailable, "not synced yet"}};
  }});
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, "not synced yet\n");
  EXPECT_EQ(get("/elsewhere").status, 404);
}

TEST_F(HealthServerTest, AnswersGetAndHeadOnly) {
  start({});
  os::FileDescriptor socket = connect();
  ASSERT_TRUE(send(socket, "HEAD /healthz?verbose HTTP/1.1\r\nHost: here\r\n\r\n"));
  EXPECT_EQ(receive(socket),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\n");
  socket = connect();
  ASSERT_TRUE(send(socket, "POST /healthz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(receive(socket), StartsWith("HTTP/1.1 405 "));
}

// Without a bound, a line that does not end would fill the memory of the agent, which has little.
TEST_F(HealthServerTest, ARequestWithoutAnEndIsRefused) {
  start({});
  const os::FileDescriptor socket = connect();
  ASSERT_TRUE(send(socket, std::string(4096, 'a')));
  EXPECT_THAT(receive(socket), StartsWith("HTTP/1.1 431 "));
  EXPECT_EQ(get("/healthz").status, 200);
}

// As many as an attacker likes, who sends a byte now and then: kubelet's probe is answered, and the
// oldest of them have gone for it.
TEST_F(HealthServerTest, IdleClientsDoNotHoldUpAProbe) {
  start({}, std::chrono::hours{1});
  std::vector<os::FileDescriptor> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(connect());
    ASSERT_TRUE(send(idle.back(), "G"));
  }
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(receive(idle.front()), "");
}

// No single byte is late.
TEST_F(HealthServerTest, ARequestThatTricklesIsGivenUp) {
  start({}, std::chrono::milliseconds{100});
  const os::FileDescriptor socket = connect();
  int sent = 0;
  for (; sent < 1000 && send(socket, "G"); ++sent) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_LT(sent, 1000);
}

// Metrics are long, and their reader slow: they arrive whole.
TEST_F(HealthServerTest, ALongAnswerArrivesWhole) {
  const std::string text(8U << 20U, 'm');
  start({.metrics = [&] { return text; }});
  const os::FileDescriptor socket = connect();
  ASSERT_TRUE(send(socket, "GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(get("/healthz").status, 200) << "beside it";
  EXPECT_THAT(receive(socket), EndsWith("\r\n\r\n" + text));
}

// One counter, three times: a line of Prometheus' text format.
TEST_F(HealthServerTest, ServesMetricsOfARegistry) {
  prometheus::Registry registry;
  prometheus::BuildCounter().Name("switches_total").Register(registry).Add({}).Increment(3);
  start({.metrics = [&] { return metrics_text(registry); }});
  const Response response = get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find("\nswitches_total 3\n"), std::string::npos) << response.body;
}

// With SO_REUSEPORT two servers would share the port unnoticed.
TEST_F(HealthServerTest, PortInUseIsASentence) {
  start({});
  const auto second = HealthServer::create({.address = "127.0.0.1", .port = server_->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, base::Code::kUnavailable);
  EXPECT_EQ(second.error().message,
            "cannot listen on 127.0.0.1:" + std::to_string(server_->port()) +
                ": the port is in use or the address is not of this machine");
}

// A process that is to stop while it starts: the stop has come before serve() is called.
TEST_F(HealthServerTest, AStopBeforeItServesEndsItAtOnce) {
  auto created = HealthServer::create({.address = "127.0.0.1"}, {});
  ASSERT_TRUE(created.ok());
  std::stop_source stop;
  stop.request_stop();
  (*created)->serve(stop.get_token());
}

// Goal: a stop at any moment of the start ends the server. Method: twenty starts whose loop is
// destroyed at once, so that the stop comes before, while or after it begins to serve.
TEST_F(HealthServerTest, StopRightAfterStartEndsIt) {
  for (int i = 0; i < 20; ++i) {
    auto created = HealthServer::create({.address = "127.0.0.1"}, {});
    ASSERT_TRUE(created.ok());
    RunLoop loop;
    loop.start("health", [&](std::stop_token stop) {
      (*created)->serve(stop);
      return base::Duration{};
    });
  }
}

}  // namespace
}  // namespace kube
