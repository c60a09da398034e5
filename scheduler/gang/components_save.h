// Components as text and back.
#pragma once

#include "scheduler/gang/components.h"
#include "scheduler/save/fields.h"

namespace sched::gang {

template <typename A>
void Components::archive_world(A& a, World& world) const {
  std::vector<Place> places = world.places();
  visit(a, places);
  if constexpr (A::kReads) {
    world = World{cluster_, unit_of(cluster_.parameters())};
    for (const Place& place : places) {
      const Job* job = jobs_.find(place.job);
      if (job == nullptr || !job->allocated() || world.contains(place.job)) return a.fail();
      world.append(newcomer(place.job), place);
    }
    world.recount();
  }
}

template <typename A>
void Components::archive(A& a) {
  visit(a, grid_);
  std::map<NodeIndex, base::Instant> dirty = dirty_.all();
  save::all(a, next_id_, touched_, dirty);
  if constexpr (A::kReads) {
    for (const auto& [node, at] : dirty) dirty_.mark(node, at);
  }
  std::vector<std::int64_t> ids;
  for (const auto& [id, component] : components_) ids.push_back(id);
  visit(a, ids);
  for (const std::int64_t id : ids) {
    if constexpr (A::kReads) {
      components_.emplace(id, std::make_unique<Component>(Component{
                                  .world = World{cluster_, unit_of(cluster_.parameters())}}));
    }
    Component& c = *components_.at(id);
    archive_world(a, c.world);
    bool loops = c.loop_world.has_value();
    visit(a, loops);
    if constexpr (A::kReads) {
      if (loops) c.loop_world.emplace(cluster_, unit_of(cluster_.parameters()));
    }
    if (loops) archive_world(a, *c.loop_world);
    save::all(a, c.base, c.pending, c.dying, c.collected_at, c.members, c.timeline, c.settled,
              c.settled_places, c.loop_start, c.kill_at, c.extend_at);
    if constexpr (A::kReads) {
      for (std::size_t i = 0; i < c.members.size(); ++i) {
        Job* const job = jobs_.find(c.members[i]);
        if (job == nullptr) return a.fail();
        if (i > 0 && !(c.members[i - 1] < c.members[i])) return a.fail();
        job->component = &c;
      }
      const auto known = [&](const timetable::PodSet& run) {
        return std::all_of(run.begin(), run.end(),
                           [&](std::uint16_t pod) { return pod < c.members.size(); });
      };
      const auto& cycle = c.timeline.cycle;
      const bool fits = c.members.size() == c.timeline.pods_count && !cycle.empty() &&
                        cycle.size() <= timetable::kCycleSlotsMax &&
                        std::all_of(cycle.begin(), cycle.end(), known);
      if (!fits || !a.ok()) return a.fail();
      c.id = id;
      c.index();
      schedule(c);
    }
  }
}

}  // namespace sched::gang
