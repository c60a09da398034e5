// The users' events: submit, change, hold, suspend, cancel (2.2, 13.2, 13.5), and the queue records
// that follow from them (3.2).
#include <algorithm>
#include <chrono>

#include "base/utc.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/qos_order.h"

namespace sched {

// R9.2: each new job gets one less than the job before. Its nice lowers its own priority only, not
// that of later jobs (recording queue_hold_release_backfill).
Priority Engine::next_priority(const JobRequest& request) {
  if (request.priority) return *request.priority;
  const std::int64_t base = std::max<std::int64_t>(1, std::int64_t{lowest_priority_.value()} - 1);
  const std::int64_t value = std::clamp<std::int64_t>(base - request.nice, 1, 0xffffffffLL);
  lowest_priority_ = Priority{static_cast<std::uint32_t>(base)};
  return Priority{static_cast<std::uint32_t>(value)};
}

void Engine::on(const Submit& event) {
  if (books_.find(event.request.id) != nullptr) return;
  const bool held = event.request.hold || event.request.suspend;
  const Priority priority = held ? Priority{} : next_priority(event.request);
  if (std::string message; refused_at_submit(event.request, message)) {
    books_.decide(Refused{event.request.id, std::move(message)});
    return;
  }
  Job& job = books_.add(event.request);
  job.submit_time = event.request.submit_time;
  job.priority = priority;
  if (event.request.hold) job.held = Reason::kJobHeldUser;
  hold_if_suspended(job);
  enqueue(job);
}

// DenyOnLimit (1.4): empty, or what the job asks for that its QOS never allow in this partition.
std::string Engine::denied_by_qos(const JobRequest& request, PartitionIndex partition) const {
  const QosOrder order = qos_order(cluster_, request.qos, partition);
  const bool denies = std::ranges::any_of(
      order, [](const QosConfig* qos) { return qos != nullptr && qos->deny_on_limit; });
  if (!denies) return {};
  if (const auto refusal = refused_by_partition(request, partition)) {
    return refusal->reason == Reason::kQosLimit ? refusal->message : std::string{};
  }
  const int nodes_count = node_counts(cluster_, request, partition).min;
  const int cpus = tasks_of(request, nodes_count) * request.cpus_per_task;
  for (const auto limit : {&QosConfig::max_cpus_per_user, &QosConfig::group_cpus}) {
    const QosConfig* const qos = qos_with(order, limit);
    if (qos == nullptr || cpus <= *(qos->*limit)) continue;
    return "asks for " + std::to_string(cpus) + " CPUs; QOS " + qos->name + " allows " +
           std::to_string(*(qos->*limit));
  }
  return {};
}

// 1.2.1: DRAIN and INACTIVE take no new jobs. DenyOnLimit and EnforcePartLimits: whether limits
// turn the job away instead of letting it wait.
bool Engine::refused_at_submit(const JobRequest& request, std::string& message) const {
  const std::vector<PartitionIndex> partitions = partitions_of(request);
  const auto takes_none = [&](PartitionIndex partition) {
    const PartitionState state = cluster_.partition(partition).config.state;
    return state == PartitionState::kDrain || state == PartitionState::kInactive;
  };
  if (!partitions.empty() && std::ranges::all_of(partitions, takes_none)) {
    const PartitionConfig& config = cluster_.partition(partitions.front()).config;
    message = "partition " + config.name + " takes no new jobs: it is " +
              (config.state == PartitionState::kDrain ? "draining" : "inactive");
    return true;
  }
  std::size_t denied = 0;
  for (const PartitionIndex partition : partitions) {
    const std::string why = denied_by_qos(request, partition);
    if (why.empty()) continue;
    ++denied;
    message = why + ", and DenyOnLimit is set: ask for less";
  }
  if (denied > 0 && denied == partitions.size()) return true;
  const EnforcePartLimits enforce = cluster_.parameters().enforce_part_limits;
  if (enforce == EnforcePartLimits::kNone) return false;
  std::size_t failed = 0;
  for (const PartitionIndex partition : partitions) {
    const auto refusal = refused_by_partition(request, partition);
    const bool is_limit = refusal && (refusal->reason == Reason::kPartitionTimeLimit ||
                                      refusal->reason == Reason::kPartitionNodeLimit ||
                                      refusal->reason == Reason::kMaxMemPerLimit);
    if (!is_limit) continue;
    ++failed;
    message = refusal->message + ", and EnforcePartLimits is set: ask for less";
  }
  return enforce == EnforcePartLimits::kAll ? failed > 0
                                            : failed > 0 && failed == partitions.size();
}

void Engine::on(const Update& event) {
  Job* job = books_.find(event.request.id);
  if (job == nullptr || is_terminal(job->state)) return;
  const bool was_held = job->request.hold;
  const bool reprioritised =
      event.request.priority && event.request.priority != job->request.priority;
  const std::int64_t nicer = std::int64_t{job->request.nice} - event.request.nice;
  if (job->pending()) {
    dequeue(*job);
    books_.set_request(*job, event.request);
  } else {
    books_.set_request(*job, event.request);
    job->time_limit = time_limit_of(*job, *job->partition);
    arm_time_limit(*job);
  }
  if (event.request.priority) {
    job->priority = *event.request.priority;
  } else if (nicer != 0 && job->priority.value() > 0) {  // R9.2
    job->priority = Priority{static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(job->priority.value() + nicer, 1, 0xffffffffLL))};
  }
  if (job->pending()) {
    const bool is_held = job->held == Reason::kJobHeldAdmin || job->held == Reason::kJobHeldUser;
    if (reprioritised && is_held && !job->held_by_suspend && !event.request.hold) {
      job->held.reset();  // R9.1: what held it was the priority 0
    }
    if (event.request.hold && !was_held) {
      job->held = Reason::kJobHeldUser;
      job->held_by_suspend = false;
    }
    if (job->held == Reason::kBadConstraints) job->held.reset();
    enqueue(*job);
  }
}

