// Turns: where jobs may need to be stopped for each other, by the configuration alone. Only there a
// node needs an agent before it takes jobs, and a timetable before one is asked for. It errs on the
// safe side: on a node that it leaves out no job is ever stopped for another.
//
//   1. Without gang no job is stopped for another.
//   2. In a partition jobs are stacked if its OverSubscribe is FORCE or YES with more than one
//      share (R4.1, R4.8).
//   3. Partitions of different tiers that share a node: select/cons_tres places a job over cores of
//      the lower tier whatever the mode, and the gang stops or ends what is below (R6.30).
//      select/linear does so for SUSPEND, and where a partition shares its nodes at all.
//   4. A QOS that suspends has an extra row in every partition (R4.8, 7.6.3).
//   5. Where CPUs are counted and not bound, jobs on one node conflict until they have started
//   (6.2).
//
// Not covered are a user's suspension, and jobs that were stacked before the configuration changed:
// NodeBook adds those. Pure.
#pragma once

#include <set>
#include <string>

#include "scheduler/model/config.h"

namespace control {

// True if pods of jobs are bound to the CPUs of their cores.
inline bool binds_cores(const sched::ClusterParameters& cluster) {
  return cluster.select == sched::SelectType::kConsTres && cluster.task_affinity;
}

class Turns {
 public:
  Turns() = default;
  // Cost: all nodes of all partitions.
  explicit Turns(const sched::Configuration& configuration);

  bool possible_on(const std::string& node) const { return possible_.contains(node); }
  // Returns true if the node takes jobs only if its agent is ready: for turns, and to bind pods to
  // their CPUs from the beginning.
  bool need_agent(const std::string& node) const {
    return possible_on(node) || bound_.contains(node);
  }
  // True if a timetable is kept for it whatever happens: for turns, or since its agent tells there
  // which cores the node has.
  bool need_timetable(const std::string& node) const { return counts_cores_ || possible_on(node); }

 private:
  std::set<std::string> possible_;
  std::set<std::string> bound_;  // jobs may get some of its cores
  bool counts_cores_ = false;
};

}  // namespace control
