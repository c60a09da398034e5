#include "node-agent/itest/pitfalls_fixture.h"

#include <utility>

#include "base/check.h"

namespace agent {
namespace {

using testing::CgroupVersion;
using testing::eventually;
using testing::moves;
using testing::Progress;
using testing::RealCgroups;
using testing::stands_still;

}  // namespace

// The agent's real switcher on real cgroups; the test plays the policy and hands over assignments.
void PitfallsTest::SetUp() {
  if (const auto missing = RealCgroups::missing(GetParam())) {
    GTEST_SKIP() << "SKIPPED: " << *missing;
  }
  // Real cgroups and the real switcher with its thread; the policy is not there, the tests write
  // assignments themselves.
  cgroups_ = std::make_unique<RealCgroups>(GetParam());
  tree_ = std::make_unique<PodCgroups>(*PodCgroups::open(cgroups_->root(), ""));
  switcher_ = std::make_unique<Switcher>(clock_, beat_, SwitcherOptions{});
  ASSERT_TRUE(switcher_->start().ok());
}

// No test may leave a frozen process behind, also one that failed.
void PitfallsTest::TearDown() {
  if (!switcher_) return;
  // The thread must not end with a pod frozen: its processes could not be killed on v1.
  run_everything();
  switcher_.reset();
}

// Opened as the agent opens it, so that rules about paths and rights are those of the agent.
std::string PitfallsTest::add_pod() {
  const std::string uid = "pod-" + std::to_string(controls_.size());
  const std::string path = cgroups_->add_pod(uid);
  const base::Result<PodCgroup> cgroup = tree_->find(uid, kube::QosClass::kBurstable);
  CHECK(cgroup.ok());
  base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
  CHECK(freezer.ok());
  controls_.push_back(std::make_shared<PodControl>(
      PodIdentity{.uid = uid, .name = uid, .path = path}, *std::move(freezer), FoundAs::kRunning));
  return path;
}

Assignment PitfallsTest::assignment(std::vector<timetable::PodSet> cycle, base::Duration slice) {
  Assignment assignment;
  assignment.table = std::make_shared<const timetable::Timetable>(timetable::Timetable{
      .slice = slice, .pods_count = controls_.size(), .cycle = std::move(cycle)});
  for (std::size_t i = 0; i < controls_.size(); ++i) {
    assignment.pods.push_back({.control = controls_[i],
                               .index = static_cast<std::uint16_t>(i),
                               .rule = ControlRule::kTimetable});
  }
  return assignment;
}

// Until the switcher's thread has taken it over; what the kernel makes of it comes later, hence
// has_state().
void PitfallsTest::submit(Assignment assignment) {
  switcher_->submit(std::move(assignment));
  ASSERT_TRUE(eventually([&] { return switcher_->caught_up(); }));
}

void PitfallsTest::run_everything() {
  Assignment all = assignment({{}});
  all.everything_runs = true;
  submit(std::move(all));
}

// As the switcher believes it, which may lag behind the kernel by a look.
bool PitfallsTest::has_state(std::size_t pod, FreezeState state, base::Duration limit) {
  return eventually([&] { return controls_[pod]->state.load() == state; }, limit);
}

// Whatever happened before, the pod still obeys.
void PitfallsTest::expect_freeze_and_thaw(Progress& progress) {
  freeze_all();
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen));
  EXPECT_TRUE(stands_still(progress));
  run_everything();
  EXPECT_TRUE(moves(progress));
  EXPECT_TRUE(has_state(0, FreezeState::kThawed));
}

// The tests stand in several files.
INSTANTIATE_TEST_SUITE_P(Real, PitfallsTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace agent
