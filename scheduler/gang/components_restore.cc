// Components from published plans (architecture.md 3, "A new leader lists"): each node's list as of
// its plan is advanced by the rotation rule, with the plan's own run(t); the nodes' orders are
// merged; and the published cycle is taken over when playing the merged lists gives just that.
//
// A place in the component's order that is stored with each pod would take the place of
// merge_orders() alone, 46 of these lines. It would cost a field of the API with its codec, and a
// write of all nodes of a component where now only those are written whose own lists change. The
// rest would stay, and a rule for places that contradict each other be added: the nodes' plans are
// written one after the other, each holds as of its own instant, and a leader may be lost between.
#include <algorithm>
#include <map>
#include <set>

#include "scheduler/gang/components.h"
#include "scheduler/plan.h"

namespace sched::gang {
namespace {

// A job of a published list, with its row as the plan says or as the rotation has made it since.
struct Item {
  JobId job;
  EntryRow row = EntryRow::kNone;
};
using Items = std::vector<Item>;

// Does the reverse of row_of() in node_plans.cc.
EntryRow entry_row(Row row) {
  switch (row) {
    case Row::kActive:
      return EntryRow::kActive;
    case Row::kFiller:
      return EntryRow::kFiller;
    case Row::kWaiting:
      return EntryRow::kNone;
  }
  return EntryRow::kNone;
}

// A job that the plan does not list runs always there.
bool plan_runs(const NodePlan& plan, JobId job, base::Instant t) {
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    if (plan.entries[i].job != job) continue;
    return timetable::runs_at(plan.timetable, static_cast<std::uint16_t>(i), t);
  }
  return true;
}

// 6.6 at the boundary `at`. Which jobs run then is taken from the plan and not worked out: one
// node's list does not show the units that its jobs have on other nodes, or the shadows there.
void turn(Items& items, const NodePlan& plan, base::Instant at) {
  std::stable_partition(items.begin(), items.end(),
                        [](const Item& item) { return item.row != EntryRow::kActive; });
  for (Item& item : items) {
    item.row = plan_runs(plan, item.job, at) ? EntryRow::kActive : EntryRow::kNone;
  }
}

// Returns the first slot that belongs to the plan's cycle alone.
std::int64_t cycle_start(const NodePlan& plan) {
  const timetable::Timetable& table = plan.timetable;
  const base::Instant end =
      table.plan.empty() ? plan.as_of : std::max(plan.as_of, table.plan.back().until);
  return base::slot_of(base::boundary_at_or_after(end, table.slice), table.slice);
}

// Returns the list of the plan's tracked jobs as of `to`; whole turns of the cycle change nothing.
Items advanced(const NodePlan& plan, Items items, base::Instant to) {
  const base::Duration slice = plan.timetable.slice;
  const std::int64_t begin = base::slot_of(plan.as_of, slice);
  std::int64_t end = base::slot_of(to, slice);
  // An old plan costs no more than a new one: whole rounds of the cycle are skipped, and only the
  // turns that are left are made.
  const std::int64_t loop = cycle_start(plan);
  const auto length = static_cast<std::int64_t>(plan.timetable.cycle.size());
  if (end > loop + length) end = loop + (end - loop) % length;
  for (std::int64_t slot = begin + 1; slot <= end; ++slot) {
    turn(items, plan, base::slot_begin(slot, slice));
  }
  return items;
}

// Returns one order out of several that may share jobs: a topological sort; if several jobs may
// come next, the first of them in the job table does. Orders that contradict each other leave a
// circle; then the first job of the table that is left goes first.
//
// For example, n1 lists A, B and n2 lists B, C and n3 lists A, D. A goes first, then B or D may
// come, and B stands before D in the job table; so the order is A, B, C, D if that is also the
// order of the table. If n1 listed A, B and n2 B, A, neither could begin, and A would go first.
Items merge_orders(const std::vector<Items>& orders, const JobTable& jobs) {
  std::map<JobId, std::set<JobId>> before;
  std::map<JobId, EntryRow> rows;
  for (const Items& items : orders) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      rows.emplace(items[i].job, items[i].row);
      std::set<JobId>& mine = before[items[i].job];
      if (i > 0) mine.insert(items[i - 1].job);
    }
  }
  Items merged;
  const auto order = [&](JobId job) { return jobs.find(job)->table_order; };
  // `left` are the jobs without a place, `open` those of them with no job left before them. Both
  // are sorted by job-table order, so the result does not depend on the order of the nodes.
  std::set<std::pair<std::int64_t, JobId>> left;
  for (const auto& [job, row] : rows) left.insert({order(job), job});
  std::map<JobId, std::vector<JobId>> after;
  // The graph the other way round: which jobs come directly after a job.
  for (const auto& [job, predecessors] : before) {
    for (const JobId predecessor : predecessors) after[predecessor].push_back(job);
  }
  std::set<std::pair<std::int64_t, JobId>> open;
  for (const auto& key : left) {
    if (before[key.second].empty()) open.insert(key);
  }
  while (!left.empty()) {
    const auto key = open.empty() ? *left.begin() : *open.begin();
    open.erase(key);
    left.erase(key);
    merged.push_back({key.second, rows.at(key.second)});
    for (const JobId job : after[key.second]) {
      before[job].erase(key.second);
      const std::pair<std::int64_t, JobId> next{order(job), job};
      if (before[job].empty() && left.contains(next)) open.insert(next);
    }
  }
  return merged;
}

}  // namespace

