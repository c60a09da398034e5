// A new leader's beginning: everything that it needs is in the API server.
#include <algorithm>
#include <iterator>
#include <map>

#include "api/array_status.h"
#include "api/wellknown.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/listed_job.h"
#include "operator/jobs/predecessors.h"
#include "operator/jobs/status_after.h"
#include "operator/jobs/task_wishes.h"
#include "operator/loop/control_loop.h"
#include "slurm/array.h"
#include "slurm/hostlist.h"
#include "translation/allocation.h"
#include "translation/job_check.h"
#include "translation/reason_names.h"
#include "translation/task_key.h"
#include "translation/usage_translation.h"

namespace control {
namespace {

// Returns true if the scheduler of the last leader knew the job. Any other job is judged and
// submitted by the ordinary loop, like a new one. An array of which tasks have started stays in the
// queue whatever becomes of its spec (Wishes::judge).
bool was_in_queue(const JobRecord& job) {
  const kube::JobStatus& status = job.wanted();
  const bool has_begun = status.array && (!status.array->tasks.empty() ||
                                          kube::TaskOutcomes{*status.array}.ended() > 0);
  // A task gets its number when it starts.
  return status.state && (status.job_id || job.task) &&
         (status.allocation || has_begun || kube::is_true(status.conditions, kube::kAccepted));
}

// Returns when the present run began, or the last one; for a gang that is not ready, as stored, the
// instant at which it got its nodes: it may have been ready, and charged, by a leader that could
// not store it.
std::optional<base::Instant> run_began(const kube::JobStatus& status) {
  if (status.start_time || !status.allocation) return status.start_time;
  return starting_since(status);
}

// The request of its array, which comes before it in the job table, is translated once for all.
JobVerdict verdict_of_task(const JobRecord& array, const JobRecord& task,
                           base::Instant submit_time) {
  JobVerdict verdict;
  sched::JobRequest& request = verdict.request.emplace(request_of_task(array, *task.task));
  request.submit_time = submit_time;
  return verdict;
}

// Shares the request of the array with a task that has no terms of its own, as the scheduler does
// when it splits one off.
void share_request(const JobRecord& array, sched::JobFacts& task) {
  sched::JobRequest same = array.request();
  same.id = task.id;
  same.submit_time = task.submit_time;
  same.array.reset();
  if (same == *task.request) task.request = array.wishes->request;
}

// 0 is the priority of a held job, which the hold says by itself. `array`: of a task, whose own
// priority the status of its array does not have.
sched::Priority stored_priority(const kube::JobStatus& status, const sched::JobRequest& request,
                                const sched::JobRequest* array) {
  const std::int64_t stored = status.priority.value_or(0);
  if (stored <= 0) return {};
  if (array == nullptr) return sched::Priority{static_cast<std::uint32_t>(stored)};
  if (request.priority) return *request.priority;
  const std::int64_t own = stored + array->nice - request.nice;
  return sched::Priority{
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(own, 1, kPriorityMax))};
}

}  // namespace

