#include "operator/loop/control_loop.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "api/records_lease.h"
#include "base/check.h"
#include "operator/jobs/job_report.h"
#include "operator/jobs/status_after.h"

namespace control {
namespace {

// A reconciliation with more rounds runs in circles, which is a bug.
constexpr int kReconcileRoundsMax = 10'000;
// The lag looks at each node that is behind, so it is not counted in each step, and the more seldom
// the more there are.
constexpr base::Duration kLagEvery = std::chrono::seconds{1};
constexpr base::Duration kLagEveryOfEach = std::chrono::milliseconds{1};
// A clock that was set by more is not followed. Beyond what NTP corrects on a machine that runs.
constexpr base::Duration kClockStepMax = std::chrono::minutes{1};

}  // namespace

ControlLoop::ControlLoop(const kube::Clock& clock, Inbox& inbox, Writer& writer,
                         TemplateBook& templates, LoopHooks hooks)
    : LoopBasis{clock, inbox, writer, std::move(hooks)},
      LoopParts{static_cast<LoopBasis&>(*this), templates} {}

base::Instant ControlLoop::step() {
  if (ended_) return base::kNever;
  // One step is one atomic look at the world. All parts see the same now_; effects that are decided
  // here are carried out by other threads after the step, and their outcomes arrive with a later
  // one.
  look_at_clocks();
  if (ended_) return base::kNever;
  ++counters_.steps;
  // 1. Take what came in: changed objects and answers to writes.
  take_inbox();
  // The first step is entered with complete lists of all kinds in the inbox, so nothing that is
  // missing here is merely not known yet.
  if (!restored_) restore();
  if (ended_) return base::kNever;
  // 2. Handle what became due.
  jobs_.fire_timers();
  unsliced_.count(now_, run_time_sources());
  (void)scheduler_.wake();
  // 3. Work out what follows. A pass at once if one is due after that: a job that may start when
  // it is submitted is never written as pending, and no pod of it is tried.
  reconcile_until_quiet();
  if (scheduler_.wake()) reconcile_until_quiet();
  take_plans();
  for (const std::string& node : timetables_.take_turned()) note_late_table(node);
  // 4. Write what must be written.
  check_turns();
  Turns::for_each([this](auto turn) { write(turn); });
  count();
  return next_due(now_);
}

void ControlLoop::take_inbox() {
  Inbox::Batch batch = inbox_.take();
  writer_.begin_step();
  // Each is among the changes as well, as it is now or as gone.
  for (const auto& pod : batch.earlier_pods) index_pod(kube::key_of(pod->metadata), pod);
  std::apply(
      [&]<typename... T>(Newest<T>&... newest) {
        (note_gone(newest, std::as_const(batch).gone_of<T>()), ...);
      },
      newest_);
  for (const auto& [uid, version] : std::as_const(batch).gone_of<kube::Job>()) {
    if (const auto number = kube::version_number(version)) unseen_jobs_.gone(uid, *number);
  }
  WatchedKinds::for_each(
      [&]<typename T>(std::type_identity<T>) { observe(std::as_const(batch).of<T>()); });
  // After the changes, so that an answer is judged by the newest objects that are known.
  for (Outcome& outcome : batch.outcomes) {
    writer_.heard_outcome();
    std::visit([this](auto& each) { answered(std::move(each)); }, outcome);
  }
}

template <typename T>
void ControlLoop::note_gone(Newest<T>& newest, const std::vector<typename Gone<T>::One>& gone) {
  for (const auto& one : gone) newest.saw_gone(one.uid, now_);
}

void ControlLoop::reconcile_until_quiet() {
  for (int round = 0;; ++round) {
    CHECK(round < kReconcileRoundsMax, "the operator does not settle");
    // In this order in each round: the configuration says what nodes are for, nodes what jobs may
    // have. A job may touch others (a preemptor its victims), hence the rounds.
    if (policy_.is_dirty()) decide_policy();
    tell_nodes();
    count_nodes();
    // Jobs that are touched from here on are of the next round.
    const auto touched = jobs_.take_touched();
    if (touched.empty()) return;
    for (const std::string& uid : touched) {
      // This look may end the job, or make it ready: its time is counted up to here.
      if (!unsliced_.counts_nobody()) {
        if (const JobRecord* job = jobs_.peek(uid)) count_unsliced(*job);
      }
      if (!late_.counts_nobody()) late_.count_job(uid, now_, run_time_sources());
      // A job that ended in this round may have been forgotten by another one's reconciliation.
      if (JobRecord* job = jobs_.peek(uid)) reconcile(*job);
      note_change(uid);
      // An array would copy the entries of its tasks in each round.
      if (JobRecord* job = jobs_.peek(uid); job != nullptr && !job->array) job->status.settle();
    }
  }
}

// The parts hear once per touched job, not at each place that changes it: a sum is corrected by the
// difference between what the job counted for before and counts for now.
void ControlLoop::note_change(const std::string& job_uid) {
  const JobRecord* job = jobs_.peek(job_uid);
  if (job == nullptr) return drop_job(job_uid);
  observe_job(*job, now_);
  // From now on, if it has become ready.
  if (unsliced_.observe_never_frozen(job_uid, job->gang->never_frozen)) count_unsliced(*job);
}

// The life of a job, as far as it has come. `job` may be gone afterwards.
void ControlLoop::reconcile(JobRecord& job) {
  if (Forecasts::is_question(job)) return foretell(job);
  // 1. Follow the wishes of its user.
  if (job.deleted) {
    // The object is gone; its pods go by garbage collection as well, but their nodes must not be
    // given away before they are.
    // An array goes when its tasks have gone.
    const bool has_tasks = job.array && !job.array->tasks().empty();
    if ((!job.is_allocated() || !job.wishes->submitted) && !has_tasks) {
      pod_writes_.end_pods(job, std::nullopt);
      if (!pod_writes_.has_pods_left(job) && job.launch->creating.empty()) forget(job);
      return;
    }
    wishes_.cancel(job);
  } else if (job.is_final() && job.task) {
    return end_task(job);
  } else if (job.is_final()) {
    jobs_.end(job);
    // The scheduler is done with it; its number stays in the object.
    if (job.wishes->submitted) wishes_.forget(job);
    // put_away may drop the record, and note_change then finds none: these parts hear of the end
    // here.
    wishes_.heed_finished(job);
    time_to_live_.observe(*job.object, job.wanted());
    managed_.observe_job(job);
    gated_.observe_job(job);
    leave_orphans(job);
    if (job.array) pod_writes_.delete_old_pods(job);
    if (job.array && !job.deleting->empty()) return;  // until they are gone
    (void)jobs_.put_away(job);
    return;
  } else {
    wishes_.heed(job);
    if (job.array) pod_writes_.delete_old_pods(job);
    if (job.array) end_array(job);
  }
  // 2. Follow its pods. They are neither made nor ended before the commit point is stored.
  if (!job.wishes->submitted || job.is_final()) return;
  pod_writes_.end_stale_pods(job);
  if (!job.is_allocated()) return;
  // The gate opens when the job's last commit point is stored. Before that a crash would leave pods
  // that were killed for an ending that no status knows.
  if (gate_.may_delete_pods(job.uid)) gangs_.run(job);
}

// It has neither number nor pods, and the scheduler never hears of it. `job` may be gone
// afterwards.
void ControlLoop::foretell(JobRecord& job) {
  if (!job.deleted) return forecasts_.heed(job);
  forget(job);
}

// Stores the end of a task as an outcome of its array, after which nothing else is kept of it.
// `task` may be gone afterwards.
void ControlLoop::end_task(JobRecord& task) {
  jobs_.end(task);
  if (task.wishes->submitted) wishes_.forget(task);
  leave_orphans(task);
  const bool is_stored =
      task.status.urgency() == WriteUrgency::kClean && !task.status.is_in_flight();
  if (!is_stored || task.launch->launching || !task.launch->creating.empty()) return;
  // The pods that stay need neither. A task that was canceled while it waited again has no slots.
  const bool may_have_some = task.start->slots.empty() ? task.wanted().starts.value_or(0) > 0
                                                       : task.start->slots.size() > 1;
  if (task.object->spec.batch && may_have_some) {
    writer_.submit(DeleteStepObjects{task.key, task.uid, task.wanted().starts.value_or(0)});
  }
  pod_writes_.keep_pods(jobs_.array_of(task), task);
  jobs_.forget(task);
}

// An array ends when the ends of all its tasks are stored.
void ControlLoop::end_array(JobRecord& array) {
  ArrayRecord& record = *array.array;
  if (!array.wishes->submitted || array.is_final() || record.has_rest() || !record.tasks().empty())
    return;
  if (array.status.urgency() != WriteUrgency::kClean || array.status.is_in_flight()) return;
  // The end of what never had a record is stored first.
  if (record.outcomes().ended() < record.wishes->all.size()) {
    return jobs_.mark(array, WriteUrgency::kUrgent);
  }
  const bool has_failed = record.outcomes().count(kube::TaskOutcome::kFailed) > 0;
  const bool was_canceled = record.outcomes().count(kube::TaskOutcome::kCancelled) > 0;
  const sched::StateChange end{.job = array.id,
                               .state = has_failed     ? sched::JobState::kFailed
                                        : was_canceled ? sched::JobState::kCancelled
                                                       : sched::JobState::kCompleted,
                               .reason = sched::Reason::kNone,
                               .exit_code = record.exit_code(),
                               .restarts = static_cast<int>(array.wanted().restarts.value_or(0))};
  jobs_.apply(array, end, {.now = now_, .generation = array.object->metadata.generation});
  report_.log("array ended", job_fields(array, {{"tasks", array.wanted().array->summary}}));
}

// Each part that has writes stands in the list of turns.
void ControlLoop::check_turns() {
  each([](auto& part) {
    using Part = std::remove_cvref_t<decltype(part)>;
    if constexpr (requires { &Part::due; }) static_assert(Turns::kContains<Part>, "has no turn");
  });
}

void ControlLoop::write(std::type_identity<StatusPublisher>) {
  writer_.submit_all(statuses_.due(now_, term_, writer_.room()));
}

void ControlLoop::write(std::type_identity<TimetablePublisher>) {
  writer_.submit_all(timetables_.due(now_, term_, writer_.room()));
  // Pods may have waited for a timetable that is no longer wanted.
  for (const std::string& node : timetables_.take_settled()) {
    for (const std::string& uid : nodes_.jobs_on(node)) jobs_.touch(uid);
  }
}

// The predicate says whether the end of a job is stored in its own status: until then the usage
// record must list the job, or a crash now would lose its last run.
void ControlLoop::write(std::type_identity<UsageKeeper>) {
  writer_.submit_if(scheduler_.due_usage(usage_, [this](sched::JobId id) {
    const JobRecord* job = jobs_.peek(id);
    return job == nullptr || !job->status.is_uncommitted();
  }));
}

// Job numbers are reserved in the status of the SchedulerConfig object, so the write needs the
// version of the newest one; without the object the write creates it.
void ControlLoop::write(std::type_identity<JobNumbers>) {
  const auto* config =
      policy_.find_status<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName});
  const bool exists = config != nullptr && config->exists();
  writer_.submit_if(numbers_.due(now_, exists ? &config->version() : nullptr));
}

