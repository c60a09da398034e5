// The events of tracked jobs. Each plays the components around the job to now, changes their lists
// and marks their projections stale.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/preempt/rules.h"

namespace sched::gang {

// 6.9 for a tracked job.
//
// 1. A job without rivals runs, in no component.
// 2. Otherwise it and all around it become one component.
// 3. If it runs at once, or there is no lead, its start is urgent: the timetables are written now,
//    and the joins that were waiting come with it.
// 4. Otherwise it may wait: it joins at a boundary that is at least a lead away.
void Components::start(Job& job, base::Instant now) {
  CHECK(!job.turn.in_gang, to_string(job.id));
  const Closure around = closure(job);
  job.turn.in_gang = true;
  mark(job, now);
  // It may be beside a component, and in conflict with no job.
  if ((around.components.empty() && around.loose.empty()) || !has_rivals(job)) {  // 1
    touched_.push_back(job.id);
    return;
  }
  Component& component = merge(around, now);  // 2
  // If the start is urgent a copy is asked, because in the lists themselves jobs that have been
  // waiting to join may come before this one.
  GangLists trial = component.state.lists;
  trial.start(newcomer(job.id));
  base::Instant publish_at = now;
  if (trial.runs(job.id) || grid_.lead_now().count() == 0) {  // 3
    // The timetables are written anyway, so waiting joins come along. They go first, or a later job
    // would stand in the list before earlier ones. Pending fills are dropped, because start() fills
    // the holes.
    std::vector<PendingOp> joins = std::exchange(component.state.pending, {});
    for (const PendingOp& op : joins) {
      if (op.join) component.state.lists.start(newcomer(*op.join));
    }
    if (joins.empty()) {
      component.state.lists = std::move(trial);
    } else {
      component.state.lists.start(newcomer(job.id));
    }
    for (const Action& action : component.state.lists.take_actions()) {
      if (action.kind == ActionKind::kKill) kills_.push_back(action);
    }
  } else {  // 4
    const base::Instant at = join_at(component, now, publish_at);
    component.state.pending.push_back({at, job.id});
    std::stable_sort(component.state.pending.begin(), component.state.pending.end(),
                     [](const PendingOp& a, const PendingOp& b) { return a.at < b.at; });
  }
  mark_stale(component, now, publish_at);
}

// Returns the boundary at which a change that may wait takes effect, and in `publish_at` when it is
// written. A rewrite can cost an API write for each node of the component, so changes are
// collected: a change joins a pending one that is still a lead away, and otherwise there is at most
// one rewrite in each max(slice, lead).
base::Instant Components::join_at(Component& component, base::Instant now,
                                  base::Instant& publish_at) const {
  const base::Duration lead = grid_.lead_now();
  for (const PendingOp& op : component.state.pending) {
    if (op.at >= now + lead) {
      publish_at = op.at - lead;
      return op.at;
    }
  }
  const base::Instant from =
      std::max(now, component.state.collected_at + std::max(grid_.slice, lead));
  const base::Instant at = grid_.boundary_at_or_after(from + lead);
  publish_at = component.state.collected_at = at - lead;
  return at;
}

// 6.8 for a tracked job. The hole is filled at once, unless a boundary is closer than the lead:
// then a pending op fills it there.
void Components::leave(Job& job, base::Instant now) {
  if (!job.turn.in_gang) return;
  settle_(job);
  mark(job, now);
  touched_.push_back(job.id);
  if (job.turn.component == nullptr) {
    job.turn.in_gang = false;
    return;
  }
  Component& component = *job.turn.component;
  advance_to(component, now);
  settle_clocks(component);
  component.state.base = now;
  std::erase_if(component.state.pending, [&](const PendingOp& op) { return op.join == job.id; });
  component.state.dying.erase(job.id);
  // Tried on a copy first, because the answer decides when the hole is filled: only a hole into
  // which another job goes needs a boundary.
  GangLists trial = component.state.lists;
  trial.remove(job.id);
  bool fills = false;
  for (const Action& action : trial.take_actions()) {
    fills = fills || action.kind == ActionKind::kResume;
  }
  const base::Instant boundary = grid_.next_boundary(now);
  if (fills && boundary - now < grid_.lead_now()) {  // the hole is filled at the boundary
    // The units are freed now (recount), and the job that gets them runs from the boundary on.
    component.state.lists.remove(job.id, false);
    component.state.lists.recount();
    component.state.pending.insert(component.state.pending.begin(),
                                   PendingOp{boundary, std::nullopt});
  } else {
    component.state.lists = std::move(trial);
  }
  job.turn.in_gang = false;
  split(component.upkeep.id, now, now);
}

// The lists have taken the victim's row away already (GangLists::stop). From now on the projection
// says that it runs until its pods are gone, and that jobs over its units wait (13.10): freezing a
// job that handles SIGTERM would make it miss its grace time.
void Components::set_dying(Job& job, base::Instant now) {
  if (job.turn.component == nullptr) return;
  Component& component = *job.turn.component;
  advance_to(component, now);
  settle_clocks(component);
  component.state.base = now;
  component.state.dying.insert(job.id);
  mark_stale(component, now, now);
}

// Applies a changed slice length or lead. Each component is brought to now under the old grid
// first, since its pending slots are counted in old slices; afterwards all are projected again,
// because a cycle is counted in slots of one length. Ops that waited for a boundary of the old grid
// happen with the change.
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
    advance_to(*component, now);
    settle_clocks(*component);
  }
  grid_.change_slice(parameters.time_slice, now);
  quiet_until_ = base::Instant::min();
  for (auto& [id, component] : components_) {
    ComponentState& state = component->state;
    for (PendingOp& op : state.pending) {
      if (op.at > std::min(grid_.old_until, grid_.change_at)) op.at = grid_.change_at;
    }
    state.collected_at = std::min(state.collected_at, grid_.change_at);
    state.base = now;
    mark_stale(*component, now, now);
  }
}