// 1. A term above all that were ever used. 2. Configuration and nodes. 3. The jobs as their
// statuses have them, in job-table order. 4. The rotation as the timetables have it, usage as it is
// recorded, and the time in which nodes did not slice. 5. Whatever is missing of what was decided
// is done by the ordinary loop: every job is looked at.
// Runs once, in the first step, which is entered with complete lists of all kinds. It writes
// nothing by itself.
void ControlLoop::restore() {
  // 1. the Lease counts its transitions, but it may have been deleted and made again; a term below
  //    one that is stored would have each of our writes refused
  // The term of a crashed leader may be in a single object, the last one that it wrote.
  std::int64_t highest_term = jobs_.highest_term();
  timetables_.for_each_stored([&](const std::string&, const kube::NodeTimetableSpec& spec) {
    highest_term = std::max(highest_term, spec.term);
  });
  term_ = std::max<std::int64_t>(lease_transitions_, highest_term) + 1;
  const auto* config =
      policy_.find_status<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName});
  const std::int64_t reserved = config == nullptr ? 1 : config->stored().next_job_id.value_or(1);
  // Both, since either may be missing after a restore from a backup.
  numbers_.restore(std::max(reserved, jobs_.highest_id() + 1));
  budget_.restore(now_);
  run_times_.restore(now_);

  // Jobs are judged below against partitions and nodes, so both must be known to the scheduler
  // first.
  // 2. the configuration decides which nodes are in which partition, so it comes before their count
  decide_policy();
  tell_nodes();
  if (nodes_.count(policy_.configuration())) wishes_.judge_waiting();
  choose_taints();

  // 3. a job that has ended takes nothing, and one that was never accepted is submitted by the loop
  std::vector<JobRecord*> in_order;
  jobs_.for_each_unfinished([&](JobRecord& job) {
    if (job.is_final() || !was_in_queue(job)) return;
    if (job.id.number() == 0) number_anew(job);
    in_order.push_back(&job);
  });
  for (JobRecord* array : std::vector{in_order}) {
    if (array->array)
      std::ranges::copy(wishes_.restore_tasks(*array), std::back_inserter(in_order));
  }
  // Numbers are given in the order of submission, so this is the order of the job table.
  std::sort(in_order.begin(), in_order.end(),
            [](const JobRecord* a, const JobRecord* b) { return a->id < b->id; });
  std::vector<sched::JobFacts> restored;
  std::vector<sched::KnownJob> known;  // what others wait for
  for (JobRecord* job : in_order) {
    if (auto one = restored_job(*job, known)) restored.push_back(std::move(*one));
  }
  const std::size_t jobs_count = restored.size();
  // From here on a higher term is that of a later leader, and note_slicing() looks at agents.
  restored_ = counts_changed_ = true;
  jobs_.restored(term_);
  note_slicing();
  timetables_.ensure_all(policy_.configuration().cluster.time_slice, now_);
  // 4. the rotation goes on where the published timetables are: agents have obeyed them all the
  //    time
  // Its decisions are applied within this call, like those of any event.
  scheduler_.restore(std::move(restored), published_plans(), known);
  restore_usage();
  restore_unsliced();
  restore_never_frozen();
  jobs_.for_each_unfinished([this](JobRecord& job) {
    if (job.array) pod_writes_.restore_kept_pods(job);
  });
  // 5. pods that were decided and not made, endings that were stored and not carried out
  jobs_.touch_all();
  report_.log("leading", {{"term", term_},
                          {"jobs", jobs_.size()},
                          {"restored", jobs_count},
                          {"nodes", nodes_.size()}});
}

// The tasks that have not ended and that have no records wait.
sched::ArrayFacts ControlLoop::restored_array(const ArrayRecord& array) {
  sched::ArrayFacts facts;
  array.wishes->all.each([&](int task) {
    const sched::TaskOutcome outcome = [&] {
      switch (array.outcomes().of(task)) {
        case kube::TaskOutcome::kNone:
          return sched::TaskOutcome::kNotEnded;
        case kube::TaskOutcome::kSucceeded:
          return sched::TaskOutcome::kSucceeded;
        case kube::TaskOutcome::kFailed:
          return sched::TaskOutcome::kFailed;
        case kube::TaskOutcome::kCancelled:
          return sched::TaskOutcome::kCanceled;
      }
      return sched::TaskOutcome::kNotEnded;
    }();
    if (outcome != sched::TaskOutcome::kNotEnded) {
      facts.outcomes.set(task, outcome);
    } else if (!array.tasks().contains(task)) {
      facts.waiting.insert(task);
    }
  });
  return facts;
}

// Another job has its number (JobBook::on_new_job).
void ControlLoop::number_anew(JobRecord& job) {
  const std::int64_t number = numbers_.first_unused();
  numbers_.restore(number + 1);
  jobs_.set_id(job, sched::JobId{number});
  jobs_.change(job, WriteUrgency::kUrgent, [&](auto& wanted) { wanted.job_id = number; });
  report_.warn("number in use", job_fields(job));
}

