#include "scheduler/gang/components.h"

#include <algorithm>
#include <utility>

#include "scheduler/base/check.h"
#include "scheduler/preempt/rules.h"

namespace sched::gang {
namespace {

CoreSet sockets_of(const CoreSet& cores, const NodeSpec& node) {
  CoreSet sockets;
  for (int core = cores.next(0); core >= 0; core = cores.next(core + 1)) {
    sockets.set(core / node.cores_per_socket);
    if (core + 1 >= kCoresPerNodeMax) break;
  }
  return sockets;
}

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

Newcomer Components::newcomer(JobId id) const {
  const Job& job = *jobs_.find(id);
  const PreemptMode mode = preempt::effective_mode(cluster_, job);
  return {.job = job.id,
          .table_order = job.table_order,
          .partition = *job.partition,
          .allocation = &job.allocation,
          .held = job.user_suspended,
          .kill_under_shadow = mode == PreemptMode::kCancel || mode == PreemptMode::kRequeue,
          .suspended = false};
}

bool Components::conflicts(const Job& a, const Job& b) const {
  const bool related =
      *a.partition == *b.partition ||
      cluster_.partition(*a.partition).tier() != cluster_.partition(*b.partition).tier();
  if (!related) return false;
  const Unit unit = unit_of(cluster_.parameters());
  for (const NodeAllocation& x : a.allocation.nodes) {
    for (const NodeAllocation& y : b.allocation.nodes) {
      if (x.node != y.node) continue;
      if (unit == Unit::kNode || unit == Unit::kCpuCount) return true;
      if (unit == Unit::kCore && x.cores.intersects(y.cores)) return true;
      if (unit == Unit::kSocket && cluster_.exists(x.node)) {
        const NodeSpec& node = cluster_.node(x.node);
        if (sockets_of(x.cores, node).intersects(sockets_of(y.cores, node))) return true;
      }
    }
  }
  return false;
}

// Tracked jobs in conflict with `job`.
std::vector<Job*> Components::rivals(const Job& job) const {
  std::set<JobId> seen;
  std::vector<Job*> found;
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node)) continue;
    for (const Job* other : usage_.jobs_on(use.node)) {
      if (other == &job || !other->in_gang || !seen.insert(other->id).second) continue;
      if (conflicts(job, *other)) found.push_back(jobs_.find(other->id));
    }
  }
  return found;
}

// What a component of `seed` has to hold: its rivals, everybody in conflict on their nodes, and so on.
Components::Closure Components::closure(const Job& seed) const {
  Closure closure;
  std::set<JobId> seen{seed.id};
  std::vector<const Job*> open{&seed};
  const auto reach = [&](Job* job) {
    if (!seen.insert(job->id).second) return;
    const auto at = component_of_.find(job->id);
    if (at == component_of_.end()) {
      closure.loose.push_back(job);
      open.push_back(job);
    } else if (closure.components.insert(at->second).second) {
      for (const JobId member : components_.at(at->second)->members) {
        if (seen.insert(member).second) open.push_back(jobs_.find(member));
      }
      open.push_back(job);
    }
  };
  while (!open.empty()) {
    const Job& job = *open.back();
    open.pop_back();
    for (Job* rival : rivals(job)) reach(rival);
    for (const NodeAllocation& use : job.allocation.nodes) {  // nodes are never in two components
      if (!cluster_.exists(use.node)) continue;
      for (const Job* other : usage_.jobs_on(use.node)) {
        if (component_of_.contains(other->id)) reach(jobs_.find(other->id));
      }
    }
  }
  return closure;
}

void Components::mark(const Job& job, base::Instant publish_at) {
  for (const NodeAllocation& use : job.allocation.nodes) {
    const auto [at, is_new] = dirty_.try_emplace(use.node, publish_at);
    if (!is_new) at->second = std::min(at->second, publish_at);
  }
}

void Components::bring(Component& component, base::Instant now) {
  const std::size_t kills_before = kills_.size();
  const base::Instant before = component.base;
  play(component, grid_, lookup(), now, kills_);
  if (component.base != before) touched_.insert(component.members.begin(), component.members.end());
  const bool ends = (component.extend_at && *component.extend_at <= now) ||
                    (component.kill_at && *component.kill_at <= now);
  if (kills_.size() == kills_before && !ends) return;
  settle_members(component);
  component.base = now;
  project(component, grid_, lookup());
  for (const JobId member : component.members) mark(*jobs_.find(member), now);
}

