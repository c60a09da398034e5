// Component: nodes connected by conflicting jobs, with its gang state, what is going to happen to
// it, and its rotation played ahead: run(t) of every member for all t (architecture.md 2).
//
// State and projection are one: when no repetition is found within 64 slots, the smallest window in
// which everybody has run is looped, and playing the component puts its lists back at the window's
// end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/gang/grid.h"
#include "scheduler/gang/world.h"
#include "timetable/timetable.h"

namespace sched::gang {

// What happens to a component at an instant to come, before that instant's tick.
struct PendingOp {
  base::Instant at{};
  std::optional<JobId> join;  // 6.9; nothing = fill holes (6.5 for everybody)
  friend bool operator==(const PendingOp&, const PendingOp&) = default;
};

// Looks a job up when it joins: its Newcomer. The allocation that it points to must stay valid for
// the call.
using Lookup = std::function<Newcomer(JobId)>;

struct Component {
  World world;  // the state at `base`, after everything that happens at that instant; in the
                // loop it may be behind by any number of ticks
  base::Instant base{};
  std::vector<PendingOp> pending{};  // ascending `at`, all after `base`
  std::set<JobId>
      dying{};  // killed under a shadow, pods not gone: they run, who overlaps them does not
  base::Instant collected_at{};         // when the last rewrite that could wait was decided
  std::int64_t id = 0;                  // in Components
  std::optional<base::Instant> seen{};  // as of when it was last told who runs

  // Several things may happen at one instant. The projection is worked out when somebody asks, or
  // when time goes on; until then `stale`, and who runs at `base` is read from the world.
  bool stale = false;
  // Where nothing is published the projection may end early: run(t) is known before this.
  base::Instant known_until = base::kNever;
  base::Instant publish_at{};  // of what has made it stale
  // Run(t) as it was before that: what says the same from `base` on needs no new timetable.
  struct Before {
    std::vector<JobId> members;
    timetable::Timetable timeline;
  };
  std::vector<std::shared_ptr<const Before>> before{};

  // --- the projection, by project() ---
  std::vector<JobId> members{};              // ascending; index = pod of `timeline`
  timetable::Timetable timeline{};           // valid from when it was worked out
  base::Instant settled{};                   // c: when the last pending op is done
  std::vector<Place> settled_places{};       // the lists then
  std::int64_t loop_start = 0;               // slot; from here on the cycle
  std::optional<World> loop_world{};         // the state when that slot has begun
  std::optional<base::Instant> kill_at{};    // a tick to come kills somebody
  std::optional<base::Instant> extend_at{};  // the projection ends here: play on and project again

  // What follows from the projection, for reading it fast; by pod. After project(), by index().
  std::vector<std::uint64_t> cycle_slots{};  // bit i = it runs in slot i of the cycle
  std::vector<std::int32_t> places{};        // its position in settled_places, or -1
  void index();
  // `timeline` as it is now, for keeping.
  const std::shared_ptr<const timetable::Timetable>& shared_timeline() {
    if (!shared) shared = std::make_shared<const timetable::Timetable>(timeline);
    return shared;
  }
  std::shared_ptr<const timetable::Timetable> shared{};

  // REQUIRES: a member.
  std::uint16_t pod_of(JobId job) const {
    const auto at = std::lower_bound(members.begin(), members.end(), job);
    return static_cast<std::uint16_t>(at - members.begin());
  }
  bool runs_at(JobId job, base::Instant t) const {
    if (stale) return world.runs(job);
    return timetable::runs_at(timeline, pod_of(job), t);
  }
  // Whether it runs at any instant that is known. REQUIRES: projected.
  bool ever_runs(JobId job) const;
  // REQUIRES: from <= to, both not before the projection was worked out.
  base::Duration run_time(JobId job, base::Instant from, base::Instant to) const {
    return timetable::run_time(timeline, pod_of(job), from, to);
  }
};

static_assert(timetable::kCycleSlotsMax <= 64, "a cycle's slots are the bits of a word");

// Plays the component to `now`: pending ops and ticks, loops in closed form. Kills that happen are
// appended to `kills`. Cost: O(loop + pending) ticks.
void play(Component& component, const Grid& grid, const Lookup& lookup, base::Instant now,
          std::vector<Action>& kills);

// By pod of `component`: whether it runs at other times from `from` on than before
// (Component::before), or was not there. REQUIRES: projected. Cost: O((plan + cycles) × members).
std::vector<bool> changed_pods(const Component& component, base::Instant from);

// Ascending; jobs that are still to join are members too.
std::vector<JobId> members_of(const Component& component);

// What has to be known of run(t): by default everything.
struct Need {
  base::Instant until = base::kNever;  // run(t) before this …
  std::vector<JobId> seen{};           // … and whether these run at any time
};
// To say who runs at t.
inline Need who_runs_at(base::Instant t) {
  return {.until = t + base::Duration{1}, .seen = {}};
}

// Works the projection out from world, base and pending. Cost: at most 64 ticks after the last
// pending op; fewer when not everything is needed. REQUIRES then: nothing is pending, nobody is
// dying, and no tick kills.
void project(Component& component, const Grid& grid, const Lookup& lookup, const Need& need = {});

}  // namespace sched::gang