// Returns how a name in a stored allocation becomes a node of the scheduler; the capture is valid
// as long as this loop. A node that the scheduler does not know is missing.
NodesByName ControlLoop::nodes_by_name() const {
  return [this](const std::string& name) -> std::optional<KnownNode> {
    const auto index = scheduler_.names().find_node(name);
    const sched::NodeSpec* told = nodes_.told(name);
    if (!index || told == nullptr) return std::nullopt;
    return KnownNode{*index, told->cores(), told->cpus};
  };
}

// Returns what the scheduler must know of a job to go on as if it had decided all of this itself;
// nullopt if the job is to be judged like a new one. Everything comes from the stored status: the
// spec may have changed since.
std::optional<sched::JobFacts> ControlLoop::restored_job(JobRecord& job,
                                                         std::vector<sched::KnownJob>& known) {
  kube::JobStatus& status = job.wanted_unmarked();
  const base::Instant submit_time = status.submit_time.value_or(now_);
  JobVerdict verdict = job.task ? verdict_of_task(jobs_.array_of(job), job, submit_time)
                                : translate_job(*job.object, *job.pod_template, job.id, submit_time,
                                                context_of(job, policy_, nodes_));
  const bool allocated = status.allocation.has_value();
  // A job that was accepted keeps its place in the queue while its partition is away, since an
  // administrator may only be about to create it again.
  const bool waits_for_partition =
      verdict.partition_missing && kube::is_true(status.conditions, kube::kAccepted);
  // The fates of the tasks of an array are not forgotten.
  const bool has_begun = allocated || job.task || (job.array && status.array);
  if (!verdict.request && !has_begun && !waits_for_partition) {
    return std::nullopt;  // judged again by the loop
  }

  // A job that runs goes on, whatever its spec would be worth today.
  sched::JobRequest request = verdict.request ? std::move(*verdict.request)
                                              : plain_request(*job.object, job.id, submit_time);
  // The user may have changed the limit while there was no leader: the loop sends that later.
  if (allocated && status.observed) request.time_limit = status.observed->time_limit;
  Predecessors predecessors = find_predecessors(jobs_, job);
  request.dependency = std::move(predecessors.dependency);
  std::ranges::copy(predecessors.known, std::back_inserter(known));
  status.dependency = shown_terms(*job.object, request.dependency, status.dependency);
  if (job.array) wishes_.restore_all(job, request.array->tasks);
  sched::JobFacts restored = sched::JobFacts::of(std::move(request));
  if (job.array) restored.array = restored_array(*job.array);
  restored.terms = stored_terms(job.object->spec, status);
  restored.priority = stored_priority(
      status, *restored.request, job.task ? jobs_.array_of(job).wishes->request.get() : nullptr);
  restored.has_begun = status.starts.value_or(0) > 0;
  restored.restarts = static_cast<int>(status.restarts.value_or(0));
  restored.node_failures = static_cast<int>(status.node_failures.value_or(0));
  restore_retry(status, restored);
  // A hold by the system is in no spec, so it comes from the status alone.
  if (status.held) {
    // A reason that this version does not know still holds the job: letting it run would be the
    // worse error.
    const auto reason = parse_reason(status.held->reason).value_or(sched::Reason::kJobHeldAdmin);
    restored.held.set(sched::Holds::to_store(reason).value_or(sched::HoldBy::kAdmin));
  }
  if (job.task) share_request(jobs_.array_of(job), restored);
  restored.eligible_time = status.eligible_time.value_or(base::Instant{});
  if (!allocated) {
    // A requeue delay that was running goes on. A begin time is in the request.
    if (restored.eligible_time > now_ && status.eligible_time != restored.request->begin_time) {
      restored.not_before = status.eligible_time;
    }
    restore_claim(job, restored);
    forget_plan(job);
  } else {
    restore_allocated(job, restored);
  }
  // No scheduler has heard of a suspension that waits for agents, even if the job is ready.
  wishes_.restore(job, restored.request,
                  allocated ? restored.user_suspended : restored.request->suspend);
  return restored;
}

