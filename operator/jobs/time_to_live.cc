#include "operator/jobs/time_to_live.h"

namespace control {
namespace {

constexpr base::Duration kTryAgain = std::chrono::minutes{1};

}  // namespace

void TimeToLive::observe(const kube::ObjectKey& key, const std::string& uid,
                         const kube::JobSpec& spec, const kube::JobStatus& status) {
  // Also when the field is taken away from a job that has ended.
  if (!spec.lifecycle.ttl_after_finished || !status.end_time) return forget(uid);
  const base::Instant end = *status.end_time + *spec.lifecycle.ttl_after_finished;
  const auto [found, is_new] = jobs_.try_emplace(uid, Entry{key, end, end});
  Entry& entry = found->second;
  if (!is_new) {
    if (entry.end == end) return;  // a try may have been made: the next one waits
    order_.erase({entry.next_try, uid});
    // The user has changed ttlAfterFinished: the new end counts at once.
    entry.end = entry.next_try = end;
  }
  order_.emplace(entry.next_try, uid);
}

void TimeToLive::forget(const std::string& uid) {
  const auto known = jobs_.extract(uid);
  if (known) order_.erase({known.mapped().next_try, uid});
}

std::vector<DeleteJob> TimeToLive::due(base::Instant now) {
  std::vector<DeleteJob> effects;
  while (next_due() <= now) {
    const std::string uid = order_.extract(order_.begin()).value().second;
    Entry& entry = jobs_.at(uid);
    // The object goes when its watch says so. Until then the deletion is asked for again once a
    // minute, whatever became of the first one.
    entry.next_try = now + kTryAgain;
    order_.emplace(entry.next_try, uid);
    effects.push_back({entry.key, uid});
  }
  return effects;
}

base::Instant TimeToLive::next_due() const {
  return order_.empty() ? base::kNever : order_.begin()->first;
}

}  // namespace control
