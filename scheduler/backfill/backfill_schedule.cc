#include "scheduler/backfill/backfill_schedule.h"

#include <algorithm>

namespace sched {
namespace {

// So many records in a step: some ten milliseconds in a large cluster.
constexpr int kRecordsPerStep = 64;

}  // namespace

std::optional<base::Instant> BackfillSchedule::next_due(base::Instant now) const {
  const ClusterParameters& parameters = cluster_.parameters();
  if (parameters.scheduler != SchedulerType::kBackfill) return std::nullopt;
  if (parameters.backfill.interval.count() < 0) return std::nullopt;
  if (pass_.active()) return now;
  if (queue_.size() == 0) return std::nullopt;
  // Something changed, or the last pass did not see all: a pass is due when the interval is over.
  if (books_.version() != pass_.passed_version()) return std::max(next_, now);
  if (pass_.passed_until() == base::kNever) return std::nullopt;
  return std::max({next_, pass_.passed_until(), now});
}

void BackfillSchedule::run(base::Instant now) {
  if (!pass_.active()) pass_.begin(now);
  // From the end of the pass: one that takes long in many steps leaves time between passes all the
  // same.
  if (pass_.step(now, kRecordsPerStep)) next_ = now + cluster_.parameters().backfill.interval;
}

}  // namespace sched
