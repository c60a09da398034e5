// Components that grow together when a job joins, fall apart when one leaves, or are built again
// (6.10). Every job keeps its place in the list.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace sched::gang {
namespace {

// Merges lists, each of which keeps its own order: the head with the lowest table order goes first.
// Cost: O(jobs × log lists).
std::vector<Place> merge_lists(const std::vector<std::vector<Place>>& lists, const JobTable& jobs) {
  struct Head {
    std::int64_t order;
    std::size_t list;
    std::size_t position;
    bool operator>(const Head& other) const { return order > other.order; }
  };
  if (lists.size() == 1) return lists.front();
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  const auto push = [&](std::size_t list, std::size_t position) {
    if (position == lists[list].size()) return;
    heads.push({jobs.find(lists[list][position].job)->table_order, list, position});
  };
  for (std::size_t list = 0; list < lists.size(); ++list) push(list, 0);
  std::vector<Place> merged;
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    merged.push_back(lists[head.list][head.position]);
    push(head.list, head.position + 1);
  }
  return merged;
}

}  // namespace

// Makes one component, at now, out of those of the closure and its loose jobs. Its projection is
// stale, and its members are not known yet: mark_stale() follows, when the caller has changed it.
//
// 1. Play each part to now, and take over its pending ops, its dying jobs and what it had
// published.
// 2. A loose job has run until now: it enters as FILLER.
// 3. Merge the lists in table order. A closure that is just one component keeps its lists, unless
//    that has grown by jobs that have left.
// 4. Work the active maps out, and put the new component in the place of its parts.
Component& Components::merge(const Closure& closure, base::Instant now) {
  // Jobs of different components have never met in a rotation, so table order decides between them
  // (merge_lists).
  std::unique_ptr<Component> merged = new_component(now);
  std::vector<std::vector<Place>> lists;
  for (const std::int64_t id : closure.components) {
    Component& part = *components_.at(id);  // 1
    advance_to(part, now);
    settle_clocks(part);
    lists.push_back(part.state.lists.places());
    merged->state.pending.insert(merged->state.pending.end(), part.state.pending.begin(),
                                 part.state.pending.end());
    merged->state.dying.insert(part.state.dying.begin(), part.state.dying.end());
    remember(part, *merged);
    merged->state.collected_at = std::max(merged->state.collected_at, part.state.collected_at);
  }
  std::vector<Place> loose;
  for (Job* job : closure.loose) {  // 2
    settle_(*job);
    // FILLER, not ACTIVE: a job that had no rival did not use up a slice that others waited for, so
    // it is not moved back at the next tick.
    loose.push_back({job->id, EntryRow::kFiller, true, false});
  }
  if (!loose.empty()) lists.push_back(std::move(loose));
  std::stable_sort(merged->state.pending.begin(), merged->state.pending.end(),
                   [](const PendingOp& a, const PendingOp& b) { return a.at < b.at; });
  GangLists* const only = closure.components.size() == 1 && closure.loose.empty()  // 3
                              ? &components_.at(*closure.components.begin())->state.lists
                              : nullptr;
  if (only != nullptr && only->is_lean()) {
    merged->state.lists = std::move(*only);
    merged->state.lists.take_actions();
  } else {
    for (const Place& place : merge_lists(lists, jobs_)) {
      merged->state.lists.append(newcomer(place.job), place);
    }
  }
  merged->state.lists.recount();  // 4
  for (const std::int64_t id : closure.components) remove(id);
  return insert(std::move(merged));
}

