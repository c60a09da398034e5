// The consequences of a change that one part sees for the others.
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/gang/gang_observation.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/listed_job.h"
#include "operator/loop/control_loop.h"
#include "translation/devices.h"
#include "translation/node_translation.h"

namespace control {
namespace {

// A condition of the SchedulerConfig.
constexpr std::string_view kClockTrusted = "ClockTrusted";

TimetableVersion published_version(const kube::NodeTimetable& table) {
  return {table.spec.term, table.spec.revision};
}

// An agent of an older version says no term.
std::optional<TimetableVersion> observed_version(const kube::NodeTimetable& table) {
  if (!table.status.observed_revision) return std::nullopt;
  return TimetableVersion{table.status.observed_term.value_or(table.spec.term),
                          *table.status.observed_revision};
}

}  // namespace

// Order matters in all of these functions: the part that owns what is known comes first, and the
// parts that only draw conclusions ask it afterwards.
void ControlLoop::observe(const Changes<kube::Node>& changes) {
  for (const auto& [key, object] : changes) {
    const NodeBook::Change change = nodes_.observe(key.name, object);
    timetables_.observe_node(key.name);
    if (object != nullptr) taints_.observe(*object);
    // A partition may pick its nodes by their labels.
    if (change.selectable) policy_.observe_nodes();
    // Jobs on a node that is lost have lost a member (GangRunner, step 1). The next pod of one may
    // wait for a node that is cordoned.
    // Other changes of a node reach its jobs through the scheduler (tell_nodes).
    if (!change.lost && !change.cordoned) continue;
    for (const std::string& uid : nodes_.jobs_on(key.name)) jobs_.touch(uid);
  }
}

// Reports to the scheduler nodes that are new, changed or gone, after all changes of the step were
// observed: a node that flaps between two looks is not reported.
void ControlLoop::tell_nodes() {
  // Events are collected first and handed over afterwards: they lead to decisions, which change the
  // NodeBook.
  const NodeBook::News news = nodes_.take_news(policy_.configuration(), policy_.parameters());
  // A node that has left the cluster takes its timetable with it: the Node owns the object.
  for (const std::string& node : news.forgotten) timetables_.forget(node);
  for (const sched::Event& event : news.events) scheduler_.tell(event);
}

void ControlLoop::count_nodes() {
  const base::Duration slice = policy_.configuration().cluster.time_slice;
  if (nodes_.is_uncounted()) {
    counts_changed_ = true;
    // The capacity of partitions has changed, so a job that could never run there may do so now, or
    // the other way round.
    if (nodes_.count(policy_.configuration())) wishes_.judge_waiting();
    choose_taints();
    timetables_.ensure_all(slice, now_);
  } else if (nodes_.count_unusable(policy_.configuration())) {
    counts_changed_ = true;
  }
  wishes_.judge_classes(nodes_.take_outdated());
  // Nodes that need a timetable for one job alone (a user's suspension), and nodes whose timetable
  // was deleted by hand.
  timetables_.ensure(nodes_.take_asked(), slice, now_);
  timetables_.ensure_deleted(slice, now_);
}

// Chooses the nodes that carry our taint, which keeps other pods off: those of partitions that ask
// for it, as accepted.
void ControlLoop::choose_taints() {
  std::set<std::string> wanted;
  for (const auto& partition : policy_.configuration().partitions) {
    if (!policy_.taints_nodes(partition.name)) continue;
    wanted.insert(partition.nodes.begin(), partition.nodes.end());
  }
  taints_.want(std::move(wanted));
  // All nodes, because a node that has left every tainting partition must lose its taint.
  for (const kube::Node* node : nodes_.objects()) taints_.observe(*node);
}

void ControlLoop::observe(const Changes<kube::UsageRecord>& changes) {
  for (const auto& [key, object] : changes) {
    // There is one record; an object of another name is ignored.
    if (key.name == kube::kUsageRecordName) usage_.observe(object.get());
  }
}

void ControlLoop::observe(const Changes<kube::NodeTimetable>& changes) {
  for (const auto& [key, object] : changes) {
    const std::string& node = key.name;
    nodes_.observe_agent(node, object);
    note_agent(node);
    if (object == nullptr) {
      lag_.forget(node);
    } else {
      lag_.see(node, published_version(*object), observed_version(*object), now_);
      // A later leader has written already, so this one has lost the Lease without having noticed
      // yet. It stops at once: each of its writes would be refused by the term, but pods carry
      // none.
      // Before the restore a higher term is that of a predecessor.
      if (restored_ && object->spec.term > term_) return be_fenced(object->spec.term);
    }
    timetables_.observe(node, object.get());
  }
}

void ControlLoop::observe(const Changes<kube::PodGroup>& changes) {
  for (const auto& [key, group] : changes) gated_.observe_group(key, group.get());
}

void ControlLoop::observe(const Changes<kube::Job>& changes) {
  const JobBook::Seen seen = jobs_.observe(changes);
  if (recorded_.is_followed()) {
    for (const auto& [key, object] : changes) {
      if (object != nullptr) unseen_jobs_.observe(*object, recorded_.version());
    }
  }
  // As above: a status of a higher term.
  if (restored_ && seen.term > term_) return be_fenced(seen.term);
  if (!seen.late.empty()) return be_overtaken(*jobs_.find(seen.late));
  // Jobs that have ended have no record; these three keep what must still happen about them.
  for (const auto& object : seen.ended) {
    time_to_live_.observe(*object, object->status);
    managed_.observe_ended(*object);
    gated_.observe_ended(*object);
  }
  // Pods of a deleted Job may still run, so its record stays until they are gone (forget).
  for (const std::string& uid : seen.deleted) {
    report_.log("job deleted", job_fields(*jobs_.peek(uid)));
  }
}

void ControlLoop::observe(const Changes<kube::Pod>& changes) {
  for (const auto& [key, pod] : changes) index_pod(key, pod);
}

void ControlLoop::index_pod(const kube::ObjectKey& key,
                            const std::shared_ptr<const kube::Pod>& pod) {
  // 1. an agent's pod tells whether its node can switch
  if (const auto node = agents_.observe(key, pod.get())) {
    nodes_.observe_agent_pod(*node);
    note_agent(*node);
  }
  // 2. a pod behind our gate may complete a gang. It has no job yet, and counts for no node
  gated_.observe(key, pod);
  // 3. a pod belongs to one of four: a job that is known, a foreign owner (it takes memory of its
  //    node), a job that has ended, like the pod, or none (an orphan, to be deleted). It leaves the
  //    old place and enters the new one
  const auto [before, after] = pods_.observe(key, pod);
  // The old place comes first, because both may be of one job: the pod moved from Pending to a
  // node, or was created again under its name.
  if (before) {
    nodes_.erase_pod(before->node, key);
    orphans_.remove(key);
    managed_.erase_orphan(key);
    jobs_.erase_pod(key, *before);
    pod_writes_.observe(*before, pod.get());
  }
  if (!after) return;
  const bool is_foreign = after->job_uid.empty();
  if (!is_foreign) notes_.observe_pod(after->job_uid, *pod, now_);
  if (!is_foreign && jobs_.put_pod(key, *after)) return;
  // A finished pod takes nothing of its node, whatever its owner.
  if (is_finished(*pod)) return;
  if (is_foreign) {
    nodes_.put_foreign(after->node, key, memory_request(*pod), device_requests(pod->spec));
  } else {
    nodes_.put_orphan(after->node, key);
    orphans_.add(key);
    managed_.put_orphan(*pod);
  }
}

// Hands the pods of a job that has ended, and that have not, over to OrphanPods. A job ends when
// none of its pods is known to run, but one may come to light later: the answer to its creation was
// lost, or came late, and no watch had shown it (pod_index.cc says how long that may take).
void ControlLoop::leave_orphans(const JobRecord& job) {
  std::vector<std::shared_ptr<const kube::Pod>> left;
  for (const auto& [name, pod] : *job.pods) {
    if (!is_finished(*pod)) left.push_back(pod);
  }
  for (const auto& pod : left) {
    const kube::ObjectKey key = kube::key_of(pod->metadata);
    const bool is_unseen = pods_.is_unseen(key);
    index_pod(key, pod);
    if (is_unseen) pods_.expect(key, now_);
  }
}

// Forgets a deleted job whose pods are gone.
void ControlLoop::forget(JobRecord& job) {
  wishes_.forget(job);
  for (const std::string& node : job.start->nodes) nodes_.leave(node, job.uid);
  if (!job.task) forget_job(job.uid);
  jobs_.forget(job);
}

// Judges all policies together and puts into force what is legal (config_acceptance.h). Runs in a
// step in which one of them has changed, or a node that a partition may select.
void ControlLoop::decide_policy() {
  const PolicyBook::Decided decided = policy_.decide(nodes_.objects(), now_);
  for (const base::LogFields& refused : decided.refused) report_.warn("spec refused", refused);
  // Times such as `settle` count in what is looked at for each job.
  if (decided.parameters_changed) {
    jobs_.touch_all();
    nodes_.observe_policy();  // some say what jobs may use of a node
  }
  if (decided.configuration_changed) {
    const sched::Configuration& configuration = policy_.configuration();
    report_.log("configuration in force", {{"partitions", configuration.partitions.size()},
                                           {"qos", configuration.qos.size()}});
    scheduler_.tell(sched::Configure{std::make_shared<const sched::Configuration>(configuration)});
    nodes_.observe_policy();
    note_slicing();
  }
  choose_taints();
  show_trust();
  counts_changed_ = true;
}

// Says in the SchedulerConfig that no job ends by time, for as long as that is so.
void ControlLoop::show_trust() {
  auto* config =
      policy_.find_status<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName});
  if (config == nullptr) return;
  std::vector<kube::Condition> conditions = config->wanted().conditions;
  if (ends_by_time_) {
    std::erase_if(conditions, [](const auto& each) { return each.type == kClockTrusted; });
  } else {
    kube::set_condition(conditions,
                        {.type = std::string{kClockTrusted},
                         .status = kube::ConditionStatus::kFalse,
                         .reason = "DiffersFromApiServer",
                         .message = "the wall clock of the operator's machine differs from the API "
                                    "server's: no job ends because its time is over"},
                        now_);
  }
  if (conditions == config->wanted().conditions) return;
  config->change(WriteUrgency::kUrgent).conditions = std::move(conditions);
}