// Makes the lists of the group's jobs as of `at`.
//
// 1. Advance each node's published list from its own instant to `at`.
// 2. Cut it into the partitions' lists.
// 3. Merge the lists of all nodes, partition by partition, and put the jobs at their places.
ComponentState Components::assemble(const std::vector<const NodePlan*>& plans,
                                    const std::set<JobId>& group, base::Instant at) const {
  std::map<PartitionIndex, std::vector<Items>> orders;
  for (const NodePlan* plan : plans) {
    Items items;
    for (const NodeTimetableEntry& entry : plan->entries) {
      if (group.contains(entry.job)) items.push_back({entry.job, entry_row(entry.row)});
    }
    items = advanced(*plan, std::move(items), at);  // 1
    std::map<PartitionIndex, Items> apart;          // 2
    for (const Item& item : items) apart[*jobs_.find(item.job)->partition].push_back(item);
    for (auto& [partition, list] : apart) orders[partition].push_back(std::move(list));
  }
  ComponentState state{.lists = GangLists{cluster_, unit_of(cluster_.parameters())}, .base = at};
  for (const auto& [partition, lists] : orders) {  // 3
    for (const Item& item : merge_orders(lists, jobs_)) {
      const Job& job = *jobs_.find(item.job);
      // A victim that the gang killed (P7) has no row, and runs until its pods are gone.
      const bool dying = job.ending && job.ending->preemptor && gang_kills(job);
      const bool runs = item.row != EntryRow::kNone && !dying;
      state.lists.append(newcomer(item.job),
                         {item.job, runs ? item.row : EntryRow::kNone, runs, dying});
      if (dying) state.dying.insert(item.job);
    }
  }
  state.lists.recount();
  return state;
}

// A victim that shares no unit with another job is under no shadow: some other part ends it.
bool Components::gang_kills(const Job& job) const {
  return newcomer(job.id).kill_under_shadow && has_rivals(job);
}