// The plan is made again. The stored one is written over unless the new one says the same.
void ControlLoop::forget_plan(JobRecord& job) {
  if (!job.wanted().expected_start_time) return;
  jobs_.change(job, WriteUrgency::kInforms, [](kube::JobStatus& wanted) {
    wanted.expected_start_time.reset();
    wanted.planned_nodes.clear();
  });
}

// Fills in what a job with nodes has: its allocation, its times, whether it is ready, suspended or
// ending.
void ControlLoop::restore_allocated(JobRecord& job, sched::JobFacts& restored) {
  const kube::JobStatus& status = job.wanted();
  auto decoded = decode_allocation(*status.allocation, nodes_by_name());
  if (!decoded.ok()) {
    report_.warn("allocation cannot be read",
                 job_fields(job, {{"error", decoded.error().message}}));
    // The job stays known, without nodes: its pods exist, and its end must still be decided.
    decoded = DecodedAllocation{};
  }
  restored.allocation = std::move(decoded->allocation);
  restored.partition = scheduler_.known_partition(status.partition);
  restored.state = status.state == kube::JobState::kSuspended ? sched::JobState::kSuspended
                                                              : sched::JobState::kRunning;
  restored.time_limit = status.observed ? status.time_limit : restored.request->time_limit;
  restored.ready = kube::is_true(status.conditions, kube::kReady);
  restored.start_time = restored.ready ? status.start_time : std::nullopt;
  restored.allocated_at =
      (restored.ready ? status.start_time : starting_since(status)).value_or(now_);
  if (status.run_time) {
    restored.clock.run = status.run_time->elapsed;
    // Run time goes on from that instant by the published timetables, so nothing of the time
    // without a leader is lost.
    restored.clock.as_of = status.run_time->as_of;
  } else {
    restored.clock.as_of = restored.start_time.value_or(now_);
  }
  // Only a job that was ready has one.
  if (status.suspend_time) restored.clock.suspended = status.suspend_time->elapsed;
  restored.user_suspended = restored.state == sched::JobState::kSuspended &&
                            status.reason == reason_name(sched::Reason::kUser);
  restore_ending(job, restored);
  // Pods of the start are known by their names, which follow from the slots.
  gangs_.take_slots(job);
}

// An ending is stored before the first pod is deleted, so a crash in between leaves pods that run
// and an ending that says they must not. The scheduler gets the verdict, and the loop deletes
// them.
void ControlLoop::restore_ending(JobRecord& job, sched::JobFacts& restored) {
  const auto& ending = job.wanted().ending;
  if (!ending) return;
  gangs_.restore_ending(job, *ending);
  // To the scheduler it is a start like any other until its pods are gone.
  if (job.gang->undo) return;
  sched::Ending& restored_ending = restored.ending.emplace();
  restored_ending.exit_code = restored.exit_code = ending->exit_code.value_or(0);
  restored_ending.verdict = decided_verdict(ending->verdict);
  restored_ending.final_state =
      restored_ending.verdict ? sched::final_state_of(*restored_ending.verdict)
                              : own_verdict(ending->verdict).value_or(sched::JobState::kCancelled);
  restored_ending.node_failed = ending->reason == kube::kLostMember &&
                                restored_ending.verdict == sched::EndingVerdict::kRequeue;
  // The instant that was promised, even if it has passed: the grace time is not granted twice. The
  // end of the grace time was stored with the time between SIGTERM and SIGKILL.
  if (restored_ending.verdict && ending->grace_end) {
    restored_ending.grace_end = *ending->grace_end - policy_.configuration().cluster.kill_wait;
  }
  // The preemptor; its UID names the Job, its number the job of the scheduler. If it is gone, the
  // victim ends all the same.
  if (!ending->by) return;
  const JobRecord* found = jobs_.find(ending->by->uid);
  if (found != nullptr && found->id.number() != 0) restored_ending.preemptor = found->id;
}