// Where agents are not needed their pods say nothing. Before the restore not all is known: it looks
// at all nodes.
void ControlLoop::note_slicing(const std::string& node) {
  if (!restored_) return;
  // A node that has no need of an agent slices by definition: nothing takes turns there.
  const auto agent_pod = nodes_.needs_agent(node) ? agents_.on(node) : std::nullopt;
  if (!unsliced_.observe(node, is_unsliced(nodes_.table(node), agent_pod))) return;
  report_.log(unsliced_.slices(node) ? "node slices again" : "node does not slice",
              {{"node", node}});
}

// The agent's word concerns the time that jobs run there, and suspensions that wait for it.
void ControlLoop::note_agent(const std::string& node) {
  note_slicing(node);
  // Jobs whose suspension waits until an agent of this node can carry it out.
  for (const std::string& uid : nodes_.asked_on(node)) jobs_.touch(uid);
}

void ControlLoop::note_slicing() {
  for (const kube::Node* node : nodes_.objects()) note_slicing(node->metadata.name);
}

// Time in which an agent did not switch is time in which all jobs of its node ran. It is added to
// their run times, so that a job cannot outlive its limit on a node whose agent is dead.
UnslicedTime::Sources ControlLoop::run_time_sources() {
  UnslicedTime::Sources sources;
  sources.jobs_on = [this](const std::string& node) -> const std::set<std::string>& {
    return nodes_.jobs_on(node);
  };
  sources.run_time = [this](const std::string& uid) -> std::optional<base::Duration> {
    // No time is added before the job is ready or once its end is decided: no run time passes then.
    const JobRecord* job = jobs_.find(uid);
    const auto view = job == nullptr ? std::nullopt : scheduler_.view(job->id);
    if (!view || !view->ready || view->ending) return std::nullopt;
    return view->run_time;
  };
  sources.ran = [this](const std::string& uid, base::Duration more) {
    scheduler_.tell(sched::JobRan{jobs_.find(uid)->id, more});
  };
  return sources;
}

