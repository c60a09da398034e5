// ReplayEngine: the engine of a replay (replay.h). It differs from production in three ways: passes
// and slices are inputs, some of Slurm's own decisions are taken (Quirks), and passes that a
// recording lacks, since they started nothing, are concluded from what it has.
#pragma once

#include <optional>

#include "scheduler/engine/engine.h"
#include "scheduler/replay/told_turns.h"

namespace sched {

class ReplayEngine final : public Engine {
 public:
  explicit ReplayEngine(const Options& options);

  void step(base::Instant now, const Event& event) override;
  std::optional<base::Instant> next_due() override { return std::nullopt; }

 private:
  gang::ToldTurns& turns() { return static_cast<gang::ToldTurns&>(*turns_); }
  bool has(bool Quirks::*quirk) const { return cluster_.parameters().quirks.*quirk; }
  bool is_something_due() const;
  void end_periods();

  // --- events ---
  void on(const SliceEnd& event) override;
  void on(const Pass& event) override;
  void on(const JobGone& event) override;
  void hold(Job& job, bool by_admin, bool with_array) override;
  void release(Job& job) override;
  void end_holds(Job& job) override;
  void release_unheld(Job& job);
  void order_anew(Job& job);
  void suspend(Job& job) override;
  void resume(Job& job) override;
  void resume_over_others(Job& job);

  // --- the life cycle ---
  bool may_start(const Job& job) override;
  bool may_preempt(const NeedsVictims& needs) override;
  void started(Job& job) override;
  void preempt_for(Job& preemptor, NeedsVictims needs) override;
  void keep_nodes(Job& preemptor, Allocation nodes, base::Instant until) override;
  base::Duration grace_time(const Job& victim) const override;
  base::Instant not_before_again() const override;
  // Returns true if a victim that is chosen now is only given notice, and ended by a later pass.
  bool only_gets_notice(const Job& victim) const;
  // Ends the jobs under notice that the check of time limits ends, if `now_` is about when it is
  // made. Returns true if there were any.
  bool end_noticed();
  // Returns when the thread of sched/builtin that estimates starts runs next.
  base::Instant next_estimates() const;

  // --- passes that are not recorded ---
  bool is_between_backfills() const;
  // Makes the pass before `now` that is not recorded, since it started nothing.
  void make_untold_pass(base::Instant now, const Event& event);
  void run_untold_pass(base::Instant at);
  void note_pass();
  void note_for_passes(const Event& event);

  base::Instant last_pass_{};
  std::optional<base::Instant> last_backfill_;
  std::optional<base::Instant> pass_wanted_since_;
  std::optional<base::Instant> victim_gone_at_;  // with the last event
  bool in_untold_pass_ = false;
};

}  // namespace sched