void Engine::on(const Hold& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  if (!job->pending()) {  // 13.2
    books_.decide(Refused{job->id, "a job that runs cannot be held: suspend it"});
    return;
  }
  job->held = event.by_admin ? Reason::kJobHeldAdmin : Reason::kJobHeldUser;
  job->held_by_suspend = false;
  enqueue(*job);
}

void Engine::on(const Release& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->pending() || !job->held) return;
  job->held.reset();
  job->held_by_suspend = job->request.suspend = false;
  job->priority = next_priority(job->request);  // 13.2: it is computed anew
  enqueue(*job);
}

void Engine::on(const Cancel& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  if (job->pending()) {
    dequeue(*job);
    books_.clear_claim(*job, false, now_);
    books_.finish(*job, JobState::kCancelled);
    return;
  }
  if (job->ending && job->ending->final_state == JobState::kPending) {
    Ending ending = *job->ending;
    ending.final_state = JobState::kCancelled;  // T5: it ends and does not come back
    books_.set_ending(*job, ending);
    return;
  }
  begin_ending(*job, Ending{.final_state = JobState::kCancelled,
                            .verdict = EndingVerdict::kCancelled,
                            .grace_end = now_,
                            .preemptor = {}});
}

void Engine::on(const Requeue& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  if (job->pending()) {
    books_.decide(Refused{job->id, "the job is pending already"});
  } else if (!may_requeue(*job)) {
    books_.decide(
        Refused{job->id, partitions_of(job->request).empty()
                             ? "the job may not be requeued: its partition does not exist any more"
                             : "the job may not be requeued (requeue: false)"});
  } else {
    begin_ending(*job, Ending{.final_state = JobState::kPending,
                              .verdict = EndingVerdict::kRequeue,
                              .grace_end = now_,
                              .preemptor = {}});
  }
}

void Engine::on(const Forget& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr) return;
  if (job->pending()) {
    dequeue(*job);
    books_.clear_claim(*job, false, now_);
  }
  if (job->allocated()) {
    gang_gone(*job);
    books_.end(*job, JobState::kPending);
    remove_empty_nodes();
  }
  books_.erase(*job);
}

