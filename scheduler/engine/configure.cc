// The administrator's events: configuration and nodes (6.10).
#include "base/check.h"
#include "scheduler/engine/engine.h"

namespace sched {

void Engine::on(const Configure& event) {
  const bool gang_before = gang_on();
  cluster_.configure(*event.configuration);
  cluster_.settle();
  groups_.rebuild(cluster_);
  cluster_version_ = cluster_.version();
  topology_version_ = cluster_.topology_version();
  rebuild();
  release_bad_constraints();
  if (!options_.told_timing) {
    const base::Duration slice_before = components_.grid().slice;
    components_.configure(now_);
    if (components_.grid().slice != slice_before) {  // one slice in all that is published
      for (const auto& [node, plan] : plans_.published())
        components_.dirty_nodes().set_no_later(node, now_);
    }
  }
  if (gang_before || gang_on()) gang_rebuild();
  for (const auto& [order, job] :
       allocated_) {  // whom a job that starts must not disturb: tiers decide
    if (!job->ready) mark_nodes(*job);
  }
  touched();
}

void Engine::on(const NodeUpdate& event) {
  // A node that cannot be used is refused by the operator before; here it is merely left out.
  if (!cluster_.upsert_node(event.node).ok()) return;
  removed_nodes_.erase(event.node.name);
  touched();
}

// A node that still has jobs stays, down, until the last of them is gone.
void Engine::on(const NodeRemove& event) {
  settle();
  const auto node = cluster_.find_node(event.name);
  if (!node) return;
  touched();
  if (usage_.jobs_on(*node).empty()) {
    cluster_.remove_node(event.name);
    return;
  }
  NodeSpec down = cluster_.node(*node);
  down.state = NodeState::kDown;
  CHECK(cluster_.upsert_node(down).ok());
  removed_nodes_.insert(event.name);
}

void Engine::remove_empty_nodes() {
  for (auto at = removed_nodes_.begin(); at != removed_nodes_.end();) {
    const auto node = cluster_.find_node(*at);
    if (node && !usage_.jobs_on(*node).empty()) {
      ++at;
      continue;
    }
    if (node) cluster_.remove_node(*at);
    at = removed_nodes_.erase(at);
  }
}

void Engine::settle() {
  cluster_.settle();
  if (cluster_version_ == cluster_.version()) return;
  cluster_version_ = cluster_.version();
  groups_.rebuild(cluster_);
  if (topology_version_ != cluster_.topology_version()) {
    topology_version_ = cluster_.topology_version();
    rebuild();
  } else {
    usage_.look_at_limits();
  }
  release_bad_constraints();
}

std::unique_ptr<Selector> Engine::make_selector() const {
  return cluster_.parameters().select == SelectType::kLinear ? make_linear_selector(cluster_)
                                                             : make_cons_tres_selector(cluster_);
}

void Engine::rebuild() {
  selector_ = make_selector();
  usage_.reset();
  for (const auto& [order, job] : allocated_) {
    usage_.add(*job);
    job->select.victim_mode = preempt::effective_mode(cluster_, *job);
    job->select.exempt_until =
        job->start_time.value_or(job->allocated_at) + preempt::exempt_time(cluster_, *job);
    if (!job->completing()) selector_->add(job->select);
  }
  requeue_all_pending();
}

// 2.4: a change of nodes or configuration may make the impossible possible.
void Engine::release_bad_constraints() {
  for (const auto& [order, job] : jobs_.all()) {
    if (!job->pending() || job->held != Reason::kBadConstraints) continue;
    job->held.reset();
    set_reason(*job, Reason::kNone);
    enqueue(*job);
  }
}

}  // namespace sched
