#include "scheduler/gang/component.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace sched::gang {
namespace {

// Stops and resumes are dropped: callers read from the lists which jobs run. A kill is reported
// because it changes a job's state, which the lists alone cannot do.
void take_kills(GangLists& lists, std::vector<Action>& kills) {
  for (const Action& action : lists.take_actions()) {
    if (action.kind == ActionKind::kKill) kills.push_back(action);
  }
}

void apply(GangLists& lists, const PendingOp& op, const Lookup& lookup) {
  if (op.join) {
    if (!lists.contains(*op.join)) lists.start(lookup(*op.join));
  } else {
    lists.refill_all();
  }
}

// Plays everything that happens at the instant `at`: ops first, then the tick of a boundary.
void happen(GangLists& lists, std::vector<PendingOp>& pending, const Grid& grid,
            const Lookup& lookup, base::Instant at) {
  // Joins come before the tick of the same instant: a job that joins at a boundary takes part in
  // that boundary's rotation, as a job does that started just before Slurm's tick.
  while (!pending.empty() && pending.front().at <= at) {
    apply(lists, pending.front(), lookup);
    pending.erase(pending.begin());
  }
  if (grid.boundary_at_or_after(at) == at) lists.tick();
}

// Plays a copy of a component ahead, and writes down which members run in each slot.
//
// 1. Members are those in the lists and those that join later; jobs that overlap a dying one do not
//    run until it is gone.
// 2. Play until the last pending op is done and the grid is the new one: the plan.
// 3. Play on to the next slot boundary; from there on only ticks happen.
// 4. Tick until the lists are as they were before some slot: the slots since then repeat forever.
// 5. If they do not repeat within 64 slots (fewer if the plan is long), loop the smallest window in
//    which every job runs that runs at all. If some job has not run by then though nothing keeps it
//    from running, the projection is extended when the window ends.
class Projector {
 public:
  Projector(const ComponentState& state, const Grid& grid, const Lookup& lookup)
      : state_{state}, grid_{grid}, lookup_{lookup}, lists_{state.lists} {}

  Projection run(const Need& need) && {
    out_.members = members_of(state_);  // 1
    find_blocked();
    find_slots();
    out_.timeline = timetable::Timeline{
        .slice = grid_.slice, .pods_count = out_.members.size(), .plan = {}, .cycle = {}};
    lists_.take_actions();
    lists_.record_kills_only(true);
    play_pending();   // 2
    to_boundary();    // 3
    find_loop(need);  // 4 and 5
    out_.index();
    return std::move(out_);
  }

 private:
  // Finds each member in the lists. To be called when jobs have entered or left them.
  void find_slots() {
    slots_.clear();
    slots_.reserve(out_.members.size());
    const std::vector<std::int32_t> in_lists = lists_.slots_of(out_.members);
    for (std::size_t i = 0; i < in_lists.size(); ++i) {
      // A dying job has no row, but its processes run until its pods are gone, so that they can
      // handle SIGTERM (13.10).
      const bool always = state_.dying.contains(out_.members[i]);
      slots_.push_back({.in_lists = in_lists[i],
                        .always = always,
                        .never = !always && blocked_.contains(out_.members[i])});
    }
  }

  // Blocks the units of dying jobs: the lists may have given them to other jobs, which must not run
  // before the units are free. They are blocked for the whole projection, because nothing says when
  // the pods will be gone; the event that reports it has the component projected again. To be
  // called with find_slots(): a job that joins later may come over a dying one, too.
  void find_blocked() {
    for (const JobId job : state_.dying) {
      if (!lists_.contains(job)) continue;
      for (const JobId other : out_.members) {
        if (other != job && lists_.contains(other) && lists_.overlap(job, other)) {
          blocked_.insert(other);
        }
      }
    }
  }

  // Returns the pods that run in the slot that the lists describe, ascending. A dying job runs
  // whatever the lists say; jobs over its units do not, whatever the lists say.
  timetable::Timeline::PodSet running() const {
    timetable::Timeline::PodSet run;
    run.reserve(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const MemberSlot& slot = slots_[i];
      const bool runs =
          slot.always || (!slot.never && slot.in_lists >= 0 && lists_.runs(slot.in_lists));
      if (runs) run.push_back(static_cast<std::uint32_t>(i));
    }
    return run;
  }