// `suspended` stays false: a job that enters the lists has the right to run at once if it fits (6.9
// step 3). Callers that rebuild lists set it.
Newcomer newcomer_of(const Job& job, const Cluster& cluster) {
  const PreemptMode mode = preempt::effective_mode(cluster, job);
  return {.job = job.id,
          .partition = *job.partition,
          .allocation = &job.allocation,
          .held = job.user_suspended,
          .kill_under_shadow = mode == PreemptMode::kCancel || mode == PreemptMode::kRequeue,
          .suspended = false};
}

Newcomer Components::newcomer(JobId id) const {
  return newcomer_of(*jobs_.find(id), cluster_);
}

// A node that is marked twice keeps the earlier instant: a rewrite that is due sooner contains the
// later change too.
void Components::mark(const Job& job, base::Instant publish_at) {
  if (!publishes_) return;
  for (const NodeAllocation& use : job.allocation.nodes)
    dirty_nodes_.set_no_later(use.node, publish_at);
}

// To be called before the projection is replaced. Run time since the last charge is read from the
// projection; a new one knows nothing of the time before its `base`.
void Components::settle_clocks(const Component& component) {
  for (const JobId member : component.projection.members) {
    if (Job* job = jobs_.find(member)) settle_(*job);
  }
}

// Marks the projection stale and reports all members in take_touched(). The projection so far is
// kept as "before". If a member is dying, projects at once: its neighbors must not run although the
// lists would let them.
void Components::mark_stale(Component& component, base::Instant now, base::Instant publish_at) {
  if (!component.upkeep.stale && component.upkeep.before.empty()) remember(component, component);
  component.upkeep.publish_at =
      component.upkeep.stale ? std::min(component.upkeep.publish_at, publish_at) : publish_at;
  component.upkeep.stale = true;
  component.projection.members = members_of(component.state);
  component.projection.kill_at.reset();
  component.projection.extend_at.reset();
  component.upkeep.told_at = now;
  update_due(component);
  stale_.insert(component.upkeep.id);
  for (const JobId member : component.projection.members) {
    jobs_.find(member)->turn.component = &component;
    touched_.push_back(member);
  }
  if (!component.state.dying.empty()) project_stale();
}

}  // namespace sched::gang