// Called when what is wanted of the node may have changed, or what is stored.
void ControlLoop::note_late_table(const std::string& node) {
  if (timetables_.is_published(node) || !nodes_.knows(node)) {
    late_.end(node, now_, run_time_sources());
  } else {
    late_.begin(node, timetables_.stored(node), now_, run_time_sources());
  }
}

void ControlLoop::count_unsliced(const JobRecord& job) {
  const bool is_there = std::any_of(job.start->nodes.begin(), job.start->nodes.end(),
                                    [this](const auto& node) { return !unsliced_.slices(node); });
  unsliced_.count_job(job.uid, is_there, now_, run_time_sources());
}

// Hands what the scheduler has planned since the last call to the part that writes timetables.
// Nothing is written here: CommitGate may hold a timetable back until a status is stored.
void ControlLoop::take_plans() {
  for (sched::NodePlan& plan : scheduler_.take_plans()) {
    // The instants of a clock that is off may be hours away for the agents, which would let the
    // gang of the plan's first entry run until then. Slots are counted by each clock alike.
    if (!ends_by_time_) plan.timetable.plan.clear();
    // A job that a timetable lists takes turns, and these begin with its readiness (rule 1). A new
    // leader counts by the timetable from the stored run time on.
    timetables_.want(plan, scheduler_.names().node_name(plan.node), [this](sched::JobId id) {
      JobRecord* job = jobs_.find(id);
      if (job != nullptr && job->readiness_is_late()) jobs_.mark(*job, WriteUrgency::kCommit);
      if (job != nullptr) run_times_.before_timetable(*job, jobs_, scheduler_, now_);
      return listed_job(job);
    });
  }
}

