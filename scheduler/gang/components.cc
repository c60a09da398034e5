// What happens to tracked jobs: each event brings the components around the job to now, changes
// their worlds and has them projected anew.
#include "scheduler/gang/components.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/preempt/rules.h"

namespace sched::gang {

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

void Components::set_dying(Job& job, base::Instant now) {
  if (job.component == nullptr) return;
  Component& component = *job.component;
  bring(component, now);
  settle_members(component);
  component.base = now;
  component.dying.insert(job.id);
  finish(component, now, now);
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

Newcomer newcomer_of(const Job& job, const Cluster& cluster) {
  const PreemptMode mode = preempt::effective_mode(cluster, job);
  return {.job = job.id,
          .table_order = job.table_order,
          .partition = *job.partition,
          .allocation = &job.allocation,
          .held = job.user_suspended,
          .kill_under_shadow = mode == PreemptMode::kCancel || mode == PreemptMode::kRequeue,
          .suspended = false};
}

Newcomer Components::newcomer(JobId id) const {
  return newcomer_of(*jobs_.find(id), cluster_);
}

void Components::mark(const Job& job, base::Instant publish_at) {
  if (!publishes_) return;
  for (const NodeAllocation& use : job.allocation.nodes)
    dirty_nodes_.set_no_later(use.node, publish_at);
}

void Components::settle_members(const Component& component) {
  for (const JobId member : component.members) {
    if (Job* job = jobs_.find(member)) settle_(*job);
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

}  // namespace sched::gang