// Pods may be created once their timetables are found to be written.
void ControlLoop::write(std::type_identity<PodWrites>) {
  reconcile_until_quiet();
  writer_.submit_all(pod_writes_.due(writer_.room()));
}

void ControlLoop::write(std::type_identity<BaseStates>) {
  writer_.submit_all(statuses_.due_rest(now_, term_, writer_.room()));
}

void ControlLoop::write(std::type_identity<PodIndex>) {
  for (const kube::ObjectKey& key : pods_.take_unseen(now_, writer_.room())) {
    writer_.submit(ReadPod{key, pods_.find(key)->pod->metadata.uid});
  }
}

void ControlLoop::write(std::type_identity<OrphanPods>) {
  writer_.submit_all(orphans_.due(now_, longest_grace(policy_.configuration()), writer_.room()));
}

void ControlLoop::write(std::type_identity<OldTimetables>) {
  writer_.submit_all(timetables_.due_deletions(now_, writer_.room()));
}

void ControlLoop::write(std::type_identity<NodeTaints>) {
  const auto find_node = [this](const std::string& name) { return nodes_.object(name); };
  writer_.submit_all(taints_.due(now_, find_node, writer_.room()));
}

void ControlLoop::write(std::type_identity<InformingPolicies>) {
  run_times_.refresh(jobs_, scheduler_, now_,
                     [this](const JobRecord& job) { return is_listed(job); });
  queue_priorities_.refresh(jobs_, scheduler_);
  budget_.refill(now_, writes_wait());
  writer_.submit_all(statuses_.due_informing_policies(now_));
}

