// Placement: from a job and a partition to an allocation and the victims that it costs, or to the
// kind of refusal (Slurm's select_nodes and pick_best_nodes: 3.5, 3.6).
//
// A placement goes through these steps:
//   1. The base: nodes of the partition that can ever hold the job's part (shape, constraint,
//      excluded nodes). It depends on the request alone, so equal jobs in a row share it.
//   2. The usable nodes: those of the base that are available to the job now, and that no running
//      job keeps to itself.
//   3. The choice: for each alternative of the constraint, sets of nodes by ascending weight are
//      offered to the selector until it finds an allocation.
//   4. If there is none and preemption is on: 2 and 3 again, with the candidates as victims.
//   5. If there is none either: could it run on all nodes that are up (busy), on all nodes (not
//      available), or never?
//
// Cost: the selector's, times the number of sets, and what changed since the last placement with
// this base; O(nodes / 64) besides if the pass withholds nodes, if jobs keep other users off their
// nodes or nodes have refused the job, for victims, and if there are several groups of nodes. Step
// 5 as much again, on empty nodes. A new base costs O(nodes / 64) for each group and each feature
// of the constraint, and O(nodes) if some node has less memory or disk than the job asks for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/jobs/job_table.h"
#include "scheduler/jobs/node_usage.h"
#include "scheduler/place/constraint.h"
#include "scheduler/place/node_counts.h"
#include "scheduler/place/node_groups.h"
#include "scheduler/place/sharing.h"
#include "scheduler/preempt/rules.h"
#include "scheduler/select/selector.h"

namespace sched {

enum class PlacementResult {
  kFits,          // now; after the victims are gone when some must end
  kBusy,          // may run when others have ended
  kNotAvailable,  // a required node is down, drained or kept for others
  kNever,         // not even on empty nodes
};

struct PlacementOutcome {
  PlacementResult result = PlacementResult::kBusy;
  std::optional<Allocation> allocation;
  SharingStatus sharing;
  std::vector<Candidate> victims;
  std::string message;  // of a refusal, for people
  // Until when a refusal holds if nothing else changes (an exempt time ends).
  base::Instant valid_until = base::kNever;
};

struct PlacementRequest {
  const Job& job;
  PartitionIndex partition;
  // A (3.4 step 2). NodeGroups::up() itself where that is what is available: then what follows from
  // it is kept from one placement to the next.
  const NodeSet& available;
  base::Instant now;
  // No victims end for these; null = there are none.
  const NodeSet* claimed = nullptr;
  // Licenses that victims must bring: it starts in no other way. Null = none.
  const Licenses* missing = nullptr;
};

// The question if the job would fit on these nodes with the selector's books as they are: in a
// trial, as they would be then (WILL_RUN: 3.8). REQUIRES: `nodes` has none that the job must not
// use.
struct WillRunRequest {
  const Job& job;
  PartitionIndex partition;
  const NodeSet& nodes;
  base::Instant now;
  SharingStatus sharing;
  bool takes_extra_row = false;  // SelectRequest
  // `nodes` are taken as they are: the job's partition, constraint, exclusions and hardware do not
  // narrow them (sched/builtin's estimates as recorded, 8.3).
  bool on_any_node = false;
  const NodeSet* idle_last = nullptr;  // likewise
};

class Placement {
 public:
  Placement(const Cluster& cluster, const NodeGroups& groups, const NodeUsage& usage,
            const std::map<std::int64_t, Job*>& allocated)
      : cluster_{cluster}, groups_{groups}, usage_{usage}, allocated_{allocated} {}

  PlacementOutcome place(Selector& selector, const PlacementRequest& request);
  // Returns those of the available nodes that the job may use: of its base, not another user's, and
  // not among those that have just refused it. `available`: without those that are kept for others,
  // which NodeCalendar says and, in a main pass, Availability. `victims`: as if each of them left
  // its nodes. `any_user`: as if no user had nodes of their own. Valid until the next call of any
  // function.
  const NodeSet& open_nodes(const Job& job, PartitionIndex partition, base::Instant now,
                            const NodeSet& available, const std::vector<Candidate>& victims = {},
                            bool any_user = false);
  // No victims are looked for, and nothing is asked of jobs that keep their nodes to themselves but
  // by the selector.
  std::optional<Allocation> will_run(Chooser& books, const WillRunRequest& asked);

 private:
  struct Attempt;
  struct Wish;
  // Step 1: what depends on the request alone and not on other jobs. Kept while the request and the
  // configuration are the same; nodes that were reported again are looked at again.
  struct Base {
    std::uint64_t groups_version = 0;  // NodeGroups::version(); 0 = nothing yet
    std::size_t seen = 0;              // position in its log
    PartitionIndex partition;
    std::shared_ptr<const JobRequest> request;  // of the job that it was worked out for
    Constraint constraint;
    MemoryDemand memory;
    NodeSet excluded;
    NodeSet nodes;  // of the partition, that fit the job's shape, constraint and exclusions
    int count = 0;
    NodeSet required;  // --nodelist
    int required_count = 0;
  };
  // Nodes of the base that have something in common, and how many: kept while the base is, and
  // brought up to date at the nodes where something changed.
  struct Kept {
    bool known = false;
    std::size_t groups_seen = 0, usage_seen = 0;  // positions in the logs of these two
    NodeSet nodes;
    int count = 0;
  };
  void find_base(const Job& job, PartitionIndex partition);
  template <typename All, typename IsIn>
  const Kept& bring_up_to_date(Kept& kept, const All& all, const IsIn& is_in) const;
  const Kept& usable_of_up(bool only_idle);
  const Kept& up_of_base();
  const Kept& idle_of_up();
  void refresh_base();
  NodeSet base_nodes() const;
  bool in_base(int rank) const;
  bool try_all(Attempt& attempt, const NodeSet& usable) const;
  bool try_alternative(Attempt& attempt, const NodeSet& usable, std::size_t alternative) const;
  bool pick_best(Attempt& attempt, const Wish& wish, const NodeSet& usable,
                 std::size_t alternative) const;
  bool pick_by_weight(Attempt& attempt, const Wish& wish, const NodeSet& usable) const;
  const NodeSet& usable_nodes(const Attempt& attempt);
  bool takes_only_idle(const Attempt& attempt) const;
  bool sees_all_up(const PlacementRequest& request) const {
    return &request.available == &groups_.up();
  }
  bool has_at_least(const NodeSet& nodes, int wanted) const;
  template <typename Visit>
  void for_each_closed(const std::vector<Candidate>& victims, const Visit& visit) const;
  bool select(Attempt& attempt, const Wish& wish, const NodeSet& nodes) const;
  bool select_from(Attempt& attempt, const Wish& wish, const NodeSet& nodes) const;
  NodeSet without_room(const Attempt& attempt) const;
  NodeSet overfilled(const Attempt& attempt) const;
  void classify(Attempt& attempt);
  std::string describe_busy(const Attempt& attempt);
  std::string describe_never(const Attempt& attempt) const;
  std::string describe_memory();
  std::string describe_devices();

  const Cluster& cluster_;
  const NodeGroups& groups_;
  const NodeUsage& usage_;
  const std::map<std::int64_t, Job*>& allocated_;
  Base base_;
  // Nodes of the base that are up; those of them that are idle; and both without the nodes that the
  // job may not use.
  Kept up_, idle_, usable_up_, usable_idle_;
  NodeSet usable_;  // what is not kept: so that a placement need not allocate it
};

}  // namespace sched