void Components::settle_members(const Component& component) {
  for (const JobId member : component.members) {
    if (Job* job = jobs_.find(member)) settle_(*job);
  }
}

// One component out of the closure's, at now; its projection is stale.
std::int64_t Components::merge(const Closure& closure, base::Instant now) {
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
    merged->collected_at = std::max(merged->collected_at, part.collected_at);
  }
  for (Job* job : closure.loose) {
    settle_(*job);
    lists.push_back({Place{job->id, EntryRow::kFiller, true, false}});
  }
  std::stable_sort(merged->pending.begin(), merged->pending.end(),
                   [](const PendingOp& a, const PendingOp& b) { return a.at < b.at; });
  for (const Place& place : merge_lists(std::move(lists), jobs_)) {
    merged->world.append(newcomer(place.job), place);
  }
  merged->world.recount();
  for (const std::int64_t id : closure.components) drop(id);
  const std::int64_t id = next_id_++;
  for (const Job* job : closure.loose) component_of_[job->id] = id;
  for (const JobId job : merged->world.jobs()) component_of_[job] = id;
  for (const PendingOp& op : merged->pending) {
    if (op.join) component_of_[*op.join] = id;
  }
  components_.emplace(id, std::move(merged));
  return id;
}

void Components::drop(std::int64_t id) {
  const auto at = components_.find(id);
  for (const JobId member : at->second->members) component_of_.erase(member);
  components_.erase(at);
}

// Projects, and tells whom it concerns.
void Components::finish(std::int64_t id, base::Instant publish_at) {
  Component& component = *components_.at(id);
  project(component, grid_, lookup());
  for (const JobId member : component.members) {
    component_of_[member] = id;
    touched_.insert(member);
    mark(*jobs_.find(member), publish_at);
  }
}

// c of a change that may wait: at most one rewrite per max(slice, lead).
base::Instant Components::join_at(Component& component, base::Instant now,
                                  base::Instant& publish_at) const {
  const base::Duration lead = grid_.lead_now();
  for (const PendingOp& op : component.pending) {
    if (op.at >= now + lead) {
      publish_at = op.at - lead;
      return op.at;
    }
  }
  const base::Instant from =
      std::max(now, component.collected_at + std::max(grid_.slice, lead));
  const base::Instant at = grid_.boundary_at_or_after(from + lead);
  publish_at = component.collected_at = at - lead;
  return at;
}

void Components::start(Job& job, base::Instant now) {
  CHECK(!job.in_gang, to_string(job.id));
  const Closure around = closure(job);
  job.in_gang = true;
  touched_.insert(job.id);
  mark(job, now);
  if (around.components.empty() && around.loose.empty()) return;
  const bool contended = !rivals(job).empty();
  if (!contended) return;  // beside a component, in conflict with nobody
  const std::int64_t id = merge(around, now);
  Component& component = *components_.at(id);
  World trial = component.world;
  trial.start(newcomer(job.id));
  base::Instant publish_at = now;
  if (trial.runs(job.id) || grid_.lead_now().count() == 0) {
    std::vector<PendingOp> joins = std::exchange(component.pending, {});
    for (const PendingOp& op : joins) {  // an urgent rewrite takes along what waited
      if (op.join) component.world.start(newcomer(*op.join));
    }
    if (joins.empty()) {
      component.world = std::move(trial);
    } else {
      component.world.start(newcomer(job.id));
    }
    for (const Action& action : component.world.take_actions()) {
      if (action.kind == ActionKind::kKill) kills_.push_back(action);
    }
  } else {
    const base::Instant at = join_at(component, now, publish_at);
    component.pending.push_back({at, job.id});
    std::stable_sort(component.pending.begin(), component.pending.end(),
                     [](const PendingOp& a, const PendingOp& b) { return a.at < b.at; });
  }
  finish(id, publish_at);
}