void ControlLoop::write(std::type_identity<PodTrials>) {
  const auto find_job = [this](const std::string& uid) { return jobs_.peek(uid); };
  auto trials = trials_.due(budget_, find_job, policy_.configuration());
  for (TryPod& trial : trials) {
    trial.options.defaults = policy_.pod_defaults(trial.partition, trial.job.ns);
  }
  writer_.submit_all(std::move(trials));
}

void ControlLoop::write(std::type_identity<SuspensionNotes>) {
  const auto pods_of = [this](const std::string& uid) -> const SuspensionNotes::Pods* {
    const JobRecord* job = jobs_.peek(uid);
    return job == nullptr ? nullptr : &*job->pods;
  };
  writer_.submit_all(notes_.due(budget_, now_, pods_of));
}

void ControlLoop::write(std::type_identity<ManagedJobs>) {
  writer_.submit_all(managed_.due(budget_, writer_.room(), now_));
}

void ControlLoop::write(std::type_identity<GatedPods>) {
  writer_.submit_all(gated_.due(budget_, writer_.room(), now_));
}

void ControlLoop::write(std::type_identity<Forecasts>) {
  writer_.submit_if(forecasts_.due());
}

void ControlLoop::write(std::type_identity<InformingJobs>) {
  writer_.submit_all(statuses_.due_informing_jobs(now_, term_));
}

