#include "scheduler/pass/pass_schedule.h"

#include <algorithm>

namespace sched {

// 3.1: event passes at once, full passes once in sched_interval; neither if nothing waits.
bool PassSchedule::is_due(base::Instant now) const {
  if (queue_.size() == 0) return false;
  if (now >= full_due()) return true;
  // An event pass: something changed since the last pass, or an answer of it (an exempt time, a
  // claim) holds no longer.
  return has_main_loop() && (books_.version() != seen_version_ || now >= pass_.passed_until());
}

// Returns the same as is_due(), as an instant.
std::optional<base::Instant> PassSchedule::next_due(base::Instant now) const {
  if (queue_.size() == 0) return std::nullopt;
  base::Instant due = full_due();
  if (has_main_loop() && books_.version() != seen_version_) due = now;
  if (has_main_loop()) due = std::min(due, pass_.passed_until());
  if (due == base::kNever) return std::nullopt;
  return std::max(due, now);
}

void PassSchedule::run(base::Instant now) {
  const bool full = now >= next_full_;
  const int depth = cluster_.parameters().queue.default_queue_depth;
  const bool again = pass_.run(now, full ? std::nullopt : std::optional{depth});
  // Otherwise the version stays unseen, and the next pass is due at once: a job that blocked a
  // partition started elsewhere, so the jobs behind it there may start.
  if (!again) seen_version_ = books_.version();
  const base::Duration interval = cluster_.parameters().queue.sched_interval;
  if (full && interval.count() > 0) next_full_ = now + interval;
}

// sched_interval -1 disables it. Then only the backfill starts jobs.
bool PassSchedule::has_main_loop() const {
  return cluster_.parameters().queue.sched_interval.count() >= 0;
}

// A full pass is needed only if the last pass did not reach the end of the queue, or if what it saw
// has changed and no event pass looks at it.
base::Instant PassSchedule::full_due() const {
  if (cluster_.parameters().queue.sched_interval.count() <= 0) return base::kNever;
  if (pass_.passed_version() != books_.version()) return next_full_;
  return base::kNever;
}

}  // namespace sched