void Components::leave(Job& job, base::Instant now) {
  if (!job.in_gang) return;
  settle_(job);
  mark(job, now);
  touched_.insert(job.id);
  const auto at = component_of_.find(job.id);
  if (at == component_of_.end()) {
    job.in_gang = false;
    return;
  }
  const std::int64_t id = at->second;
  Component& component = *components_.at(id);
  bring(component, now);
  settle_members(component);
  component.base = now;
  std::erase_if(component.pending, [&](const PendingOp& op) { return op.join == job.id; });
  component.dying.erase(job.id);
  World trial = component.world;
  trial.remove(job.id);
  bool fills = false;
  for (const Action& action : trial.take_actions()) {
    fills = fills || action.kind == ActionKind::kResume;
  }
  const base::Instant boundary = grid_.next_boundary(now);
  if (fills && boundary - now < grid_.lead_now()) {  // the hole is filled at the boundary
    component.world.remove(job.id, false);
    component.world.recount();
    component.pending.insert(component.pending.begin(), PendingOp{boundary, std::nullopt});
  } else {
    component.world = std::move(trial);
  }
  job.in_gang = false;
  component_of_.erase(job.id);
  split(id, now, now);
}

void Components::set_held(Job& job, bool held, base::Instant now) {
  const auto at = component_of_.find(job.id);
  if (at == component_of_.end()) return;
  Component& component = *components_.at(at->second);
  bring(component, now);
  settle_members(component);
  component.base = now;
  component.world.set_held(job.id, held);
  component.world.take_actions();
  finish(at->second, now);
}

void Components::set_dying(Job& job, base::Instant now) {
  const auto at = component_of_.find(job.id);
  if (at == component_of_.end()) return;
  Component& component = *components_.at(at->second);
  bring(component, now);
  settle_members(component);
  component.base = now;
  component.dying.insert(job.id);
  finish(at->second, now);
}

// Groups of members that are still connected.
std::vector<std::vector<JobId>> Components::parts(const Component& component) const {
  std::vector<std::vector<JobId>> groups;
  std::set<JobId> seen;
  std::map<NodeIndex, std::vector<JobId>> on_node;
  std::vector<JobId> everybody = component.world.jobs();
  for (const PendingOp& op : component.pending) {
    if (op.join) everybody.push_back(*op.join);
  }
  std::set<JobId> contended;
  for (const JobId id : everybody) {
    const Job& job = *jobs_.find(id);
    if (rivals(job).empty()) continue;
    contended.insert(id);
    for (const NodeAllocation& use : job.allocation.nodes) on_node[use.node].push_back(id);
  }
  for (const JobId seed : everybody) {
    if (!seen.insert(seed).second) continue;
    std::vector<JobId> group{seed};
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!contended.contains(group[i])) continue;
      for (const NodeAllocation& use : jobs_.find(group[i])->allocation.nodes) {
        for (const JobId other : on_node[use.node]) {
          if (seen.insert(other).second) group.push_back(other);
        }
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// After somebody left: the parts that are not connected any more go their own ways.
void Components::split(std::int64_t id, base::Instant now, base::Instant publish_at) {
  const std::vector<std::vector<JobId>> groups = parts(*components_.at(id));
  std::unique_ptr<Component> whole = std::move(components_.at(id));
  components_.erase(id);
  for (const JobId member : whole->members) {
    component_of_.erase(member);
    touched_.insert(member);
    if (const Job* job = jobs_.find(member); job != nullptr && job->allocated()) {
      mark(*job, publish_at);
    }
  }
  const std::vector<Place> places = whole->world.places();
  for (const std::vector<JobId>& group : groups) {
    const std::set<JobId> in_group(group.begin(), group.end());
    auto part = std::make_unique<Component>(
        Component{.world = World{cluster_, unit_of(cluster_.parameters())}, .base = now});
    part->collected_at = whole->collected_at;
    bool all_run = true;
    for (const Place& place : places) {
      if (!in_group.contains(place.job)) continue;
      part->world.append(newcomer(place.job), place);
      all_run = all_run && place.resumed;
      if (whole->dying.contains(place.job)) part->dying.insert(place.job);
    }
    part->world.recount();
    for (const PendingOp& op : whole->pending) {
      if (op.join ? in_group.contains(*op.join) : !all_run) part->pending.push_back(op);
    }
    // Alone and running: it needs no list any more.
    if (group.size() == 1 && all_run && part->pending.empty() && part->dying.empty()) continue;
    const std::int64_t part_id = next_id_++;
    components_.emplace(part_id, std::move(part));
    finish(part_id, publish_at);
  }
}

namespace {

std::optional<base::Instant> due_of(const Component& component) {
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) { due = due ? std::min(*due, at) : at; };
  if (!component.pending.empty()) take(component.pending.front().at);
  if (component.kill_at) take(*component.kill_at);
  if (component.extend_at) take(*component.extend_at);
  return due;
}

}  // namespace

void Components::advance(base::Instant now) {
  Ids all;
  for (const auto& [id, component] : components_) all.insert(id);
  advance_some(all, now);
}

void Components::advance_due(base::Instant now) {
  Ids ids;
  for (const auto& [id, component] : components_) {
    if (const auto due = due_of(*component); due && *due <= now) ids.insert(id);
  }
  advance_some(ids, now);
}

void Components::advance_some(const Ids& ids, base::Instant now) {
  std::vector<std::int64_t> settled;
  for (const std::int64_t id : ids) {
    Component& component = *components_.at(id);
    const bool waited = !component.pending.empty();
    bring(component, now);
    if (waited && component.pending.empty()) settled.push_back(id);
  }
  for (const std::int64_t id : settled) {  // who runs alone now needs no list any more
    Component& component = *components_.at(id);
    if (component.members.size() > 1 || component.base > now) continue;
    settle_members(component);
    component.base = now;
    split(id, now, now);
  }
}

std::optional<base::Instant> Components::next_due() const {
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) { due = due ? std::min(*due, at) : at; };
  for (const auto& [id, component] : components_) {
    if (const auto at = due_of(*component)) take(*at);
  }
  return due;
}

