// The program's supervisor where its worker is useless: it has hardly begun, or the kernel holds
// it.
#include "node-agent/survival/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "node-agent/itest/agent_process_fixture.h"

namespace agent::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// The agent's own limit for a stop (freezer.md 5.4).
constexpr base::Duration kStops = seconds{2};

class SupervisorTest : public AgentProcessFixture {
 protected:
  // Returns the exit code of an agent that must stop `after` it has begun; nullopt if it runs on.
  std::optional<int> stopped_after(base::Duration after,
                                   const std::vector<std::string>& more_flags = {}) {
    node_->start(more_flags);
    if (!has_begun()) return std::nullopt;
    std::this_thread::sleep_for(after);
    node_->signal(SIGTERM);
    return node_->wait_for_end(seconds{10});
  }
  // Another agent in the same run directory ends because the directory is taken, and thaws nothing.
  // `then`: what a shell does to it, $p, after its start.
  void expect_no_part_of_a_second_agent(const std::string& then) {
    const os::testing::Output said =
        run_program("--node-name n1 --kubeconfig " + node_->directory() + "/kubeconfig --run-dir " +
                    node_->run_directory() + " --cgroup-root " + node_->cgroups().root() +
                    " & p=$!; " + then + "; wait $p");
    EXPECT_EQ(said.exit_code, kExitTaken);
    EXPECT_THAT(said.text, Not(HasSubstr("thawed what the journal names")));
    EXPECT_TRUE(both_frozen());
  }
  // Where a worker may be when it must stop: not made yet, loading, starting, running.
  static constexpr base::Duration kMoments[] = {milliseconds{0},  milliseconds{1},
                                                milliseconds{3},  milliseconds{10},
                                                milliseconds{30}, milliseconds{100}};
};

// A signal may come before a handler is there, while the worker is being made, or before it knows
// anything. Each time the program must end, with 0.
TEST_P(SupervisorTest, ToldToStopInItsFirstMomentsItEndsWell) {
  two_gangs();
  for (const base::Duration moment : kMoments) {
    EXPECT_EQ(stopped_after(moment), 0) << moment.count() << " us";
    EXPECT_TRUE(all_run());
    EXPECT_EQ(stopped_after(moment, {"--no-supervisor"}), 0) << moment.count() << " us";
    EXPECT_TRUE(all_run());
  }
}

// The container died before, was started again, and must stop now.
TEST_P(SupervisorTest, ToldToStopInItsFirstMomentsItThawsWhatTheOneBeforeHasFrozen) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  for (const base::Duration moment : kMoments) {
    node_->start();
    ASSERT_TRUE(both_freeze());
    kill_container();
    ASSERT_TRUE(both_frozen());
    EXPECT_EQ(stopped_after(moment), 0) << moment.count() << " us";
    EXPECT_TRUE(all_run());
  }
}

// While it waits for the run directory, which another one has.
TEST_P(SupervisorTest, ASecondAgentThatIsToldToStopLeavesTheFirstOnesPodsAlone) {
  ASSERT_TRUE(two_frozen_gangs());
  expect_no_part_of_a_second_agent("sleep 1; kill $p");
}

// It has no part in what the first one does, whatever is killed of it: nothing is thawed, and the
// first one's beats are its own.
TEST_P(SupervisorTest, ASecondAgentThatIsKilledLeavesTheFirstOnesPodsAlone) {
  ASSERT_TRUE(two_frozen_gangs());
  expect_no_part_of_a_second_agent("sleep 1; kill -9 $(cat /proc/$p/task/$p/children) 2>&1");
  EXPECT_FALSE(eventually([&] { return !both_frozen(); }, seconds{1}));
}

