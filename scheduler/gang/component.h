// Component: jobs that take turns with each other, on nodes that no other component has; its gang
// state, and that state played ahead: run(t) of every member for all t (architecture.md 2).
//
// State and projection are one: where no repetition is found within 64 slots, the smallest window
// in which every job has run is looped, and playing the component puts its lists back at the
// window's end. So what was projected, and published, is what happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/gang/gang_lists.h"
#include "scheduler/gang/grid.h"
#include "timetable/timetable.h"

namespace sched::gang {

// A change of a component at an instant to come, before that instant's tick.
struct PendingOp {
  base::Instant at{};
  std::optional<JobId> join;  // 6.9; nothing = fill holes (6.5 for every partition)
  friend bool operator==(const PendingOp&, const PendingOp&) = default;
};

// Looks a job up when it joins: its Newcomer. The allocation that it points to must stay valid for
// the call.
using Lookup = std::function<Newcomer(JobId)>;

// The lists of a component, and what is known of their future.
struct ComponentState {
  // The lists at `base`, after everything that happens at that instant. While the component is in
  // its loop, `base` may lie any number of slots behind now.
  GangLists lists;
  base::Instant base{};
  // Joins and holes that wait for their boundary. Ascending `at`, all after `base`.
  std::vector<PendingOp> pending{};
  // Killed under a shadow, pods not gone yet: they run, and what overlaps them does not.
  std::set<JobId> dying{};
  // When the last rewrite that could wait was decided: at most one for each slice or lead.
  base::Instant collected_at{};
};

// run(t) of the members, worked out by project() from the state. A pod is an index into `members`.
struct Projection {
  std::vector<JobId> members{};    // ascending; jobs that are still to join are members too
  timetable::Timeline timeline{};  // run(t), from the state's `base` on
  // run(t) is known before this instant. Where nothing is published a projection may end early.
  base::Instant known_until = base::kNever;
  // c: the instant at which the last pending op is done, and the lists then. A plan for nodes
  // lists its jobs as of this instant.
  base::Instant settled{};
  std::vector<Place> settled_places{};
  // From this slot on the timeline's cycle holds; the lists when the slot has begun. Without, the
  // projection ends before a loop was found.
  std::int64_t loop_start = 0;
  std::optional<GangLists> loop_lists{};
  std::optional<base::Instant> kill_at{};    // a tick to come kills a job
  std::optional<base::Instant> extend_at{};  // ends here: play on and project again

  // Derived from the above, for reading it fast; by pod.
  std::vector<std::uint64_t> cycle_slots{};  // bit i = it runs in slot i of the cycle
  std::vector<std::int32_t> places{};        // its position in settled_places, or -1
  void index();
  // `timeline` as it is now, for keeping. Copied once for each projection.
  const std::shared_ptr<const timetable::Timeline>& shared_timeline() {
    if (!shared) shared = std::make_shared<const timetable::Timeline>(timeline);
    return shared;
  }
  std::shared_ptr<const timetable::Timeline> shared{};

  // REQUIRES: a member.
  std::uint32_t pod_of(JobId job) const {
    const auto at = std::lower_bound(members.begin(), members.end(), job);
    return static_cast<std::uint32_t>(at - members.begin());
  }
  bool runs_at(JobId job, base::Instant t) const {
    return timetable::runs_at(timeline, pod_of(job), t);
  }
  // Returns true if it runs at any instant that is known.
  bool ever_runs(JobId job) const;
  // REQUIRES: from <= to, both not before the projection was worked out.
  base::Duration run_time(JobId job, base::Instant from, base::Instant to) const {
    return timetable::run_time(timeline, pod_of(job), from, to);
  }
};

static_assert(timetable::kCycleSlotsMax <= 64, "a cycle's slots are the bits of a word");

// The state that Components keeps of one: whether its projection holds, and what it reported.
struct Upkeep {
  std::int64_t id = 0;  // its key in Components
  // True if the state has changed since the projection was worked out. Several things may happen at
  // one instant, so the work is put off until it is asked for or time goes on. Until then the
  // projection's members are right, and what runs at `base` is read from the lists.
  bool stale = false;
  // When the change that made it stale is to be published at the latest.
  base::Instant publish_at{};
  // run(t) as it was projected before that. Jobs whose run(t) is the same from `base` on need no
  // new timetable. A merge has one for each component that went into it.
  struct Before {
    std::vector<JobId> members;
    timetable::Timeline timeline;
  };
  std::vector<std::shared_ptr<const Before>> before{};
  // The instant up to which take_touched() has reported which members run; nullopt = never.
  std::optional<base::Instant> told_at{};
};

struct Component {
  ComponentState state;
  Projection projection{};
  Upkeep upkeep{};

  // REQUIRES: a member, and t = `base` or the projection knows t.
  bool runs_at(JobId job, base::Instant t) const {
    return upkeep.stale ? state.lists.runs(job) : projection.runs_at(job, t);
  }
};

// Plays the component to `now`: pending ops and ticks, loops in closed form. Kills that happen are
// appended to `kills`. Cost: O(loop + pending) ticks.
void play(Component& component, const Grid& grid, const Lookup& lookup, base::Instant now,
          std::vector<Action>& kills);

// For each pod: whether it runs at other times from `from` on than before (Upkeep::before), or was
// not there. REQUIRES: projected. Cost: O((plan + cycles) × members).
std::vector<bool> changed_pods(const Component& component, base::Instant from);

// Ascending; jobs that are still to join are members too.
std::vector<JobId> members_of(const ComponentState& state);

// The part of run(t) that must be known: by default everything.
struct Need {
  base::Instant until = base::kNever;  // run(t) before this …
  std::vector<JobId> seen{};           // … and whether these run at any time
};
// To say which jobs run at t.
inline Need runs_at_need(base::Instant t) {
  return {.until = t + base::Duration{1}, .seen = {}};
}

// Works run(t) out. Cost: at most 64 ticks after the last pending op; fewer when not everything is
// needed. REQUIRES then: nothing is pending, no job is dying, and no tick kills.
Projection project(const ComponentState& state, const Grid& grid, const Lookup& lookup,
                   const Need& need = {});

}  // namespace sched::gang
