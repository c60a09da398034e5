// Nodes: what the scheduler may use of them, and which are lost.
#include <algorithm>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {

void ControlLoop::observe(const Changes<kube::Node>& changes) {
  for (const auto& [key, object] : changes) {
    NodeRecord& record = nodes_[key.name];
    const bool lost_before = restored_ && is_lost(key.name);
    const bool existed = record.node != nullptr;
    const bool labels_changed = existed && object != nullptr &&
                                (record.node->metadata.labels != object->metadata.labels ||
                                 !(record.node->spec.taints == object->spec.taints));
    record.node = object;
    changed_nodes_.insert(key.name);
    if (record.timetable.urgency() != WriteUrgency::kClean) dirty_nodes_.insert(key.name);
    // A partition may pick its nodes by their labels, a job too.
    if (existed != (object != nullptr) || labels_changed) {
      policy_.observe_nodes();
      nodes_dirty_ = selectors_dirty_ = true;
    }
    if (restored_ && is_lost(key.name) != lost_before) {
      for (const std::string& uid : record.jobs) touch(uid);
    }
  }
}

// Of the nodes of which something changed: what the scheduler may use of them, and whether there is
// anything left to remember.
void ControlLoop::tell_nodes() {
  for (const std::string& name : std::exchange(changed_nodes_, {})) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) continue;
    NodeRecord& record = found->second;
    if (record.node != nullptr) {
      tell_node(name, record);
      continue;
    }
    if (!record.jobs.empty()) continue;  // they are ended first (reconcile finds that it is lost)
    if (!record.told.name.empty()) {
      log("node removed", "node=" + name);
      record.told = {};
      tell(sched::NodeRemove{name});
      nodes_dirty_ = true;
    }
    // Pods of a DaemonSet, our agent's among them, and the timetable outlive their Node.
    const bool is_used = record.table != nullptr || record.timetable.is_in_flight() ||
                         !record.foreign.empty() || !record.orphans.empty();
    if (is_used) continue;
    dirty_nodes_.erase(name);
    nodes_.erase(found);
  }
}

void ControlLoop::tell_node(const std::string& name, NodeRecord& record) {
  NodeFacts facts;
  facts.node = record.node.get();
  facts.agent = record.table != nullptr ? &record.table->status : nullptr;
  for (const auto& [key, memory] : record.foreign) facts.foreign_memory += memory;
  facts.foreign_pods = static_cast<int>(record.foreign.size());
  facts.has_orphans = !record.orphans.empty();
  facts.memory_reserve_percent = policy_.parameters().memory_reserve_percent;
  facts.gang = policy_.configuration().cluster.gang;
  facts.clock = policy_.parameters().clock;
  const NodeVerdict verdict = translate_node(facts);
  if (verdict.spec == record.told) return;
  if (verdict.spec.state != record.told.state || record.told.name.empty()) {
    log("node", "node=" + name + " usable=" + (verdict.why.empty() ? "true" : "false") +
                    (verdict.why.empty() ? "" : " why=\"" + verdict.why + "\"") +
                    " cpus=" + std::to_string(verdict.spec.cpus));
  }
  record.told = verdict.spec;
  nodes_dirty_ = counts_dirty_ = true;
  tell(sched::NodeUpdate{verdict.spec});
}

// Also lets waiting jobs be judged again where it makes a difference.
void ControlLoop::update_capacity() {
  const auto before = std::exchange(capacity_, {});
  for (auto& [name, record] : nodes_) record.in_partition = false;
  for (const auto& partition : policy_.configuration().partitions) {
    PartitionCapacity& capacity = capacity_[partition.name];
    for (const std::string& name : partition.nodes) {
      const auto found = nodes_.find(name);
      if (found == nodes_.end() || found->second.node == nullptr) continue;
      found->second.in_partition = true;
      ++capacity.nodes;
      capacity.cpus_per_node_max = std::max(capacity.cpus_per_node_max, found->second.told.cpus);
    }
  }
  choose_taints();
  if (std::exchange(selectors_dirty_, false) || capacity_ != before) judge_waiting_jobs();
}

// Its pods count as gone: nobody can run them any more.
bool ControlLoop::is_lost(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() || found->second.node == nullptr ||
         is_out_of_service(*found->second.node);
}

std::vector<NodeSelectorFacts> ControlLoop::selector_facts() const {
  std::vector<NodeSelectorFacts> facts;
  for (const auto& [name, record] : nodes_) {
    if (record.node == nullptr || !record.in_partition) continue;
    facts.push_back({name, &record.node->metadata.labels, &record.node->spec.taints});
  }
  return facts;
}

// Of the partitions as accepted.
void ControlLoop::choose_taints() {
  std::set<std::string> wanted;
  for (const auto& partition : policy_.configuration().partitions) {
    if (!policy_.taints_nodes(partition.name)) continue;
    wanted.insert(partition.nodes.begin(), partition.nodes.end());
  }
  taints_.want(std::move(wanted));
  for (const auto& [name, record] : nodes_) {
    if (record.node != nullptr) taints_.observe(*record.node);
  }
}

void ControlLoop::write_due_taints() {
  const auto find = [this](const std::string& name) -> const kube::Node* {
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : found->second.node.get();
  };
  for (SetTaints& effect : taints_.due(now_, find)) {
    log(taints_.wants(effect.node) ? "node tainted" : "node untainted", "node=" + effect.node);
    write(std::move(effect));
  }
}

void ControlLoop::answered(TaintsSet&& outcome) {
  taints_.answered(outcome, now_);
  if (outcome.result.ok()) {
    inbox_.changed<kube::Node>(std::make_shared<const kube::Node>(std::move(*outcome.result)));
    return;
  }
  if (outcome.result.error().code == base::Code::kConflict) return;
  ++counters_.write_failures;
  warn("node's taint not written",
       "node=" + outcome.node + " error=\"" + outcome.result.error().message + "\"");
}

void ControlLoop::note_slicing(const std::string& name, const kube::NodeTimetable* table) {
  if (!unsliced_.observe(name, table)) return;
  log(unsliced_.slices(name) ? "node slices again" : "node does not slice", "node=" + name);
}

void ControlLoop::count_unsliced() {
  unsliced_.count(
      now_, {.jobs_on = [this](const std::string& node) -> const auto& { return nodes_[node].jobs;
}
, .run_time = [this](const std::string& uid) { return counting_run_time(uid); },
  .ran = [this](const std::string& uid, base::Duration more) {
    tell(sched::JobRan{find_job(uid)->id, more});
  }
}  // namespace control
);
}

// Nothing before the job is ready and once its end is decided.
std::optional<base::Duration> ControlLoop::counting_run_time(const std::string& uid) {
  const JobRecord* job = find_job(uid);
  const auto view = job == nullptr ? std::nullopt : scheduler_.job(job->id, now_);
  if (!view || !view->ready || view->ending) return std::nullopt;
  return view->run_time;
}

}  // namespace control