// Returns the members in groups: jobs in one group must still be in one component, jobs of
// different groups do not.
//
// 1. A job is contended if it has a rival, or is not where it belongs yet: it waits to join or for
//    its hole, or it dies. A job that is not contended runs and stays alone.
// 2. Two contended jobs on one node are connected, and so is every job that is connected to one of
//    them: walk from each job over the nodes that it shares with others.
std::vector<std::vector<JobId>> Components::parts(const Component& component) const {
  std::vector<JobId> all = component.state.lists.jobs();
  for (const PendingOp& op : component.state.pending) {
    if (op.join) all.push_back(*op.join);
  }
  // 1. `on_nodes`: by node, the positions in `all` of the contended jobs there.
  std::vector<bool> contended(all.size(), false);
  std::vector<std::pair<NodeIndex, std::size_t>> on_nodes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Job& job = *jobs_.find(all[i]);
    const bool settled = component.state.lists.contains(job.id) &&
                         component.state.lists.runs(job.id) &&
                         !component.state.dying.contains(job.id);
    if (settled && !has_rivals(job)) continue;
    contended[i] = true;
    for (const NodeAllocation& use : job.allocation.nodes) on_nodes.emplace_back(use.node, i);
  }
  std::sort(on_nodes.begin(), on_nodes.end());
  std::vector<std::vector<JobId>> groups;  // 2
  std::vector<bool> seen(all.size(), false);
  std::vector<std::size_t> group;
  for (std::size_t seed = 0; seed < all.size(); ++seed) {
    if (seen[seed]) continue;
    seen[seed] = true;
    group.assign(1, seed);
    // The group is its own queue: it grows while it is walked through. A job that is not contended
    // adds no other.
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!contended[group[i]]) continue;
      for (const NodeAllocation& use : jobs_.find(all[group[i]])->allocation.nodes) {
        auto at =
            std::lower_bound(on_nodes.begin(), on_nodes.end(), std::pair{use.node, std::size_t{0}});
        for (; at != on_nodes.end() && at->first == use.node; ++at) {
          if (seen[at->second]) continue;
          seen[at->second] = true;
          group.push_back(at->second);
        }
      }
    }
    std::vector<JobId>& jobs = groups.emplace_back();
    for (const std::size_t position : group) jobs.push_back(all[position]);
  }
  return groups;
}

// Takes a component apart where its jobs are no longer connected. Every job keeps its row and its
// place among the jobs of its group.
//
// 1. A group gets its jobs' part of the lists, its dying jobs, and the joins that are its own;
//    fills that wait for a boundary go to each group in which a job does not run.
// 2. A group of a single job that runs needs no list: the job leaves the components.
// 3. The others are projected again; what was projected before counts for each of them.
void Components::split(std::int64_t id, base::Instant now, base::Instant publish_at) {
  std::vector<std::vector<JobId>> groups = parts(*components_.at(id));
  std::unique_ptr<Component> whole = remove(id);
  touched_.insert(touched_.end(), whole->projection.members.begin(),
                  whole->projection.members.end());
  const std::vector<Place> places = whole->state.lists.places();
  const bool lean = whole->state.lists.is_lean();
  for (std::vector<JobId>& group : groups) {
    std::sort(group.begin(), group.end());
    const auto in_group = [&](JobId job) {
      return std::binary_search(group.begin(), group.end(), job);
    };
    std::unique_ptr<Component> part = new_component(now);
    // The parts inherit the time of the last rewrite, or a component that is split often could be
    // rewritten more often than once in each max(slice, lead).
    part->state.collected_at = whole->state.collected_at;
    remember(*whole, *part);
    bool all_run = true;
    for (const Place& place : places) {
      if (!in_group(place.job)) continue;
      // The usual case is one group, which takes over the lists as they are. They are built again
      // only if they have grown by jobs that left.
      if (groups.size() > 1 || !lean) part->state.lists.append(newcomer(place.job), place);
      all_run = all_run && place.resumed;
      if (whole->state.dying.contains(place.job)) part->state.dying.insert(place.job);
    }
    if (groups.size() == 1 && lean) part->state.lists = std::move(whole->state.lists);
    part->state.lists.take_actions();
    part->state.lists.recount();
    for (const PendingOp& op : whole->state.pending) {
      if (op.join ? in_group(*op.join) : !all_run) part->state.pending.push_back(op);
    }
    if (group.size() == 1 && all_run &&  // 2
        part->state.pending.empty() && part->state.dying.empty()) {
      mark(*jobs_.find(group.front()), publish_at);
      continue;
    }
    mark_stale(insert(std::move(part)), now, publish_at);  // 3
  }
}

