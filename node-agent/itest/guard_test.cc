// The guard: what was frozen by an agent runs within 6 s whatever is killed, though the agent's
// container is not started again, and as long as the agent lives the guard does nothing.
#include "node-agent/survival/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/prng.h"
#include "node-agent/itest/agent_process_fixture.h"

namespace agent::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr base::Duration kLimit = seconds{6};

class GuardTest : public AgentProcessFixture {
 protected:
  void two_gangs_with_a_guard() {
    two_gangs();
    node_->start_guard();
    node_->start();
    ASSERT_TRUE(takes_turns_soon());
  }
  bool all_run_within(base::Duration limit) {
    return time_until([&] { return all_run(); }, limit).has_value();
  }
};

// As an OOM kill of a container does (memory.oom.group), and it is not restarted: kubelet waits in
// its back-off.
TEST_P(GuardTest, ThawsEverythingWhenSupervisorAndWorkerAreKilledAtOnce) {
  constexpr std::uint64_t kSeed = 20261123;
  base::Prng prng{kSeed};
  two_gangs_with_a_guard();
  const std::string foreign = node_->cgroups().add_pod("foreign");
  node_->cgroups().set_frozen(foreign, true);
  base::Duration longest{0};
  // At random points of a rotation, and each time the agent comes back beside the guard that has
  // thawed.
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    std::this_thread::sleep_for(base::Duration{static_cast<std::int64_t>(prng.below(400'000))});
    const base::Duration killed_at = clock_.monotonic();
    kill_container();
    ASSERT_TRUE(all_run_within(kLimit));
    longest = std::max(longest, clock_.monotonic() - killed_at);
    ASSERT_TRUE(all_run_for(milliseconds{500}));
    ASSERT_TRUE(node_->cgroups().is_asked_frozen(foreign));
    node_->start();
    ASSERT_TRUE(takes_turns_soon(seconds{10}));
    ASSERT_TRUE(goes_on_taking_turns());
  }
  std::printf("longest until everything ran: %lld ms\n",
              static_cast<long long>(longest.count() / 1000));
}

// A guard that thawed beside a living agent would let gangs overlap at every mistake.
TEST_P(GuardTest, DoesNothingWhileTheAgentTakesTurnsAlsoWhenItIsKilledItself) {
  two_gangs_with_a_guard();
  EXPECT_TRUE(goes_on_taking_turns());
  // A guard that dies changes nothing: it has frozen nothing, and the kernel frees its lock.
  EXPECT_EQ(node_->end_guard(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(goes_on_taking_turns());
  node_->start_guard();
  EXPECT_TRUE(goes_on_taking_turns());
  ::kill(*node_->worker(), SIGKILL);  // The supervisor's business.
  EXPECT_TRUE(takes_turns_soon());
  EXPECT_THAT(log_text(), Not(HasSubstr("stands still")));
  kill_container();
  EXPECT_TRUE(all_run_within(kLimit));
}

// Both containers are killed, and kubelet brings the guard back first. It was not there when the
// agent died.
TEST_P(GuardTest, ThawsAtItsStartWhatADeadAgentLeft) {
  ASSERT_TRUE(two_frozen_gangs());
  kill_container();
  ASSERT_TRUE(both_frozen());
  node_->start_guard();
  EXPECT_TRUE(all_run_within(kLimit));
}

// A freeze by another program after that is foreign.
TEST_P(GuardTest, ThawsOnceForEachAgentThatIsGone) {
  two_gangs_with_a_guard();
  kill_container();
  ASSERT_TRUE(all_run_within(kLimit));
  ASSERT_TRUE(all_run_for(milliseconds{500}));
  node_->cgroups().set_frozen(node_->path("a"), true);
  // Five of the guard's looks, none of which may thaw again what the journal still names.
  EXPECT_FALSE(eventually([&] { return !frozen("a"); }, seconds{1}));
  node_->cgroups().set_frozen(node_->path("a"), false);
}

// The whole container stands still: its supervisor, too.
TEST_P(GuardTest, ThawsBesideAnAgentThatStandsStillAndLetsItGoOn) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  node_->start_guard();
  node_->start();
  ASSERT_TRUE(both_freeze());
  std::this_thread::sleep_for(seconds{1});  // Both loops have beaten.
  const std::optional<pid_t> worker = node_->worker();
  ASSERT_TRUE(worker.has_value());
  node_->signal(SIGSTOP);
  ::kill(*worker, SIGSTOP);
  const base::Duration stopped_at = clock_.monotonic();
  EXPECT_TRUE(all_run_within(kLimit));
  tell("all_run_after_ms", stopped_at);
  EXPECT_TRUE(eventually([&] { return log_text().find("stands still") != std::string::npos; }));
  ::kill(*worker, SIGCONT);
  node_->signal(SIGCONT);
  // The audit finds that they run.
  EXPECT_TRUE(both_freeze());
  EXPECT_FALSE(eventually([&] { return !both_frozen(); }, seconds{2}));
  // The supervisor stood still for as long as the worker. It counts at most 1 s of such a gap
  // (kLookGapMax), so it does not take the worker for hung.
  EXPECT_EQ(node_->worker(), worker);
}

// The pod ends: kubelet signals both, or the guard after the agent.
TEST_P(GuardTest, EndsAfterTheAgentAndThawsIfThatWasKilled) {
  two_gangs_with_a_guard();
  EXPECT_EQ(node_->end_guard(SIGTERM, milliseconds{500}), std::nullopt);  // it waits
  EXPECT_TRUE(goes_on_taking_turns());
  node_->signal(SIGTERM);
  EXPECT_EQ(node_->wait_for_end(seconds{5}), 0);
  EXPECT_EQ(node_->end_guard(SIGTERM), 0);
  EXPECT_TRUE(all_run());
  node_->start_guard();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  EXPECT_EQ(node_->end_guard(SIGTERM, milliseconds{100}), std::nullopt);
  kill_container();
  EXPECT_EQ(node_->end_guard(SIGTERM), 0);
  EXPECT_TRUE(all_run());
}

// The chart gives it none.
TEST_P(GuardTest, NeedsNoCapability) {
  two_gangs();
  node_->drop_capabilities();
  node_->start_guard();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  kill_container();
  EXPECT_TRUE(all_run_within(kLimit));
}

// The chart gives it 32 MiB, and bounds what the pod has resident as a whole.
TEST_P(GuardTest, IsSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: a sanitizer's own memory is resident, too";
#endif
  constexpr long kResidentMax = 8 << 10;  // KiB
  two_gangs_with_a_guard();
  // After a thaw: the journal has been read by then, which is all the memory that it ever needs.
  kill_container();
  ASSERT_TRUE(all_run_within(kLimit));
  std::ifstream status{"/proc/" + std::to_string(node_->guard()) + "/status"};
  long kibibytes = -1;
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> kibibytes;
  }
  std::printf("resident: %ld KiB\n", kibibytes);
  RecordProperty("resident_KiB", std::to_string(kibibytes));
  EXPECT_GT(kibibytes, 0);
  EXPECT_LE(kibibytes, kResidentMax);
}

INSTANTIATE_TEST_SUITE_P(Real, GuardTest, ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent::testing
