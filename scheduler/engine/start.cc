// Starts (T2), readiness, and preemption on their behalf (7.7).
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "scheduler/engine/engine.h"

namespace sched {

// The job's records stay in the queue until the pass has walked it.
void Engine::start(Job& job, PartitionIndex partition, Fits fits) {
  job.cut_limit = fits.time_limit;
  books_.begin(job, partition, std::move(fits.allocation), fits.sharing, now_);
  job.plan.reset();
  job.time_limit = job.cut_limit ? job.cut_limit : limits_.limit_of(job, partition, now_);
  job.clock = JobClock{.as_of = now_};
  job.charged = base::Duration{0};
  if (!timing_.tells_ready) become_ready(job);
}

// At a start and for a job that is restored, whose books take it in the same way.
void Engine::begun(Job& job) {
  turns_->begin(job);
}

void Engine::on(const JobReady& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || job->ready || job->ending) return;
  become_ready(*job);
}

// The gang start 6.9, and with it start time, time limit and exempt time (architecture.md 2).
void Engine::become_ready(Job& job) {
  books_.set_ready(job, now_);
  // The limit was set at the allocation. The time until the pods were ready has brought the
  // deadline nearer.
  if (job.request.deadline && job.time_limit) {
    job.time_limit = std::min(*job.time_limit, *limits_.limit_of(job, *job.partition, now_));
  }
  turns_->mark_nodes(job);
  // Its user suspended it before it was ready: it takes part when the user resumes it.
  if (job.user_suspended) return;
  // The clock runs before the gang hears of the job: start() may stop it at once.
  turns_->set_phase(job, JobClock::Phase::kRunning);
  turns_->start(job);
  limits_.arm(job, now_);
  turns_->mark_nodes(job);
}