  // Notes the jobs that run from the end of the plan so far until `until`.
  void plan_until(base::Instant until, timetable::Timeline::PodSet run) {
    auto& plan = out_.timeline.plan;
    // Neighboring entries with the same jobs become one, so that timetables stay short.
    if (!plan.empty() && plan.back().run == run) {
      plan.back().until = until;
    } else {
      plan.push_back({until, std::move(run)});
    }
  }

  // Notes only the first kill: the projection is made again when it happens, because the ending of
  // the victim is not foreseeable (grace time, pods that stop).
  void note_kills(base::Instant at) {
    for (const Action& action : lists_.take_actions()) {
      if (action.kind == ActionKind::kKill && !out_.kill_at) out_.kill_at = at;
    }
  }

  // Step 2. Plays one boundary or pending op after the other, and notes which jobs run in between.
  // Pending ops are played although they may still change: they decide run(t) as far as is known
  // now, and an event that changes them has the component projected again.
  void play_pending() {
    at_ = out_.settled = state_.base;
    out_.settled_places = lists_.places();
    // While the slice length is about to change (change_at is ahead), slots of the old length are
    // written out one by one: the cycle is counted in slots of the new length.
    std::vector<PendingOp> pending = state_.pending;
    while (!pending.empty() || at_ < grid_.change_at) {
      base::Instant next = grid_.next_boundary(at_);
      if (!pending.empty()) next = std::min(next, pending.front().at);
      plan_until(next, running());
      at_ = next;
      const bool last = pending.empty() || pending.back().at <= at_;
      happen(lists_, pending, grid_, lookup_, at_);
      // A job that has joined has its place in the lists now.
      find_blocked();
      find_slots();
      note_kills(at_);
      if (last) {
        out_.settled = at_;
        out_.settled_places = lists_.places();
      }
    }
  }

  // A loop consists of whole slots, so it can begin only at a boundary. The rest of the slot in
  // which the last op fell becomes part of the plan.
  void to_boundary() {
    if (base::boundary_at_or_after(at_, grid_.slice) == at_) return;
    const base::Instant next = grid_.next_boundary(at_);
    plan_until(next, running());
    at_ = next;
    lists_.tick();
    note_kills(at_);
  }

  // Steps 4 and 5. Cost: at most kCycleSlotsMax ticks, each with a comparison of its signature with
  // those before it.
  void find_loop(const Need& need) {
    const std::int64_t first = base::slot_of(at_, grid_.slice);
    // A slot's signature decides everything that follows it, so the first signature that comes
    // again closes a loop. All signatures are kept, and not the first one only, because the first
    // slots often lead into the loop without being part of it: a job that joined as FILLER moves to
    // the back at its second tick (R6.6).
    GangLists at_first = lists_;
    std::vector<std::vector<std::int32_t>> signatures;
    std::vector<timetable::Timeline::PodSet> runs;
    std::vector<bool> seen(out_.members.size(), false);
    // A window that is looped holds every job that runs in any slot. So whatever is found later,
    // nothing before a slot in which some job runs for the first time is looped: those slots will
    // be as played.
    std::size_t certain = 1;
    // All slots but the last may turn out not to belong to the loop, and must be written out.
    CHECK(out_.timeline.plan.size() < timetable::kPlanEntriesMax);
    const std::size_t most =
        std::min(timetable::kCycleSlotsMax, timetable::kPlanEntriesMax - out_.timeline.plan.size());
    for (std::size_t slot = 0; slot < most; ++slot) {
      signatures.push_back(lists_.signature());
      runs.push_back(running());
      for (const std::uint32_t pod : runs.back()) {
        if (seen[pod]) continue;
        seen[pod] = true;
        certain = slot + 1;
      }
      out_.known_until = base::slot_begin(first + static_cast<std::int64_t>(certain), grid_.slice);
      if (suffices(need, seen)) {
        plan_slots(first, certain, runs);
        return;
      }
      lists_.tick();
      note_kills(base::slot_begin(first + static_cast<std::int64_t>(slot) + 1, grid_.slice));
      const auto same = std::find(signatures.begin(), signatures.end(), lists_.signature());
      if (same == signatures.end()) continue;
      set_loop(std::move(at_first), first, static_cast<std::size_t>(same - signatures.begin()),
               slot + 1, runs);
      return;
    }
    // No repetition in as many slots as a timetable may have in its cycle.
    set_loop(std::move(at_first), first, 0, window(runs), runs);
  }

