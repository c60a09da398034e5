// Succession: an old leader, and a new one that was restored from what the old one had stored, get
// the same random events and must decide the same.
//
// Compared are the starts with their nodes and limits, endings, claims, changes of state with their
// counts, and refusals of commands, each with its instant; and after each event of each job whether
// it waits, is held, has nodes or ends, its facts, its limit and its place by priority. What each
// of them has published must be what it does. Not compared:
//
// * messages and reasons, which a new leader reports once more;
// * expected starts, which it works out again;
// * whose turn it is once it differs. The order of jobs that share no node is not published, and a
//   later job may bring them together: then they take turns in another order, and reach their time
//   limits at other instants. The play ends there;
// * which cores of a node a job gets once they differ, or, with select/cons_tres, which nodes. In
//   which row each running job is depends on the order of starts and resumes, which is not stored.
//   The play ends there, too;
// * what follows once only one of them has found out that a job can run nowhere: one that asks for
//   devices is tried behind a partition that has failed if it has no reason yet, and reasons are
//   not stored. The play ends there, too;
// * who must make room for a job that has nodes and that its user has resumed, once it differs: its
//   claim is not stored (JobFacts::claim), and which of its cores are free depends on the rows. The
//   play ends there, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "scheduler/engine/engine.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/random_world.h"

namespace sched::testing {

// An engine that says whether the lists of its gang are in motion: a job joins or leaves its list
// at a boundary, or a timetable waits to be written. Until then a new leader cannot know the lists.
class OpenEngine : public Engine {
 public:
  OpenEngine() : Engine{Options{}} {}
  bool turns_move() { return turns_->next_due().has_value(); }
  // Returns true if a held job was tested before. A new leader cannot know: to it no held job was.
  bool has_tested_before_hold() {
    return std::ranges::any_of(books_.table().all(), [](const auto& each) {
      return each.second->held && each.second->factors.was_tested;
    });
  }
  // Returns true if the interval of the backfill is over, something has changed and a job waits.
  bool backfill_is_due(base::Instant now) const { return backfill_schedule_.is_due(now); }
};

struct Leader {
  OpenEngine& engine;  // of the scheduler
  Scheduler scheduler;

  Leader() : Leader{std::make_unique<OpenEngine>()} {}

 private:
  explicit Leader(std::unique_ptr<OpenEngine> made) : engine{*made}, scheduler{std::move(made)} {}
};

class Succession {
 public:
  // `next`: the number of the next job. `published`: the plans of the nodes that have one. `ended`:
  // jobs that others may wait for.
  Succession(base::Prng prng, RandomWorld world, base::Instant now, JobId next,
             std::map<NodeIndex, NodePlan> published, std::map<JobId, JobState> ended)
      : prng_{prng},
        world_{std::move(world)},
        now_{now},
        next_{next},
        published_{std::move(published)},
        ended_{std::move(ended)} {}

  // Plays both on for this many events. Returns the first difference; empty if there is none.
  // REQUIRES: both have no decisions that were not taken.
  std::string play(Leader& before, Leader& after, int events);
  // Returns the kinds of the events that both got (Event::index).
  const std::vector<std::size_t>& drawn() const { return drawn_; }
  // Returns true if the play has ended because other jobs had their turns.
  bool turns_differ() const { return turns_differ_; }
  // Likewise because a job got other cores.
  bool cores_differ() const { return cores_differ_; }
  // Likewise because it got other nodes.
  bool nodes_differ() const { return nodes_differ_; }
  // Likewise because a job was held as impossible by one of them.
  bool impossible_differ() const { return impossible_differ_; }
  // Likewise because another job, or at another time, made room for one that its user has resumed.
  bool room_differs() const { return room_differs_; }

 private:
  struct Side {
    Leader& leader;
    Scheduler& scheduler;
    std::map<NodeIndex, NodePlan> published;
    std::vector<std::string> decided;
    std::vector<std::string> nodes;  // of the starts
    std::vector<std::string> cores;  // likewise
    std::vector<std::string> room;   // endings that make room for jobs that have nodes
  };

  int pick(int bound) { return static_cast<int>(prng_.below(static_cast<std::uint64_t>(bound))); }
  JobId any(const std::vector<JobId>& jobs) {
    return jobs[static_cast<std::size_t>(pick(static_cast<int>(jobs.size())))];
  }
  bool has_nodes(const Side& side, JobId id) const;
  void take(Side& side);
  void wake_until(Side& side, base::Instant to);
  Event random_event(const Scheduler& leader);
  Event about(const Scheduler& leader, JobId id);
  Event update_of(const Scheduler& leader, JobId id);
  std::vector<KnownJob> known_of(const JobRequest& request) const;
  std::string difference(Side& before, Side& after);
  std::string wrongly_published(const Side& side) const;
  bool is_over() const {
    return turns_differ_ || cores_differ_ || nodes_differ_ || impossible_differ_ || room_differs_;
  }

  base::Prng prng_;
  RandomWorld world_;
  base::Instant now_;
  JobId next_;
  const std::map<NodeIndex, NodePlan> published_;
  std::map<JobId, JobState> ended_;
  std::vector<std::size_t> drawn_;
  bool turns_differ_ = false;
  bool cores_differ_ = false;
  bool nodes_differ_ = false;
  bool impossible_differ_ = false;
  bool room_differs_ = false;
};

}  // namespace sched::testing
