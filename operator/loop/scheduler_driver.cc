#include "operator/loop/scheduler_driver.h"

namespace control {
namespace {

// Returns the event without what ends a job by time: time limits, as with OverTimeLimit=UNLIMITED,
// and deadlines.
sched::Event without_ends(sched::Event event) {
  if (auto* configure = std::get_if<sched::Configure>(&event)) {
    sched::Configuration configuration = *configure->configuration;
    configuration.cluster.over_time_limit.reset();
    for (auto& partition : configuration.partitions) partition.over_time_limit.reset();
    configure->configuration =
        std::make_shared<const sched::Configuration>(std::move(configuration));
  } else if (auto* submit = std::get_if<sched::Submit>(&event)) {
    submit->request.deadline.reset();
  } else if (auto* update = std::get_if<sched::Update>(&event)) {
    update->request.deadline.reset();
  }
  return event;
}

}  // namespace

// The scheduler is a pure state machine: it changes its state and leaves decisions to be taken.
void SchedulerDriver::tell(const sched::Event& event) {
  ++counters_.events;
  plans_changed_ = true;
  const base::Duration began = clock_.monotonic();
  if (const auto* const configure = std::get_if<sched::Configure>(&event)) {
    configuration_ = configure->configuration;
  }
  scheduler_.step(now_, ends_by_time_ ? event : without_ends(event));
  // Taken before they are applied: applying one may tell the scheduler something, and this function
  // is entered again.
  const auto decisions = scheduler_.take_decisions();
  counters_.deciding += clock_.monotonic() - began;
  hand_over(decisions);
}

bool SchedulerDriver::wake() {
  if (next_due() > now_) return false;
  tell(sched::Wake{});
  return true;
}

void SchedulerDriver::restore(std::vector<sched::JobFacts> jobs,
                              std::vector<sched::NodePlan> published,
                              const std::vector<sched::KnownJob>& known) {
  plans_changed_ = true;
  for (sched::JobFacts& job : jobs) {
    if (ends_by_time_ || !job.request->deadline) continue;
    job.change_request([](sched::JobRequest& request) { request.deadline.reset(); });
  }
  scheduler_.restore_from_published(now_, std::move(jobs), std::move(published), known);
  hand_over(scheduler_.take_decisions());
}

sched::StateCopy SchedulerDriver::copy() const {
  sched::StateCopy copy = scheduler_.copy(now_);
  copy.configuration = configuration_;
  return copy;
}

// Hands them over in the order in which they were made: a later one may rest on an earlier one.
void SchedulerDriver::hand_over(const std::vector<sched::Decision>& decisions) {
  for (const sched::Decision& decision : decisions) {
    ++counters_.decisions;
    apply_(decision);
  }
}

std::vector<sched::NodePlan> SchedulerDriver::take_plans() {
  // Plans can only change with an event, so a step without one does not compare them.
  if (!std::exchange(plans_changed_, false)) return {};
  const base::Duration began = clock_.monotonic();
  auto plans = scheduler_.take_plans(now_);
  counters_.deciding += clock_.monotonic() - began;
  return plans;
}

}  // namespace control
