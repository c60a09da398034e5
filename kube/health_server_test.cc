#include "kube/health_server.h"

#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include "kube/http_transport.h"
#include "kube/run_loop.h"

namespace kube {
namespace {

// The server on a free port of the loopback, in a thread of its own that ends with the fixture.
class HealthServerTest : public testing::Test {
 protected:
  void start(HealthServer::Probes probes) {
    auto created = HealthServer::create({.address = "127.0.0.1"}, std::move(probes));
    ASSERT_TRUE(created.ok()) << created.error().message;
    server_ = std::move(*created);
    loop_.start("health", [this](std::stop_token stop) {
      server_->serve(stop);
      return base::Duration{};
    });
  }
  // A connection for each request, as curl and kubelet make them.
  Response get(const std::string& path) {
    const SystemClock clock;
    auto transport = HttpTransport::create(
        {.server = "http://127.0.0.1:" + std::to_string(server_->port())}, clock);
    return (*transport)->send({.path = path}).value();
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

// One counter, three times: a line of Prometheus' text format.
TEST_F(HealthServerTest, ServesMetricsOfARegistry) {
  prometheus::Registry registry;
  prometheus::BuildCounter().Name("switches_total").Register(registry).Add({}).Increment(3);
  start({.metrics = [&] { return metrics_text(registry); }});
  const Response response = get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find("\nswitches_total 3\n"), std::string::npos) << response.body;
}

// The library's own default would let two servers share the port and say nothing.
TEST_F(HealthServerTest, PortInUseIsASentence) {
  start({});
  const auto second = HealthServer::create({.address = "127.0.0.1", .port = server_->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, base::Code::kUnavailable);
  EXPECT_EQ(second.error().message,
            "cannot listen on 127.0.0.1:" + std::to_string(server_->port()) +
                ": the port is in use or the address is not of this machine");
}

// A process that is told to stop while it starts: the stop has come before serve() is called.
TEST_F(HealthServerTest, AStopBeforeItServesEndsItAtOnce) {
  auto created = HealthServer::create({.address = "127.0.0.1"}, {});
  ASSERT_TRUE(created.ok());
  std::stop_source stop;
  stop.request_stop();
  (*created)->serve(stop.get_token());
}

// Goal: a stop at any moment of the start ends the server. Method: twenty starts whose loop is
// destroyed at once, so that the stop comes before, while or after the library begins to listen.
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
