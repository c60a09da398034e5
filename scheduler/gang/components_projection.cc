// run(t) of each component, worked out when it is asked for and as far as it is asked for; where
// timetables are published, whole and at once.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sched::gang {

// Projects as much of it as is needed and not known yet.
void Components::know(Component& component, const Need& need) const {
  if (publishes_) return;
  const auto knows = [&] {
    return !component.stale && need.until <= component.known_until &&
           (component.known_until == base::kNever ||
            std::all_of(need.seen.begin(), need.seen.end(),
                        [&](JobId job) { return component.ever_runs(job); }));
  };
  if (knows()) return;
  project(component, grid_, lookup(), may_wait(component) ? need : Need{});
  component.stale = false;
}

// Whether its projection may end early.
bool Components::may_wait(const Component& component) const {
  return !publishes_ && component.pending.empty() && component.dying.empty() &&
         !component.world.may_kill();
}

bool Components::ends_early(const Component& component) const {
  return may_wait(component) && (component.stale || component.known_until != base::kNever);
}

// Only nodes of members that run at other times than before have a new timetable.
void Components::project_stale() {
  for (const std::int64_t id : std::exchange(stale_, {})) {
    Component& component = *components_.at(id);
    if (!publishes_) {
      if (!may_wait(component)) know(component, {});
      if (!component.stale) quiet_no_longer_than(component, component.base);
      schedule(component);
      continue;
    }
    component.stale = false;
    project(component, grid_, lookup());
    const std::vector<bool> changed = changed_pods(component, component.base);
    for (std::size_t pod = 0; pod < component.members.size(); ++pod) {
      if (changed[pod]) mark(*jobs_.find(component.members[pod]), component.publish_at);
    }
    component.before.clear();
    quiet_no_longer_than(component, component.base);
    schedule(component);
  }
}

// What was projected of `from` counts as before for `in`, which takes its place.
void Components::remember(const Component& from, Component& in) const {
  if (!publishes_) return;
  if (from.stale) {
    in.before.insert(in.before.end(), from.before.begin(), from.before.end());
    if (in.stale) in.publish_at = std::min(in.publish_at, from.publish_at);
    if (!in.stale) in.publish_at = from.publish_at;
    in.stale = true;
  } else if (!from.timeline.cycle.empty()) {
    in.before.push_back(
        std::make_shared<const Component::Before>(Component::Before{from.members, from.timeline}));
  }
}

void Components::project_all() {
  for (const auto& [id, component] : components_) {
    know(*component, {});
    if (!publishes_) schedule(*component);
  }
}

void Components::look_ahead(const std::vector<Job*>& jobs) {
  if (jobs.empty()) return;
  project_stale();
  std::map<std::int64_t, std::vector<JobId>> by_component;
  for (const Job* job : jobs) {
    if (job->component != nullptr) by_component[job->component->id].push_back(job->id);
  }
  for (auto& [id, seen] : by_component) {
    know(*components_.at(id), {.until = base::Instant::min(), .seen = std::move(seen)});
  }
}

bool Components::runs_at(const Job& job, base::Instant t) const {
  Component* const part = job.component;
  if (part == nullptr) return true;
  if (!part->stale || part->base < t) know(*part, who_runs_at(t));
  return part->runs_at(job.id, t);
}

Component* Components::projected(const Job& job, base::Instant until) const {
  if (job.component != nullptr) know(*job.component, {.until = until, .seen = {}});
  return job.component;
}

bool Components::ever_runs(const Job& job) const {
  Component* const part = job.component;
  if (part == nullptr) return true;
  if (part->stale && part->world.runs(job.id)) return true;
  know(*part, {.until = base::Instant::min(), .seen = {job.id}});
  CHECK(!part->stale);
  return part->ever_runs(job.id);
}

base::Duration Components::run_time(const Job& job, base::Instant from, base::Instant to) const {
  if (job.component == nullptr || from == to) return to - from;
  const Component& part = *projected(job, to);
  CHECK(!part.stale);
  return part.run_time(job.id, from, to);
}

base::Instant Components::when_has_run(const Job& job, base::Instant from, base::Duration work,
                                       base::Instant until) const {
  if (job.component == nullptr) return from + work;
  const Component& part = *projected(job, until);
  const std::uint16_t pod = part.pod_of(job.id);
  if (until != base::kNever) {
    until = std::max(until, from);
    const base::Duration left = work - part.run_time(job.id, from, until);
    if (left.count() > 0) return until + left;
  }
  return timetable::when_has_run(part.timeline, pod, from, work).value_or(base::kNever);
}

}  // namespace sched::gang