const Component* Components::component(const Job& job) const {
  const auto at = component_of_.find(job.id);
  return at == component_of_.end() ? nullptr : components_.at(at->second).get();
}

bool Components::runs_at(const Job& job, base::Instant t) const {
  const Component* part = component(job);
  return part == nullptr || part->runs_at(job.id, t);
}

bool Components::ever_runs(const Job& job) const {
  const Component* part = component(job);
  if (part == nullptr) return true;
  const std::uint16_t pod = part->index.at(job.id);
  const auto lists = [&](const timetable::PodSet& run) {
    return std::binary_search(run.begin(), run.end(), pod);
  };
  return std::any_of(part->timeline.cycle.begin(), part->timeline.cycle.end(), lists) ||
         std::any_of(part->timeline.plan.begin(), part->timeline.plan.end(),
                     [&](const timetable::PlanEntry& entry) { return lists(entry.run); });
}

base::Duration Components::run_time(const Job& job, base::Instant from, base::Instant to) const {
  const Component* part = component(job);
  return part == nullptr ? to - from : part->run_time(job.id, from, to);
}

void Components::configure(base::Instant now) {
  const ClusterParameters& parameters = cluster_.parameters();
  grid_.lead = parameters.timetable_lead;
  if (components_.empty()) {
    grid_.slice = grid_.old_slice = parameters.time_slice;
    grid_.change_at = base::Instant::min();
    return;
  }
  if (grid_.slice == parameters.time_slice) return;
  advance(now);
  for (const auto& [id, component] : components_) settle_members(*component);
  grid_.change_slice(parameters.time_slice, now);
  for (auto& [id, component] : components_) {
    component->base = now;
    finish(id, now);
  }
}

// 6.10, with everybody's list order kept.
void Components::rebuild(const std::vector<Job*>& tracked, base::Instant now) {
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
  components_.clear();
  component_of_.clear();
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
  const std::int64_t id = next_id_++;
  components_.emplace(id, std::move(whole));
  split(id, now, now);
}

std::string Components::check_invariants(base::Instant now) const {
  for (const auto& [id, component] : components_) {
    if (component->base > now) return "a component is ahead of now";
    const bool in_between = std::any_of(component->pending.begin(), component->pending.end(),
                                        [](const PendingOp& op) { return !op.join; });
    if (in_between) continue;  // a hole that waits for its boundary
    if (std::string broken = component->world.check_invariants(); !broken.empty()) return broken;
    for (const JobId member : component->members) {
      const auto at = component_of_.find(member);
      if (at == component_of_.end() || at->second != id) return "job " + to_string(member) + " is lost";
    }
  }
  return {};
}

}  // namespace sched::gang