  // Returns true if run(t) up to known_until is enough, with these pods seen.
  bool suffices(const Need& need, const std::vector<bool>& seen) const {
    return need.until <= out_.known_until &&
           std::all_of(need.seen.begin(), need.seen.end(),
                       [&](JobId job) { return seen[out_.pod_of(job)]; });
  }

  // Writes out the slots that were played and are not part of a loop.
  void plan_slots(std::int64_t first, std::size_t count,
                  const std::vector<timetable::Timeline::PodSet>& runs) {
    for (std::size_t i = 0; i < count; ++i) {
      plan_until(base::slot_begin(first + static_cast<std::int64_t>(i) + 1, grid_.slice), runs[i]);
    }
  }

  // Returns the least number of slots, from the first, in which every job runs that runs in any.
  std::size_t window(const std::vector<timetable::Timeline::PodSet>& runs) {
    std::set<std::uint32_t> all;
    for (const auto& run : runs) all.insert(run.begin(), run.end());
    // A job that had no slot although neither a shadow nor a hold keeps it from running has its
    // turn after the window. To loop the window would starve it.
    const bool starves = std::any_of(out_.members.begin(), out_.members.end(), [&](JobId job) {
      return !all.contains(out_.pod_of(job)) && !lists_.shadowed(job) && !held(job);
    });
    if (starves) {  // more than 64 jobs deep
      const auto end = base::slot_of(at_, grid_.slice) + static_cast<std::int64_t>(runs.size());
      out_.extend_at = base::slot_begin(end, grid_.slice);
      return runs.size();
    }
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      seen.insert(runs[i].begin(), runs[i].end());
      if (seen == all) return i + 1;
    }
    return runs.size();
  }

  // Asked only of members without a slot, and only if no loop was found: a walk is good enough.
  bool held(JobId job) const {
    const auto places = lists_.places();
    return std::any_of(places.begin(), places.end(),
                       [&](const Place& place) { return place.job == job && place.held; });
  }

  // Makes slots [from, end) after `first` repeat forever.
  void set_loop(GangLists loop_lists, std::int64_t first, std::size_t from, std::size_t end,
                const std::vector<timetable::Timeline::PodSet>& runs) {
    plan_slots(first, from, runs);
    out_.known_until = base::kNever;
    out_.loop_start = first + static_cast<std::int64_t>(from);
    // Played once more from the first slot, which costs less than 64 copies of the lists on the
    // way.
    for (std::size_t i = 0; i < from; ++i) loop_lists.tick();
    loop_lists.take_actions();
    loop_lists.record_kills_only(false);
    out_.loop_lists = std::move(loop_lists);
    out_.timeline.cycle.resize(end - from);
    for (std::size_t i = from; i < end; ++i) {
      const std::int64_t slot = first + static_cast<std::int64_t>(i);
      // The position in the cycle follows from the slot's number since the epoch, not from where
      // this loop began, so that agents find it without knowing any history.
      out_.timeline.cycle[timetable::cycle_position(slot, end - from)] = runs[i];
    }
  }

  struct MemberSlot {            // of members[i]
    std::int32_t in_lists = -1;  // GangLists::slot_of; -1 = it has not joined yet
    bool always = false;         // dying
    bool never = false;          // under a dying one
  };

  const ComponentState& state_;
  const Grid& grid_;
  const Lookup& lookup_;
  GangLists lists_;
  Projection out_;
  base::Instant at_{};
  std::vector<MemberSlot> slots_;
  std::set<JobId> blocked_;
};

}  // namespace

// Returns jobs in the lists and jobs that will join, ascending: a member's position is its pod.
std::vector<JobId> members_of(const ComponentState& state) {
  std::vector<JobId> members = state.lists.jobs();
  const auto in_lists = static_cast<std::ptrdiff_t>(members.size());
  for (const PendingOp& op : state.pending) {
    if (op.join && !state.lists.contains(*op.join)) members.push_back(*op.join);
  }
  std::sort(members.begin() + in_lists, members.end());
  std::inplace_merge(members.begin(), members.begin() + in_lists, members.end());
  return members;
}

