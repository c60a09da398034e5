// The conclusions of a replay beyond the recording. A recording is made of what slurmctld logs
// and what samples show: it shows which jobs start and end, but not the phase of its threads, nor
// passes that start nothing.
#include "scheduler/replay/replay_engine.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "scheduler/preempt/rules.h"
#include "scheduler/replay/replay.h"

namespace sched {
namespace {

// Returns how long slurmctld's threads have run when a recording begins. slurmctld itself is 1.5 s
// old, 2.45 s with accounting, or where jobs take turns is started soon before the first slice;
// with accounting its threads begin 0.6 s later.
base::Duration age_of_slurmctld(const Cluster& cluster) {
  using std::chrono::milliseconds;
  const ClusterParameters& parameters = cluster.parameters();
  const bool has_accounting = parameters.preempt_type == PreemptType::kQos;
  if (!parameters.gang) return milliseconds{has_accounting ? 1850 : 1500};
  return parameters.time_slice + milliseconds{has_accounting ? 100 : 700};
}

// Without grace times a pass that starts nothing leaves nothing behind, and need not be made up.
bool has_grace_times(const Cluster& cluster) {
  return std::ranges::any_of(cluster.qos(),
                             [](const QosConfig& qos) { return qos.grace_time.count() > 0; }) ||
         std::ranges::any_of(cluster.partitions(), [&](PartitionIndex each) {
           return cluster.partition(each).config.grace_time.count() > 0;
         });
}

// Whether slurmctld's check of time limits, each 30 s, is made about now.
bool is_limit_check(const Cluster& cluster, base::Instant now) {
  constexpr base::Duration kInterval = std::chrono::seconds{30};
  constexpr base::Duration kNear = std::chrono::milliseconds{700};
  const base::Instant since = now + age_of_slurmctld(cluster) + kNear;
  return since - base::slot_begin(base::slot_of(since, kInterval), kInterval) <= 2 * kNear;
}

}  // namespace

Scheduler make_replay(const Options& options) {
  return Scheduler{std::make_unique<ReplayEngine>(options)};
}

ReplayEngine::ReplayEngine(const Options& options)
    : Engine{options,
             [](const Cluster& cluster, JobBooks& books, gang::TurnEvents& events) {
               return std::make_unique<gang::ToldTurns>(cluster, books, events);
             },
             false} {}

// Slices that follow each other change the jobs' records once, when something else comes.
void ReplayEngine::step(base::Instant now, const Event& event) {
  CHECK(now >= now_, std::to_string(base::micros_since_epoch(now)));
  make_untold_pass(now, event);
  turns_->go_to(now, false);
  now_ = now;
  const bool is_slice = std::holds_alternative<SliceEnd>(event) && !cluster_.has_changes() &&
                        topology_version_ == cluster_.topology_version();
  if (!is_slice || is_something_due()) turns_->project();
  if (!std::holds_alternative<NodeUpdate>(event) && !std::holds_alternative<NodeRemove>(event)) {
    settle();
    end_periods();
  }
  Engine::step(now, event);
  note_for_passes(event);
}

// A timer, or a period of the priorities.
bool ReplayEngine::is_something_due() const {
  const auto is_due = [this](const std::optional<base::Instant>& at) { return at && *at <= now_; };
  return is_due(admission_.next_due()) || is_due(dependencies_.next_due()) ||
         is_due(priorities_.next_due()) ||
         (!grace_timers_.empty() && grace_timers_.begin()->first <= now_);
}

// At their instants, since there are no wakes.
void ReplayEngine::end_periods() {
  while (const auto due = priorities_.next_due()) {
    if (*due > now_) return;
    end_period(*due);
    finish_priorities();
  }
}

// A recording says itself when Slurm made a pass and of which kind. sched/builtin has no backfill:
// its second thread only estimates starts (8.3).
void ReplayEngine::on(const Pass& event) {
  // A recording tells the check as a pass. slurmctld makes both in one round of its loop, the check
  // first, and a true pass only if one is wanted; it does not see the nodes yet that the check
  // makes free. The thread of sched/builtin that estimates starts ends no job.
  const bool only_estimates =
      !event.main && cluster_.parameters().scheduler == SchedulerType::kBuiltin;
  if (!only_estimates && end_noticed() && !pass_wanted_since_) return;
  if (event.main) pass_.run(now_, std::nullopt);
  // Slurm's FIFO asks each job about its dependency when it comes to it (3.3), so one that waits
  // for a job that has just started may start in the same pass.
  while (event.main && is_fifo(cluster_) && dependencies_.has_changed()) {
    settle_dependencies();
    pass_.run(now_, std::nullopt);
  }
  if (!event.backfill || (event.main && is_between_backfills())) return;
  last_backfill_ = now_;
  // In a recording a pass is one input, so all its steps are made at once.
  const auto run = [&](auto& pass) {
    pass.begin(now_);
    while (!pass.step(now_, std::numeric_limits<int>::max())) {
    }
  };
  if (cluster_.parameters().scheduler == SchedulerType::kBuiltin) {
    run(estimates_);
  } else {
    run(backfill_);
  }
}

void ReplayEngine::on(const SliceEnd&) {
  turns().end_slice();
}

// 1. A recording has the exit code of a victim, and not whether it ended in its grace time (7.8) or
//    after it.
// 2. A victim under notice ends by itself. Its end was moved to the end of its grace time, so after
//    that it is over its time.
void ReplayEngine::on(const JobGone& event) {
  JobGone gone = event;
  Job* const job = books_.find(event.job);
  if (job != nullptr && job->allocated()) {
    if (job->ending) {
      victim_gone_at_ = now_;
      gone.verdict = job->ending->final_state;
    }
    const ClusterParameters& parameters = cluster_.parameters();
    const auto notice = std::exchange(job->replay.notice, std::nullopt);
    const bool is_late = !job->ending && notice &&
                         whole_second(parameters, notice->until) < whole_second(parameters, now_);
    if (is_late && gone.verdict == JobState::kCompleted) gone.verdict = JobState::kTimeout;
  }
  Engine::on(gone);
}

// A recorded job runs from its start on.
void ReplayEngine::started(Job& job) {
  become_ready(job);
}

// R6.3a: also a job that runs, which gets no turns then.
void ReplayEngine::hold(Job& job, bool by_admin, bool with_array) {
  if (job.pending()) return Engine::hold(job, by_admin, with_array);
  turns().set_held(job, true);
  job.held.set(by_admin ? HoldBy::kAdmin : HoldBy::kUser);
}

void ReplayEngine::release(Job& job) {
  if (!job.held) return release_unheld(job);
  Engine::release(job);
}

void ReplayEngine::end_holds(Job& job) {
  if (!job.pending()) turns().set_held(job, false);
  Engine::end_holds(job);
  if (!has(&Quirks::release_ends_suspends)) return;
  books_.change_request(job, [](JobRequest& request) { request.suspend = false; });
  take_back(job, {HoldBy::kSuspend});
}

// With quirks alone: a job that its user suspended while the gang had it suspended (T11) has no
// mark but its priority 0, and gets its turns again.
void ReplayEngine::release_unheld(Job& job) {
  if (job.pending()) return has(&Quirks::release_reorders) ? order_anew(job) : void();
  if (!has(&Quirks::release_ends_suspends)) return;
  if (!job.user_suspended || job.cores_released) return;
  turns().unhold(job);
}

// 13.2 as recorded: to release a waiting job that is not held gives it a priority again, the lowest
// so far under `basic`, and takes its nice value and the priority that it was given.
void ReplayEngine::order_anew(Job& job) {
  admission_.withdraw(job);
  books_.change_request(job, [](JobRequest& request) {
    request.nice = 0;
    request.priority.reset();
  });
  job.priority = priorities_.next_basic(*job.request);
  priorities_.set(job, now_);
  admission_.admit(job, now_);
}

// T11: a job that the gang has suspended keeps its cores and loses its turns alone.
void ReplayEngine::suspend(Job& job) {
  const bool stands = job.suspended() && !job.user_suspended && !job.completing();
  if (!stands || !turns().hold(job)) return Engine::suspend(job);
  books_.change_request(job, [](JobRequest& request) { request.suspend = true; });
  set_reason(job, Reason::kUser);
}

// T11: a job that kept its cores waits for its next turn. Slurm does not ask for room (recording
// manual_suspend_linear_nogang).
void ReplayEngine::resume(Job& job) {
  if (job.pending()) return Engine::resume(job);
  books_.change_request(job, [](JobRequest& request) { request.suspend = false; });
  if (has(&Quirks::resume_runs_over_others)) return resume_over_others(job);
  if (!job.user_suspended || job.completing()) return;
  if (!job.cores_released) return turns().unhold(job);
  books_.resume_by_user(job, true);
  go_on(job);
}

// P3: the job runs from now on, also one that the gang has suspended, and over others; the gang
// takes it for suspended until its turn comes.
void ReplayEngine::resume_over_others(Job& job) {
  if (!job.suspended() || job.completing()) return;
  turns().resume_at_once(job, job.user_suspended || static_cast<bool>(job.held));
  job.held = Holds{};
  if (job.cores_released) {
    books_.resume_by_user(job, true);
  } else {
    if (job.user_suspended) books_.unhold_by_user(job);
    books_.resume(job);
    books_.changed();
  }
  set_reason(job, Reason::kNone);
}

void ReplayEngine::preempt_for(Job& preemptor, NeedsVictims needs) {
  std::erase_if(needs.victims, [&](const Candidate& candidate) {
    if (!candidate.must_end()) return false;
    Job& victim = *books_.allocated().at(candidate.job->table_order);
    if (!only_gets_notice(victim)) return false;
    if (!victim.replay.notice) {
      const base::Instant end = now_ + preempt::grace_time(cluster_, victim);
      victim.replay.notice = Job::Replay::Notice{.until = end, .preemptor = preemptor.id};
    }
    return true;
  });
  if (has(&Quirks::fifo_passes_preemptors_over) && is_fifo(cluster_)) {
    preemptor.replay.passed_over_until = next_estimates();  // P21
  }
  Engine::preempt_for(preemptor, std::move(needs));
}

// P14: nothing is kept for it; it only chooses no further victims meanwhile.
void ReplayEngine::keep_nodes(Job& preemptor, Allocation nodes, base::Instant until) {
  if (!has(&Quirks::preemptor_claims_nothing)) {
    return Engine::keep_nodes(preemptor, std::move(nodes), until);
  }
  const ClusterParameters& parameters = cluster_.parameters();
  preemptor.replay.preempts_until = now_ + parameters.kill_wait + parameters.message_timeout;
}

base::Duration ReplayEngine::grace_time(const Job& victim) const {
  return victim.replay.notice ? base::Duration{0} : Engine::grace_time(victim);
}

// Returns when the thread of sched/builtin that estimates starts runs next: on a grid that begins
// with slurmctld, not with the clock.
base::Instant ReplayEngine::next_estimates() const {
  const base::Duration interval = estimates_interval(cluster_.parameters());
  const base::Duration age = age_of_slurmctld(cluster_);
  return base::slot_begin(base::slot_of(now_ + age, interval) + 1, interval) - age;
}

// From when on a job that is requeued now may start. Slurm counts whole seconds of its clock, and
// one more (R7.45), which a recording without the clock cannot tell.
base::Instant ReplayEngine::not_before_again() const {
  const ClusterParameters& parameters = cluster_.parameters();
  const base::Instant at = Engine::not_before_again();
  if (!parameters.recorded_clock) return at;
  return whole_second(parameters, at) + std::chrono::seconds{1};
}

// 7.8 as recorded. The victim is sent SIGTERM and its end moves to the end of its grace time, of
// which no recording says anything. It is ended when, after that, a pass chooses it again, for
// another preemptor, or the check of time limits comes by. So where a pass at the time of that
// check chooses it for the first time, and none is wanted, the pass is the check, and the one that
// chose it before is not recorded: it ends now.
bool ReplayEngine::only_gets_notice(const Job& victim) const {
  if (!has(&Quirks::grace_is_a_notice) || victim.ending) return false;
  if (victim.replay.notice) return now_ < victim.replay.notice->until;
  return preempt::grace_time(cluster_, victim).count() > 0 &&
         (pass_wanted_since_ || !is_limit_check(cluster_, now_));
}

// The jobs are collected first, since endings change the books that are walked over.
bool ReplayEngine::end_noticed() {
  if (!has(&Quirks::grace_is_a_notice) || !is_limit_check(cluster_, now_)) return false;
  std::vector<Job*> over;
  for (const auto& [order, job] : books_.allocated()) {
    if (job->replay.notice && job->replay.notice->until <= now_ && !job->ending)
      over.push_back(job);
  }
  for (Job* const job : over) must_end(*job, job->replay.notice->preemptor);
  return !over.empty();
}

// A recording has a pass that started nothing only if the reason of a job shows it, and does not
// say its kind. The backfill rests for bf_interval.
bool ReplayEngine::is_between_backfills() const {
  constexpr base::Duration kNear = std::chrono::milliseconds{50};
  return cluster_.parameters().is_recording && last_backfill_ &&
         now_ + kNear < *last_backfill_ + cluster_.parameters().backfill.interval;
}

// A pass that starts nothing leaves no trace, but it may have chosen victims and begun their grace
// times. Slurm makes one 3 s after the last one if something has changed, within a second, and at
// once when the processes of a job that it has ended are gone.
void ReplayEngine::make_untold_pass(base::Instant now, const Event& event) {
  constexpr base::Duration kBetween = std::chrono::milliseconds{3020};
  constexpr base::Duration kLate = std::chrono::seconds{1}, kAtOnce = std::chrono::milliseconds{60};
  if (!pass_wanted_since_ || !has(&Quirks::grace_is_a_notice)) return;
  if (!has_grace_times(cluster_)) return;
  if (const auto at = std::exchange(victim_gone_at_, std::nullopt)) {
    const bool is_told = std::holds_alternative<Pass>(event) && now - *at < kAtOnce;
    if (!is_told) run_untold_pass(*at);
    return;
  }
  const base::Instant at = std::max(*pass_wanted_since_, last_pass_ + kBetween);
  if (at + kLate < now) run_untold_pass(at);
}

// If the pass would have started or ended a job, Slurm did not: something was late, and the pass
// goes no further.
void ReplayEngine::run_untold_pass(base::Instant at) {
  turns_->go_to(at, false);
  turns_->project();
  now_ = at;
  settle();
  fire_timers();
  in_untold_pass_ = true;
  pass_.run(now_, std::nullopt);
  in_untold_pass_ = false;
  note_pass();
}

void ReplayEngine::note_pass() {
  last_pass_ = now_;
  pass_wanted_since_.reset();
}

// Slurm wants a pass after these events (3.1). A told pass is the one that was wanted.
void ReplayEngine::note_for_passes(const Event& event) {
  if (std::holds_alternative<Pass>(event)) {
    note_pass();
  } else if (std::holds_alternative<Submit>(event) || std::holds_alternative<JobGone>(event) ||
             std::holds_alternative<Release>(event)) {
    if (!pass_wanted_since_) pass_wanted_since_ = now_;
  }
}

// In a pass that is made up: had it started a job, the recording would tell the pass.
bool ReplayEngine::may_start(const Job& /*job*/) {
  return !in_untold_pass_;
}

// For the same reason such a pass ends no victim. It may only give notice, of which a recording
// shows nothing.
bool ReplayEngine::may_preempt(const NeedsVictims& needs) {
  return !in_untold_pass_ || std::ranges::all_of(needs.victims, [&](const Candidate& candidate) {
    return !candidate.must_end() ||
           only_gets_notice(*books_.allocated().at(candidate.job->table_order));
  });
}

}  // namespace sched