// T10, T11. P4: what a suspend gave back a resume takes again, and nothing else.
void Engine::on(const UserSuspend& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  job->request.suspend = true;
  if (job->pending()) {
    if (job->held == Reason::kBadConstraints) job->held.reset();
    hold_if_suspended(*job);
    enqueue(*job);
    return;
  }
  waiting_resumes_.erase(job->id);
  if (job->user_suspended || job->completing()) return;
  if (options_.told_timing &&
      job->suspended()) {  // T11: held against the gang's resume, nothing is released
    books_.hold_by_user(*job);
    if (world_) world_->set_held(job->id, true);
    set_reason(*job, Reason::kUser);
    return;
  }
  books_.give_cores_back(*job);
  gang_gone(*job);
  books_.suspend_by_user(*job);
  to_phase(*job, JobClock::Phase::kSuspended);
  mark_nodes(*job);
}

void Engine::on(const UserResume& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  job->request.suspend = false;
  if (job->pending()) {  // a hold is for a release to take back
    if (job->held_by_suspend) on(Release{event.job});
    return;
  }
  if (!job->user_suspended || job->completing()) return;
  if (!job->cores_released) {
    books_.unhold_by_user(*job);
    set_reason(*job, Reason::kTimeslice);
    if (world_) {
      world_->set_held(job->id, false);
      apply_gang_actions();
    }
    return;
  }
  // Slurm does not ask for room (recording manual_suspend_linear_nogang). P3: the job runs before
  // the gang hears of it.
  if (!books_.resume_by_user(*job, options_.told_timing)) {
    set_reason(*job, Reason::kUser, "resumes when a row is free on its nodes");
    waiting_resumes_.insert(job->id);
    return;
  }
  waiting_resumes_.erase(job->id);
  to_phase(*job, job->ready ? JobClock::Phase::kRunning : JobClock::Phase::kIdle);
  set_reason(*job, Reason::kNone);
  if (job->ready) gang_start(*job);
  arm_time_limit(*job);
  mark_nodes(*job);
}

std::vector<PartitionIndex> Engine::partitions_of(const JobRequest& request) const {
  std::vector<PartitionIndex> partitions;
  if (request.partitions.empty()) {
    if (const auto index = cluster_.default_partition()) partitions.push_back(*index);
  }
  for (const std::string& name : request.partitions) {
    const auto index = cluster_.find_partition(name);
    if (!index || std::ranges::find(partitions, *index) != partitions.end()) continue;
    partitions.push_back(*index);
  }
  return partitions;
}

namespace {

// 3.2 step 5: among partitions of one tier the job's own list decides.
int place_in_list(const JobRequest& request, const std::string& partition) {
  const auto& names = request.partitions;
  return static_cast<int>(std::ranges::find(names, partition) - names.begin());
}

}  // namespace

QueueRecord Engine::record_of(Job& job, PartitionIndex partition) const {
  const Partition& where = cluster_.partition(partition);
  const int order =
      job.request.partitions.size() < 2 ? 0 : place_in_list(job.request, where.config.name);
  if (is_fifo(cluster_)) {
    return {.fifo_order = job.table_order,
            .job = job.id,
            .partition_order = order,
            .partition = partition,
            .record = &job};
  }
  return {.tier = where.tier(),
          .priority = job.priority,
          .submit_time = job.submit_time,
          .job = job.id,
          .partition_order = order,
          .partition = partition,
          .record = &job};
}

void Engine::dequeue(Job& job) {
  for (const PartitionIndex partition : job.queued_in) {
    queue_.erase(record_of(job, partition), cluster_);
  }
  job.queued_in.clear();
}