// A pod counts as changed unless its former timetable says the same about it from `from` on.
// Neighbors of a component therefore do not cost an API write when a job joins that leaves their
// turns as they were.
std::vector<bool> changed_pods(const Component& component, base::Instant from) {
  const std::vector<JobId>& members = component.projection.members;
  std::vector<bool> changed(members.size(), true);
  for (const auto& before : component.upkeep.before) {
    // After a merge there is a "before" for each former component. A job was in at most one of
    // them, and the others report it as changed: it has changed if all of them say so.
    std::vector<std::uint32_t> pods;  // of the members then: those of now
    pods.reserve(before->members.size());
    std::size_t next = 0;
    for (const JobId job : before->members) {
      while (next < members.size() && members[next] < job) ++next;
      const bool stays = next < members.size() && members[next] == job;
      pods.push_back(stays ? static_cast<std::uint32_t>(next) : timetable::kNoPod);
    }
    const std::vector<bool> since =
        timetable::changed_pods(before->timeline, component.projection.timeline, pods, from);
    for (std::size_t pod = 0; pod < changed.size(); ++pod) {
      changed[pod] = changed[pod] && since[pod];
    }
  }
  return changed;
}

// Returns false for a job that gets no turn as far as is projected, for example under a shadow.
bool Projection::ever_runs(JobId job) const {
  const std::uint32_t pod = pod_of(job);
  return cycle_slots[pod] != 0 ||
         std::any_of(timeline.plan.begin(), timeline.plan.end(),
                     [&](const timetable::Timeline::PlanEntry& entry) {
                       return std::binary_search(entry.run.begin(), entry.run.end(), pod);
                     });
}

// Makes two views for questions that come often: in which slots of the cycle a pod runs (bits), and
// at which place of the lists its job is (-1 = it has not joined yet).
void Projection::index() {
  cycle_slots.assign(members.size(), 0);
  for (std::size_t i = 0; i < timeline.cycle.size(); ++i) {
    for (const std::uint32_t pod : timeline.cycle[i]) cycle_slots[pod] |= std::uint64_t{1} << i;
  }
  places.assign(members.size(), -1);
  std::uint32_t pod = 0;  // most often the place after a job's is that of the next member
  for (std::size_t i = 0; i < settled_places.size(); ++i, ++pod) {
    const JobId job = settled_places[i].job;
    if (pod >= members.size() || members[pod] != job) pod = pod_of(job);
    if (pod < members.size() && members[pod] == job) places[pod] = static_cast<std::int32_t>(i);
  }
}

// 1. Outside the loop, or if a tick on the way kills: one boundary or pending op after the other.
// 2. In the loop whole turns change nothing: start at the loop's beginning and tick what is left.
void play(Component& component, const Grid& grid, const Lookup& lookup, base::Instant now,
          std::vector<Action>& kills) {
  ComponentState& state = component.state;
  const Projection& projection = component.projection;
  if (now < state.base) return;  // restored: what was published stands until then
  while (true) {                 // 1
    base::Instant next = grid.next_boundary(state.base);
    if (!state.pending.empty()) {
      next = std::min(next, state.pending.front().at);
    } else if (projection.loop_lists && now >= grid.change_at &&
               !(projection.kill_at && *projection.kill_at <= now) &&
               base::slot_of(state.base, grid.slice) >= projection.loop_start) {
      break;
    }
    if (next > now) return;
    happen(state.lists, state.pending, grid, lookup, next);
    take_kills(state.lists, kills);
    state.base = next;
  }
  const std::int64_t slot = base::slot_of(now, grid.slice);  // 2
  if (slot == base::slot_of(state.base, grid.slice)) return;
  const auto length = static_cast<std::int64_t>(projection.timeline.cycle.size());
  state.lists = *projection.loop_lists;
  for (std::int64_t i = (slot - projection.loop_start) % length; i > 0; --i) state.lists.tick();
  take_kills(state.lists, kills);
  state.base = base::slot_begin(slot, grid.slice);
}

Projection project(const ComponentState& state, const Grid& grid, const Lookup& lookup,
                   const Need& need) {
  return Projector{state, grid, lookup}.run(need);
}

}  // namespace sched::gang
