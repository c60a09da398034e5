// Pitfalls: another program moves tasks, makes or removes cgroups, or freezes and thaws them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "node-agent/itest/pitfalls_fixture.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::CgroupVersion;
using testing::eventually;
using testing::moves;
using testing::Progress;
using testing::stands_still;

// The freeze belongs to the cgroup. An administrator who moves a task out lets it run, and the pod
// without it is still frozen.
TEST_P(PitfallsTest, ATaskThatIsMovedOutRunsAgainAndThePodStaysFrozen) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  std::ifstream procs{cgroups_->root() + "/" + pod + "/cgroup.procs"};
  pid_t task = 0;
  ASSERT_TRUE(procs >> task);
  std::ofstream{cgroups_->root() + "/outside/cgroup.procs"} << task;
  EXPECT_TRUE(moves(progress));
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
}

// As a shell does with `echo $$ > cgroup.procs`: the write does not return before the thaw, because
// the writer itself is frozen (freezer.md 2.5).
TEST_P(PitfallsTest, ATaskThatMovesItselfInGoesOnWhenThePodIsThawed) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  // Shared with the child: a copy would not show its change.
  static std::atomic<int>* entered = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0));
  entered->store(0);
  const std::string procs = cgroups_->root() + "/" + pod + "/cgroup.procs";
  cgroups_->spawn("outside", [procs] {
    std::ofstream{procs} << ::getpid();
    entered->store(1);
    for (;;) ::pause();
  });
  EXPECT_FALSE(eventually([] { return entered->load() == 1; }, milliseconds{200}));
  run_everything();
  EXPECT_TRUE(eventually([] { return entered->load() == 1; }));
}

// A container that is started in a frozen pod: its cgroup is born frozen, though its own file says
// thawed, and only the pod's thaw helps.
TEST_P(PitfallsTest, ANewChildCgroupOfAFrozenPodIsFrozenAndThawingItChangesNothing) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  cgroups_->make(pod + "/container");
  EXPECT_FALSE(cgroups_->is_asked_frozen(pod + "/container"));
  EXPECT_TRUE(eventually([&] { return cgroups_->is_frozen(pod + "/container"); }));
  // A task can only be moved in from elsewhere: nothing that is started within the pod would run to
  // enter.
  Progress& progress = cgroups_->spawn_counter("outside", milliseconds{1});
  std::ifstream procs{cgroups_->root() + "/outside/cgroup.procs"};
  pid_t task = 0;
  ASSERT_TRUE(procs >> task);
  std::ofstream{cgroups_->root() + "/" + pod + "/container/cgroup.procs"} << task;
  EXPECT_TRUE(eventually([&] { return stands_still(progress, milliseconds{20}); }));
  // As a runtime may do that finds its container standing still.
  cgroups_->set_frozen(pod + "/container", false);
  EXPECT_TRUE(stands_still(progress));
  run_everything();
  EXPECT_TRUE(moves(progress));
}

// For example `docker pause` of one container. Our thaw of the pod must not undo it, and our freeze
// above it must not be taken for stuck.
TEST_P(PitfallsTest, AChildCgroupThatSomebodyElseFrozeStaysFrozen) {
  const std::string pod = add_pod();
  cgroups_->make(pod + "/container");
  Progress& of_child = cgroups_->spawn_counter(pod + "/container", milliseconds{1});
  Progress& of_pod =
      GetParam() == CgroupVersion::kV1 ? cgroups_->spawn_counter(pod, milliseconds{1}) : of_child;
  cgroups_->set_frozen(pod + "/container", true);
  ASSERT_TRUE(eventually([&] { return cgroups_->is_frozen(pod + "/container"); }));
  freeze_all();
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  run_everything();
  EXPECT_TRUE(stands_still(of_child));
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod + "/container"));
  cgroups_->set_frozen(pod + "/container", false);
  EXPECT_TRUE(moves(of_child));
  EXPECT_TRUE(moves(of_pod));
}

// `kubectl exec` into a frozen pod seems to hang. That is right: a task that ran there would run in
// another gang's turn.
TEST_P(PitfallsTest, ATaskThatEntersAFrozenPodFreezes) {
  const std::string pod = add_pod();
  cgroups_->make("outside");
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  Progress& progress = cgroups_->spawn_counter("outside", milliseconds{1});
  ASSERT_TRUE(moves(progress));
  // Find it and move it in, as `kubectl exec` would through the runtime.
  std::ifstream procs{cgroups_->root() + "/outside/cgroup.procs"};
  pid_t task = 0;
  ASSERT_TRUE(procs >> task);
  std::ofstream{cgroups_->root() + "/" + pod + "/cgroup.procs"} << task;
  EXPECT_TRUE(eventually([&] { return stands_still(progress, milliseconds{20}); }));
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  run_everything();
  EXPECT_TRUE(moves(progress));
}

// kubelet removes the cgroup of a pod that has ended while the switcher still has it open. The
// other pod's switches go on.
TEST_P(PitfallsTest, ACgroupThatIsRemovedUnderItsHandsIsGone) {
  const std::string pod = add_pod();
  add_pod();
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  ASSERT_TRUE(cgroups_->remove(pod));
  EXPECT_TRUE(has_state(0, FreezeState::kGone));
  run_everything();
  EXPECT_TRUE(has_state(1, FreezeState::kThawed));
}

// The audit finds it, which comes every 2 s (freeze_machine.cc).
TEST_P(PitfallsTest, AFreezeThatSomebodyElseUndidIsMadeAgain) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  cgroups_->set_frozen(pod, false);
  EXPECT_TRUE(eventually([&] { return cgroups_->is_frozen(pod); }, seconds{3}));
  EXPECT_TRUE(stands_still(progress));
}

// A pod that was frozen before the agent knew it is foreign: neither thawed nor counted as the
// agent's.
TEST_P(PitfallsTest, AForeignFreezeIsLeftAlone) {
  const std::string pod = add_pod();
  const std::string other = add_pod();
  cgroups_->spawn_counter(pod, milliseconds{1});
  cgroups_->set_frozen(pod, true);
  controls_[0] = std::make_shared<PodControl>(controls_[0]->identity, controls_[0]->freezer,
                                              FoundAs::kForeign);
  submit(assignment({{0}, {1}}));
  // Several turns of the pod, in which nothing may be written.
  std::this_thread::sleep_for(milliseconds{1500});
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  EXPECT_EQ(controls_[0]->state.load(), FreezeState::kForeign);
  run_everything();
  EXPECT_TRUE(cgroups_->is_asked_frozen(pod));
  cgroups_->set_frozen(pod, false);
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

}  // namespace
}  // namespace agent
