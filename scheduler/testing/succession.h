// Succession: an old leader, and a new one that was restored from what the old one had stored, get
// the same random events and must decide the same.
//
// Compared are the starts with their nodes and limits, endings, claims, changes of state with their
// counts, and refusals of commands, each with its instant; and after each event whether each job
// waits, is held, has nodes or ends. Not compared:
//
// * messages and reasons, which a new leader reports once more;
// * expected starts, which it works out again;
// * whose turn it is once it differs. The order of jobs that share no node is not published, and a
//   later job may bring them together: then they take turns in another order, and reach their time
//   limits at other instants. The play ends there;
// * which cores of a node a job gets once they differ. In which row each running job is depends on
//   the order of starts and resumes, which is not stored. The play ends there, too;
// * who must make room for a job that has nodes and that its user has resumed, once it differs: its
//   claim is not stored (JobFacts::claim), and which of its cores are free depends on the rows. The
//   play ends there, too.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/random_world.h"

namespace sched::testing {

class Succession {
 public:
  // `next`: the number of the next job.
  Succession(base::Prng prng, RandomWorld world, base::Instant now, JobId next)
      : prng_{prng}, world_{std::move(world)}, now_{now}, next_{next} {}

  // Plays both on for this many events. Returns the first difference; empty if there is none.
  // REQUIRES: both have no decisions that were not taken.
  std::string play(Scheduler& before, Scheduler& after, int events);
  // Returns true if the play has ended because other jobs had their turns.
  bool turns_differ() const { return turns_differ_; }
  // Likewise because a job got other cores.
  bool cores_differ() const { return cores_differ_; }
  // Likewise because another job, or at another time, made room for one that its user has resumed.
  bool room_differs() const { return room_differs_; }

 private:
  struct Side {
    Scheduler& scheduler;
    std::vector<std::string> decided;
    std::vector<std::string> cores;  // of the starts
    std::vector<std::string> room;   // endings that make room for jobs that have nodes
  };

  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }
  JobId any(const std::vector<JobId>& jobs) {
    return jobs[static_cast<std::size_t>(pick(static_cast<int>(jobs.size())))];
  }
  bool has_nodes(const Side& side, JobId id) const;
  void take(Side& side) const;
  void wake_until(Side& side, base::Instant to);
  Event random_event(const Scheduler& leader);
  Event about(const Scheduler& leader, JobId id);
  std::string difference(Side& before, Side& after);

  base::Prng prng_;
  RandomWorld world_;
  base::Instant now_;
  JobId next_;
  bool turns_differ_ = false;
  bool cores_differ_ = false;
  bool room_differs_ = false;
};

}  // namespace sched::testing
