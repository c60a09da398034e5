#include "scheduler/backfill/backfill_schedule.h"

#include <algorithm>

namespace sched {
namespace {

// Records in a step: some ten milliseconds in a large cluster.
constexpr int kRecordsPerStep = 64;

}  // namespace

std::optional<base::Instant> BackfillSchedule::next_due(base::Instant now) const {
  // A negative interval turns both of them off.
  if (cluster_.parameters().backfill.interval.count() < 0) return std::nullopt;
  if (!estimates_only()) return next_due_of(pass_, now);
  return tells_plans_ ? next_due_of(estimates_, now) : std::nullopt;
}

// Returns when the next step is due, by the first of these: a pass under way goes on at once; an
// empty queue needs none; after a change the next one waits for the interval; and without a change
// it waits for the instant at which what the last one found stops being true.
template <typename Pass>
std::optional<base::Instant> BackfillSchedule::next_due_of(const Pass& pass,
                                                           base::Instant now) const {
  if (pass.active()) return now;
  if (queue_.size() == 0) return std::nullopt;
  // Something changed, or the last pass did not see all: a pass is due when the interval is over.
  if (books_.version() != pass.passed_version()) return std::max(next_, now);
  if (pass.passed_until() == base::kNever) return std::nullopt;
  return std::max({next_, pass.passed_until(), now});
}

// Counts the interval from the end of the pass: one that takes long in many steps leaves time
// between passes all the same.
void BackfillSchedule::run(base::Instant now) {
  const ClusterParameters& parameters = cluster_.parameters();
  if (estimates_only()) {
    if (!estimates_.active()) estimates_.begin(now);
    if (estimates_.step(now, kRecordsPerStep)) next_ = now + estimates_interval(parameters);
    return;
  }
  if (!pass_.active()) pass_.begin(now);
  if (pass_.step(now, kRecordsPerStep)) {
    next_ = now + std::max(parameters.backfill.interval, rest_min_);
  }
}

}  // namespace sched
