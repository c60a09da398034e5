// Time goes on: what is due of each component, when, and who has been turned. A component is played
// only when something touches it or a caller asks.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sched::gang {

void Components::advance(base::Instant now) {
  advance_due(now);
  if (now < quiet_until_) return;
  quiet_until_ = grid_.next_boundary(now);
  for (const auto& [id, component] : components_) {
    watch(*component, now);
    if (!component->stale) quiet_no_longer_than(*component, now);
  }
}

void Components::advance_due(base::Instant now) {
  std::vector<std::int64_t> settled;
  for (const std::int64_t id : due_.take_due(now)) {
    Component& component = *components_.at(id);
    if (!publishes_) {
      if (ends_early(component)) know(component, {});
      schedule(component);
      const std::optional<base::Instant> due = due_.at(id);
      if (!due || *due > now) continue;
    }
    const bool waited = !component.pending.empty();
    bring(component, now);
    schedule(component);
    if (waited && component.pending.empty()) settled.push_back(id);
  }
  for (const std::int64_t id : settled) {  // who runs alone now needs no list any more
    Component& component = *components_.at(id);
    // Nodes whose jobs were off until now, and run for ever from here on, need no timetable.
    for (const JobId member : component.members) mark(*jobs_.find(member), now);
    const bool contended = std::all_of(component.members.begin(), component.members.end(),
                                       [&](JobId job) { return has_rivals(*jobs_.find(job)); });
    if (contended || component.base > now) continue;
    settle_members(component);
    component.base = now;
    split(id, now, now);
  }
}

std::optional<base::Instant> Components::next_due() const {
  return due_.next();
}

// A projection that ends early is completed before it could have an end by itself (extend_at), 64
// slots after `base`.
std::optional<base::Instant> Components::due_of(const Component& component) const {
  constexpr std::int64_t kSlotsLeftOpen = 60;
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) { due = due ? std::min(*due, at) : at; };
  if (!component.pending.empty()) take(component.pending.front().at);
  if (component.kill_at) take(*component.kill_at);
  if (component.extend_at) take(*component.extend_at);
  if (ends_early(component)) {
    const std::int64_t slot = base::slot_of(component.base, grid_.slice);
    take(base::slot_begin(slot + kSlotsLeftOpen, grid_.slice));
  }
  return due;
}

// To be called whenever something of due_of() has changed.
void Components::schedule(Component& component) {
  if (const std::optional<base::Instant> due = due_of(component)) {
    due_.set(component.id, *due);
  } else {
    due_.clear(component.id);
  }
}

// Plays it to now, with what is due. The caller schedules it anew.
void Components::bring(Component& component, base::Instant now) {
  const std::size_t kills_before = kills_.size();
  const base::Instant before = component.base;
  if (now > before) know(component, who_runs_at(now));
  play(component, grid_, lookup(), now, kills_);
  if (component.base != before) {
    touched_.insert(touched_.end(), component.members.begin(), component.members.end());
    component.seen = now;
  }
  const bool ends = (component.extend_at && *component.extend_at <= now) ||
                    (component.kill_at && *component.kill_at <= now);
  if (kills_.size() == kills_before && !ends) return;
  settle_members(component);
  component.base = now;
  project(component, grid_, lookup());
  component.seen = now;
  touched_.insert(touched_.end(), component.members.begin(), component.members.end());
  quiet_no_longer_than(component, now);
  for (const JobId member : component.members) mark(*jobs_.find(member), now);
}

// Tells who has been turned since it was last asked.
void Components::watch(Component& component, base::Instant now) {
  if (component.stale && component.base >= now) return;  // everybody is in touched_ already
  know(component, who_runs_at(now));
  if (component.stale) return;
  if (!component.seen) {
    touched_.insert(touched_.end(), component.members.begin(), component.members.end());
  } else {
    const auto before = timetable::run_at(component.timeline, *component.seen);
    const auto after = timetable::run_at(component.timeline, now);
    if (before.data() != after.data()) {
      timetable::PodSet turned;
      std::set_symmetric_difference(before.begin(), before.end(), after.begin(), after.end(),
                                    std::back_inserter(turned));
      for (const std::uint16_t pod : turned) touched_.push_back(component.members[pod]);
    }
  }
  component.seen = now;
}

// A timeline changes at boundaries of the grid and where an entry of its plan ends.
void Components::quiet_no_longer_than(const Component& component, base::Instant now) {
  const auto& plan = component.timeline.plan;
  const auto entry = std::upper_bound(
      plan.begin(), plan.end(), now,
      [](base::Instant at, const timetable::PlanEntry& each) { return at < each.until; });
  if (entry != plan.end()) quiet_until_ = std::min(quiet_until_, entry->until);
}

std::vector<JobId> Components::take_touched() {
  std::vector<JobId> touched = std::exchange(touched_, {});
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

}  // namespace sched::gang