// A node that is gone by now refuses nothing.
void ControlLoop::restore_retry(const kube::JobStatus& status, sched::JobFacts& restored) const {
  if (!status.retry) return;
  sched::Retry& retry = restored.retry;
  retry.at = status.retry->at.value_or(base::Instant{});
  if (const auto names = slurm::expand_hostlist(status.retry->avoid_nodes); names.ok()) {
    for (const std::string& name : *names) {
      if (const auto node = scheduler_.names().find_node(name)) retry.nodes.push_back(*node);
    }
  }
  retry.nodes_until = status.retry->avoid_until.value_or(base::Instant{});
}

// A claim is stored before its victims end (architecture.md 3, commit point 4). Without it a new
// leader would give the nodes that they free to whichever job is first in the queue.
void ControlLoop::restore_claim(const JobRecord& job, sched::JobFacts& restored) const {
  const auto& claim = job.wanted().claim;
  if (!claim) return;
  const auto names = slurm::expand_hostlist(claim->hostlist);
  const auto cores = parse_cores(claim->cores);
  // A claim that cannot be read is left out: the job waits in the queue like any other, and the
  // scheduler claims again.
  if (!names.ok() || !cores.ok()) return;
  sched::Allocation nodes;
  for (const std::string& name : *names) {
    const auto node = nodes_by_name()(name);
    if (!node) continue;
    sched::NodeAllocation& share = nodes.nodes.emplace_back();
    share.node = node->index;
    share.cores = claim->cores.empty() ? sched::CoreSet::first(node->cores) : *cores;
    // Only nodes and cores of a claim count; it has no tasks yet.
    share.cpus = node->cpus;
  }
  restored.claim = std::move(nodes);
  // A claim without an end is over now, and the scheduler claims again.
  restored.claim_until = claim->until.value_or(now_);
}

// Returns the job of a pod in a timetable of that instant. A job that became ready after it was in
// no rotation yet: it was listed only to keep it off beside others. A pod of an earlier start is no
// longer the job's.
std::optional<sched::JobId> ControlLoop::listed_in_rotation(const kube::TimetablePod& pod,
                                                            base::Instant as_of) {
  const JobRecord* job = jobs_.find(record_key(pod.job_uid, pod.task));
  if (job == nullptr || !job->wishes->submitted || !job->is_allocated()) return std::nullopt;
  // Also of a pod that has another at its place by now, which is stored and not yet published.
  if (!job->is_of_start(pod.name)) return std::nullopt;
  const bool ready = kube::is_true(job->wanted().conditions, kube::kReady);
  if (ready && job->wanted().start_time.value_or(as_of) > as_of) return std::nullopt;
  return job->id;
}

// Returns what agents obey at this moment, so that the scheduler goes on with it and no timetable
// is rewritten because of the change of leaders.
std::vector<sched::NodePlan> ControlLoop::published_plans() {
  std::vector<sched::NodePlan> plans;
  timetables_.for_each_stored([&](const std::string& name, const kube::NodeTimetableSpec& spec) {
    const auto index = scheduler_.names().find_node(name);
    if (!index) return;
    // The instant for which the order and the run times in the table hold.
    const base::Instant as_of = spec.as_of.value_or(base::Instant{});
    auto plan =
        decode_plan(spec, *index, [&](const auto& pod) { return listed_in_rotation(pod, as_of); });
    if (!plan) return;
    // All that it lists is in no rotation (listed_in_rotation): to the scheduler nothing is
    // published there, and it would leave the table as it is, with pods that it keeps frozen. So it
    // is withdrawn, unless the scheduler wants another.
    if (plan->entries.empty() && !spec.pods.empty()) {
      plan->as_of = now_;
      plan->timetable.plan.clear();
      plan->timetable.cycle = {{}};
      timetables_.want(*plan, name, [](sched::JobId) { return std::nullopt; });
    } else {
      // The scheduler says nothing of a node whose plan is as published. But a pod may have taken
      // the place of one that is listed (Members), or may do so later.
      timetables_.want(*plan, name, [this](sched::JobId id) { return listed_job(jobs_.find(id)); });
    }
    plans.push_back(std::move(*plan));
  });
  return plans;
}

