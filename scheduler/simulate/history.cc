#include "scheduler/simulate/history.h"

#include <algorithm>
#include <utility>

namespace simulate {

// Most spans lie within one or two slots: the job ran in all of it or not at all.
// Spans that are known to be run through need no timetable, and neighbors are joined: a history
// then costs as much as the changes in it.
void add_span(Placement& placement, RunSpan span) {
  if (span.timetable != nullptr && span.to != base::kNever) {
    const base::Duration ran = run_time(span, span.from, span.to);
    if (ran == base::Duration{0}) return;
    if (ran == span.to - span.from) span.timetable.reset();
  }
  std::vector<RunSpan>& spans = placement.spans;
  const bool goes_on = span.timetable == nullptr && !spans.empty() &&
                       spans.back().timetable == nullptr && spans.back().to == span.from;
  if (goes_on) {
    spans.back().to = span.to;
  } else {
    spans.push_back(std::move(span));
  }
}

const Placement* placement_at(const JobHistory& job, base::Instant t) {
  for (const Placement& placement : job.placements) {
    if (placement.from <= t && t < placement.to) return &placement;
  }
  return nullptr;
}

// Returns the sum of the parts of its spans that lie within [from, to).
base::Duration run_time(const Placement& placement, base::Instant from, base::Instant to) {
  base::Duration sum{0};
  for (const RunSpan& span : placement.spans) sum += run_time(span, from, to);
  return sum;
}

bool runs_at(const Placement& placement, base::Instant t) {
  return std::any_of(placement.spans.begin(), placement.spans.end(),
                     [&](const RunSpan& span) { return runs_at(span, t); });
}

const WaitNote* wait_note(const JobHistory& job, base::Instant t) {
  const auto last_of = [&](const std::vector<WaitNote>& notes) {
    const auto after =
        std::find_if(notes.begin(), notes.end(), [&](const WaitNote& note) { return note.at > t; });
    return after == notes.begin() ? nullptr : &*std::prev(after);
  };
  const WaitNote* const own = last_of(job.waits);
  return own == nullptr && job.with_array ? last_of(*job.with_array) : own;
}

// Returns the row that squeue would have shown at t: nothing before the submission and from the end
// on. Its reason is the last one that was noted by then.
std::optional<QueueRow> queue_row(const JobHistory& job, base::Instant t) {
  if (!job.submitted || *job.submitted > t || (job.ended && *job.ended <= t)) return std::nullopt;
  QueueRow row;
  row.placement = placement_at(job, t);
  if (const WaitNote* const note = wait_note(job, t)) {
    row.reason = note->reason;
    row.message = note->message;
  }
  if (row.placement == nullptr) return row;
  // A job on its nodes that does not run waits for its turn, or is suspended by its user or by a
  // preemptor: squeue shows all three as suspended.
  row.run_time = run_time(*row.placement, row.placement->from, t);
  row.state = runs_at(*row.placement, t) ? sched::JobState::kRunning : sched::JobState::kSuspended;
  return row;
}

}  // namespace simulate
