// The program touches only what it must, and reports truly what it was given: cgroups
// of pods alone, files that it may not write, a thread's policy, locked memory.
// (freezer.md 4 rules 1, 2, 10; 5.3, 5.6)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "node-agent/itest/agent_process_fixture.h"

namespace agent::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr base::Duration kStatusWithin = seconds{30};  // it is not written all the time

class AgentConfinementTest : public AgentProcessFixture {
 protected:
  // Returns a number of /proc/PID/status, of `field` with its colon.
  static long status_number(pid_t process, const std::string& field) {
    std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
    for (std::string word; status >> word;) {
      long number = 0;
      if (word == field && status >> number) return number;
    }
    return -1;
  }
  // By the name that the agent gives its threads; a debugger shows the same.
  static std::optional<pid_t> thread_of(pid_t process, const std::string& name) {
    for (const auto& task : fs::directory_iterator{"/proc/" + std::to_string(process) + "/task"}) {
      std::string comm;
      std::getline(std::ifstream{task.path() / "comm"} >> std::ws, comm);
      if (comm == name) return std::atoi(task.path().filename().c_str());
    }
    return std::nullopt;
  }
  // The files that a freezer is written by and read from, of pod `name`.
  void give_freezer_of(const std::string& name, uid_t owner) {
    const fs::path pod = fs::path{node_->cgroups().root()} / node_->path(name);
    const char* file = GetParam() == CgroupVersion::kV2 ? "cgroup.freeze" : "freezer.state";
    ASSERT_EQ(::chown((pod / file).c_str(), owner, owner), 0);
  }
  std::string reason_of_ready() {
    const kube::NodeTimetableStatus status = node_->timetable().status;
    const kube::Condition* ready = kube::find_condition(status.conditions, "Ready");
    return ready == nullptr ? "" : ready->reason;
  }
};

// Neither a container (the runtime's to freeze) nor a cgroup above the pod (others are in it).
// freezer.md 4, rule 1: a container that is frozen by another program than its runtime confuses the
// runtime.
TEST_P(AgentConfinementTest, FreezesAtPodLevelOnly) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{0}}, kSlice);
  const std::string container = node_->path("b") + "/container";
  node_->cgroups().make(container);
  Progress& inside = node_->cgroups().spawn_counter(container, std::chrono::milliseconds{1});
  node_->start();
  ASSERT_TRUE(eventually([&] { return frozen("b"); }));
  EXPECT_TRUE(eventually([&] { return stands_still(inside); }));
  for (const std::string& other :
       {container, std::string{"kubepods/burstable"}, std::string{"kubepods"}, std::string{}}) {
    EXPECT_FALSE(node_->cgroups().is_asked_frozen(other)) << other;
  }
  // The freeze of the pod reached the container below it, and so does the thaw.
  node_->publish(1, 3, {"a", "b"}, {{0, 1}}, kSlice);
  EXPECT_TRUE(moves(inside));
}

// The others take their turns all the while, and the pod joins them once it may be written. The
// freeze file of c belongs to another user.
TEST_P(AgentConfinementTest, APodWhoseFreezerItMayNotWriteRunsAndTheStatusSaysSo) {
  constexpr uid_t kNobody = 65534;
  two_gangs();
  node_->add_pod("c", "c");
  node_->publish(1, 2, {"a", "b", "c"}, {{0}, {1}}, kSlice);
  node_->drop_capabilities();  // else uid 0 may write everything
  // Not listed in a slot, so c would be frozen for good if it could be.
  give_freezer_of("c", kNobody);
  node_->start();
  EXPECT_TRUE(goes_on_taking_turns());
  EXPECT_TRUE(eventually([&] { return reason_of_ready() == "CgroupUnwritable"; }, kStatusWithin));
  EXPECT_FALSE(frozen("c"));
  give_freezer_of("c", 0);
  EXPECT_TRUE(eventually([&] { return frozen("c"); }));
  EXPECT_TRUE(goes_on_taking_turns());
  EXPECT_TRUE(eventually([&] { return reason_of_ready() == "Obeying"; }, kStatusWithin));
}

// Also at the agent's end, at which it thaws what it has frozen itself. The other program comes
// later than the agent: what is frozen before the first agent begins counts as the agent's.
TEST_P(AgentConfinementTest, AListedPodThatSomebodyElseFrozeIsReportedAndLeftAlone) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{1}}, kSlice);  // it would be b's turn
  node_->start();
  ASSERT_TRUE(eventually([&] { return frozen("a"); }));
  node_->cgroups().set_frozen(node_->path("b"), true);
  EXPECT_TRUE(eventually(
      [&] {
        return node_->timetable().status.foreign ==
               std::vector<kube::PodReference>{{"default", "b"}};
      },
      kStatusWithin));
  EXPECT_TRUE(frozen("b"));
  node_->signal(SIGTERM);
  EXPECT_EQ(node_->wait_for_end(seconds{10}), 0);
  EXPECT_FALSE(frozen("a"));
  EXPECT_TRUE(frozen("b"));
}

// The metric and the log are compared with the kernel's own answer: an agent that believed to have
// SCHED_FIFO would hide why switches are late.
TEST_P(AgentConfinementTest, SaysWhichPolicyItsSwitchingThreadHasWhetherItWasGrantedOrRefused) {
  two_gangs();
  for (const bool capable : {true, false}) {
    if (!capable) node_->drop_capabilities();
    node_->start();
    ASSERT_TRUE(takes_turns_soon());
    const std::optional<pid_t> thread = thread_of(node_->worker().value(), "switcher");
    ASSERT_TRUE(thread.has_value());
    const bool fifo = ::sched_getscheduler(*thread) == SCHED_FIFO;
    EXPECT_FALSE(fifo && !capable);
    const std::string metrics = get("/metrics");
    const auto line = [](const char* policy, bool is) {
      return std::string{"kubegang_agent_switcher_policy{policy=\""} + policy + "\"} " +
             (is ? "1\n" : "0\n");
    };
    EXPECT_THAT(metrics, HasSubstr(line("fifo", fifo)));
    EXPECT_THAT(metrics, HasSubstr(line("cfs", !fifo)));
    EXPECT_THAT(log_text(), HasSubstr(fifo ? "policy=fifo" : "policy=cfs"));
    std::printf("%s: %s\n", capable ? "as this test may" : "without capabilities",
                fifo ? "fifo" : "cfs");
    node_->end();
  }
}

// With everything locked at once it would be resident at once. The bound compares the two numbers
// of the kernel: what is locked as address space, and what is resident.
TEST_P(AgentConfinementTest, LocksOnlyTheMemoryThatItTouches) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: a sanitizer's mlockall does nothing";
#endif
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const pid_t worker = node_->worker().value();
  const long locked_kib = status_number(worker, "VmLck:");
  if (log_text().find("memory is not locked") != std::string::npos) {
    EXPECT_EQ(locked_kib, 0);
    GTEST_SKIP() << "SKIPPED: this test may not lock memory (CAP_IPC_LOCK)";
  }
  EXPECT_GT(locked_kib, 0);
  EXPECT_LT(2 * status_number(worker, "VmRSS:"), locked_kib);
}

INSTANTIATE_TEST_SUITE_P(Real, AgentConfinementTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent::testing
