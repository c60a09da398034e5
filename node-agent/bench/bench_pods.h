// Pods with real cgroups for the benchmarks, and what drives them: the agent's switcher, or by
// hand.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node-agent/bench/spinner.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/switching/switch_clock.h"
#include "node-agent/switching/switcher.h"
#include "node-agent/testing/real_cgroups.h"

namespace agent::bench {

// cgroup v2 where it is there, else v1.
testing::CgroupVersion version_to_measure();

class BenchPods {
 public:
  BenchPods();

  // The first pod has index 0 in timetables. REQUIRES, as spin(): no other thread yet.
  std::uint16_t add_pod();
  Spinner& spin(std::uint16_t pod, SpinnerOptions options = {});

  const testing::RealCgroups& cgroups() const { return *cgroups_; }
  const std::string& path(std::uint16_t pod) const { return controls_[pod]->identity.path; }
  PodControl& control(std::uint16_t pod) { return *controls_[pod]; }
  std::size_t size() const { return controls_.size(); }
  std::vector<Spinner>& spinners_of(std::uint16_t pod) { return spinners_[pod]; }

  // Returns all pods by this cycle.
  Assignment assignment(std::vector<timetable::PodSet> cycle, base::Duration slice) const;

 private:
  std::unique_ptr<testing::RealCgroups> cgroups_;
  std::unique_ptr<PodCgroups> tree_;
  std::vector<std::shared_ptr<PodControl>> controls_;
  std::vector<std::vector<Spinner>> spinners_;
};

// A switcher with its thread. All pods run before and after.
class Driver {
 public:
  explicit Driver(SwitcherOptions options = {});

  // Returns when it is in force.
  void submit(Assignment assignment);
  // Lets all pods go; returns when they are thawed.
  void let_go(BenchPods& pods);
  Switcher& switcher() { return switcher_; }

 private:
  RealSwitchClock clock_;
  std::atomic<std::uint64_t> beat_{0};
  Switcher switcher_;
};

// Returns the percentile of values in any order: the smallest that at least `percent` of them do
// not exceed.
double percentile(std::vector<double> values, int percent);

// SCHED_FIFO at the switcher's priority for the calling thread, if the kernel allows it.
void take_fifo();

void sleep_until_nanos(std::int64_t wall);

}  // namespace agent::bench
