// ToldTurns: one GangLists holds all jobs, and a partition is turned as a whole when the caller
// says that a slice has ended, as Slurm does it. Recordings of Slurm are played against it.
//
// A tick decides who stops and who goes on, and writes that into a few bytes for each of these
// jobs, which lie next to each other. The jobs' own records (state, reason, clock) and the nodes'
// counters are all over the memory, and slices may follow each other; so the records are brought up
// to date when something reads them: in project() or play(), once for all ticks since.
//
// Cost: a tick O(jobs × nodes of a job), project() O(jobs that stopped or went on since).
#pragma once

#include <cstdint>
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
  void play() override { catch_up(); }
  // Ends a slice.
  void end_slice();
  std::optional<base::Instant> next_due() override { return std::nullopt; }

  void start(Job& job) override;
  void leave(Job& job) override;
  // Suspends the job for its user. Returns true if it is stopped already and is kept so, with its
  // cores (T11); false if the caller must suspend it.
  bool hold(Job& job);
  // REQUIRES: hold() returned true.
  void unhold(Job& job);
  // P3: the user of a suspended job lets it run at once, whatever its list says. `held`: it had
  // priority 0. The caller writes its state.
  void resume_at_once(Job& job, bool held);
  // R6.3a: a job that is held keeps its place and gets no turn until it is released. A turn that it
  // has goes on to its end.
  void set_held(Job& job, bool held) {
    if (job.turn.in_gang) lists_->set_held(job.id, held);
  }
  void charge(Job& job) override;
  void set_phase(Job& job, JobClock::Phase phase) override {
    catch_up();
    job.clock.to(phase, now_);
  }
  void mark_nodes(const Job& /*job*/) override {}
  void begin(const Job& /*job*/) override {}

  void configure() override {}
  void rebuild() override;
  void restore(const std::vector<NodePlan>& /*published*/) override {}
  std::vector<NodePlan> published() const override { return {}; }

  void project() override { catch_up(); }
  std::optional<Turn> turn_at(const Job& /*job*/, base::Instant /*t*/) override {
    return std::nullopt;
  }
  base::Duration run_time(const Job& job, base::Instant t) override;
  base::Duration suspend_time(const Job& job, base::Instant t) override;
  base::Instant when_has_run(const Job& job, base::Duration work, base::Instant until) override;
  base::Instant expected_end(const Job& job, base::Duration limit,
                             base::Instant /*until*/) override {
    catch_up();
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
  // Run time that the job's record does not show yet: since `first` it ran for `ran` in all until
  // `last`, the time of its last change, after which it runs or does not.
  struct Behind {
    base::Instant first, last;
    base::Duration ran{};
    bool is_behind = false;
    bool runs = false;
    Reason why = Reason::kNone;
  };

  Newcomer newcomer(const Job& job) const;
  void make_lists();
  void apply();
  void note(std::int32_t slot, bool runs, Reason why);
  void catch_up() {
    if (!slots_behind_.empty()) write_records();
  }
  void write_records();

  const Cluster& cluster_;
  JobBooks& books_;
  TurnEvents& events_;
  base::Instant now_{base::Instant::min()};
  std::optional<GangLists> lists_;  // since the first job took part
  // A job may run that the lists have stopped: one that they have killed, or that its user let run.
  bool apart_ = false;
  std::vector<Behind> behind_;  // by the job's slot in the lists
  std::vector<std::int32_t> slots_behind_;
};

}  // namespace sched::gang
