// Time goes on: what is due of each component, when, and which jobs have been turned. A component
// is played only when an event touches it or a caller asks.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sched::gang {

// Cost: O(1) between two boundaries if no component is due, else O(components).
void Components::advance(base::Instant now) {
  advance_due(now);
  // Between two boundaries nothing turns by itself, so all components are looked at once in a slot,
  // however often this is called.
  if (now < quiet_until_) return;
  quiet_until_ = grid_.next_boundary(now);
  for (const auto& [id, component] : components_) {
    collect_turned(*component, now);
    if (!component->upkeep.stale) quiet_no_longer_than(*component, now);
  }
}

// 1. Play each component that is due to now. It passes everything that is due by now, however many
// instants that are.
// 2. A component whose last pending op was done may have fallen apart, for example because the job
// whose hole was filled runs alone now: take it apart.
void Components::advance_due(base::Instant now) {
  std::vector<std::int64_t> settled;
  for (const std::int64_t id : due_.take_due(now)) {
    Component& component = *components_.at(id);
    if (!publishes_) {
      if (ends_early(component)) project_for(component, {});
      update_due(component);
      // It was due only because its projection was incomplete. Now that it is complete, a kill or
      // the projection's end may turn out to be later than now.
      const std::optional<base::Instant> due = due_.at(id);
      if (!due || *due > now) continue;
    }
    const bool waited = !component.state.pending.empty();
    advance_to(component, now);
    update_due(component);
    if (waited && component.state.pending.empty()) settled.push_back(id);
  }
  for (const std::int64_t id : settled) {  // a job that runs alone now needs no list
    Component& component = *components_.at(id);
    // Nodes whose jobs were off until now and run forever from here on need no timetable.
    for (const JobId member : component.projection.members) mark(*jobs_.find(member), now);
    const bool contended =
        std::all_of(component.projection.members.begin(), component.projection.members.end(),
                    [&](JobId job) { return has_rivals(*jobs_.find(job)); });
    if (contended || component.state.base > now) continue;
    settle_clocks(component);
    component.state.base = now;
    split(id, now, now);
  }
}

std::optional<base::Instant> Components::next_due() const {
  return due_.next();
}

// A projection that ends early is completed before it could have an end by itself (extend_at), 64
// slots after `base`.
std::optional<base::Instant> Components::due_of(const Component& component) const {
  // Four fewer than a whole projection looks at, so that when it is completed its end still lies
  // ahead.
  constexpr std::int64_t kSlotsLeftOpen = 60;
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) { due = due ? std::min(*due, at) : at; };
  if (!component.state.pending.empty()) take(component.state.pending.front().at);
  if (component.projection.kill_at) take(*component.projection.kill_at);
  if (component.projection.extend_at) take(*component.projection.extend_at);
  if (ends_early(component)) {
    const std::int64_t slot = base::slot_of(component.state.base, grid_.slice);
    take(base::slot_begin(slot + kSlotsLeftOpen, grid_.slice));
  }
  return due;
}

// To be called whenever something of due_of() has changed.
void Components::update_due(Component& component) {
  if (const std::optional<base::Instant> due = due_of(component)) {
    due_.set(component.upkeep.id, *due);
  } else {
    due_.clear(component.upkeep.id);
  }
}

// Plays the component to now, and projects it again if a kill happened on the way or the projection
// has ended. The caller calls update_due().
void Components::advance_to(Component& component, base::Instant now) {
  const std::size_t kills_before = kills_.size();
  const base::Instant before = component.state.base;
  // play() goes by the projection's loop, which therefore must be known as far as now.
  if (now > before) project_for(component, runs_at_need(now));
  play(component, grid_, lookup(), now, kills_);
  if (component.state.base != before) {
    touched_.insert(touched_.end(), component.projection.members.begin(),
                    component.projection.members.end());
    component.upkeep.told_at = now;
  }
  // The turns after a kill depend on the pods of the dying job, and those after a window without
  // repetition have not been played yet.
  const bool ends = (component.projection.extend_at && *component.projection.extend_at <= now) ||
                    (component.projection.kill_at && *component.projection.kill_at <= now);
  if (kills_.size() == kills_before && !ends) return;
  settle_clocks(component);
  component.state.base = now;
  component.projection = project(component.state, grid_, lookup());
  component.upkeep.told_at = now;
  touched_.insert(touched_.end(), component.projection.members.begin(),
                  component.projection.members.end());
  quiet_no_longer_than(component, now);
  for (const JobId member : component.projection.members) mark(*jobs_.find(member), now);
}

// Adds the members that have been turned since told_at to touched_.
void Components::collect_turned(Component& component, base::Instant now) {
  if (component.upkeep.stale && component.state.base >= now)
    return;  // mark_stale() has reported all members
  project_for(component, runs_at_need(now));
  if (component.upkeep.stale) return;
  if (!component.upkeep.told_at) {
    touched_.insert(touched_.end(), component.projection.members.begin(),
                    component.projection.members.end());
  } else {
    const auto before = timetable::run_at(component.projection.timeline, *component.upkeep.told_at);
    const auto after = timetable::run_at(component.projection.timeline, now);
    // run_at() returns a view of an entry of the timeline: the same entry means the same jobs,
    // without a comparison.
    if (before.data() != after.data()) {
      timetable::Timeline::PodSet turned;
      std::set_symmetric_difference(before.begin(), before.end(), after.begin(), after.end(),
                                    std::back_inserter(turned));
      for (const std::uint32_t pod : turned) touched_.push_back(component.projection.members[pod]);
    }
  }
  component.upkeep.told_at = now;
}

// A timeline changes at boundaries of the grid and where an entry of its plan ends.
void Components::quiet_no_longer_than(const Component& component, base::Instant now) {
  const auto& plan = component.projection.timeline.plan;
  const auto entry = std::upper_bound(
      plan.begin(), plan.end(), now,
      [](base::Instant at, const timetable::Timeline::PlanEntry& each) { return at < each.until; });
  if (entry != plan.end()) quiet_until_ = std::min(quiet_until_, entry->until);
}

std::vector<JobId> Components::take_touched() {
  std::vector<JobId> touched = std::exchange(touched_, {});
  // The members of one component ascend.
  if (!std::is_sorted(touched.begin(), touched.end())) std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

}  // namespace sched::gang
