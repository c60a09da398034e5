// NodeTimetables: one for every node of a partition, written when its list or its run(t) changes.
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
    node.timetable.wanted() = encode_plan(
        plan, name, [this](sched::JobId id) { return listed_job(id); }, topology);
    node.is_planned = true;
    compare_timetable(name, node);
  }
}

void ControlLoop::compare_timetable(const std::string& name, NodeRecord& node) {
  TimetableMirror& table = node.timetable;
  const bool differs =
      node.is_planned && (!table.exists() || !same_plan(table.wanted(), table.stored()));
  table.set_differs(differs);
  if (differs) dirty_nodes_.insert(name);
}

std::optional<ListedJob> ControlLoop::listed_job(sched::JobId id) {
  const JobRecord* job = find_job(id);
  if (job == nullptr || job->start.never_frozen) return std::nullopt;
  return ListedJob{
      .ns = job->key.ns,
      .uid = job->uid,
      .slots = job->start.slots,
      .bind_cores = policy_.configuration().cluster.select == sched::SelectType::kConsTres &&
                    policy_.configuration().cluster.task_affinity};
}

void ControlLoop::observe(const Changes<kube::NodeTimetable>& changes) {
  for (const auto& [key, object] : changes) {
    NodeRecord& node = nodes_[key.name];
    const bool agent_changed = (node.table == nullptr) != (object == nullptr) ||
                               (object != nullptr && !(node.table->status == object->status));
    node.table = object;
    note_slicing(key.name, object.get());
    if (agent_changed) changed_nodes_.insert(key.name);
    if (object == nullptr) {
      lag_.forget(key.name);
      node.timetable.saw_gone();
      node.timetable.set_differs(false);
      nodes_dirty_ = true;  // it is made again
      continue;
    }
    lag_.see(key.name, object->spec.revision, object->status.observed_revision, now_);
    if (restored_ && object->spec.term > term_) return be_fenced(object->spec.term);
    if (!node.timetable.is_news(*object)) continue;
    (void)node.timetable.saw(*object);
    compare_timetable(key.name, node);  // another writer's is written over
  }
}

void ControlLoop::ensure_timetables() {
  for (auto& [name, node] : nodes_) {
    if (!node.in_partition || node.timetable.exists() || node.node == nullptr) continue;
    if (!node.is_planned) {
      node.is_planned = true;
      kube::NodeTimetableSpec& wanted = node.timetable.wanted();
      wanted.as_of = now_;
      wanted.timetable.slice = policy_.configuration().cluster.time_slice;
      wanted.timetable.cycle = {{}};
    }
    compare_timetable(name, node);
  }
}

void ControlLoop::write_due_timetables() {
  for (auto it = dirty_nodes_.begin(); it != dirty_nodes_.end();) {
    const auto found = nodes_.find(*it);
    if (found == nodes_.end() || found->second.node == nullptr ||
        found->second.timetable.urgency() == WriteUrgency::kClean) {
      it = dirty_nodes_.erase(it);
      continue;
    }
    NodeRecord& node = found->second;
    const TimetableMirror& table = node.timetable;
    if (table.may_write(now_) && gate_.may_publish(node.jobs, table.wanted(), table.stored())) {
      write_timetable(*it, node);
    }
    ++it;
  }
}

void ControlLoop::write_timetable(const std::string& name, NodeRecord& node) {
  TimetableMirror& table = node.timetable;
  kube::NodeTimetable object;
  object.metadata.name = name;
  object.spec = table.wanted();
  object.spec.term = term_;
  object.spec.revision = table.stored().revision + 1;
  table.begin(now_);
  ++counters_.timetable_writes;
  log("timetable", "node=" + name + " revision=" + std::to_string(object.spec.revision) +
                       " pods=" + std::to_string(object.spec.pods.size()));
  if (!table.exists()) {
    object.metadata.owner_references.push_back(
        {.api_version = "v1", .kind = "Node", .name = name, .uid = node.node->metadata.uid});
  }
  write(PutTimetable{std::move(object), table.exists(), table.exists() ? table.version() : ""});
}

void ControlLoop::answered(TimetablePut&& outcome) {
  const auto found = nodes_.find(outcome.node);
  if (found == nodes_.end()) return;
  NodeRecord& node = found->second;
  const auto& newest = outcome.result.ok() ? outcome.result : outcome.fresh;
  if (newest.ok() && newest->spec.term > term_) return be_fenced(newest->spec.term);
  switch (node.timetable.answered(outcome.result, outcome.fresh, now_)) {
    case WriteEnd::kStored:
      node.timetable.know_stored(std::move(outcome.spec));
      break;
    case WriteEnd::kLostRace:
    case WriteEnd::kGone:
      ++counters_.conflicts;
      break;
    case WriteEnd::kFailed:
      ++counters_.write_failures;
      warn("timetable not written",
           "node=" + outcome.node + " error=\"" + outcome.result.error().message + "\"");
  }
  compare_timetable(outcome.node, node);
  changed_nodes_.insert(outcome.node);
  for (const std::string& uid : node.jobs) touch(uid);
}

}  // namespace control
