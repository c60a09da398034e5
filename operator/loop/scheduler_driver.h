// SchedulerDriver: tells the scheduler what happened, hands each of its decisions over at once, and
// counts what it costs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/clock.h"
#include "operator/loop/counters.h"
#include "operator/publish/usage_keeper.h"
#include "scheduler/scheduler.h"

namespace control {

// Belongs to the loop's thread.
class SchedulerDriver {
 public:
  // May tell more.
  using Apply = std::function<void(const sched::Decision&)>;

  // `now`: of the present step. All references must live longer than this.
  SchedulerDriver(const kube::Clock& clock, const base::Instant& now, LoopCounters& counters,
                  Apply apply)
      : clock_{clock}, now_{now}, counters_{counters}, apply_{std::move(apply)} {}

  // Called before any event if the wall clock cannot be trusted: no job then ends because time has
  // passed.
  void end_nothing_by_time() { ends_by_time_ = false; }
  bool ends_by_time() const { return ends_by_time_; }

  void tell(const sched::Event& event);
  // Makes a pass, if one is due.
  bool wake();
  // Instead of the first events about jobs (Scheduler::restore_from_published).
  void restore(std::vector<sched::JobFacts> jobs, std::vector<sched::NodePlan> published,
               const std::vector<sched::KnownJob>& known);
  void restore_usage(const sched::UsageState& usage, const std::vector<sched::EndedJob>& ended) {
    scheduler_.restore_usage(usage, ended);
  }
  std::optional<PutUsage> due_usage(UsageKeeper& keeper, const UsageKeeper::IsStored& is_stored) {
    return keeper.due(now_, scheduler_, is_stored);
  }
  // For a forecast.
  sched::StateCopy copy() const;
  // Returns the plans that changed since the last call.
  std::vector<sched::NodePlan> take_plans();
  // kNever: only an event can change anything.
  base::Instant next_due() const { return scheduler_.next_due().value_or(base::kNever); }

  std::optional<sched::JobView> view(sched::JobId job) const { return scheduler_.job(job, now_); }
  // Returns the names and indexes that the scheduler knows.
  const sched::Scheduler& names() const { return scheduler_; }
  sched::PartitionIndex known_partition(const std::string& name) {
    return scheduler_.known_partition(name);
  }

 private:
  void hand_over(const std::vector<sched::Decision>& decisions);

  const kube::Clock& clock_;
  const base::Instant& now_;
  LoopCounters& counters_;
  const Apply apply_;
  sched::Scheduler scheduler_{sched::Options{}};
  std::shared_ptr<const sched::Configuration> configuration_;  // as sent last
  bool plans_changed_ = false;
  bool ends_by_time_ = true;
};

}  // namespace control
