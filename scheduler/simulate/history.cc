#include "scheduler/simulate/history.h"

#include <algorithm>

namespace simulate {

const Placement* placement_at(const JobHistory& job, base::Instant t) {
  for (const Placement& placement : job.placements) {
    if (placement.from <= t && t < placement.to) return &placement;
  }
  return nullptr;
}

base::Duration run_time(const Placement& placement, base::Instant from, base::Instant to) {
  base::Duration sum{0};
  for (const RunSpan& span : placement.spans) sum += run_time(span, from, to);
  return sum;
}

bool runs_at(const Placement& placement, base::Instant t) {
  return std::any_of(placement.spans.begin(), placement.spans.end(),
                     [&](const RunSpan& span) { return runs_at(span, t); });
}

std::optional<QueueRow> queue_row(const JobHistory& job, base::Instant t) {
  if (!job.submitted || *job.submitted > t || (job.ended && *job.ended <= t)) return std::nullopt;
  QueueRow row;
  row.placement = placement_at(job, t);
  const auto after = std::find_if(job.waits.begin(), job.waits.end(),
                                  [&](const WaitNote& note) { return note.at > t; });
  if (after != job.waits.begin()) {
    row.reason = std::prev(after)->reason;
    row.message = std::prev(after)->message;
  }
  if (row.placement == nullptr) return row;
  row.run_time = run_time(*row.placement, row.placement->from, t);
  row.state = runs_at(*row.placement, t) ? sched::JobState::kRunning : sched::JobState::kSuspended;
  return row;
}

}  // namespace simulate
