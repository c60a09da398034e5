#include "operator/jobs/job_numbers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/wellknown.h"

namespace control {

std::optional<sched::JobId> JobNumbers::next(const std::string& job_uid) {
  // Numbers come out of a block that is reserved in SchedulerConfig's status, so that a number
  // costs no write of its own and is never given twice, whichever leader crashed when.
  if (next_ < end_) return sched::JobId{next_++};
  if (asked_.insert(job_uid).second) waiting_.push_back(job_uid);
  return std::nullopt;
}

std::optional<ReserveIds> JobNumbers::due(base::Instant now, const std::string* config_version) {
  if (waiting_.empty() || next_ < end_ || !attempts_.may_begin(now)) return std::nullopt;
  // One reservation at a time: two blocks under way could be answered out of order, and the first
  // would be lost.
  attempts_.begin();
  const std::int64_t first = std::max(next_, std::int64_t{1});
  return ReserveIds{.first = first,
                    // At least one for each job that waits, or each block of a burst would be used
                    // up at once.
                    .end = first + std::max(kube::kJobIdBlock, std::ssize(waiting_)),
                    .exists = config_version != nullptr,
                    .version = config_version != nullptr ? *config_version : ""};
}

std::vector<std::string> JobNumbers::answered(const IdsReserved& outcome, base::Instant now) {
  if (!outcome.result.ok()) {
    attempts_.failed(now);
    if (outcome.fresh) {
      // Another leader may have reserved numbers meanwhile: go on behind them.
      next_ = std::max(next_, outcome.fresh->status.next_job_id.value_or(1));
      end_ = std::max(end_, next_);
    }
    return {};
  }
  attempts_.succeeded();
  next_ = outcome.first;
  end_ = outcome.end;
  asked_.clear();
  // The order is that in which they asked, which is the order of the queue.
  return std::exchange(waiting_, {});
}

base::Instant JobNumbers::next_due(base::Instant now) const {
  if (waiting_.empty() || attempts_.is_under_way()) return base::kNever;
  return std::max(attempts_.due(), now);
}

}  // namespace control
