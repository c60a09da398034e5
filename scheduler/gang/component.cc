#include "scheduler/gang/component.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace sched::gang {
namespace {

void take_kills(World& world, std::vector<Action>& kills) {
  for (const Action& action : world.take_actions()) {
    if (action.kind == ActionKind::kKill) kills.push_back(action);
  }
}

void apply(World& world, const PendingOp& op, const Lookup& lookup) {
  if (op.join) {
    if (!world.contains(*op.join)) world.start(lookup(*op.join));
  } else {
    world.refill_all();
  }
}

// Everything that happens at the instant `at`: ops first, then the tick of a boundary.
void happen(World& world, std::vector<PendingOp>& pending, const Grid& grid, const Lookup& lookup,
            base::Instant at) {
  while (!pending.empty() && pending.front().at <= at) {
    apply(world, pending.front(), lookup);
    pending.erase(pending.begin());
  }
  if (grid.boundary_at_or_after(at) == at) world.tick();
}

class Projection {
 public:
  Projection(Component& component, const Grid& grid, const Lookup& lookup)
      : out_{component}, grid_{grid}, lookup_{lookup}, world_{component.world} {}

  void run(const Need& need) {
    list_members();
    find_blocked();
    out_.timeline = timetable::Timetable{
        .slice = grid_.slice, .pods_count = out_.members.size(), .plan = {}, .cycle = {}};
    out_.kill_at.reset();
    out_.extend_at.reset();
    world_.take_actions();
    world_.record_kills_only(true);
    play_pending();
    find_loop(need);
  }

 private:
  // Who is still to join runs in no slot until then.
  void list_members() {
    out_.members = members_of(out_);
    look_up_slots();
  }

  // After a change of who is in the world.
  void look_up_slots() {
    slots_.clear();
    for (const JobId job : out_.members) {
      const bool always = out_.dying.contains(job);
      slots_.push_back({.in_world = world_.slot_of(job),
                        .always = always,
                        .never = !always && blocked_.contains(job)});
    }
  }

  void find_blocked() {
    for (const JobId job : out_.dying) {
      if (!world_.contains(job)) continue;
      for (const JobId other : out_.members) {
        if (other != job && world_.contains(other) && world_.overlap(job, other)) {
          blocked_.insert(other);
        }
      }
    }
    if (!blocked_.empty()) look_up_slots();
  }

  timetable::PodSet running() const {
    timetable::PodSet run;
    run.reserve(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const MemberSlot& slot = slots_[i];
      const bool runs =
          slot.always || (!slot.never && slot.in_world >= 0 && world_.runs(slot.in_world));
      if (runs) run.push_back(static_cast<std::uint16_t>(i));
    }
    return run;
  }

  void plan_until(base::Instant until, timetable::PodSet run) {
    auto& plan = out_.timeline.plan;
    if (!plan.empty() && plan.back().run == run) {
      plan.back().until = until;
    } else {
      plan.push_back({until, std::move(run)});
    }
  }

  void note_kills(base::Instant at) {
    for (const Action& action : world_.take_actions()) {
      if (action.kind == ActionKind::kKill && !out_.kill_at) out_.kill_at = at;
    }
  }

  // From base until the last pending op is done and the grid is the new one.
  void play_pending() {
    at_ = out_.base;
    out_.settled = out_.base;
    out_.settled_places = world_.places();
    std::vector<PendingOp> pending = out_.pending;
    while (!pending.empty() || at_ < grid_.change_at) {
      base::Instant next = grid_.next_boundary(at_);
      if (!pending.empty()) next = std::min(next, pending.front().at);
      plan_until(next, running());
      at_ = next;
      const bool last = pending.empty() || pending.back().at <= at_;
      happen(world_, pending, grid_, lookup_, at_);
      look_up_slots();
      note_kills(at_);
      if (last) {
        out_.settled = at_;
        out_.settled_places = world_.places();
      }
    }
  }