// 3.2 steps 3 to 6.
void Engine::enqueue(Job& job) {
  dequeue(job);
  books_.changed();
  if (job.held) {
    books_.clear_claim(job, true, now_);
    set_reason(job, *job.held, held_message(job));
    return;
  }
  const base::Instant from = std::max(job.request.begin_time.value_or(job.submit_time),
                                      job.not_before.value_or(base::Instant::min()));
  if (from > now_) {
    eligible_timers_.emplace(from, job.id);
    // When, not how long from now: what did not change is not told again.
    set_reason(job, Reason::kBeginTime,
               "may start at " + base::format_utc(std::chrono::ceil<std::chrono::seconds>(from)) +
                   " at the earliest");
    return;
  }
  job.eligible_time = std::max(job.eligible_time, std::max(from, job.submit_time));
  if (const auto latest = latest_start(job); latest && !options_.told_timing) {
    eligible_timers_.emplace(*latest + base::Duration{1}, job.id);  // no pass may come to it then
  }
  std::optional<Refusal> refusal;
  for (const PartitionIndex partition : partitions_of(job.request)) {
    if (auto refused = refused_by_partition(job.request, partition)) {
      if (!refusal) refusal = std::move(refused);
      continue;
    }
    job.queued_in.push_back(partition);
    queue_.insert(record_of(job, partition), cluster_);
    note_unexplained(job.id);
  }
  if (job.queued_in.empty()) {
    if (!refusal) {  // api.md: waiting jobs of a deleted partition
      refusal = Refusal{Reason::kPartitionInactive, job.request.partitions.empty()
                                                        ? "no partition is the default"
                                                        : "no partition that it names exists"};
    }
    set_reason(job, refusal->reason, std::move(refusal->message));
  } else if (job.reason != Reason::kResources && job.reason != Reason::kPriority) {
    set_reason(job, Reason::kNone);
  }
}

void Engine::requeue_all_pending() {
  queue_.configure(cluster_);
  for (const auto& [order, job] : books_.table().all()) {
    job->queued_in.clear();
    if (job->pending()) enqueue(*job);
  }
}

// 3.2 step 5.
std::optional<Engine::Refusal> Engine::refused_by_partition(const JobRequest& request,
                                                            PartitionIndex partition) const {
  const PartitionConfig& config = cluster_.partition(partition).config;
  const QosConfig* const qos = qos_named(cluster_, request.qos);
  if (!request.qos.empty() && qos == nullptr) {
    return Refusal{Reason::kInvalidQos, "there is no QOS " + request.qos};
  }
  const std::string where = "partition " + config.name;
  if (config.state == PartitionState::kDown) {
    return Refusal{Reason::kPartitionDown, where + " is down"};
  }
  if (config.state == PartitionState::kInactive) {
    return Refusal{Reason::kPartitionInactive, where + " is inactive"};
  }
  const auto named = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // Allow wins over deny.
  if (config.allow_users ? !named(*config.allow_users, request.user)
                         : config.deny_users && named(*config.deny_users, request.user)) {
    return Refusal{Reason::kPartitionConfig, where + " is not open to " + request.user};
  }
  if (config.allow_qos ? !named(*config.allow_qos, request.qos)
                       : config.deny_qos && named(*config.deny_qos, request.qos)) {
    return Refusal{Reason::kQosNotAllowed,
                   where + " is not open to " +
                       (request.qos.empty() ? "jobs without a QOS" : "QOS " + request.qos)};
  }
  return refused_by_limits(request, partition, qos);
}

namespace {

// 1.8 items 1 to 4; nothing = all memory of its nodes.
MemoryRequest memory_of(const JobRequest& request, const MemoryLimit& partition_default,
                        const MemoryLimit& cluster_default) {
  if (!std::holds_alternative<std::monostate>(request.memory)) return request.memory;
  const bool own = partition_default.per_cpu || partition_default.per_node;
  const MemoryLimit& chosen = own ? partition_default : cluster_default;
  if (chosen.per_cpu) return MemoryPerCpu{*chosen.per_cpu};
  if (chosen.per_node) return MemoryPerNode{*chosen.per_node};
  return {};
}

// 1.8 item 5: what some node of the job has to give, however its tasks are spread.
MemoryMiB least_memory_per_node(const JobRequest& request, const MemoryRequest& memory,
                                const NodeCounts& counts) {
  if (const auto* per_node = std::get_if<MemoryPerNode>(&memory)) return per_node->amount;
  const auto* per_cpu = std::get_if<MemoryPerCpu>(&memory);
  if (per_cpu == nullptr) return MemoryMiB{0};
  std::int64_t tasks = request.tasks_per_node.value_or(1);
  if (request.tasks) {
    tasks = std::max<std::int64_t>(tasks, (*request.tasks + counts.max - 1) / counts.max);
  }
  if (request.overcommit) tasks = 1;
  const std::int64_t cpus =
      std::max<std::int64_t>(tasks * request.cpus_per_task, request.min_cpus_per_node.value_or(1));
  return MemoryMiB{per_cpu->amount.value() * cpus};
}

}  // namespace