void ControlLoop::write(std::type_identity<TimeToLive>) {
  if (ends_by_time_) writer_.submit_all(time_to_live_.due(now_, writer_.room()));
}

void ControlLoop::write(std::type_identity<Recorded>) {
  if (ends_by_time_) writer_.submit_if(recorded_.due_question(awaits_records(), now_));
}

bool ControlLoop::awaits_records() const {
  return time_to_live_.waiting_count() > 0 || task_ends_.awaits() || unseen_jobs_.awaits();
}

void ControlLoop::count_licenses() {
  const sched::Licenses& in_use = scheduler_.names().licenses_in_use();
  policy_.show_licenses(in_use, now_);
  counters_.licenses.clear();
  for (const auto& [name, total] : policy_.configuration().cluster.licenses) {
    counters_.licenses[name] = {.total = total, .in_use = sched::licenses_of(in_use, name)};
  }
}

void ControlLoop::count() {
  show_counts();
  count_licenses();
  counters_.nodes_known = nodes_.size();
  counters_.backfilled_starts = scheduler_.names().backfilled_starts();
  counters_.jobs_finished = jobs_.put_away_count();
  counters_.jobs_unrecorded = static_cast<std::int64_t>(time_to_live_.waiting_count());
  counters_.unrecorded_deletes = time_to_live_.unrecorded_count();
  counters_.unseen_jobs = unseen_jobs_.count();
  const base::Duration of_all = lag_.behind_count() * kLagEveryOfEach;
  if (now_ - lag_taken_at_ < std::max(kLagEvery, of_all)) return;
  lag_taken_at_ = now_;
  counters_.oldest_status = statuses_.oldest(now_);
  // A node that is down obeys nothing; that is not lag.
  counters_.timetable_lag = lag_.oldest(now_, [this](const std::string& name) {
    const sched::NodeSpec* told = nodes_.told(name);
    return nodes_.needs_agent(name) && told != nullptr && told->state != sched::NodeState::kDown;
  });
}

// Another leader has written with a higher term, so this process lost its Lease without noticing
// (for example it was paused). It must not write again: the CRD refuses its statuses and timetables
// by the term anyway, but pods carry none.
void ControlLoop::be_fenced(std::int64_t by_term) {
  end("another operator leads with term " + std::to_string(by_term));
}

// Decisions since then are unknown to the list.
void ControlLoop::be_overtaken(const JobRecord& job) {
  end("the leader before this one has stored an end or the like of job " +
      kube::to_string(job.key) + " late; the next one lists again");
}

// Instants never go back, whatever the machine's clock does: for a while they stand still. A clock
// that was set far is not followed, because that is not time that has passed: jobs would be over
// their limits, or nothing would become due for hours, and turns would be published for instants
// that agents' clocks are far from. The next leader begins with the new time, if that is right
// (process.cc).
void ControlLoop::look_at_clocks() {
  const base::Instant wall = clock_.wall();
  const base::Duration monotonic = clock_.monotonic();
  const auto in_seconds = [](base::Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  };
  if (clocks_) {
    const base::Duration ahead = (wall - clocks_->first) - (monotonic - clocks_->second);
    if (ahead > kClockStepMax) end("the clock was set ahead by " + in_seconds(ahead) + " s");
  }
  if (wall + kClockStepMax < now_)
    end("the clock was set back by " + in_seconds(now_ - wall) + " s");
  clocks_ = {wall, monotonic};
  now_ = std::max(now_, wall);
}

void ControlLoop::distrust_clock() {
  ends_by_time_ = false;
  counters_.clock_trusted = false;
  scheduler_.end_nothing_by_time();
}

void ControlLoop::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  report_.warn("leads no more", {{"term", term_}, {"why", why}});
  report_.ended(why);
}

}  // namespace control
