#include "operator/nodes/late_turns.h"

#include <algorithm>

namespace control {
namespace {

// A write that is not late takes less than this, and nothing is counted for it.
constexpr base::Duration kInTime = std::chrono::seconds{1};

}  // namespace

void LateTurns::begin(const std::string& node,
                      const std::shared_ptr<const kube::NodeTimetableSpec>& stored,
                      base::Instant now, const Sources& sources) {
  const auto [entry, fresh] = nodes_.try_emplace(node);
  if (!fresh) return;
  for (const std::string& uid : sources.jobs_on(node)) {
    const auto run_time = sources.run_time(uid);
    if (!run_time) continue;
    entry->second.insert(uid);
    jobs_[uid][node] = {now, *run_time, stored};
  }
}

void LateTurns::end(const std::string& node, base::Instant now, const Sources& sources) {
  const auto late = nodes_.extract(node);
  if (!late) return;
  for (const std::string& uid : late.mapped()) {
    count_job(uid, now, sources);
    const auto job = jobs_.find(uid);
    job->second.erase(node);
    if (job->second.empty()) jobs_.erase(job);
  }
}

void LateTurns::count_job(const std::string& uid, base::Instant now, const Sources& sources) {
  const auto job = jobs_.find(uid);
  const bool may_be_late =
      job != jobs_.end() && std::ranges::any_of(job->second, [&](const auto& entry) {
        return entry.second.at + kInTime <= now;
      });
  if (!may_be_late) return;
  const auto run_time = sources.run_time(uid);
  base::Duration more{0};
  for (const auto& [node, noted] : job->second) {
    // Less than was noted: another start of it.
    if (!run_time || *run_time < noted.run_time) continue;
    more = std::max(more, ran_since(noted, uid, now) - (*run_time - noted.run_time));
  }
  if (more < kInTime) return;
  sources.ran(uid, more);
  for (auto& [node, noted] : job->second) {
    noted.at = now;
    noted.run_time = *run_time + more;
  }
}

base::Duration LateTurns::ran_since(const Noted& noted, const std::string& uid, base::Instant now) {
  const base::Duration passed = now - noted.at;
  return noted.stored == nullptr ? passed : passed - time_off(*noted.stored, uid, noted.at, now);
}

}  // namespace control
