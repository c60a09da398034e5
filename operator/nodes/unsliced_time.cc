// Nodes that do not slice: all pods run there, also those that are off by the timetable, and that
// counts as run time of their jobs (architecture.md 3). A job whose nodes differ counts as running
// when one of them does not slice. Agents say it in their NodeTimetable's condition Ready.
#include <algorithm>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {
namespace {

// Since when the node does not slice; nothing while it does.
std::optional<base::Instant> unsliced_since(const kube::NodeTimetable* table) {
  if (table == nullptr) return std::nullopt;
  const kube::Condition* ready = kube::find_condition(table->status.conditions, kube::kReady);
  if (ready == nullptr || ready->status != kube::ConditionStatus::kFalse) return std::nullopt;
  if (ready->reason != kube::kAgentKillSwitch && ready->reason != kube::kAgentFailedOpen)
    return std::nullopt;
  return ready->last_transition_time.value_or(base::kNever);
}

// For how long the job's pod was off in [from, to) by the timetable.
base::Duration time_off(const kube::NodeTimetableSpec& spec, const std::string& job_uid,
                        base::Instant from, base::Instant to) {
  const auto pod =
      std::find_if(spec.pods.begin(), spec.pods.end(),
                   [&](const kube::TimetablePod& each) { return each.job_uid == job_uid; });
  const bool usable = from < to && pod != spec.pods.end() &&
                      spec.timetable.pods_count == spec.pods.size() &&
                      timetable::validate(spec.timetable).ok();
  if (!usable) return base::Duration{0};
  const auto index = static_cast<std::uint16_t>(pod - spec.pods.begin());
  return (to - from) - timetable::run_time(spec.timetable, index, from, to);
}

}  // namespace

void ControlLoop::note_slicing(const std::string& name, const NodeRecord& node) {
  const bool unsliced = unsliced_since(node.table.get()).has_value();
  const bool changed =
      unsliced ? unsliced_nodes_.insert(name).second : unsliced_nodes_.erase(name) > 0;
  if (!changed) return;
  unsliced_counted_at_ = base::Instant{};  // at once
  log(unsliced ? "node does not slice" : "node slices again", "node=" + name);
}

// What the scheduler's clock does not say: of each job on such a node, the time that it was off
// since it was counted last.
void ControlLoop::count_unsliced() {
  if (unsliced_nodes_.empty() && unsliced_jobs_.empty()) return;
  if (now_ < unsliced_counted_at_ + kCountUnslicedEvery) return;
  unsliced_counted_at_ = now_;
  std::set<std::string> present;
  for (const std::string& name : unsliced_nodes_) {
    const auto node = nodes_.find(name);
    if (node != nodes_.end()) present.insert(node->second.jobs.begin(), node->second.jobs.end());
  }
  for (auto it = unsliced_jobs_.begin(); it != unsliced_jobs_.end();) {
    if (const auto more = time_unsliced(it->first, it->second); more > base::Duration{0}) {
      tell(sched::JobRan{find_job(it->first)->id, more});
    }
    it = present.contains(it->first) ? std::next(it) : unsliced_jobs_.erase(it);
  }
  for (const std::string& uid : present) {
    if (const auto run_time = counting_run_time(uid)) {
      unsliced_jobs_[uid] = {now_, *run_time};
    } else {
      unsliced_jobs_.erase(uid);
    }
  }
}

base::Duration ControlLoop::time_unsliced(const std::string& uid, const Counted& counted) {
  const auto run_time = counting_run_time(uid);
  // Below what was counted: another start of it.
  if (!run_time || *run_time < counted.run_time) return base::Duration{0};
  return (now_ - counted.at) - (*run_time - counted.run_time);
}

// Nothing before the job is ready and once its end is decided.
std::optional<base::Duration> ControlLoop::counting_run_time(const std::string& uid) {
  const JobRecord* job = find_job(uid);
  const auto view = job == nullptr ? std::nullopt : scheduler_.job(job->id, now_);
  if (!view || !view->ready || view->ending) return std::nullopt;
  return view->run_time;
}

// Of the time before this leader: what the stored run times do not have yet. Nobody may have led
// meanwhile, which is why agents fail open.
void ControlLoop::restore_unsliced() {
  std::map<std::string, base::Duration> more;  // by UID; of the node where it is longest
  for (const std::string& name : unsliced_nodes_) {
    const NodeRecord& node = nodes_[name];
    for (const std::string& uid : node.jobs) {
      const JobRecord* job = find_job(uid);
      if (job == nullptr) continue;
      const kube::JobStatus& status = job->wanted();
      const auto stored = status.run_time ? status.run_time->as_of : status.start_time;
      const base::Instant from =
          std::max(unsliced_since(node.table.get()).value_or(base::kNever), stored.value_or(now_));
      base::Duration& longest = more[uid];
      longest = std::max(longest, time_off(node.stored, uid, from, now_));
    }
  }
  for (const auto& [uid, time] : more) {
    if (time > base::Duration{0}) tell(sched::JobRan{find_job(uid)->id, time});
  }
}

}  // namespace control
