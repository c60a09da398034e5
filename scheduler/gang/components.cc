#include "scheduler/gang/components.h"

#include <algorithm>
#include <iterator>
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

// Whether the two do not run at the same time where they have common units.
bool related(const Cluster& cluster, const Job& a, const Job& b) {
  return *a.partition == *b.partition ||
         cluster.partition(*a.partition).tier() != cluster.partition(*b.partition).tier();
}

// Whether `job` has units in common with `use` on its node.
bool share(const Cluster& cluster, const NodeAllocation& use, const Job& job) {
  const auto& nodes = job.allocation.nodes;
  const auto other = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const NodeAllocation& its) { return its.node == use.node; });
  if (other == nodes.end()) return false;
  switch (unit_of(cluster.parameters())) {
    case Unit::kNode:
    case Unit::kCpuCount:
      return true;
    case Unit::kCore:
      return use.cores.intersects(other->cores);
    case Unit::kSocket:
      break;
  }
  if (!cluster.exists(use.node)) return false;
  const NodeSpec& node = cluster.node(use.node);
  return sockets_of(use.cores, node).intersects(sockets_of(other->cores, node));
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
  if (!related(cluster_, a, b)) return false;
  for (const NodeAllocation& use : a.allocation.nodes) {
    if (share(cluster_, use, b)) return true;
  }
  return false;
}

template <typename Visit>
void Components::for_each_rival(const Job& job, const Visit& visit) const {
  for (const NodeAllocation& use : job.allocation.nodes) {
    if (!cluster_.exists(use.node)) continue;
    for (const Job* other : usage_.jobs_on(use.node)) {
      if (other == &job || !other->in_gang || !related(cluster_, job, *other)) continue;
      if (share(cluster_, use, *other) && !visit(*other)) return;
    }
  }
}

bool Components::has_rivals(const Job& job) const {
  bool found = false;
  for_each_rival(job, [&](const Job&) {
    found = true;
    return false;
  });
  return found;
}

// What a component of `seed` has to hold: its rivals, everybody in conflict on their nodes, and so
// on. Nodes are never in two components, and all rivals of a member are members: what is in a
// component leads no further.
Components::Closure Components::closure(const Job& seed) const {
  Closure closure;
  std::set<JobId> seen{seed.id};
  std::vector<const Job*> open{&seed};
  const auto reach = [&](const Job& job) {
    if (job.component == nullptr) {
      if (!seen.insert(job.id).second) return;
      closure.loose.push_back(jobs_.find(job.id));
      open.push_back(&job);
    } else {
      closure.components.insert(job.component->id);
    }
  };
  while (!open.empty()) {
    const Job& job = *open.back();
    open.pop_back();
    for_each_rival(job, [&](const Job& rival) {
      reach(rival);
      return true;
    });
    for (const NodeAllocation& use : job.allocation.nodes) {
      if (!cluster_.exists(use.node)) continue;
      for (const Job* other : usage_.jobs_on(use.node)) {
        if (other->component != nullptr && other->component != job.component) reach(*other);
      }
    }
  }
  return closure;
}

void Components::mark(const Job& job, base::Instant publish_at) {
  if (!publishes_) return;
  for (const NodeAllocation& use : job.allocation.nodes) dirty_.mark(use.node, publish_at);
}

// A projection that ends early is completed before it could have an end by itself (extend_at), 64
// slots after `base`.
std::optional<base::Instant> Components::due_of(const Component& component) const {
  constexpr std::int64_t kSlotsLeftOpen = 60;
  std::optional<base::Instant> due;
  const auto take = [&](base::Instant at) { due = due ? std::min(*due, at) : at; };
  if (!component.pending.empty()) take(component.pending.front().at);
  if (component.kill_at) take(*component.kill_at);
  if (component.extend_at) take(*component.extend_at);
  if (ends_early(component)) {
    const std::int64_t slot = base::slot_of(component.base, grid_.slice);
    take(base::slot_begin(slot + kSlotsLeftOpen, grid_.slice));
  }
  return due;
}

// Whether its projection may end early.
bool Components::may_wait(const Component& component) const {
  return !publishes_ && component.pending.empty() && component.dying.empty() &&
         !component.world.may_kill();
}

bool Components::ends_early(const Component& component) const {
  return may_wait(component) && (component.stale || component.known_until != base::kNever);
}

