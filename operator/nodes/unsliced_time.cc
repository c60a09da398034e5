#include "operator/nodes/unsliced_time.h"

#include <algorithm>

#include "api/wellknown.h"
#include "timetable/timetable.h"
#include "translation/node_translation.h"
#include "translation/task_key.h"

namespace control {
namespace {

constexpr base::Duration kCountEvery = std::chrono::seconds{10};

// Since when the node does not slice, by the agent's own word; nullopt if that says nothing of it.
std::optional<base::Instant> unsliced_since(const kube::NodeTimetable* table) {
  if (!is_unsliced(table, std::nullopt)) return std::nullopt;
  const kube::Condition* ready = kube::find_condition(table->status.conditions, kube::kReady);
  return ready->last_transition_time.value_or(base::kNever);
}

}  // namespace

base::Duration time_off(const kube::NodeTimetableSpec& spec, const std::string& job_key,
                        base::Instant from, base::Instant to) {
  const auto pod =
      std::find_if(spec.pods.begin(), spec.pods.end(), [&](const kube::TimetablePod& each) {
        return record_key(each.job_uid, each.task) == job_key;
      });
  const bool usable = from < to && pod != spec.pods.end() &&
                      spec.timetable.pods_count == spec.pods.size() &&
                      timetable::validate(spec.timetable).ok();
  if (!usable) return base::Duration{0};
  // The position in spec.pods is the pod's number in the timetable; hence the check that both have
  // as many.
  const auto index = static_cast<std::uint16_t>(pod - spec.pods.begin());
  return (to - from) - timetable::run_time(spec.timetable, index, from, to);
}

bool UnslicedTime::observe(const std::string& node, bool unsliced) {
  const bool changed = unsliced ? nodes_.insert(node).second : nodes_.erase(node) > 0;
  if (changed) counted_at_ = base::Instant{};  // at once
  return changed;
}

bool UnslicedTime::observe_never_frozen(const std::string& uid, bool never_frozen) {
  if (never_frozen) {
    never_frozen_.insert(uid);
  } else {
    never_frozen_.erase(uid);
  }
  return never_frozen;
}

void UnslicedTime::restore_job(const std::string& uid, const kube::RunTime& stored) {
  never_frozen_.insert(uid);
  jobs_[uid] = {stored.as_of, stored.elapsed};
}

void UnslicedTime::count(base::Instant now, const Sources& sources) {
  if (counts_nobody() || now < counted_at_ + kCountEvery) return;
  counted_at_ = now;
  std::map<std::string, bool> is_there;  // by UID: of each job that is counted, or is to be
  for (const auto& [uid, counted] : jobs_) is_there[uid] = false;
  for (const std::string& node : nodes_) {
    for (const std::string& uid : sources.jobs_on(node)) is_there[uid] = true;
  }
  for (const std::string& uid : never_frozen_) is_there[uid] = true;
  for (const auto& [uid, there] : is_there) count_job(uid, there, now, sources);
}

void UnslicedTime::count_job(const std::string& uid, bool is_there, base::Instant now,
                             const Sources& sources) {
  // 1. what it has missed since it was counted last
  if (const auto counted = jobs_.find(uid); counted != jobs_.end()) {
    const auto more = missed(counted->second, sources.run_time(uid), now);
    if (more > base::Duration{0}) sources.ran(uid, more);
  }
  // 2. from here on it is counted, unless it has left such nodes or no run time passes
  const bool is_counted = is_there || never_frozen_.contains(uid);
  const auto run_time = is_counted ? sources.run_time(uid) : std::nullopt;
  if (run_time) {
    jobs_[uid] = {now, *run_time};
  } else {
    jobs_.erase(uid);
  }
}

base::Duration UnslicedTime::missed(const Counted& counted, std::optional<base::Duration> run_time,
                                    base::Instant now) {
  // Below what was counted: another start of it.
  if (!run_time || *run_time < counted.run_time) return base::Duration{0};
  // While its node does not slice the job runs all the time, but the scheduler counts only its
  // turns. The difference is what it missed.
  return (now - counted.at) - (*run_time - counted.run_time);
}

base::Instant UnslicedTime::next_due() const {
  return counts_nobody() ? base::kNever : counted_at_ + kCountEvery;
}

// No other leader may have counted meanwhile, which is why agents fail open.
base::Duration missed_before(const kube::NodeTimetable* table,
                             const kube::NodeTimetableSpec& published, const std::string& job_uid,
                             const kube::JobStatus& status, base::Instant now) {
  // The stored run time holds all that the last leader has counted; only the time since then is
  // missing.
  const auto stored = status.run_time ? std::optional{status.run_time->as_of} : status.start_time;
  const base::Instant from =
      std::max(unsliced_since(table).value_or(base::kNever), stored.value_or(now));
  return time_off(published, job_uid, from, now);
}

}  // namespace control