std::optional<Engine::Refusal> Engine::refused_by_limits(const JobRequest& request,
                                                         PartitionIndex partition,
                                                         const QosConfig* qos) const {
  const PartitionConfig& config = cluster_.partition(partition).config;
  const std::string where = "partition " + config.name;
  const auto minutes = [](base::Duration time) {
    return std::to_string(std::chrono::ceil<std::chrono::minutes>(time).count()) + " minutes";
  };
  const bool waives_time = qos != nullptr && qos->partition_time_limit;
  if (config.max_time && request.time_limit && !waives_time &&
      request.time_min.value_or(*request.time_limit) > *config.max_time) {
    return Refusal{Reason::kPartitionTimeLimit,
                   "asks for " + minutes(request.time_min.value_or(*request.time_limit)) + "; " +
                       where + " allows " + minutes(*config.max_time)};
  }
  const QosOrder order = qos_order(cluster_, qos, partition);
  const QosConfig* const limits_time = qos_with(order, &QosConfig::max_time);
  if (limits_time != nullptr &&
      request.time_limit.value_or(base::Duration::zero()) > *limits_time->max_time) {
    return Refusal{Reason::kQosLimit, "asks for " + minutes(*request.time_limit) + "; QOS " +
                                          limits_time->name + " allows " +
                                          minutes(*limits_time->max_time)};
  }
  const NodeCounts counts = node_counts(cluster_, request, partition);
  const int required = static_cast<int>(request.required_nodes.size());
  const int least = std::max(counts.min, required);
  const QosConfig* const limits_nodes = qos_with(order, &QosConfig::max_nodes_per_job);
  if (limits_nodes != nullptr && least > *limits_nodes->max_nodes_per_job) {  // 4.1
    return Refusal{Reason::kQosLimit, "asks for " + std::to_string(least) + " nodes; QOS " +
                                          limits_nodes->name + " allows " +
                                          std::to_string(*limits_nodes->max_nodes_per_job)};
  }
  // A range that reaches beyond MaxNodes waits too, though its lower end fits.
  const bool waives_max = qos != nullptr && qos->partition_max_nodes;
  const bool reaches_beyond = config.max_nodes && request.nodes_given && request.max_nodes &&
                              !waives_max && *request.max_nodes > *config.max_nodes;
  if (counts.max < counts.min || required > counts.max || reaches_beyond) {
    const int most =
        std::max({counts.min, required, request.nodes_given ? request.max_nodes.value_or(0) : 0});
    return Refusal{Reason::kPartitionNodeLimit,
                   "asks for " + std::to_string(most) + " nodes; " + where + " allows " +
                       std::to_string(std::max(1, config.min_nodes)) + " to " +
                       std::to_string(config.max_nodes.value_or(counts.max))};
  }
  const MemoryLimit& limit = config.max_memory.per_cpu || config.max_memory.per_node
                                 ? config.max_memory
                                 : cluster_.parameters().max_memory;
  const MemoryMiB memory = least_memory_per_node(
      request, memory_of(request, config.default_memory, cluster_.parameters().default_memory),
      counts);
  if (limit.per_node && memory > *limit.per_node) {
    return Refusal{Reason::kMaxMemPerLimit, "asks for " + to_string(memory) + " MiB per node; " +
                                                where + " allows " + to_string(*limit.per_node)};
  }
  return std::nullopt;
}

std::string Engine::held_message(const Job& job) const {
  if (job.held == Reason::kJobHeldUser) return "held by its user until it is released";
  if (job.held == Reason::kJobHeldAdmin) return "held by an administrator until it is released";
  if (job.held != Reason::kJobHoldMaxRequeue) return job.message;
  return "requeued " + std::to_string(job.restarts) + " times, more than the " +
         std::to_string(cluster_.parameters().queue.max_batch_requeue) +
         " that are allowed; held until it is released";
}

}  // namespace sched