// Takes the published cycle over, so that the new leader goes on exactly as the old one published,
// also where that was a window of 64 slots and no true repetition. Returns false, and the caller
// projects again, if the plans contradict each other or the rotation rule gives something else.
//
// 1. All plans have this slice and one cycle length, and now lies in all their cycles.
// 2. Assemble the lists as of the begin of the present turn of the cycle.
// 3. Play one whole cycle, and compare with what each plan says about its jobs in each slot; the
//    lists of the present slot are the component's state.
// 4. The projection is the published cycle.
bool Components::adopt_cycle(Component& component, const std::vector<const NodePlan*>& plans,
                             const std::set<JobId>& group, base::Instant now) const {
  const NodePlan& first = *plans.front();  // 1
  const base::Duration slice = first.timetable.slice;
  const auto length = static_cast<std::int64_t>(first.timetable.cycle.size());
  std::int64_t start = 0;
  for (const NodePlan* plan : plans) {
    if (plan->timetable.slice != slice || slice != grid_.slice) return false;
    if (static_cast<std::int64_t>(plan->timetable.cycle.size()) != length) return false;
    start = std::max(start, cycle_start(*plan));
  }
  const std::int64_t slot = base::slot_of(now, slice);
  // Before the cycle the lists do not follow from it.
  if (slot < start) return false;
  // The turn of the cycle in which now lies.
  start += (slot - start) / length * length;
  const ComponentState loop = assemble(plans, group, base::slot_begin(start, slice));  // 2
  // A job that has ended since left a hole: the rotation gives something else than was published.
  GangLists filled = loop.lists;
  filled.refill_all();
  if (filled.places() != loop.lists.places()) return false;
  Projection played = project(loop, grid_, lookup());
  GangLists lists = loop.lists;
  std::vector<timetable::Timeline::PodSet> runs;
  for (std::int64_t i = 0; i < length; ++i) {  // 3
    const base::Instant begin = base::slot_begin(start + i, slice);
    timetable::Timeline::PodSet run;
    for (std::size_t pod = 0; pod < played.members.size(); ++pod) {
      const JobId job = played.members[pod];
      const bool expected = lists.runs(job) || loop.dying.contains(job);
      for (const NodePlan* plan : plans) {
        const auto& entries = plan->entries;
        const bool listed = std::any_of(entries.begin(), entries.end(),
                                        [&](const auto& entry) { return entry.job == job; });
        // A single disagreement, for example a job that left since, makes the caller project again.
        if (listed && plan_runs(*plan, job, begin) != expected) return false;
      }
      if (expected) run.push_back(static_cast<std::uint32_t>(pod));
    }
    runs.push_back(std::move(run));
    if (start + i == slot) component.state.lists = lists;
    lists.tick();
  }
  component.state.base = std::max(now, base::slot_begin(slot, slice));  // 4
  component.state.dying = loop.dying;
  component.state.lists.take_actions();
  Projection& projection = component.projection;
  projection.members = std::move(played.members);
  projection.timeline = {.slice = slice, .pods_count = projection.members.size()};
  projection.timeline.cycle.resize(runs.size());
  // A slot's place in the cycle follows from its number since the epoch.
  for (std::int64_t i = 0; i < length; ++i) {
    projection.timeline.cycle[timetable::cycle_position(start + i, runs.size())] =
        runs[static_cast<std::size_t>(i)];
  }
  projection.settled = component.state.base;
  projection.settled_places = component.state.lists.places();
  projection.loop_start = start;
  projection.loop_lists = loop.lists;
  projection.loop_lists->take_actions();
  projection.kill_at = played.kill_at;
  projection.extend_at = played.extend_at;
  projection.index();
  return true;
}

// Jobs in published plans are tracked; those with rivals are put together into groups, and each
// group becomes a component. Which jobs belong together follows from the nodes that they are on,
// not from the plans: those of a gang's nodes are written one after the other, so that after a
// crash a job may be listed on one of its nodes and not yet on another.
void Components::restore_published(const std::vector<NodePlan>& published, base::Instant now) {
  std::map<JobId, std::vector<const NodePlan*>> plans_of;
  for (const NodePlan& plan : published) {
    if (!cluster_.exists(plan.node) || !timetable::validate(plan.timetable).ok()) continue;
    for (const NodeTimetableEntry& entry : plan.entries) {
      Job* job = jobs_.find(entry.job);
      if (job == nullptr || !job->allocated() || !job->ready || job->user_suspended) continue;
      if (!cluster_.exists(*job->partition)) continue;  // it runs on outside the gang
      job->turn.in_gang = true;
      plans_of[entry.job].push_back(&plan);
    }
  }
  std::set<JobId> left;  // with rivals, in no group yet
  for (const auto& [job, plans] : plans_of) {
    if (has_rivals(*jobs_.find(job))) left.insert(job);
  }
  while (!left.empty()) {
    std::set<JobId> group;
    // The order of the walk does not matter: from one job to all jobs on its nodes, and on from
    // these.
    std::vector<JobId> open{left.extract(left.begin()).value()};
    std::set<NodeIndex> nodes;
    std::set<const NodePlan*> plans;
    while (!open.empty()) {
      const JobId id = open.back();
      open.pop_back();
      group.insert(id);
      plans.insert(plans_of[id].begin(), plans_of[id].end());
      for (const NodeAllocation& use : jobs_.find(id)->allocation.nodes) {
        if (!cluster_.exists(use.node) || !nodes.insert(use.node).second) continue;
        for (const Job* other : usage_.jobs_on(use.node)) {
          if (left.erase(other->id) != 0) open.push_back(other->id);
        }
      }
    }
    restore_group(group, {plans.begin(), plans.end()}, now);
  }
}

