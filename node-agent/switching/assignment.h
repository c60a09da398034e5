// The switcher's whole task: which pods it controls and by which timetable. The policy
// makes a new one whenever something changed; the switcher obeys the newest and needs no other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "node-agent/freezer/freezer.h"
#include "node-agent/switching/freeze_machine.h"
#include "timetable/timetable.h"

namespace agent {

inline constexpr std::size_t kControlledPodsMax = 2 * timetable::kPodsMax;

// How the agent took a pod over when it opened its cgroup.
enum class FoundAs : std::uint8_t { kRunning, kFrozenByUs, kForeign };

// The identity of a pod, as the journal keeps it: enough to find its cgroup again after a restart,
// and to name it to people.
struct PodIdentity {
  std::string uid{};
  std::string name{};  // namespace/name
  std::string job_uid{};
  std::string path{};  // of the cgroup, relative to the root

  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;
};

// One pod incarnation with its open freezer, for as long as the pod exists. Constant but for what
// the switcher tells about it, which any thread may read.
struct PodControl {
  PodControl(PodIdentity who, std::shared_ptr<Freezer> pod_freezer, FoundAs how_found,
             std::string why_never = {})
      : identity{std::move(who)},
        freezer{std::move(pod_freezer)},
        found_as{how_found},
        never_freeze{std::move(why_never)},
        state{found_as == FoundAs::kRunning   ? FreezeState::kThawed
              : found_as == FoundAs::kForeign ? FreezeState::kForeign
                                              : FreezeState::kFreezing} {}

  const PodIdentity identity;
  const std::shared_ptr<Freezer> freezer;
  const FoundAs found_as;
  const std::string never_freeze;  // why it must not be frozen; "" = it may be

  std::atomic<FreezeState> state;
  std::atomic<bool> denied{false};
  std::atomic<std::uint64_t> slow_freezes{0};       // that took longer than kSlowFreeze
  std::atomic<std::int64_t> slow_freeze_micros{0};  // the last of them
  std::atomic<std::int64_t> last_switch_micros{0};  // wall clock; 0 = never switched by us
  std::atomic<bool> controlled{false};              // the switcher still has it in its table
  std::size_t slot = 0;                             // the switcher's own note: where in its table
};

// How a pod is treated. A pod that is being deleted must run, because kubelet's SIGTERM reaches it
// only while it runs.
enum class ControlRule : std::uint8_t {
  kTimetable,  // by run(t)
  kRuns,       // thawed whatever the timetable says; a foreign freeze is left alone
  kDeleted,    // thawed now and 100 ms later, verified; also out of a foreign freeze
};

struct ControlledPod {
  std::shared_ptr<PodControl> control;
  std::uint16_t index = 0;  // in the timetable; of ControlRule::kTimetable only
  ControlRule rule = ControlRule::kRuns;
};

// A pod that is in the assignment before and not in this one comes on in the same switch. While a
// PodControl is `controlled` and its cgroup is there, its pod has no other one.
struct Assignment {
  std::uint64_t number = 0;                             // ascending
  std::shared_ptr<const timetable::Timetable> table{};  // not null
  base::Duration barrier = std::chrono::milliseconds{20};
  bool everything_runs = false;       // fail-open, kill switch, stop
  std::vector<ControlledPod> pods{};  // at most kControlledPodsMax, no pod twice
};

// Takes assignments. The real one is switcher.h. The caller's thread only.
class AssignmentSink {
 public:
  virtual ~AssignmentSink() = default;
  // Hands over a new assignment; its number is given here. Never blocks.
  virtual void submit(Assignment assignment) = 0;
  // Returns true if the newest one that was submitted is in force.
  virtual bool caught_up() const = 0;
};

}  // namespace agent
