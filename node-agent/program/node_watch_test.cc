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
  // Returns the longest wait of each step in a long outage.
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

struct NoWatches : kube::Transport {
  base::Status stream(const kube::Request&, const std::function<bool(std::string_view)>&,
                      std::stop_token) override {
    return base::Error{base::Code::kUnavailable, "no watches"};
  }
};

// By its name.
NodeWatch::NamedStep step_of(NodeWatch& watch, const std::string& name) {
  std::vector<NodeWatch::NamedStep> steps = watch.steps();
  return *std::find_if(steps.begin(), steps.end(),
                       [&](const auto& step) { return step.name == name; });
}

// An API server that answers with one timetable, and a test that does something before it does.
struct Answers final : NoWatches {
  base::Result<kube::Response> send(const kube::Request&) override {
    meanwhile();
    kube::NodeTimetable timetable;
    timetable.metadata.name = "n1";
    return kube::Response{.status = 200, .body = kube::encode(timetable).dump()};
  }
  std::function<void()> meanwhile = [] {};
};

// The answer comes from before the second question: it could confirm a timetable that has been
// replaced since.
TEST(NodeWatchConfirmTest, AnAnswerThatIsUnderWayIsNoneToALaterQuestion) {
  Answers transport;
  kube::ManualClock clock;
  kube::ManualSleeper sleeper{clock};
  const kube::Client client{transport, clock, sleeper, {.call = {.attempts_max = 1}}};
  NodeWatch watch{client, clock, {.node = "n1", .lease = {"ns", "lease"}}, [] {}};
  const NodeWatch::NamedStep confirm = step_of(watch, "confirm");
  const auto confirmed = [&] {
    Inputs inputs;
    watch.read(inputs, std::nullopt);
    return inputs.confirmed != nullptr;
  };
  watch.confirm_timetable(true);
  transport.meanwhile = [&] {
    watch.confirm_timetable(false);
    watch.confirm_timetable(true);
  };
  EXPECT_EQ(confirm.step({}), base::Duration{0});
  EXPECT_FALSE(confirmed());
  transport.meanwhile = [] {};
  EXPECT_EQ(confirm.step({}), seconds{10});
  EXPECT_TRUE(confirmed());
  // Nothing is in doubt when it arrives.
  transport.meanwhile = [&] { watch.confirm_timetable(false); };
  confirm.step({});
  EXPECT_FALSE(confirmed());
}

// An API server that knows nothing: an answer about the Lease, and an error about the lists.
struct Empty final : NoWatches {
  base::Result<kube::Response> send(const kube::Request&) override {
    return kube::Response{.status = 404, .body = R"({"kind": "Status", "reason": "NotFound"})"};
  }
};

// The limit of 10 s is the journal's: the configuration is not known after a restart of the agent,
// and may be asked for 45 s after the Lease. Read once a minute, the Lease would be too old for the
// limit all the time.
TEST(NodeWatchLeaseTest, TheLeaseIsReadAsOftenAsTheJournalsLimitAsksFor) {
  Empty transport;
  kube::ManualClock clock;
  kube::ManualSleeper sleeper{clock};
  const kube::Client client{transport, clock, sleeper, {.call = {.attempts_max = 1}}};
  NodeWatch watch{client, clock, {.node = "n1", .lease = {"ns", "lease"}}, [] {}};
  Rules before;
  before.settings.fail_open_after = seconds{10};
  Inputs inputs;
  watch.read(inputs, before);
  EXPECT_EQ(inputs.settings.fail_open_after, seconds{10});
  EXPECT_LE(step_of(watch, "lease").step({}), std::chrono::milliseconds{2'750});
}

}  // namespace
}  // namespace agent::testing
