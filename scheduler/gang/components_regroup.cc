// Components that grow together when a job joins, fall apart when one leaves, or are made anew
// (6.10). Everybody keeps his place in the list.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <utility>

namespace sched::gang {
namespace {

// k-way merge of lists, each in its order; the head with the lowest table order goes first.
std::vector<Place> merge_lists(std::vector<std::vector<Place>> lists, const JobTable& jobs) {
  std::vector<Place> merged;
  std::vector<std::size_t> heads(lists.size(), 0);
  while (true) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (heads[i] == lists[i].size()) continue;
      const auto order = [&](std::size_t list) {
        return jobs.find(lists[list][heads[list]].job)->table_order;
      };
      if (!best || order(i) < order(*best)) best = i;
    }
    if (!best) return merged;
    merged.push_back(lists[*best][heads[*best]++]);
  }
}

}  // namespace

// One component out of the closure's, at now; its projection is stale, and so is who its members
// are.
Component& Components::merge(const Closure& closure, base::Instant now) {
  auto merged = std::make_unique<Component>(
      Component{.world = World{cluster_, unit_of(cluster_.parameters())}, .base = now});
  std::vector<std::vector<Place>> lists;
  for (const std::int64_t id : closure.components) {
    Component& part = *components_.at(id);
    bring(part, now);
    settle_members(part);
    lists.push_back(part.world.places());
    merged->pending.insert(merged->pending.end(), part.pending.begin(), part.pending.end());
    merged->dying.insert(part.dying.begin(), part.dying.end());
    remember(part, *merged);
    merged->collected_at = std::max(merged->collected_at, part.collected_at);
  }
  for (Job* job : closure.loose) {
    settle_(*job);
    lists.push_back({Place{job->id, EntryRow::kFiller, true, false}});
  }
  std::stable_sort(merged->pending.begin(), merged->pending.end(),
                   [](const PendingOp& a, const PendingOp& b) { return a.at < b.at; });
  World* const only = closure.components.size() == 1 && closure.loose.empty()
                          ? &components_.at(*closure.components.begin())->world
                          : nullptr;
  if (only != nullptr && only->is_lean()) {
    merged->world = std::move(*only);
    merged->world.take_actions();
  } else {
    for (const Place& place : merge_lists(std::move(lists), jobs_)) {
      merged->world.append(newcomer(place.job), place);
    }
  }
  merged->world.recount();
  for (const std::int64_t id : closure.components) take_out(id);
  return put_in(std::move(merged));
}

// Groups of members that are still connected.
std::vector<std::vector<JobId>> Components::parts(const Component& component) const {
  std::vector<JobId> everybody = component.world.jobs();
  for (const PendingOp& op : component.pending) {
    if (op.join) everybody.push_back(*op.join);
  }
  // Who is contended, or is not where he belongs yet (a hole is filled at the boundary, a joiner
  // waits, a victim dies), and by node the positions of those in `everybody`.
  std::vector<bool> contended(everybody.size(), false);
  std::vector<std::pair<NodeIndex, std::size_t>> on_nodes;
  for (std::size_t i = 0; i < everybody.size(); ++i) {
    const Job& job = *jobs_.find(everybody[i]);
    const bool settled = component.world.contains(job.id) && component.world.runs(job.id) &&
                         !component.dying.contains(job.id);
    if (settled && !has_rivals(job)) continue;
    contended[i] = true;
    for (const NodeAllocation& use : job.allocation.nodes) on_nodes.emplace_back(use.node, i);
  }
  std::sort(on_nodes.begin(), on_nodes.end());
  std::vector<std::vector<JobId>> groups;
  std::vector<bool> seen(everybody.size(), false);
  std::vector<std::size_t> group;
  for (std::size_t seed = 0; seed < everybody.size(); ++seed) {
    if (seen[seed]) continue;
    seen[seed] = true;
    group.assign(1, seed);
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!contended[group[i]]) continue;
      for (const NodeAllocation& use : jobs_.find(everybody[group[i]])->allocation.nodes) {
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
    for (const std::size_t position : group) jobs.push_back(everybody[position]);
  }
  return groups;
}

