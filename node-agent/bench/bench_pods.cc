#include "node-agent/bench/bench_pods.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace agent::bench {

testing::CgroupVersion version_to_measure() {
  using testing::CgroupVersion;
  return testing::RealCgroups::missing(CgroupVersion::kV2) ? CgroupVersion::kV1
                                                           : CgroupVersion::kV2;
}

BenchPods::BenchPods()
    : cgroups_{std::make_unique<testing::RealCgroups>(version_to_measure())},
      tree_{std::make_unique<PodCgroups>(*PodCgroups::open(cgroups_->root(), ""))} {}

// By the agent's own way to a cgroup (PodCgroups, open_freezer), so that what is measured is what
// the agent uses.
std::uint16_t BenchPods::add_pod() {
  const std::string uid = "pod-" + std::to_string(controls_.size());
  const std::string path = cgroups_->add_pod(uid);
  base::Result<PodCgroup> cgroup = tree_->find(uid, kube::QosClass::kBurstable);
  CHECK(cgroup.ok());
  base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
  CHECK(freezer.ok());
  controls_.push_back(std::make_shared<PodControl>(
      PodIdentity{.uid = uid, .name = uid, .path = path}, *std::move(freezer), FoundAs::kRunning));
  spinners_.emplace_back();
  return static_cast<std::uint16_t>(controls_.size() - 1);
}

// The reference is good until the next spinner of the pod.
Spinner& BenchPods::spin(std::uint16_t pod, SpinnerOptions options) {
  return spinners_[pod].emplace_back(*cgroups_, path(pod), options);
}

Assignment BenchPods::assignment(std::vector<timetable::PodSet> cycle, base::Duration slice) const {
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

Driver::Driver(SwitcherOptions options) : switcher_{clock_, beat_, options} {
  CHECK(switcher_.start().ok());
}

// Until the switcher's thread has taken it over; where the machine keeps that thread waiting, a
// measurement must not begin.
void Driver::submit(Assignment assignment) {
  switcher_.submit(std::move(assignment));
  CHECK(testing::eventually([&] { return switcher_.caught_up(); }, std::chrono::seconds{60}));
}

void Driver::let_go(BenchPods& pods) {
  // An assignment that lists no pods lets go of all.
  Assignment nobody = pods.assignment({{}}, std::chrono::seconds{1});
  nobody.pods.clear();
  submit(std::move(nobody));
  CHECK(testing::eventually(
      [&] {
        for (std::uint16_t i = 0; i < pods.size(); ++i) {
          if (pods.control(i).controlled.load()) return false;
        }
        return true;
      },
      std::chrono::seconds{60}));
}

// Nearest rank: the smallest value that `percent` of the values do not exceed.
double percentile(std::vector<double> values, int percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

// As the switcher's own thread; without the right to it, measurements go on under CFS.
void take_fifo() {
  constexpr int kFifoPriority = 50;
  const sched_param parameters{.sched_priority = kFifoPriority};
  ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &parameters);
}

void sleep_until_nanos(std::int64_t wall) {
  const timespec time{.tv_sec = wall / 1'000'000'000, .tv_nsec = wall % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

}  // namespace agent::bench
