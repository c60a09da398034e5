// What changes of nodes mean for policies, jobs and the scheduler, and its plans for timetables.
#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"
#include "operator/nodes/unsliced_time.h"

namespace control {

void ControlLoop::observe(const Changes<kube::Node>& changes) {
  for (const auto& [key, object] : changes) {
    const NodeBook::Change change = nodes_.observe(key.name, object);
    timetables_.observe_node(key.name);
    // A partition may pick its nodes by their labels.
    if (change.selectable) policy_.observe_nodes();
    if (!change.lost) continue;
    for (const std::string& uid : nodes_.jobs_on(key.name)) touch(uid);
  }
}

void ControlLoop::tell_nodes() {
  const NodeBook::News news = nodes_.take_news(policy_.configuration(), policy_.parameters());
  for (const std::string& node : news.forgotten) timetables_.forget(node);
  if (!news.events.empty()) counts_dirty_ = true;
  for (const sched::Event& event : news.events) tell(event);
}

void ControlLoop::count_nodes() {
  const base::Duration slice = policy_.configuration().cluster.time_slice;
  if (nodes_.is_uncounted()) {
    if (nodes_.count(policy_.configuration())) judge_waiting_jobs();
    choose_taints();
    timetables_.ensure_all(slice, now_);
  }
  timetables_.ensure_deleted(slice, now_);
}

// Of the partitions as accepted.
void ControlLoop::choose_taints() {
  std::set<std::string> wanted;
  for (const auto& partition : policy_.configuration().partitions) {
    if (!policy_.taints_nodes(partition.name)) continue;
    wanted.insert(partition.nodes.begin(), partition.nodes.end());
  }
  taints_.want(std::move(wanted));
  for (const kube::Node* node : nodes_.objects()) taints_.observe(*node);
}

void ControlLoop::write_due_taints() {
  const auto find = [this](const std::string& name) { return nodes_.object(name); };
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

void ControlLoop::count_unsliced() {
  unsliced_.count(now_, {.jobs_on = [this](const std::string& node) -> const auto& {
                           return nodes_.jobs_on(node);
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

void ControlLoop::observe(const Changes<kube::NodeTimetable>& changes) {
  for (const auto& [key, object] : changes) {
    const std::string& node = key.name;
    nodes_.observe_agent(node, object);
    if (unsliced_.observe(node, object.get())) {
      log(unsliced_.slices(node) ? "node slices again" : "node does not slice", "node=" + node);
    }
    if (object == nullptr) {
      lag_.forget(node);
    } else {
      lag_.see(node, object->spec.revision, object->status.observed_revision, now_);
      if (restored_ && object->spec.term > term_) return be_fenced(object->spec.term);
    }
    timetables_.observe(node, object.get());
  }
}

void ControlLoop::take_plans() {
  if (!std::exchange(plans_dirty_, false)) return;
  const base::Duration began = clock_.monotonic();
  const auto plans = scheduler_.take_plans(now_);
  counters_.deciding += clock_.monotonic() - began;
  for (const sched::NodePlan& plan : plans) {
    timetables_.want(plan, scheduler_.node_name(plan.node),
                     [this](sched::JobId id) { return listed_job(id); });
  }
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

void ControlLoop::write_due_timetables() {
  for (PutTimetable& effect : timetables_.due(now_, term_)) {
    ++counters_.timetable_writes;
    write(std::move(effect));
  }
}

void ControlLoop::answered(TimetablePut&& outcome) {
  const auto& newest = outcome.result.ok() ? outcome.result : outcome.fresh;
  if (newest.ok() && newest->spec.term > term_) return be_fenced(newest->spec.term);
  const std::string node = outcome.node;
  const WriteEnd end = timetables_.answered(std::move(outcome), now_);
  if (end == WriteEnd::kFailed) ++counters_.write_failures;
  if (end == WriteEnd::kLostRace) ++counters_.conflicts;
  for (const std::string& uid : nodes_.jobs_on(node)) touch(uid);
}

}  // namespace control
