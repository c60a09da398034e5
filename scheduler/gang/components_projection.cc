// run(t) of each component, worked out when it is asked for and as far as it is asked for; where
// timetables are published, as a whole and by project_stale() alone.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sched::gang {

// Projects as much of it as is needed and not known yet. A projection plays one slot after the
// other, up to a whole cycle. Where timetables are published all of it is needed. A simulation asks
// for little: if a job runs now, or until when it has run for a given time. So it says what it
// needs to know (Need: run(t) until an instant, and jobs that must have had a turn if they ever
// have one), and the projection stops there.
void Components::project_for(Component& component, const Need& need) const {
  if (publishes_) return;  // project_stale() has done all of it
  const Projection& known = component.projection;
  const auto suffices = [&] {
    return !component.upkeep.stale && need.until <= known.known_until &&
           // A projection without end has seen every job that ever runs. In one that ends early, a
           // job that has not run yet may still do so.
           (known.known_until == base::kNever ||
            std::all_of(need.seen.begin(), need.seen.end(),
                        [&](JobId job) { return known.ever_runs(job); }));
  };
  if (suffices()) return;
  component.projection =
      project(component.state, grid_, lookup(), may_end_early(component) ? need : Need{});
  component.upkeep.stale = false;
}

// Returns true if it could be projected in part. With pending ops, dying jobs or kills to come it
// is projected as a whole at once, so that their instants are known.
bool Components::may_end_early(const Component& component) const {
  const ComponentState& state = component.state;
  return !publishes_ && state.pending.empty() && state.dying.empty() && !state.lists.may_kill();
}

// Returns true if a part of run(t) is still to be projected.
bool Components::ends_early(const Component& component) const {
  return may_end_early(component) &&
         (component.upkeep.stale || component.projection.known_until != base::kNever);
}

void Components::project_stale() {
  for (const std::int64_t id : std::exchange(stale_, {})) {
    Component& component = *components_.at(id);
    Upkeep& upkeep = component.upkeep;
    if (!publishes_) {
      // Without timetables to publish, the work waits for a question, unless the component has
      // something to do at an instant of its own, which only a whole projection finds.
      if (!may_end_early(component)) project_for(component, {});
      if (!upkeep.stale) quiet_no_longer_than(component, component.state.base);
      update_due(component);
      continue;
    }
    upkeep.stale = false;
    component.projection = project(component.state, grid_, lookup());
    // Only nodes of members that run at other times than before have a new timetable.
    const std::vector<bool> changed = changed_pods(component, component.state.base);
    const std::vector<JobId>& members = component.projection.members;
    std::vector<const Job*> jobs;
    for (std::size_t pod = 0; pod < members.size(); ++pod) {
      if (changed[pod]) jobs.push_back(jobs_.find(members[pod]));
    }
    for (const NodeIndex node : nodes_of(jobs)) dirty_nodes_.set_no_later(node, upkeep.publish_at);
    upkeep.before.clear();
    quiet_no_longer_than(component, component.state.base);
    update_due(component);
  }
}

// Keeps what was projected for `from` as what was "before" `in`, which takes its place. If `from`
// is stale itself, what was before it counts.
void Components::remember(const Component& from, Component& in) const {
  if (!publishes_) return;
  const Upkeep& old = from.upkeep;
  Upkeep& upkeep = in.upkeep;
  if (old.stale) {
    upkeep.before.insert(upkeep.before.end(), old.before.begin(), old.before.end());
    upkeep.publish_at = upkeep.stale ? std::min(upkeep.publish_at, old.publish_at) : old.publish_at;
    upkeep.stale = true;
  } else if (!from.projection.timeline.cycle.empty()) {
    upkeep.before.push_back(std::make_shared<const Upkeep::Before>(
        Upkeep::Before{from.projection.members, from.projection.timeline}));
  }
}

// Completes projections that end early, too: the lists read partitions and nodes from the cluster,
// so after the change the time before it could not be worked out as it was.
void Components::project_all() {
  for (const auto& [id, component] : components_) {
    project_for(*component, {});
    if (!publishes_) update_due(*component);
  }
}

void Components::ensure_known_at(const Job& job, base::Instant t) const {
  Component* const part = job.turn.component;
  if (part == nullptr) return;
  // A stale component's lists say which jobs run now, so it can wait.
  if (!part->upkeep.stale || part->state.base < t) project_for(*part, runs_at_need(t));
}

Component* Components::ensure_projected(const Job& job, base::Instant until) const {
  if (job.turn.component != nullptr) project_for(*job.turn.component, {.until = until, .seen = {}});
  return job.turn.component;
}

// Nothing is projected for a job that runs in the changed lists, or that cannot but have turns.
void Components::ensure_seen(const std::vector<const Job*>& jobs) const {
  std::map<std::int64_t, std::vector<JobId>> by_component;
  for (const Job* job : jobs) {
    const Component* const part = job->turn.component;
    if (!may_lose_turns(*job) || (part->upkeep.stale && part->state.lists.runs(job->id))) continue;
    by_component[part->upkeep.id].push_back(job->id);
  }
  for (auto& [id, seen] : by_component) {
    project_for(*components_.at(id), {.until = base::Instant::min(), .seen = std::move(seen)});
  }
}

// A tracked job without a component has no rival, so it runs at all times.
bool Components::runs_at(const Job& job, base::Instant t) const {
  return job.turn.component == nullptr || job.turn.component->runs_at(job.id, t);
}

// A job never runs if a shadow covers it in every slot (R6.34), if it is held, or if it waits for
// the units of a dying job.
bool Components::ever_runs(const Job& job) const {
  if (!may_lose_turns(job)) return true;
  const Component* const part = job.turn.component;
  if (part->upkeep.stale && part->state.lists.runs(job.id)) return true;
  CHECK(!part->upkeep.stale);
  return part->projection.ever_runs(job.id);
}

// Only its tier, its user or a job that is dying keeps a job of a rotation from its turns.
bool Components::may_lose_turns(const Job& job) const {
  const Component* const part = job.turn.component;
  if (part == nullptr) return false;
  return job.user_suspended || part->state.lists.has_tiers() || !part->state.dying.empty();
}

base::Duration Components::run_time(const Job& job, base::Instant from, base::Instant to) const {
  if (job.turn.component == nullptr || from == to) return to - from;
  CHECK(!job.turn.component->upkeep.stale);
  return job.turn.component->projection.run_time(job.id, from, to);
}

base::Instant Components::when_has_run(const Job& job, base::Instant from, base::Duration work,
                                       base::Instant until) const {
  if (job.turn.component == nullptr) return from + work;
  const Projection& projection = job.turn.component->projection;
  // Not done by `until`: from then on it needs at least what is left.
  if (until != base::kNever) {
    until = std::max(until, from);
    const base::Duration left = work - projection.run_time(job.id, from, until);
    if (left.count() > 0) return until + left;
  }
  return timetable::when_has_run(projection.timeline, projection.pod_of(job.id), from, work)
      .value_or(base::kNever);
}

}  // namespace sched::gang
