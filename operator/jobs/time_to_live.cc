#include "operator/jobs/time_to_live.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/records_lease.h"

namespace control {
namespace {

constexpr base::Duration kTryAgain = std::chrono::minutes{1};
constexpr base::Duration kOfAnswer = std::chrono::minutes{1};
constexpr base::Duration kWaitForRecordsMax = std::chrono::hours{24};
constexpr std::int64_t kUnknownVersion = std::numeric_limits<std::int64_t>::max();

// nullopt: it is not deleted.
std::optional<base::Instant> end_of_life(const kube::Job& object, const kube::JobStatus& status) {
  if (status.forecast) return status.forecast->as_of.value_or(base::Instant{}) + kOfAnswer;
  const auto& ttl = object.spec.lifecycle.ttl_after_finished;
  if (!ttl || !status.end_time) return std::nullopt;
  return *status.end_time + *ttl;
}

}  // namespace

void TimeToLive::observe(const kube::Job& object, const kube::JobStatus& status) {
  const std::string& uid = object.metadata.uid;
  const std::optional<base::Instant> end = end_of_life(object, status);
  // Also when the field is taken away from a job that has ended. An object that is being deleted
  // goes with its last finalizer, which another deletion does not hasten.
  if (!end || object.metadata.deletion_timestamp) return forget_job(uid);
  const auto [found, is_new] = jobs_.try_emplace(uid, Entry{kube::key_of(object.metadata), *end});
  Entry& entry = found->second;
  const bool waits = waiting_.erase({entry.number, uid}) > 0;
  // An object from before the end says nothing of the end.
  entry.version = object.status.end_time ? object.metadata.resource_version : "";
  entry.number = kube::version_number(entry.version).value_or(kUnknownVersion);
  entry.is_recorded = !status.forecast;
  // A try may have been made: the next one waits.
  if (!is_new && entry.end == *end) {
    if (waits) waiting_.emplace(entry.number, uid);
    return;
  }
  // The user has changed ttlAfterFinished: the new end counts at once.
  entry.end = *end;
  tries_.set(uid, *end);
}

void TimeToLive::forget_job(const std::string& uid) {
  const auto found = jobs_.find(uid);
  if (found == jobs_.end()) return;
  waiting_.erase({found->second.number, uid});
  jobs_.erase(found);
  tries_.clear(uid);
}

bool TimeToLive::may_go(const Entry& entry, base::Instant now) const {
  return !recorded_.is_followed() || !entry.is_recorded || entry.number <= recorded_.version() ||
         entry.end + kWaitForRecordsMax <= now;
}

// Only the version that is recorded.
DeleteJob TimeToLive::deletion_of(const std::string& uid, Entry& entry) {
  if (!recorded_.is_followed() || !entry.is_recorded) return {entry.key, uid};
  if (entry.number <= recorded_.version()) return {entry.key, uid, entry.version};
  if (!std::exchange(entry.is_counted, true)) ++unrecorded_count_;
  return {entry.key, uid};
}

std::vector<DeleteJob> TimeToLive::due(base::Instant now, std::size_t room) {
  std::vector<DeleteJob> effects;
  while (effects.size() < room) {
    const auto taken = tries_.take_due(now, room - effects.size());
    if (taken.empty()) break;
    for (const std::string& uid : taken) {
      Entry& entry = jobs_.at(uid);
      waiting_.erase({entry.number, uid});
      if (!may_go(entry, now)) {
        waiting_.emplace(entry.number, uid);
        tries_.set(uid, entry.end + kWaitForRecordsMax);
        continue;
      }
      // The watch says when the deletion has begun. Until then it is asked for again once a minute,
      // whatever became of the first one.
      tries_.set(uid, now + kTryAgain);
      effects.push_back(deletion_of(uid, entry));
    }
  }
  return effects;
}

void TimeToLive::look_again(base::Instant now) {
  while (!waiting_.empty() && waiting_.begin()->first <= recorded_.version()) {
    tries_.set(waiting_.begin()->second, now);
    waiting_.erase(waiting_.begin());
  }
}

}  // namespace control