// Returns true if the stored timetable of one of its nodes lists the job. Cost: their pods.
bool ControlLoop::is_listed(const JobRecord& job) const {
  return std::ranges::any_of(job.start->nodes, [&](const std::string& node) {
    const auto stored = timetables_.stored(node);
    return stored != nullptr &&
           std::ranges::any_of(stored->pods, [&](const kube::TimetablePod& pod) {
             return pod.job_uid == job.object_uid() && pod.task == job.task;
           });
  });
}

// The counts of jobs, nodes and CPUs in the statuses of partitions and QOS.
void ControlLoop::show_counts() {
  const bool jobs_changed = counts_.take_changed();
  // Most steps change no count, and then no status of a partition needs comparing.
  if (!std::exchange(counts_changed_, false) && !jobs_changed) return;
  const kube::PartitionJobCounts all = counts_.all();
  counters_.jobs_pending = all.pending;
  counters_.jobs_running = all.running;
  counters_.jobs_suspended = all.suspended;
  const auto show = [](auto& mirror, auto wanted) {
    // A status that says the same is not written again.
    if (wanted != mirror.wanted()) mirror.change(WriteUrgency::kInforms) = std::move(wanted);
  };
  for (const auto& partition : policy_.configuration().partitions) {
    auto* mirror = policy_.find_status<kube::Partition>(partition.name);
    if (mirror == nullptr) continue;
    auto wanted = mirror->wanted();
    wanted.jobs = counts_.of_partition(partition.name);
    const auto capacity = nodes_.capacity().find(partition.name);
    wanted.nodes = capacity == nodes_.capacity().end() ? 0 : capacity->second.nodes;
    wanted.cpus = nodes_.cpus_of(partition.name);
    wanted.unusable = nodes_.unusable_in(partition.name);
    wanted.unusable_nodes = 0;
    for (const kube::UnusableNodes& group : wanted.unusable) *wanted.unusable_nodes += group.nodes;
    show(*mirror, std::move(wanted));
  }
  // Also of QOS objects that were refused: a stale number would be worse than a zero.
  for (auto& [name, entry] : policy_.entries<kube::Qos>()) {
    auto wanted = entry.status.wanted();
    std::tie(wanted.running, wanted.pending) = counts_.of_qos(name);
    show(entry.status, std::move(wanted));
  }
}

}  // namespace control
