// ToldTurns: one GangLists holds all jobs, and a partition is turned as a whole when the caller
// says that a slice has ended, as Slurm does it. Recordings of Slurm are played against it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/gang/gang_lists.h"
#include "scheduler/gang/turns.h"

namespace sched::gang {

class ToldTurns final : public Turns {
 public:
  // The arguments must outlive this object.
  ToldTurns(const Cluster& cluster, JobBooks& books, TurnEvents& events)
      : cluster_{cluster}, books_{books}, events_{events} {}

  void go_to(base::Instant now, bool /*cluster_changes*/) override { now_ = now; }
  void wake() override {}
  void play() override {}
  void end_slice() override;
  std::optional<base::Instant> next_due() override { return std::nullopt; }

  void start(Job& job) override;
  void leave(Job& job) override;
  bool hold(Job& job) override;
  void unhold(Job& job) override;
  bool set_held(Job& job, bool held) override;
  void charge(Job& job) override;
  void set_phase(Job& job, JobClock::Phase phase) override { job.clock.to(phase, now_); }
  void mark_nodes(const Job& /*job*/) override {}
  void begin(const Job& /*job*/) override {}

  void configure() override {}
  void rebuild() override;
  void restore(const std::vector<NodePlan>& /*published*/) override {}

  void project() override {}
  std::optional<Turn> turn_at(const Job& /*job*/, base::Instant /*t*/) override {
    return std::nullopt;
  }
  base::Duration run_time(const Job& job, base::Instant t) override;
  base::Duration suspend_time(const Job& job, base::Instant t) override;
  base::Instant when_has_run(const Job& job, base::Duration work, base::Instant until) override;
  base::Instant expected_end(const Job& job, base::Duration limit,
                             base::Instant /*until*/) override {
    return job.clock.as_of + (limit - job.clock.run);
  }
  std::optional<base::Instant> earliest(const Job& /*job*/, base::Duration more) override {
    return now_ + more;
  }

  std::vector<NodePlan> take_plans(base::Instant /*now*/) override { return {}; }
  std::vector<JobRun> take_runs() override { return {}; }
  std::vector<JobRun> open_runs() override { return {}; }
  std::string check_invariants() override;

 private:
  Newcomer newcomer(const Job& job) const;
  void apply();

  const Cluster& cluster_;
  JobBooks& books_;
  TurnEvents& events_;
  base::Instant now_{base::Instant::min()};
  std::optional<GangLists> lists_;  // since the first job took part
};

}  // namespace sched::gang
