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
constexpr base::Duration kAskAgain = std::chrono::seconds{10};
constexpr base::Duration kAskAfterError = std::chrono::minutes{1};
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
  if (!end || object.metadata.deletion_timestamp) return forget(uid);
  const auto [found, is_new] = jobs_.try_emplace(uid, Entry{kube::key_of(object.metadata), *end});
  Entry& entry = found->second;
  const bool waits = waiting_.erase({entry.number, uid}) > 0;
  // What was stored before its end says nothing of the end.
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

void TimeToLive::forget(const std::string& uid) {
  const auto found = jobs_.find(uid);
  if (found == jobs_.end()) return;
  waiting_.erase({found->second.number, uid});
  jobs_.erase(found);
  tries_.clear(uid);
}

bool TimeToLive::may_go(const Entry& entry, base::Instant now) const {
  return !lease_ || !entry.is_recorded || entry.number <= recorded_ ||
         entry.end + kWaitForRecordsMax <= now;
}

// Only the version that is recorded.
DeleteJob TimeToLive::deletion_of(const std::string& uid, Entry& entry) {
  if (!lease_ || !entry.is_recorded) return {entry.key, uid};
  if (entry.number <= recorded_) return {entry.key, uid, entry.version};
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

std::optional<ReadRecorded> TimeToLive::due_question(base::Instant now) {
  if (waiting_.empty() || asks_ || next_question_ > now) return std::nullopt;
  asks_ = true;
  return ReadRecorded{*lease_};
}

// A lower version than before: the API server's store was set back.
void TimeToLive::answered(const RecordedRead& outcome, base::Instant now) {
  asks_ = false;
  next_question_ = now + (outcome.lease.ok() ? kAskAgain : kAskAfterError);
  if (!outcome.lease.ok()) return;
  recorded_ = kube::recorded_version(*outcome.lease).value_or(-1);
  while (!waiting_.empty() && waiting_.begin()->first <= recorded_) {
    tries_.set(waiting_.begin()->second, now);
    waiting_.erase(waiting_.begin());
  }
}

base::Instant TimeToLive::next_due(base::Instant now) const {
  const base::Instant next_try = tries_.next_after(now).value_or(base::kNever);
  return waiting_.empty() || asks_ ? next_try : std::min(next_try, next_question_);
}

}  // namespace control
