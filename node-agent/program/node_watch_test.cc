// How soon the agent asks again after the API server could not be reached.
#include "node-agent/program/node_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kube/testing/manual_clock.h"
#include "kube/testing/manual_sleeper.h"

namespace agent::testing {
namespace {

using std::chrono::seconds;

// An API server that refuses every connection, at once.
struct NobodyThere final : kube::Transport {
  base::Result<kube::Response> send(const kube::Request&) override {
    return base::Error{base::Code::kUnavailable, "connection refused"};
  }
  base::Status stream(const kube::Request&, const std::function<bool(std::string_view)>&,
                      std::stop_token) override {
    return base::Error{base::Code::kUnavailable, "connection refused"};
  }
};

struct NodeWatchTest : ::testing::Test {
  // The longest wait of each step in a long outage.
  std::map<std::string, base::Duration> longest_waits() {
    std::map<std::string, base::Duration> waits;
    for (NodeWatch::NamedStep& step : watch.steps()) {
      for (int i = 0; i < 20; ++i) {
        waits[step.name] = std::max(waits[step.name], step.step({}));
      }
    }
    return waits;
  }

  NobodyThere transport;
  kube::ManualClock clock;
  kube::ManualSleeper sleeper{clock};
  kube::Client client{transport, clock, sleeper, {.call = {.attempts_max = 1}}};
  NodeWatch watch{client, clock, {.node = "n1", .lease = {"ns", "lease"}}, [] {}};
};

// Whatever was frozen by a timetable of the time before stands still until it is heard.
TEST_F(NodeWatchTest, PodsAndTimetableAreAskedForWithin6SecondsOfTheServersReturn) {
  const auto waits = longest_waits();
  EXPECT_LE(waits.at("timetable"), seconds{6});
  EXPECT_LE(waits.at("pods"), seconds{6});
  EXPECT_GT(waits.at("node"), seconds{30})
      << "a thousand agents are polite where it does not matter";
}

// A timetable that seems to have gone back is obeyed only if the API server confirms it; until then
// the node goes on by the old one.
TEST_F(NodeWatchTest, AQuorumReadThatFailedIsRepeatedSoon) {
  watch.confirm_timetable(true);
  EXPECT_EQ(longest_waits().at("confirm"), seconds{2});
}

}  // namespace
}  // namespace agent::testing