// A plan whose as_of lies ahead was published a lead before it takes effect: then the component
// begins there, and until then what was published stands. Plans that contradict each other, so that
// together they let jobs run that may not run together, do not stand: the lists hold from now on.
void Components::restore_group(const std::set<JobId>& group, std::vector<const NodePlan*> plans,
                               base::Instant now) {
  std::sort(plans.begin(), plans.end(),
            [](const NodePlan* a, const NodePlan* b) { return a->node < b->node; });
  base::Instant at = now;
  for (const NodePlan* plan : plans) at = std::max(at, plan->as_of);
  std::unique_ptr<Component> component = new_component(at);
  if (at > now || !adopt_cycle(*component, plans, group, now)) {
    component->state = assemble(plans, group, at);
    component->state.lists.refill_all();  // does nothing unless what was published was broken
    bool contradictory = false;
    for (const Action& action : component->state.lists.take_actions()) {
      contradictory = contradictory || action.kind != ActionKind::kResume;
      if (action.kind == ActionKind::kKill) kills_.push_back(action);
    }
    if (contradictory) component->state.base = at = now;
    component->projection = project(component->state, grid_, lookup());
    if (at > now && !keep_plan_until(*component, plans, now, at)) {
      component->state.base = now;
      component->projection = project(component->state, grid_, lookup());
    }
  }
  Component& added = insert(std::move(component));
  for (const JobId member : added.projection.members) {
    jobs_.find(member)->turn.component = &added;
    touched_.push_back(member);
  }
  update_due(added);
  quiet_until_ = base::Instant::min();
}

// run(t) for t < until stays what was published (architecture.md 2). Returns false, without effect,
// if that is more than a timetable has room for, which plans of several leaders may be together.
bool Components::keep_plan_until(Component& component, const std::vector<const NodePlan*>& plans,
                                 base::Instant now, base::Instant until) const {
  // The instants at which a plan may change: boundaries and the ends of its entries.
  std::set<base::Instant> changes{until};
  for (base::Instant t = grid_.next_boundary(now); t < until; t = grid_.next_boundary(t)) {
    changes.insert(t);
  }
  for (const NodePlan* plan : plans) {
    for (const auto& entry : plan->timetable.plan) {
      if (entry.until > now && entry.until < until) changes.insert(entry.until);
    }
  }
  std::vector<timetable::Timeline::PlanEntry> kept;
  base::Instant from = now;
  for (const base::Instant change : changes) {
    timetable::Timeline::PodSet run;
    for (std::size_t pod = 0; pod < component.projection.members.size(); ++pod) {
      const JobId job = component.projection.members[pod];
      bool runs = true;
      // A gang runs only while all its nodes run it: where the plans differ, the job counts as
      // stopped.
      for (const NodePlan* plan : plans) runs = runs && plan_runs(*plan, job, from);
      if (runs) run.push_back(static_cast<std::uint32_t>(pod));
    }
    if (!kept.empty() && kept.back().run == run) {
      kept.back().until = change;
    } else {
      kept.push_back({change, std::move(run)});
    }
    from = change;
  }
  auto& plan = component.projection.timeline.plan;
  if (kept.size() + plan.size() > timetable::kPlanEntriesMax) return false;
  plan.insert(plan.begin(), kept.begin(), kept.end());
  return true;
}

}  // namespace sched::gang