  void find_loop(const Need& need) {
    if (base::boundary_at_or_after(at_, grid_.slice) != at_) {
      const base::Instant next = grid_.next_boundary(at_);
      plan_until(next, running());
      at_ = next;
      world_.tick();
      note_kills(at_);
    }
    const std::int64_t first = base::slot_of(at_, grid_.slice);
    const World at_first = world_;
    std::vector<std::vector<std::int32_t>> signatures;
    std::vector<timetable::PodSet> runs;
    std::vector<bool> seen(out_.members.size(), false);
    // A window that is looped holds everybody who runs in any slot. So whatever is found later,
    // nothing before a slot in which somebody runs for the first time is looped: it is as played.
    std::size_t certain = 1;
    for (std::size_t slot = 0; slot < timetable::kCycleSlotsMax; ++slot) {
      signatures.push_back(world_.signature());
      runs.push_back(running());
      for (const std::uint16_t pod : runs.back()) {
        if (seen[pod]) continue;
        seen[pod] = true;
        certain = slot + 1;
      }
      out_.known_until = base::slot_begin(first + static_cast<std::int64_t>(certain), grid_.slice);
      if (suffices(need, seen)) {
        plan_slots(first, certain, runs);
        out_.loop_world.reset();
        return;
      }
      world_.tick();
      note_kills(base::slot_begin(first + static_cast<std::int64_t>(slot) + 1, grid_.slice));
      const auto same = std::find(signatures.begin(), signatures.end(), world_.signature());
      if (same == signatures.end()) continue;
      set_loop(at_first, first, static_cast<std::size_t>(same - signatures.begin()), slot + 1,
               runs);
      return;
    }
    set_loop(at_first, first, 0, window(runs), runs);
  }

  // Whether run(t) up to known_until is enough, with these pods seen.
  bool suffices(const Need& need, const std::vector<bool>& seen) const {
    return need.until <= out_.known_until &&
           std::all_of(need.seen.begin(), need.seen.end(),
                       [&](JobId job) { return seen[out_.pod_of(job)]; });
  }

  void plan_slots(std::int64_t first, std::size_t count,
                  const std::vector<timetable::PodSet>& runs) {
    for (std::size_t i = 0; i < count; ++i) {
      plan_until(base::slot_begin(first + static_cast<std::int64_t>(i) + 1, grid_.slice), runs[i]);
    }
  }

  // The smallest number of slots, from the first, in which everybody runs who runs in any of them.
  std::size_t window(const std::vector<timetable::PodSet>& runs) {
    std::set<std::uint16_t> all;
    for (const auto& run : runs) all.insert(run.begin(), run.end());
    const bool starves = std::any_of(out_.members.begin(), out_.members.end(), [&](JobId job) {
      return !all.contains(out_.pod_of(job)) && !world_.shadowed(job) && !held(job);
    });
    if (starves) {  // more than 64 jobs deep: project again when the window ends
      const auto end = base::slot_of(at_, grid_.slice) + static_cast<std::int64_t>(runs.size());
      out_.extend_at = base::slot_begin(end, grid_.slice);
      return runs.size();
    }
    std::set<std::uint16_t> seen;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      seen.insert(runs[i].begin(), runs[i].end());
      if (seen == all) return i + 1;
    }
    return runs.size();
  }

  bool held(JobId job) const {
    const auto places = world_.places();
    return std::any_of(places.begin(), places.end(),
                       [&](const Place& place) { return place.job == job && place.held; });
  }

  // Slots [from, end) after `first` repeat for ever.
  void set_loop(const World& at_first, std::int64_t first, std::size_t from, std::size_t end,
                const std::vector<timetable::PodSet>& runs) {
    plan_slots(first, from, runs);
    out_.known_until = base::kNever;
    out_.loop_start = first + static_cast<std::int64_t>(from);
    World loop_world = at_first;
    for (std::size_t i = 0; i < from; ++i) loop_world.tick();
    loop_world.take_actions();
    loop_world.record_kills_only(false);
    out_.loop_world = std::move(loop_world);
    out_.timeline.cycle.resize(end - from);
    for (std::size_t i = from; i < end; ++i) {
      const std::int64_t slot = first + static_cast<std::int64_t>(i);
      out_.timeline.cycle[timetable::cycle_position(slot, end - from)] = runs[i];
    }
  }