// Projects as much of it as is needed and not known yet.
void Components::know(Component& component, const Need& need) const {
  if (publishes_) return;
  const auto knows = [&] {
    return !component.stale && need.until <= component.known_until &&
           (component.known_until == base::kNever ||
            std::all_of(need.seen.begin(), need.seen.end(),
                        [&](JobId job) { return component.ever_runs(job); }));
  };
  if (knows()) return;
  project(component, grid_, lookup(), may_wait(component) ? need : Need{});
  component.stale = false;
}

namespace {

// What has to be known to say who runs at t.
Need who_runs_at(base::Instant t) {
  return {.until = t + base::Duration{1}, .seen = {}};
}

}  // namespace

// To be called whenever something of due_of() has changed.
void Components::schedule(Component& component) {
  const std::optional<base::Instant> due = due_of(component);
  if (due == component.due) return;
  if (component.due) due_.erase({*component.due, component.id});
  if (due) due_.emplace(*due, component.id);
  component.due = due;
}

Component& Components::put_in(std::unique_ptr<Component> component) {
  component->id = next_id_++;
  return *components_.emplace(component->id, std::move(component)).first->second;
}

std::unique_ptr<Component> Components::take_out(std::int64_t id) {
  const auto at = components_.find(id);
  std::unique_ptr<Component> component = std::move(at->second);
  components_.erase(at);
  if (component->due) due_.erase({*component->due, id});
  component->due.reset();
  stale_.erase(id);
  for (const JobId member : component->members) {
    if (Job* job = jobs_.find(member)) job->component = nullptr;
  }
  return component;
}

// A timeline changes at boundaries of the grid and where an entry of its plan ends.
void Components::quiet_no_longer_than(const Component& component, base::Instant now) {
  const auto& plan = component.timeline.plan;
  const auto entry = std::upper_bound(
      plan.begin(), plan.end(), now,
      [](base::Instant at, const timetable::PlanEntry& each) { return at < each.until; });
  if (entry != plan.end()) quiet_until_ = std::min(quiet_until_, entry->until);
}

// Tells who has been turned since it was last asked.
void Components::watch(Component& component, base::Instant now) {
  if (component.stale && component.base >= now) return;  // everybody is in touched_ already
  know(component, who_runs_at(now));
  if (component.stale) return;
  if (!component.seen) {
    touched_.insert(touched_.end(), component.members.begin(), component.members.end());
  } else {
    const auto before = timetable::run_at(component.timeline, *component.seen);
    const auto after = timetable::run_at(component.timeline, now);
    if (before.data() != after.data()) {
      timetable::PodSet turned;
      std::set_symmetric_difference(before.begin(), before.end(), after.begin(), after.end(),
                                    std::back_inserter(turned));
      for (const std::uint16_t pod : turned) touched_.push_back(component.members[pod]);
    }
  }
  component.seen = now;
}