// After somebody left: the parts that are not connected any more go their own ways.
void Components::split(std::int64_t id, base::Instant now, base::Instant publish_at) {
  std::vector<std::vector<JobId>> groups = parts(*components_.at(id));
  std::unique_ptr<Component> whole = take_out(id);
  touched_.insert(touched_.end(), whole->members.begin(), whole->members.end());
  const std::vector<Place> places = whole->world.places();
  const bool lean = whole->world.is_lean();
  for (std::vector<JobId>& group : groups) {
    std::sort(group.begin(), group.end());
    const auto in_group = [&](JobId job) {
      return std::binary_search(group.begin(), group.end(), job);
    };
    auto part = std::make_unique<Component>(
        Component{.world = World{cluster_, unit_of(cluster_.parameters())}, .base = now});
    part->collected_at = whole->collected_at;
    remember(*whole, *part);
    bool all_run = true;
    for (const Place& place : places) {
      if (!in_group(place.job)) continue;
      if (groups.size() > 1 || !lean) part->world.append(newcomer(place.job), place);
      all_run = all_run && place.resumed;
      if (whole->dying.contains(place.job)) part->dying.insert(place.job);
    }
    if (groups.size() == 1 && lean) part->world = std::move(whole->world);
    part->world.take_actions();
    part->world.recount();
    for (const PendingOp& op : whole->pending) {
      if (op.join ? in_group(*op.join) : !all_run) part->pending.push_back(op);
    }
    // Alone and running: it needs no list any more.
    if (group.size() == 1 && all_run && part->pending.empty() && part->dying.empty()) {
      mark(*jobs_.find(group.front()), publish_at);
      continue;
    }
    finish(put_in(std::move(part)), now, publish_at);
  }
}

// 6.10, with everybody's list order kept.
void Components::rebuild(const std::vector<Job*>& tracked, base::Instant now) {
  for (Job* job : tracked) {
    if (job->component == nullptr) settle_(*job);
  }
  std::vector<std::vector<Place>> lists;
  for (const auto& [id, component] : components_) {
    bring(*component, now);
    settle_members(*component);
    lists.push_back(component->world.places());
    for (const PendingOp& op : component->pending) {
      if (op.join) lists.push_back({Place{*op.join, EntryRow::kNone, false, false}});
    }
  }
  std::map<JobId, Place> old;
  std::vector<JobId> order;
  for (const Place& place : merge_lists(std::move(lists), jobs_)) {
    old.emplace(place.job, place);
    order.push_back(place.job);
  }
  std::set<JobId> dying;
  for (const auto& [id, component] : components_) {
    dying.insert(component->dying.begin(), component->dying.end());
  }
  while (!components_.empty()) take_out(components_.begin()->first);
  for (Job* job : tracked) {
    if (!old.contains(job->id)) order.push_back(job->id);
  }
  // All in one world first, then apart.
  auto whole = std::make_unique<Component>(
      Component{.world = World{cluster_, unit_of(cluster_.parameters())}, .base = now});
  const std::set<JobId> wanted = [&] {
    std::set<JobId> ids;
    for (const Job* job : tracked) ids.insert(job->id);
    return ids;
  }();
  for (const JobId id : order) {
    Job* job = jobs_.find(id);
    if (job == nullptr || !wanted.contains(id)) continue;
    job->in_gang = true;
    Newcomer joining = newcomer(id);
    const auto at = old.find(id);
    joining.suspended = at != old.end() && !at->second.resumed;
    joining.held = joining.held || dying.contains(id);
    whole->world.start(joining, false);
    if (dying.contains(id)) whole->dying.insert(id);
  }
  whole->world.refill_all();
  for (const Action& action : whole->world.take_actions()) {
    if (action.kind == ActionKind::kKill) kills_.push_back(action);
  }
  whole->members = whole->world.jobs();
  split(put_in(std::move(whole)).id, now, now);
}

Component& Components::put_in(std::unique_ptr<Component> component) {
  component->id = next_id_++;
  return *components_.emplace(component->id, std::move(component)).first->second;
}

std::unique_ptr<Component> Components::take_out(std::int64_t id) {
  const auto at = components_.find(id);
  std::unique_ptr<Component> component = std::move(at->second);
  components_.erase(at);
  due_.clear(id);
  stale_.erase(id);
  for (const JobId member : component->members) {
    if (Job* job = jobs_.find(member)) job->component = nullptr;
  }
  return component;
}

}  // namespace sched::gang
