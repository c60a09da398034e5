#include "operator/jobs/time_to_live.h"

#include <optional>

namespace control {
namespace {

constexpr base::Duration kTryAgain = std::chrono::minutes{1};
constexpr base::Duration kOfAnswer = std::chrono::minutes{1};

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
  // A try may have been made: the next one waits.
  if (!is_new && found->second.end == *end) return;
  // The user has changed ttlAfterFinished: the new end counts at once.
  found->second.end = *end;
  tries_.set(uid, *end);
}

void TimeToLive::forget(const std::string& uid) {
  jobs_.erase(uid);
  tries_.clear(uid);
}

std::vector<DeleteJob> TimeToLive::due(base::Instant now, std::size_t room) {
  std::vector<DeleteJob> effects;
  for (const std::string& uid : tries_.take_due(now, room)) {
    // The watch says when the deletion has begun. Until then it is asked for again once a minute,
    // whatever became of the first one.
    tries_.set(uid, now + kTryAgain);
    effects.push_back({jobs_.at(uid).key, uid});
  }
  return effects;
}

base::Instant TimeToLive::next_due(base::Instant now) const {
  return tries_.next_after(now).value_or(base::kNever);
}

}  // namespace control
