#include "scheduler/forecast/coming_ends.h"

#include <algorithm>

#include "scheduler/scheduler.h"

namespace sched {

void ComingEnds::end_after(JobId job, base::Duration work, base::Instant bound) {
  set(job, work, bound);
}

void ComingEnds::kill_at(JobId job, base::Instant at) {
  set(job, std::nullopt, at);
}

void ComingEnds::set(JobId job, std::optional<base::Duration> work, base::Instant bound) {
  ends_[job] = {.version = ++version_, .work = work};
  bounds_.push({.at = bound, .job = job, .version = version_});
}

const ComingEnds::Known* ComingEnds::known(const Bound& bound) const {
  const auto found = ends_.find(bound.job);
  const bool holds = found != ends_.end() && found->second.version == bound.version;
  return holds ? &found->second : nullptr;
}

// Bounds go back as they were, whatever was found: something may happen before `until`, and then
// the job ends sooner or later than that.
std::optional<base::Instant> ComingEnds::next(Scheduler& scheduler, base::Instant until) {
  std::optional<base::Instant> first;
  std::vector<Bound> looked_at;
  while (!bounds_.empty() && bounds_.top().at <= until) {
    const Bound bound = bounds_.top();
    bounds_.pop();
    const Known* const end = known(bound);
    if (end == nullptr) continue;
    looked_at.push_back(bound);
    const base::Instant at =
        end->work ? scheduler.when_has_run(bound.job, *end->work, until) : bound.at;
    if (at != base::kNever && at <= until) first = until = at;
  }
  for (const Bound& bound : looked_at) bounds_.push(bound);
  return first;
}

// Nothing can happen between now and `until` here, so a later answer is a better bound.
std::vector<ComingEnds::End> ComingEnds::take_due(Scheduler& scheduler, base::Instant now) {
  std::vector<Bound> due, later;
  while (!bounds_.empty() && bounds_.top().at <= now) {
    Bound bound = bounds_.top();
    bounds_.pop();
    const Known* const end = known(bound);
    if (end == nullptr) continue;
    if (end->work) bound.at = scheduler.when_has_run(bound.job, *end->work, now);
    (bound.at <= now ? due : later).push_back(bound);
  }
  for (const Bound& bound : later) bounds_.push(bound);
  std::ranges::sort(due, [](const Bound& a, const Bound& b) { return b > a; });
  std::vector<End> ends;
  for (const Bound& bound : due) {
    ends.push_back({.job = bound.job, .is_killed = !known(bound)->work, .version = bound.version});
  }
  return ends;
}

bool ComingEnds::holds(const End& end) const {
  return known({.at = {}, .job = end.job, .version = end.version}) != nullptr;
}

}  // namespace sched