// A worker that the kernel holds: it stands still and does not die of SIGKILL. So does a process in
// a frozen cgroup of v1, until it is thawed.
class HeldWorkerTest : public AgentProcessFixture {
 protected:
  void SetUp() override {
    if (const auto missing = RealCgroups::missing(CgroupVersion::kV1)) {
      GTEST_SKIP() << "SKIPPED: " << *missing
                   << ", so no process can be made that SIGKILL does not end";
    }
    // Before the node's own, whose guardian and processes end first.
    holder_ = std::make_unique<RealCgroups>(CgroupVersion::kV1);
    AgentProcessFixture::SetUp();
  }
  void TearDown() override {
    if (holder_) let_go();
    AgentProcessFixture::TearDown();
  }
  void hold(pid_t worker) {
    holder_->make(kPlace);
    std::ofstream{holder_->root() + "/" + kPlace + "/cgroup.procs"} << worker;
    ASSERT_EQ(holder_->processes_count(kPlace), 1U);
    holder_->set_frozen(kPlace, true);
    ASSERT_TRUE(eventually([&] { return holder_->is_frozen(kPlace); }));
  }
  void let_go() { holder_->set_frozen(kPlace, false); }
  bool is_there(pid_t worker) const { return ::kill(worker, 0) == 0; }
  // Returns the process ID of the supervisor.
  int thaws_count() const {
    const std::string text = log_text();
    int count = 0;
    for (std::size_t at = 0; (at = text.find("thawed what the journal names", at)) != text.npos;
         ++at) {
      ++count;
    }
    return count;
  }

  static constexpr char kPlace[] = "worker";
  std::unique_ptr<RealCgroups> holder_;
};

// A second worker beside the first would freeze what the first one thaws as soon as the kernel lets
// it go.
TEST_P(HeldWorkerTest, ItsPodsAreThawedWithin6SecondsAndItsEndIsWaitedFor) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const std::optional<pid_t> worker = node_->worker();
  ASSERT_TRUE(worker.has_value());
  const base::Duration held = clock_.monotonic();
  hold(*worker);
  EXPECT_TRUE(both_have_run_within(seconds{6}));
  tell("both_have_run_after_ms", held);
  EXPECT_TRUE(
      eventually([&] { return log_text().find("hangs in the kernel") != std::string::npos; }));
  EXPECT_TRUE(all_run_for(seconds{1}));
  EXPECT_TRUE(is_there(*worker));
  EXPECT_EQ(node_->worker(), worker);  // no second one beside it
  EXPECT_EQ(thaws_count(), 1);
  let_go();
  ASSERT_TRUE(eventually([&] { return node_->has_other_worker(worker); }));
  EXPECT_EQ(thaws_count(), 2);  // what the call that held it may have frozen still
  EXPECT_TRUE(goes_on_taking_turns());
  EXPECT_THAT(log_text(), HasSubstr("hung and was killed"));
}

// The container died, and its worker holds the run directory until the kernel lets it go.
TEST_P(HeldWorkerTest, ToldToStopWhileTheWorkerBeforeStillEndsItThawsWhatThatOneFroze) {
  ASSERT_TRUE(two_frozen_gangs());
  const std::optional<pid_t> worker = node_->worker();
  ASSERT_TRUE(worker.has_value());
  hold(*worker);
  kill_container();
  node_->start();
  ASSERT_TRUE(has_begun());
  node_->signal(SIGTERM);
  EXPECT_EQ(node_->wait_for_end(milliseconds{300}), std::nullopt);
  let_go();
  EXPECT_EQ(node_->wait_for_end(seconds{10}), 0);
  EXPECT_TRUE(all_run());
}

// The supervisor thaws and ends, though its worker cannot be killed.
TEST_P(HeldWorkerTest, AStopThawsItsPodsWithin2Seconds) {
  ASSERT_TRUE(two_frozen_gangs());
  const std::optional<pid_t> worker = node_->worker();
  ASSERT_TRUE(worker.has_value());
  hold(*worker);
  const Stop stop = stopped();
  ASSERT_TRUE(stop.time.has_value());
  EXPECT_LE(*stop.time, kStops);
  EXPECT_EQ(stop.code, 1);  // it had to be made
  EXPECT_TRUE(all_run());
}

INSTANTIATE_TEST_SUITE_P(Real, SupervisorTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });
INSTANTIATE_TEST_SUITE_P(Real, HeldWorkerTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent::testing