// Restores the usage that the last leader has counted (usage_keeper.h). Nothing of a run that began
// after the record has been charged, even if the record lists an earlier run of the job.
void ControlLoop::restore_usage() {
  const kube::UsageRecordSpec* record = usage_.stored();
  if (record == nullptr) return;
  sched::UsageState usage = decode_usage(*record);
  const base::Instant taken_at = record->taken_at.value_or(usage.as_of);
  // Compared by the start of the run, because the record and the statuses are written
  // independently, and a crash may fall between them.
  const auto began_since = [&](const kube::JobStatus& status) {
    const std::optional<base::Instant> began = run_began(status);
    return !began || *began >= taken_at;
  };
  std::map<sched::JobId, base::Duration> charged;
  for (const sched::JobCharged& each : usage.jobs) charged[each.job] = each.run;
  // Jobs that have ended since the record was taken: their last run time is charged now, as far as
  // it was not before. `listed` is what the record has charged of that run.
  std::vector<sched::EndedJob> ended;
  jobs_.for_each_ended([&](const kube::Job& job) {
    const auto listed = charged.find(sched::JobId{job.status.job_id.value_or(0)});
    const bool is_new = began_since(job.status);
    // A short life has its start by a node's clock, its end never.
    const bool had_ended = job.status.end_time && *job.status.end_time <= taken_at;
    if (listed == charged.end() && (!is_new || had_ended)) return;
    auto one = ended_job(job);
    if (!one) return;
    if (!is_new) one->charged = listed->second;
    ended.push_back(std::move(*one));
  });
  // Running jobs whose run began after the record: the entry is about a run before, and taking it
  // off the new one would let the job run uncharged for that long.
  std::erase_if(usage.jobs, [&](const sched::JobCharged& each) {
    const JobRecord* job = jobs_.peek(each.job);
    return job != nullptr && job->is_allocated() && began_since(job->wanted());
  });
  scheduler_.restore_usage(usage, ended);
}

std::optional<sched::EndedJob> ControlLoop::ended_job(const kube::Job& job) {
  const kube::JobStatus& status = job.status;
  if (!status.allocation || !status.run_time || !status.job_id) return std::nullopt;
  auto decoded = decode_allocation(*status.allocation, nodes_by_name());
  if (!decoded.ok()) return std::nullopt;
  return sched::EndedJob{.request = plain_request(job, sched::JobId{*status.job_id},
                                                  status.submit_time.value_or(now_)),
                         .partition = scheduler_.known_partition(status.partition),
                         .allocation = std::move(decoded->allocation),
                         .run = status.run_time->elapsed,
                         .charged = {}};
}

// Adds to run times what nodes have not sliced since the status was stored, where such time counts.
// A job runs on several nodes; the one on which it ran longest counts.
void ControlLoop::restore_unsliced() {
  const UnslicedTime::Sources sources = run_time_sources();
  std::map<std::string, base::Duration> more;  // by UID; of the node where it is longest
  for (const std::string& name : unsliced_.nodes()) {
    const auto published = timetables_.stored(name);
    for (const std::string& uid : nodes_.jobs_on(name)) {
      const JobRecord* job = jobs_.find(uid);
      if (job == nullptr || published == nullptr) continue;
      base::Duration& longest = more[uid];
      longest = std::max(longest,
                         missed_before(nodes_.table(name), *published, uid, job->wanted(), now_));
    }
  }
  for (const auto& [uid, time] : more) {
    if (time > base::Duration{0} && sources.run_time(uid)) sources.ran(uid, time);
  }
}

// Their pods are looked at later. Their runs since the leader before has stored their times are
// counted then.
void ControlLoop::restore_never_frozen() {
  jobs_.for_each_unfinished([this](const JobRecord& job) {
    const kube::JobStatus& status = job.wanted();
    if (!job.is_allocated() || !kube::is_true(status.conditions, kube::kNeverFrozen)) return;
    if (status.run_time) unsliced_.restore_job(job.uid, *status.run_time);
  });
}

}  // namespace control
