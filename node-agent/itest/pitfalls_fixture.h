// The pitfall matrix (freezer.md 2.5) with real processes in real cgroups: what the kernel
// does, and that the switcher, on its own thread, copes with it. This is what its tests share.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/switching/switcher.h"
#include "node-agent/testing/real_cgroups.h"

namespace agent {

class PitfallsTest : public ::testing::TestWithParam<testing::CgroupVersion> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Adds a pod under control; the first one added has index 0 in the timetables.
  std::string add_pod();
  Assignment assignment(std::vector<timetable::PodSet> cycle,
                        base::Duration slice = std::chrono::milliseconds{100});
  void submit(Assignment assignment);
  void freeze_all() { submit(assignment({{}})); }
  void run_everything();
  bool has_state(std::size_t pod, FreezeState state,
                 base::Duration limit = std::chrono::seconds{5});
  // Pod 0 freezes and thaws, and this task of it stands still and moves.
  void expect_freeze_and_thaw(testing::Progress& progress);

  RealSwitchClock clock_;
  std::atomic<std::uint64_t> beat_{0};
  std::unique_ptr<testing::RealCgroups> cgroups_;
  std::unique_ptr<PodCgroups> tree_;
  std::unique_ptr<Switcher> switcher_;
  std::vector<std::shared_ptr<PodControl>> controls_;
};

}  // namespace agent
