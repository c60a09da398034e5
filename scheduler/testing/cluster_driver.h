// Builders and a driver for tests of the core: one line per object, only the fields that matter.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/replay/replay.h"
#include "scheduler/scheduler.h"

namespace sched::testing {

constexpr base::Instant at(double seconds) {
  return base::Instant{base::Duration{static_cast<std::int64_t>(seconds * 1e6)}};
}
constexpr base::Duration seconds(double value) {
  return base::Duration{static_cast<std::int64_t>(value * 1e6)};
}

NodeSpec node(const std::string& name, int cpus = 4);
std::vector<NodeSpec> nodes(const std::string& prefix, int first, int last, int cpus = 4);
PartitionConfig partition(const std::string& name, const std::vector<NodeSpec>& nodes,
                          OverSubscribe over_subscribe = OverSubscribe::kForce, int max_share = 4,
                          std::uint16_t tier = 1);
// select/linear with GANG, slice 30 s, lead 0, no preemption, requeue delay 0, no backfill.
Configuration gang_linear(std::vector<PartitionConfig> partitions);
JobRequest job(std::int64_t id, int nodes_count, const std::string& partition = {});

// "node 2 as of 30: 3A 4W | until 60: 3 | cycle 4, 3" for messages.
std::string to_text(const NodePlan& plan);

// Drives a scheduler as a caller does: carries decisions out, keeps the books that a caller would
// keep, and (own timing) wakes it whenever it is due. Published plans are kept as agents would obey
// them.
class Driver {
 public:
  Driver(Configuration configuration, const std::vector<NodeSpec>& nodes, Options options = {})
      : Driver{std::move(configuration), nodes, Scheduler{options}} {}
  Driver(Configuration configuration, const std::vector<NodeSpec>& nodes, Scheduler scheduler);

  // Own timing: how long after its start a job is ready. nullopt = the test sends JobReady.
  std::optional<base::Duration> ready_after = base::Duration{0};
  // True: jobs are gone as soon as their end is decided.
  bool ends_at_once = true;
  // Every event that the scheduler is given, before it is; and what came of it.
  std::function<void(base::Instant, const Event&)> on_event;
  std::function<void(const std::vector<Decision>&)> on_decisions;
  std::function<void(base::Instant, const std::vector<NodePlan>&)> on_plans;

  void step(base::Instant now, const Event& event);
  // Everything that is due until then (own timing).
  void run_until(base::Instant now);

  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }
  void replace_scheduler(Scheduler other) { scheduler_ = std::move(other); }
  base::Instant now() const { return now_; }
  JobView view(JobId id) const;
  JobView view(std::int64_t id) const { return view(JobId{id}); }
  std::vector<std::string> nodes_of(std::int64_t id) const;
  // Returns "R", "S", "PD" or a terminal state's first letters; and the run time in whole seconds.
  std::string state(std::int64_t id) const;
  std::vector<Decision> take_log() { return std::exchange(log_, {}); }
  const std::map<NodeIndex, NodePlan>& published() const { return published_; }
  // The published plans let a job run at t on all of its nodes, on none, or on some.
  enum class Says { kRuns, kFrozen, kSplit };
  Says published_says(JobId id, base::Instant t) const;

 private:
  void settle();
  void feed(const Event& event);

  Scheduler scheduler_;
  base::Instant now_{};
  std::vector<Decision> log_;
  std::map<NodeIndex, NodePlan> published_;
  std::set<std::pair<base::Instant, JobId>> ready_due_;
};

}  // namespace sched::testing
