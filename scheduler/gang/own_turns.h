// OwnTurns: the gang under the scheduler's own timing. Components say which job runs when, ahead of
// time; NodePlans cuts that into timetables. This class carries over what they say: into decisions,
// into the jobs' clocks, and into kills.
//
// A job that takes part runs by its component's projection, not by its clock's phase: its clock is
// brought up to now (charge) before the projection is replaced, and when it leaves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/gang/components.h"
#include "scheduler/gang/turns.h"
#include "scheduler/projection/node_plans.h"

namespace sched::gang {

class OwnTurns final : public Turns {
 public:
  // `publishes`: timetables are taken with take_plans(). Otherwise run(t) is projected only as far
  // as it is asked for, and take_runs() says what has been. The other arguments must outlive this
  // object.
  OwnTurns(const Cluster& cluster, JobBooks& books, TurnEvents& events, bool publishes);

  void go_to(base::Instant now, bool cluster_changes) override;
  void wake() override;
  void play() override;
  std::optional<base::Instant> next_due() override;

  void begin(const Job& job) override;
  void start(Job& job) override;
  void leave(Job& job) override;
  void charge(Job& job) override;
  void set_phase(Job& job, JobClock::Phase phase) override;
  void mark_nodes(const Job& job) override { components_.mark(job, now_); }

  void configure() override;
  void rebuild() override;
  void restore(const std::vector<NodePlan>& published) override;

  void project() override { components_.project_stale(); }
  std::optional<Turn> turn_at(const Job& job, base::Instant t) override;
  base::Duration run_time(const Job& job, base::Instant t) override;
  base::Duration suspend_time(const Job& job, base::Instant t) override;
  base::Instant when_has_run(const Job& job, base::Duration work, base::Instant until) override;
  base::Instant expected_end(const Job& job, base::Duration limit, base::Instant until) override;
  std::optional<base::Instant> earliest(const Job& job, base::Duration more) override;

  std::vector<NodePlan> take_plans(base::Instant now) override;
  std::vector<NodePlan> published() const override;
  std::vector<JobRun> take_runs() override { return std::exchange(runs_, {}); }
  std::vector<JobRun> open_runs() override;
  std::string check_invariants() override;

 private:
  void carry_over();
  bool runs_now(const Job& job);
  // Why the job does not run now.
  Reason why_stopped(const Job& job);
  // REQUIRES: the job takes part.
  base::Duration ran_between(const Job& job, base::Instant from, base::Instant to);
  void record_run(const Job& job, base::Instant until, std::vector<JobRun>& runs) const;

  const Cluster& cluster_;
  JobBooks& books_;
  TurnEvents& events_;
  const bool publishes_;
  base::Instant now_{base::Instant::min()};
  Components components_;
  NodePlans plans_;
  std::vector<JobRun> runs_;
};

}  // namespace sched::gang
