// Replays of recordings: what they conclude of Slurm that a recording does not tell. A recording is
// made of what slurmctld logs and what samples show: it tells which jobs start and end, but not the
// phase of its threads, nor passes that start nothing.
#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/engine/engine.h"

namespace sched {
namespace {

// How long slurmctld's threads have run when a recording begins. slurmctld itself is 1.5 s
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

bool Engine::replays(bool Quirks::*quirk) const {
  return !timing_.wakes && cluster_.parameters().quirks.*quirk;
}

// When the thread of sched/builtin that estimates starts runs next: on a grid that begins with
// slurmctld, not with the clock.
base::Instant Engine::next_estimates() const {
  const base::Duration interval = estimates_interval(cluster_.parameters());
  const base::Duration age = age_of_slurmctld(cluster_);
  return base::slot_begin(base::slot_of(now_ + age, interval) + 1, interval) - age;
}

// From when on a job that is requeued now may start. Slurm counts whole seconds of its clock, and
// one more (R7.45), which a recording without the clock cannot tell.
base::Instant Engine::not_before_again() const {
  const ClusterParameters& parameters = cluster_.parameters();
  const base::Instant at = now_ + parameters.queue.requeue_delay;
  if (!parameters.recorded_clock) return at;
  return whole_second(parameters, at) + std::chrono::seconds{1};
}

// 7.8 as recorded. The victim is sent SIGTERM and its end moves to the end of its grace time, of
// which no recording says anything. It is ended when, after that, a pass chooses it again, for
// another preemptor, or the check of time limits comes by. So where a pass at the time of that
// check chooses it for the first time, and none is wanted, the pass is the check, and the one that
// chose it before is not told: it ends now.
bool Engine::only_gets_notice(const Job& victim) const {
  if (!replays(&Quirks::grace_is_a_notice) || victim.ending) return false;
  if (victim.replay.notice) return now_ < victim.replay.notice->until;
  return preempt::grace_time(cluster_, victim).count() > 0 &&
         (pass_wanted_since_ || !is_limit_check(cluster_, now_));
}

// The jobs are collected first, since endings change the books that are walked over.
bool Engine::end_noticed() {
  if (!replays(&Quirks::grace_is_a_notice) || !is_limit_check(cluster_, now_)) return false;
  std::vector<Job*> over;
  for (const auto& [order, job] : books_.allocated()) {
    if (job->replay.notice && job->replay.notice->until <= now_ && !job->ending)
      over.push_back(job);
  }
  for (Job* const job : over) must_end(*job, job->replay.notice->preemptor);
  return !over.empty();
}

// A recording tells a pass that started nothing if the reason of a job shows it, and not of which
// kind it was. The backfill rests for bf_interval.
bool Engine::is_between_backfills() const {
  constexpr base::Duration kNear = std::chrono::milliseconds{50};
  return !timing_.wakes && cluster_.parameters().is_recording && last_backfill_ &&
         now_ + kNear < *last_backfill_ + cluster_.parameters().backfill.interval;
}

// A pass that starts nothing leaves no trace, but it may have chosen victims and begun their grace
// times. Slurm makes one 3 s after the last one if something has changed, within a second, and at
// once when the processes of a job that it has ended are gone.
void Engine::make_untold_pass(base::Instant now, const Event& event) {
  constexpr base::Duration kBetween = std::chrono::milliseconds{3020};
  constexpr base::Duration kLate = std::chrono::seconds{1}, kAtOnce = std::chrono::milliseconds{60};
  if (!pass_wanted_since_ || !replays(&Quirks::grace_is_a_notice)) return;
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

}  // namespace sched
