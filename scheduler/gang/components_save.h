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
  save::all(a, next_id_, touched_, dirty_);
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
        if (jobs_.find(c.members[i]) == nullptr) return a.fail();
        c.index.emplace(c.members[i], static_cast<std::uint16_t>(i));
        component_of_[c.members[i]] = id;
      }
      const bool fits = c.index.size() == c.timeline.pods_count && !c.timeline.cycle.empty();
      if (!fits || !a.ok()) return a.fail();
    }
  }
}

}  // namespace sched::gang
