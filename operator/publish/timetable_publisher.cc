// NodeTimetables: one for every node of a partition, written when its list or its run(t) changes.
#include <algorithm>
#include <tuple>
#include <utility>

#include "operator/loop/control_loop.h"

namespace control {

void ControlLoop::take_plans() {
  if (!std::exchange(plans_dirty_, false)) return;
  const base::Duration began = clock_.monotonic();
  const auto plans = scheduler_.take_plans(now_);
  counters_.deciding += clock_.monotonic() - began;
  for (const sched::NodePlan& plan : plans) {
    const std::string& name = scheduler_.node_name(plan.node);
    NodeRecord& node = nodes_[name];
    const auto topology =
        node.table != nullptr ? node.table->status.topology : std::optional<kube::NodeTopology>{};
    node.wanted = encode_plan(
        plan, name, [this](sched::JobId id) { return listed_job(id); }, topology);
    node.dirty = !node.exists || !same_plan(*node.wanted, node.stored);
    if (node.dirty) dirty_nodes_.insert(name);
  }
}

std::optional<ListedJob> ControlLoop::listed_job(sched::JobId id) {
  const JobRecord* job = find_job(id);
  if (job == nullptr || job->never_frozen) return std::nullopt;
  return ListedJob{.ns = job->key.ns,
                   .uid = job->uid,
                   .slots = job->slots,
                   .bind_cores = configuration_.cluster.select == sched::SelectType::kConsTres &&
                                 configuration_.cluster.task_affinity};
}

void ControlLoop::apply_timetable_changes(const Inbox::Batch& batch) {
  for (const auto& [key, object] : batch.of<kube::NodeTimetable>()) {
    NodeRecord& node = nodes_[key.name];
    const bool agent_changed = (node.table == nullptr) != (object == nullptr) ||
                               (object != nullptr && !(node.table->status == object->status));
    node.table = object;
    note_slicing(key.name, object.get());
    if (agent_changed) node.is_told = false;
    if (object == nullptr) {
      lag_.forget(key.name);
      node.exists = false;
      node.dirty = node.in_partition;
      if (node.dirty) dirty_nodes_.insert(key.name);
      nodes_dirty_ = true;
      continue;
    }
    lag_.see(key.name, object->spec.revision, object->status.observed_revision, now_);
    if (restored_ && object->spec.term > term_) return be_fenced(object->spec.term);
    if (node.is_flying || (node.exists && node.uid == object->metadata.uid &&
                           !is_newer_version(object->metadata.resource_version, node.version))) {
      continue;
    }
    node.exists = true;
    node.uid = object->metadata.uid;
    node.version = object->metadata.resource_version;
    node.stored = object->spec;
    // Somebody else wrote it: what we want is written again.
    node.dirty = node.wanted.has_value() && !same_plan(*node.wanted, node.stored);
    if (node.dirty) dirty_nodes_.insert(key.name);
  }
}

void ControlLoop::ensure_timetables() {
  for (auto& [name, node] : nodes_) {
    if (!node.in_partition || node.exists || node.node == nullptr) continue;
    if (!node.wanted) {
      node.wanted.emplace();
      node.wanted->as_of = now_;
      node.wanted->timetable.slice = configuration_.cluster.time_slice;
      node.wanted->timetable.cycle = {{}};
    }
    node.dirty = true;
    dirty_nodes_.insert(name);
  }
}

void ControlLoop::write_due_timetables() {
  for (auto it = dirty_nodes_.begin(); it != dirty_nodes_.end();) {
    const auto found = nodes_.find(*it);
    if (found == nodes_.end() || !found->second.dirty || found->second.node == nullptr) {
      it = dirty_nodes_.erase(it);
      continue;
    }
    NodeRecord& node = found->second;
    if (!node.is_flying && node.retry_at <= now_ && may_write(node)) {
      write_timetable(*it, node);
    }
    ++it;
  }
}

// Commit points first: the start and the readiness of the jobs that it lists, the endings of those
// that it does not list any more.
bool ControlLoop::may_write(const NodeRecord& node) const {
  const auto is_stored = [this](const std::string& uid) {
    const auto job = jobs_.find(uid);
    return job == jobs_.end() || !job->second->status.is_uncommitted();
  };
  return std::all_of(node.jobs.begin(), node.jobs.end(), is_stored) &&
         std::all_of(node.wanted->pods.begin(), node.wanted->pods.end(),
                     [&](const kube::TimetablePod& pod) { return is_stored(pod.job_uid); }) &&
         std::all_of(node.stored.pods.begin(), node.stored.pods.end(),
                     [&](const kube::TimetablePod& pod) { return is_stored(pod.job_uid); });
}

void ControlLoop::write_timetable(const std::string& name, NodeRecord& node) {
  kube::NodeTimetable object;
  object.metadata.name = name;
  object.spec = *node.wanted;
  object.spec.term = term_;
  object.spec.revision = node.stored.revision + 1;
  node.is_flying = true;
  node.dirty = false;
  ++counters_.timetable_writes;
  log("timetable", "node=" + name + " revision=" + std::to_string(object.spec.revision) +
                       " pods=" + std::to_string(object.spec.pods.size()));
  const bool exists = node.exists;
  if (!exists) {
    object.metadata.owner_references.push_back(
        {.api_version = "v1", .kind = "Node", .name = name, .uid = node.node->metadata.uid});
  }
  write(PutTimetable{std::move(object), exists, exists ? node.version : ""});
}

void ControlLoop::answered(TimetablePut&& outcome) {
  const std::string& name = outcome.node;
  const auto& [result, fresh] = std::tie(outcome.result, outcome.fresh);
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  NodeRecord& node = found->second;
  node.is_flying = false;
  if (!result.ok()) {
    const base::Code code = result.error().code;
    const bool raced = code == base::Code::kConflict || code == base::Code::kAlreadyExists ||
                       code == base::Code::kNotFound;
    ++(raced ? counters_.conflicts : counters_.write_failures);
    node.retry_at = raced ? now_ : now_ + retry_delay(++node.failures);
    if (!raced) {
      warn("timetable not written", "node=" + name + " error=\"" + result.error().message + "\"");
    }
    if (!fresh.ok() && fresh.error().code == base::Code::kNotFound) node.exists = false;
  }
  const auto& newest = result.ok() ? result : fresh;
  if (newest.ok()) {
    if (newest->spec.term > term_) return be_fenced(newest->spec.term);
    node.exists = true;
    node.uid = newest->metadata.uid;
    node.version = newest->metadata.resource_version;
    node.stored = newest->spec;
  }
  if (result.ok()) {
    node.failures = 0;
    node.stored = outcome.spec;  // exactly, whatever the encoding rounds
  }
  node.dirty = node.wanted && (!node.exists || !same_plan(*node.wanted, node.stored));
  if (node.dirty) dirty_nodes_.insert(name);
  for (const std::string& uid : node.jobs) touch(uid);
}

// The pods of a start may be made: what its nodes have to do with them is published.
bool ControlLoop::timetables_are_written(const JobRecord& job) const {
  return std::all_of(job.nodes.begin(), job.nodes.end(), [this](const std::string& name) {
    const auto node = nodes_.find(name);
    return node != nodes_.end() && !node->second.dirty && !node->second.is_flying;
  });
}

}  // namespace control