  struct MemberSlot {            // of members[i]
    std::int32_t in_world = -1;  // World::slot_of; -1 = it has not joined yet
    bool always = false;         // dying
    bool never = false;          // under a dying one
  };

  Component& out_;
  const Grid& grid_;
  const Lookup& lookup_;
  World world_;
  base::Instant at_{};
  std::vector<MemberSlot> slots_;
  std::set<JobId> blocked_;
};

}  // namespace

std::vector<JobId> members_of(const Component& component) {
  std::vector<JobId> members = component.world.jobs();
  for (const PendingOp& op : component.pending) {
    if (op.join && !component.world.contains(*op.join)) members.push_back(*op.join);
  }
  std::sort(members.begin(), members.end());
  return members;
}

std::vector<bool> changed_pods(const Component& component, base::Instant from) {
  const std::vector<JobId>& members = component.members;
  std::vector<bool> changed(members.size(), true);
  for (const auto& before : component.before) {
    std::vector<std::uint16_t> pods;  // of the members then: those of now
    pods.reserve(before->members.size());
    std::size_t next = 0;
    for (const JobId job : before->members) {
      while (next < members.size() && members[next] < job) ++next;
      const bool stays = next < members.size() && members[next] == job;
      pods.push_back(stays ? static_cast<std::uint16_t>(next) : timetable::kNoPod);
    }
    const std::vector<bool> since =
        timetable::changed_pods(before->timeline, component.timeline, pods, from);
    for (std::size_t pod = 0; pod < changed.size(); ++pod) {
      changed[pod] = changed[pod] && since[pod];
    }
  }
  return changed;
}

bool Component::ever_runs(JobId job) const {
  const std::uint16_t pod = pod_of(job);
  return cycle_slots[pod] != 0 ||
         std::any_of(timeline.plan.begin(), timeline.plan.end(),
                     [&](const timetable::PlanEntry& entry) {
                       return std::binary_search(entry.run.begin(), entry.run.end(), pod);
                     });
}

void Component::index() {
  cycle_slots.assign(members.size(), 0);
  for (std::size_t i = 0; i < timeline.cycle.size(); ++i) {
    for (const std::uint16_t pod : timeline.cycle[i]) cycle_slots[pod] |= std::uint64_t{1} << i;
  }
  places.assign(members.size(), -1);
  for (std::size_t i = 0; i < settled_places.size(); ++i) {
    const auto at = std::lower_bound(members.begin(), members.end(), settled_places[i].job);
    if (at == members.end() || *at != settled_places[i].job) continue;
    places[static_cast<std::size_t>(at - members.begin())] = static_cast<std::int32_t>(i);
  }
}

void play(Component& component, const Grid& grid, const Lookup& lookup, base::Instant now,
          std::vector<Action>& kills) {
  if (now < component.base) return;  // restored: what was published stands until then
  while (true) {
    base::Instant next = grid.next_boundary(component.base);
    if (!component.pending.empty()) {
      next = std::min(next, component.pending.front().at);
    } else if (component.loop_world && now >= grid.change_at &&
               !(component.kill_at && *component.kill_at <= now) &&
               base::slot_of(component.base, grid.slice) >= component.loop_start) {
      break;
    }
    if (next > now) return;
    happen(component.world, component.pending, grid, lookup, next);
    take_kills(component.world, kills);
    component.base = next;
  }
  // In the loop: whole turns change nothing.
  const std::int64_t slot = base::slot_of(now, grid.slice);
  if (slot == base::slot_of(component.base, grid.slice)) return;
  const auto length = static_cast<std::int64_t>(component.timeline.cycle.size());
  component.world = *component.loop_world;
  for (std::int64_t i = (slot - component.loop_start) % length; i > 0; --i) component.world.tick();
  take_kills(component.world, kills);
  component.base = base::slot_begin(slot, grid.slice);
}

void project(Component& component, const Grid& grid, const Lookup& lookup, const Need& need) {
  component.shared.reset();
  Projection{component, grid, lookup}.run(need);
  component.index();
}

}  // namespace sched::gang
