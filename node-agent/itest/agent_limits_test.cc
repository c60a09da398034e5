// How soon the program does what must not wait: the times that the rules name, from the word to the
// cgroup. (architecture.md 5; freezer.md 4 rule 5, 5.4)
//
// Method: each is done several times, and the one in the middle counts, less the time for which the
// test itself was kept from its CPU: a busy machine is late now and then, a program that waits for
// its next look is late every time.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "node-agent/itest/agent_process_fixture.h"

namespace agent::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Odd, so that there is one in the middle.
constexpr int kTimes = 5;

class AgentLimitsTest : public AgentProcessFixture {
 protected:
  // Notes a time; a failure if the thing has not happened at all.
  void took(std::optional<base::Duration> time) {
    ASSERT_TRUE(time.has_value());
    times_.push_back(*time);
  }
  // Returns the time in the middle. All of them are printed, for people who look at a slow machine.
  base::Duration usual() {
    std::sort(times_.begin(), times_.end());
    for (const base::Duration time : times_) {
      std::printf("%.1f ms ", static_cast<double>(time.count()) / 1000);
    }
    std::printf("\n");
    return times_.empty() ? base::Duration::max() : times_[times_.size() / 2];
  }
  std::vector<base::Duration> times_;
};

// The grace time runs from the deletion, and a program in a frozen pod cannot use it.
TEST_P(AgentLimitsTest, ADeletedPodIsThawedWithin100Milliseconds) {
  std::vector<std::string> pods = {"a"};
  node_->add_pod("a", "a");
  for (int i = 0; i < kTimes; ++i) {
    pods.push_back("off-" + std::to_string(i));
    node_->add_pod(pods.back(), pods.back());
  }
  node_->publish(1, 1, pods, {{0}}, kSlice);
  node_->start();
  for (int i = 1; i <= kTimes; ++i) {
    const std::string& pod = pods[static_cast<std::size_t>(i)];
    ASSERT_TRUE(eventually([&] { return frozen(pod); }));
    node_->delete_pod(pod);
    took(time_until([&] { return !frozen(pod); }));
  }
  EXPECT_LE(usual(), milliseconds{100});
}

// By the Node object, as an administrator throws it.
TEST_P(AgentLimitsTest, TheKillSwitchThawsEverythingWithin1Second) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  node_->start();
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(both_freeze());
    node_->set_kill_switch(true);
    took(time_until([&] { return all_run(); }));
    node_->set_kill_switch(false);
  }
  EXPECT_LE(usual(), seconds{1});
}

// Both pods are off forever, so only the stop can thaw them.
TEST_P(AgentLimitsTest, AStopThawsEverythingAndEndsWithin2Seconds) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  for (int i = 0; i < kTimes; ++i) {
    node_->start();
    ASSERT_TRUE(both_freeze());
    const Stop stop = stopped();
    took(stop.time);
    EXPECT_EQ(stop.code, 0);
    EXPECT_TRUE(all_run());
  }
  EXPECT_LE(usual(), seconds{2});
}

// A worker that cannot stop does not hold up the end: its supervisor thaws.
TEST_P(AgentLimitsTest, AStopOfAWorkerThatStandsStillEndsWithin2SecondsToo) {
  ASSERT_TRUE(two_frozen_gangs());
  const std::optional<pid_t> worker = node_->worker();
  ASSERT_TRUE(worker.has_value());
  ::kill(*worker, SIGSTOP);
  const Stop stop = stopped();
  took(stop.time);
  EXPECT_EQ(stop.code, 1);
  EXPECT_TRUE(all_run());
  EXPECT_LE(usual(), seconds{2});
}

// While no process is there, the timetable lets both pods run; the new agent must find out and act.
TEST_P(AgentLimitsTest, ARestartedContainerRepairsWithin1Second) {
  two_gangs();
  for (int i = 0; i < kTimes; ++i) {
    node_->publish(1, 2 + 2 * i, {"a", "b"}, {{}}, kSlice);
    node_->start();
    ASSERT_TRUE(both_freeze());
    kill_container();
    node_->publish(1, 3 + 2 * i, {"a", "b"}, {{0, 1}}, kSlice);
    ASSERT_TRUE(both_frozen());  // no process is there to thaw them
    node_->start();
    took(time_until([&] { return all_run(); }));
    kill_container();
  }
  EXPECT_LE(usual(), seconds{1});
}

INSTANTIATE_TEST_SUITE_P(Real, AgentLimitsTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent::testing
