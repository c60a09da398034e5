// The part that all simulations share: the scheduler gets the cluster, and each input as an event.
// How its decisions are carried out is each simulation's own business.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "scheduler/simulate/scenario.h"

namespace simulate {

class Driver {
 public:
  // Configures the scheduler at instant 0, with lead 0. `scenario` outlives this.
  Driver(const Scenario& scenario, sched::Scheduler scheduler);

  sched::Scheduler& scheduler() { return scheduler_; }

  void step(base::Instant now, const sched::Event& event) { scheduler_.step(now, event); }

  // Gives the scheduler the event that the input is. REQUIRES: its kind is not TellPass, TellSlice
  // or TellTimeLimit unless the scheduler is a replay.
  void apply(base::Instant now, const Happening& happening);

  // Whether this input's command ends the job at once (cancel, requeue of an allocated job).
  bool commanded(sched::JobId job) const { return commanded_ == job || commanded_ == job.array(); }
  // Returns jobs that this input has ended by the loss of a node; the caller reports when they go.
  const std::vector<sched::JobId>& lost() const { return lost_; }

  const sched::NodeSpec& node(const std::string& name) const;

 private:
  void configure(base::Instant now, sched::Configuration configuration);
  void command(base::Instant now, const Command& command);
  void set_node_state(base::Instant now, const SetNodeState& change);

  const Scenario& scenario_;
  std::vector<sched::NodeSpec> nodes_;  // in the order of their names
  sched::Scheduler scheduler_;
  std::optional<sched::JobId> commanded_;
  std::vector<sched::JobId> lost_;
};

}  // namespace simulate