// 6.10: after a change of the configuration. Every job keeps its place in the list.
//
// 1. Note the lists of all components at now, merged, with the jobs that waited to join behind.
// 2. Start all tracked jobs in one GangLists in that order, new ones last. Jobs that were stopped
//    start suspended, dying ones are held.
// 3. Fill the holes, and take the whole apart into components.
void Components::rebuild(const std::vector<Job*>& tracked, base::Instant now) {
  for (Job* job : tracked) {
    if (job->turn.component == nullptr) settle_(*job);
  }
  std::vector<std::vector<Place>> lists;
  for (const auto& [id, component] : components_) {
    advance_to(*component, now);
    settle_clocks(*component);
    lists.push_back(component->state.lists.places());
    for (const PendingOp& op : component->state.pending) {
      if (op.join) lists.push_back({Place{*op.join, EntryRow::kNone, false, false}});
    }
  }
  std::map<JobId, Place> old;  // 1
  std::vector<JobId> order;
  for (const Place& place : merge_lists(lists, jobs_)) {
    old.emplace(place.job, place);
    order.push_back(place.job);
  }
  std::set<JobId> dying;
  for (const auto& [id, component] : components_) {
    dying.insert(component->state.dying.begin(), component->state.dying.end());
  }
  // No job is in a component any longer, and the unit, the tiers and the partitions may be others.
  while (!components_.empty()) remove(components_.begin()->first);
  for (Job* job : tracked) {
    if (!old.contains(job->id)) order.push_back(job->id);
  }
  // 2. All in one GangLists first.
  std::unique_ptr<Component> whole = new_component(now);
  const std::set<JobId> wanted = [&] {
    std::set<JobId> ids;
    for (const Job* job : tracked) ids.insert(job->id);
    return ids;
  }();
  for (const JobId id : order) {
    Job* job = jobs_.find(id);
    if (job == nullptr || !wanted.contains(id)) continue;
    job->turn.in_gang = true;
    Newcomer joining = newcomer(id);
    const auto at = old.find(id);
    // A job that did not run enters without a row: a row would stop a job that runs now, only
    // because the configuration was read again.
    joining.suspended = at != old.end() && !at->second.resumed;
    joining.held = joining.held || dying.contains(id);
    whole->state.lists.start(joining, false);
    if (dying.contains(id)) whole->state.dying.insert(id);
  }
  whole->state.lists.refill_all();  // 3
  // Kills are handed on. Stops and resumes need not be: they show in the projections that follow.
  for (const Action& action : whole->state.lists.take_actions()) {
    if (action.kind == ActionKind::kKill) kills_.push_back(action);
  }
  whole->projection.members = whole->state.lists.jobs();
  split(insert(std::move(whole)).upkeep.id, now, now);
}

// Makes a component without jobs; it gets its id from insert().
std::unique_ptr<Component> Components::new_component(base::Instant at) const {
  return std::make_unique<Component>(Component{
      .state = {.lists = GangLists{cluster_, unit_of(cluster_.parameters())}, .base = at}});
}

Component& Components::insert(std::unique_ptr<Component> component) {
  component->upkeep.id = next_id_++;
  return *components_.emplace(component->upkeep.id, std::move(component)).first->second;
}

// The members are in no component until the caller has put them into others.
std::unique_ptr<Component> Components::remove(std::int64_t id) {
  const auto at = components_.find(id);
  std::unique_ptr<Component> component = std::move(at->second);
  components_.erase(at);
  due_.clear(id);
  stale_.erase(id);
  for (const JobId member : component->projection.members) {
    if (Job* job = jobs_.find(member)) job->turn.component = nullptr;
  }
  return component;
}

}  // namespace sched::gang