namespace {

// How long slurmctld's threads have run when a recording begins: 1.5 s or, where jobs take turns,
// since soon before the first slice; with accounting they begin 0.6 s later.
base::Duration age_of_slurmctld(const Cluster& cluster) {
  using std::chrono::milliseconds;
  const ClusterParameters& parameters = cluster.parameters();
  if (!parameters.gang) return milliseconds{1500};
  const bool has_accounting = parameters.preempt_type == PreemptType::kQos;
  return parameters.time_slice + milliseconds{has_accounting ? 100 : 700};
}

// When the thread of sched/builtin that estimates starts runs next: on a grid that begins with
// slurmctld, not with the clock.
base::Instant next_estimates(const Cluster& cluster, base::Instant now) {
  const base::Duration interval = estimates_interval(cluster.parameters());
  const base::Duration age = age_of_slurmctld(cluster);
  return base::slot_begin(base::slot_of(now + age, interval) + 1, interval) - age;
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

// A replay of a recording, not a what-if of a slurm.conf.
bool Engine::decides_as_recorded() const {
  return !timing_.wakes && cluster_.parameters().as_recorded;
}

// 7.8 as recorded. The victim is sent SIGTERM and its end moves to the end of its grace time, of
// which no recording says anything. It is ended when, after that, a pass chooses it again, for
// another preemptor, or the check of time limits comes by. So where a pass at the time of that
// check chooses it for the first time, and none is wanted, the pass is the check, and the one that
// chose it before is not told: it ends now.
bool Engine::only_gets_notice(const Job& victim) const {
  if (!decides_as_recorded() || victim.ending) return false;
  if (victim.notice) return now_ < victim.notice->until;
  return preempt::grace_time(cluster_, victim).count() > 0 &&
         (pass_wanted_since_ || !is_limit_check(cluster_, now_));
}

// The jobs are collected first, since endings change the books that are walked over.
bool Engine::end_noticed() {
  if (!decides_as_recorded() || !is_limit_check(cluster_, now_)) return false;
  std::vector<Job*> over;
  for (const auto& [order, job] : books_.allocated()) {
    if (job->notice && job->notice->until <= now_ && !job->ending) over.push_back(job);
  }
  for (Job* const job : over) must_end(*job, job->notice->preemptor);
  return !over.empty();
}

// A pass that starts nothing leaves no trace, but it may have chosen victims and begun their grace
// times. Slurm makes one 3 s after the last one if something has changed, within a second, and at
// once when the processes of a job that it has ended are gone.
void Engine::make_untold_pass(base::Instant now, const Event& event) {
  constexpr base::Duration kBetween = std::chrono::milliseconds{3020};
  constexpr base::Duration kLate = std::chrono::seconds{1}, kAtOnce = std::chrono::milliseconds{60};
  if (!pass_wanted_since_ || !decides_as_recorded() || !has_grace_times(cluster_)) return;
  if (const auto at = std::exchange(victim_gone_at_, std::nullopt)) {
    const bool is_told = std::holds_alternative<Pass>(event) && now - *at < kAtOnce;
    if (!is_told) run_untold_pass(*at);
    return;
  }
  const base::Instant at = std::max(*pass_wanted_since_, last_pass_ + kBetween);
  if (at + kLate < now) run_untold_pass(at);
}

// If the pass would have started or ended a job, Slurm did not: something was late, and the pass goes
// no further.
void Engine::run_untold_pass(base::Instant at) {
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

void Engine::note_pass() {
  last_pass_ = now_;
  pass_wanted_since_.reset();
}

// Slurm wants a pass after these events (3.1). A told pass is the one that was wanted.
void Engine::note_for_passes(const Event& event) {
  if (std::holds_alternative<Pass>(event)) {
    note_pass();
  } else if (std::holds_alternative<Submit>(event) || std::holds_alternative<JobGone>(event) ||
             std::holds_alternative<Release>(event)) {
    if (!pass_wanted_since_) pass_wanted_since_ = now_;
  }
}

// In a pass that is made up: had it started a job, the recording would tell the pass.
bool Engine::may_start(const Job& /*job*/) {
  return !in_untold_pass_;
}

// For the same reason such a pass ends no victim. It may only give notice, of which a recording
// shows nothing.
bool Engine::may_preempt(const NeedsVictims& needs) {
  return !in_untold_pass_ || std::ranges::all_of(needs.victims, [&](const Candidate& candidate) {
    return !candidate.must_end() ||
           only_gets_notice(*books_.allocated().at(candidate.job->table_order));
  });
}

// 7.7: the claim is committed before the victims' endings, and it lasts until the last of them must
// be gone. A replay makes none.
void Engine::preempt_for(Job& preemptor, NeedsVictims needs) {
  std::vector<std::pair<Job*, PreemptMode>> victims;
  base::Instant until = now_;
  for (const Candidate& candidate : needs.victims) {
    if (!candidate.must_end()) continue;
    Job& victim = *books_.allocated().at(candidate.job->table_order);
    if (only_gets_notice(victim)) {
      if (!victim.notice) {
        const base::Instant end = now_ + preempt::grace_time(cluster_, victim);
        victim.notice = Job::Notice{.until = end, .preemptor = preemptor.id};
      }
      continue;
    }
    victims.emplace_back(&victim, candidate.mode);
    until = std::max(until, now_ + preempt::grace_time(cluster_, victim));
  }
  const ClusterParameters& parameters = cluster_.parameters();
  const base::Duration at_most = parameters.kill_wait + parameters.message_timeout;
  if (decides_as_recorded()) {
    // Nothing is kept for it (P14); it only chooses no further victims meanwhile.
    preemptor.preempts_until = now_ + at_most;
    if (is_fifo(cluster_)) preemptor.passed_over_until = next_estimates(cluster_, now_);  // P21
  } else {
    // Decided before the endings (architecture.md 3, commit point 4): otherwise a new leader would
    // find nodes coming free and no job for which they do.
    books_.set_claim(preemptor, std::move(needs.allocation), until + at_most);
  }
  for (const auto& [victim, mode] : victims) preempt(*victim, mode, preemptor.id);
}

// P7: a job that the gang kills gets its grace time like any other victim. Slurm's gang kills at
// once.
void Engine::must_end(Job& victim, std::optional<JobId> preemptor) {
  preempt(victim, preempt::effective_mode(cluster_, victim), preemptor);
}

// A job that was never going to run had no timer (TimeLimits::arm).
void Engine::resumed(Job& job) {
  if (!job.limit_timer) limits_.arm(job, now_);
}

// 7.7 steps 2a, 2c and 2d; also for victims that the gang stops (P7).
void Engine::preempt(Job& victim, PreemptMode mode, std::optional<JobId> preemptor) {
  const bool requeue = mode == PreemptMode::kRequeue && may_requeue(victim);
  const base::Duration grace =
      victim.notice ? base::Duration{0} : preempt::grace_time(cluster_, victim);
  base::Instant grace_end = now_ + grace;
  if (victim.time_limit && grace_end > now_) {  // 7.8 step 2: no later than its own end
    turns_->charge(victim);
    const base::Duration left = *victim.time_limit - turns_->run_time(victim, now_);
    grace_end = std::min(grace_end, now_ + std::max(base::Duration{0}, left));
  }
  // REQUEUE of a job that may not be requeued ends it instead (7.7 step 2d).
  begin_ending(victim,
               Ending{.final_state = requeue ? JobState::kPending : JobState::kPreempted,
                      .verdict = requeue ? EndingVerdict::kRequeue : EndingVerdict::kPreempted,
                      .grace_end = grace_end,
                      .preemptor = preemptor});
}

// The start is undone as if it had not been: no restart is counted, the submit time stays, and the
// job competes at once, except on the nodes that refused it, or after a while if no node is to
// blame.
void Engine::on(const StartRefused& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || !job->allocated() || job->ready) return;
  // It is not ready, so it is in no list, and other jobs ran as if it were not there.
  turns_->leave(*job);
  books_.end(*job, JobState::kPending);
  remove_empty_nodes();
  // Adds to the nodes that refused this job recently instead of replacing them; otherwise two full
  // nodes would be tried alternately forever.
  if (job->avoid_until <= now_) job->avoid_nodes.clear();
  for (const std::string& name : event.avoid_nodes) {
    if (const auto node = cluster_.find_node(name)) job->avoid_nodes.push_back(*node);
  }
  job->avoid_until = std::max(job->avoid_until, now_ + event.avoid_for);
  if (event.avoid_nodes.empty() && event.avoid_for.count() > 0) {
    job->not_before = now_ + event.avoid_for;
  }
  if (event.hold) job->held = Reason::kLaunchFailedRequeuedHeld;
  hold_if_suspended(*job);
  books_.return_to_queue(*job, Reason::kNone, 0);
  admission_.admit(*job, now_);
  if (!event.message.empty()) set_reason(*job, job->reason, event.message);
}

}  // namespace sched