std::vector<JobId> Components::take_touched() {
  std::vector<JobId> touched = std::exchange(touched_, {});
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

// Plays it to now, with what is due. The caller schedules it anew.
void Components::bring(Component& component, base::Instant now) {
  const std::size_t kills_before = kills_.size();
  const base::Instant before = component.base;
  if (now > before) know(component, who_runs_at(now));
  play(component, grid_, lookup(), now, kills_);
  if (component.base != before) {
    touched_.insert(touched_.end(), component.members.begin(), component.members.end());
    component.seen = now;
  }
  const bool ends = (component.extend_at && *component.extend_at <= now) ||
                    (component.kill_at && *component.kill_at <= now);
  if (kills_.size() == kills_before && !ends) return;
  settle_members(component);
  component.base = now;
  project(component, grid_, lookup());
  component.seen = now;
  touched_.insert(touched_.end(), component.members.begin(), component.members.end());
  quiet_no_longer_than(component, now);
  for (const JobId member : component.members) mark(*jobs_.find(member), now);
}

void Components::settle_members(const Component& component) {
  for (const JobId member : component.members) {
    if (Job* job = jobs_.find(member)) settle_(*job);
  }
}

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

// What was projected of `from` counts as before for `in`, which takes its place.
void Components::remember(const Component& from, Component& in) const {
  if (!publishes_) return;
  if (from.stale) {
    in.before.insert(in.before.end(), from.before.begin(), from.before.end());
    if (in.stale) in.publish_at = std::min(in.publish_at, from.publish_at);
    if (!in.stale) in.publish_at = from.publish_at;
    in.stale = true;
  } else if (!from.timeline.cycle.empty()) {
    in.before.push_back(
        std::make_shared<const Component::Before>(Component::Before{from.members, from.timeline}));
  }
}

// Has it projected, and tells whom it concerns. A dying member's neighbours do not run though the
// world says so: then it is projected at once.
void Components::finish(Component& component, base::Instant now, base::Instant publish_at) {
  if (!component.stale && component.before.empty()) remember(component, component);
  component.publish_at = component.stale ? std::min(component.publish_at, publish_at) : publish_at;
  component.stale = true;
  component.members = members_of(component);
  component.kill_at.reset();
  component.extend_at.reset();
  component.seen = now;
  schedule(component);
  stale_.insert(component.id);
  for (const JobId member : component.members) {
    jobs_.find(member)->component = &component;
    touched_.push_back(member);
  }
  if (!component.dying.empty()) project_stale();
}

// Only nodes of members that run at other times than before have a new timetable.
void Components::project_stale() {
  for (const std::int64_t id : std::exchange(stale_, {})) {
    Component& component = *components_.at(id);
    if (!publishes_) {
      if (!may_wait(component)) know(component, {});
      if (!component.stale) quiet_no_longer_than(component, component.base);
      schedule(component);
      continue;
    }
    component.stale = false;
    project(component, grid_, lookup());
    const std::vector<bool> changed = changed_pods(component, component.base);
    for (std::size_t pod = 0; pod < component.members.size(); ++pod) {
      if (changed[pod]) mark(*jobs_.find(component.members[pod]), component.publish_at);
    }
    component.before.clear();
    quiet_no_longer_than(component, component.base);
    schedule(component);
  }
}

void Components::project_all() {
  for (const auto& [id, component] : components_) {
    know(*component, {});
    if (!publishes_) schedule(*component);
  }
}

void Components::look_ahead(const std::vector<Job*>& jobs) {
  if (jobs.empty()) return;
  project_stale();
  std::map<std::int64_t, std::vector<JobId>> by_component;
  for (const Job* job : jobs) {
    if (job->component != nullptr) by_component[job->component->id].push_back(job->id);
  }
  for (auto& [id, seen] : by_component) {
    know(*components_.at(id), {.until = base::Instant::min(), .seen = std::move(seen)});
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
  const base::Instant from = std::max(now, component.collected_at + std::max(grid_.slice, lead));
  const base::Instant at = grid_.boundary_at_or_after(from + lead);
  publish_at = component.collected_at = at - lead;
  return at;
}

void Components::start(Job& job, base::Instant now) {
  CHECK(!job.in_gang, to_string(job.id));
  const Closure around = closure(job);
  job.in_gang = true;
  touched_.push_back(job.id);
  mark(job, now);
  if (around.components.empty() && around.loose.empty()) return;
  if (!has_rivals(job)) return;  // beside a component, in conflict with nobody
  Component& component = merge(around, now);
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
  finish(component, now, publish_at);
}

void Components::leave(Job& job, base::Instant now) {
  if (!job.in_gang) return;
  settle_(job);
  mark(job, now);
  touched_.push_back(job.id);
  if (job.component == nullptr) {
    job.in_gang = false;
    return;
  }
  Component& component = *job.component;
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
  split(component.id, now, now);
}

void Components::set_held(Job& job, bool held, base::Instant now) {
  if (job.component == nullptr) return;
  Component& component = *job.component;
  bring(component, now);
  settle_members(component);
  component.base = now;
  component.world.set_held(job.id, held);
  component.world.take_actions();
  finish(component, now, now);
}

void Components::set_dying(Job& job, base::Instant now) {
  if (job.component == nullptr) return;
  Component& component = *job.component;
  bring(component, now);
  settle_members(component);
  component.base = now;
  component.dying.insert(job.id);
  finish(component, now, now);
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

void Components::advance(base::Instant now) {
  advance_due(now);
  if (now < quiet_until_) return;
  quiet_until_ = grid_.next_boundary(now);
  for (const auto& [id, component] : components_) {
    watch(*component, now);
    if (!component->stale) quiet_no_longer_than(*component, now);
  }
}

void Components::advance_due(base::Instant now) {
  Ids due;
  for (auto at = due_.begin(); at != due_.end() && at->first <= now; ++at) due.insert(at->second);
  std::vector<std::int64_t> settled;
  for (const std::int64_t id : due) {
    Component& component = *components_.at(id);
    if (!publishes_) {
      if (ends_early(component)) know(component, {});
      schedule(component);
      if (!component.due || *component.due > now) continue;
    }
    const bool waited = !component.pending.empty();
    bring(component, now);
    schedule(component);
    if (waited && component.pending.empty()) settled.push_back(id);
  }
  for (const std::int64_t id : settled) {  // who runs alone now needs no list any more
    Component& component = *components_.at(id);
    // Nodes whose jobs were off until now, and run for ever from here on, need no timetable.
    for (const JobId member : component.members) mark(*jobs_.find(member), now);
    const bool contended = std::all_of(component.members.begin(), component.members.end(),
                                       [&](JobId job) { return has_rivals(*jobs_.find(job)); });
    if (contended || component.base > now) continue;
    settle_members(component);
    component.base = now;
    split(id, now, now);
  }
}

std::optional<base::Instant> Components::next_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

bool Components::runs_at(const Job& job, base::Instant t) const {
  Component* const part = job.component;
  if (part == nullptr) return true;
  if (!part->stale || part->base < t) know(*part, who_runs_at(t));
  return part->runs_at(job.id, t);
}

Component* Components::projected(const Job& job, base::Instant until) const {
  if (job.component != nullptr) know(*job.component, {.until = until, .seen = {}});
  return job.component;
}

bool Components::ever_runs(const Job& job) const {
  Component* const part = job.component;
  if (part == nullptr) return true;
  if (part->stale && part->world.runs(job.id)) return true;
  know(*part, {.until = base::Instant::min(), .seen = {job.id}});
  CHECK(!part->stale);
  return part->ever_runs(job.id);
}

base::Duration Components::run_time(const Job& job, base::Instant from, base::Instant to) const {
  if (job.component == nullptr || from == to) return to - from;
  const Component& part = *projected(job, to);
  CHECK(!part.stale);
  return part.run_time(job.id, from, to);
}

base::Instant Components::when_has_run(const Job& job, base::Instant from, base::Duration work,
                                       base::Instant until) const {
  if (job.component == nullptr) return from + work;
  const Component& part = *projected(job, until);
  const std::uint16_t pod = part.pod_of(job.id);
  if (until != base::kNever) {
    until = std::max(until, from);
    const base::Duration left = work - part.run_time(job.id, from, until);
    if (left.count() > 0) return until + left;
  }
  return gang::when_has_run(part.timeline, pod, from, work).value_or(base::kNever);
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
  for (const auto& [id, component] : components_) {
    bring(*component, now);
    settle_members(*component);
  }
  grid_.change_slice(parameters.time_slice, now);
  quiet_until_ = base::Instant::min();
  for (auto& [id, component] : components_) {
    component->base = now;
    finish(*component, now, now);
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

std::string Components::check_invariants(base::Instant now) const {
  std::map<NodeIndex, std::int64_t> component_of;
  for (const auto& [id, component] : components_) {
    if (component->base > now) return "a component is ahead of now";
    for (const JobId member : component->members) {
      const Job* job = jobs_.find(member);
      if (job == nullptr || job->component != component.get()) {
        return "job " + to_string(member) + " is lost";
      }
      for (const NodeAllocation& use : job->allocation.nodes) {
        const auto [at, is_new] = component_of.emplace(use.node, id);
        if (!is_new && at->second != id)
          return "node " + to_string(use.node) + " is in two components";
      }
      bool together = true;
      for_each_rival(*job, [&](const Job& rival) {
        together = rival.component == job->component;
        return together;
      });
      if (!together) return "a rival of job " + to_string(member) + " is not in its component";
    }
    const bool in_between = std::any_of(component->pending.begin(), component->pending.end(),
                                        [](const PendingOp& op) { return !op.join; });
    if (in_between) continue;  // a hole that waits for its boundary
    if (std::string broken = component->world.check_invariants(); !broken.empty()) return broken;
  }
  return {};
}

}  // namespace sched::gang
