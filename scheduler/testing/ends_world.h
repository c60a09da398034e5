// EndsWorld: a PassWorld with the expected ends of its jobs, for tests of what is worked out of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/backfill/ends.h"
#include "scheduler/gang/own_turns.h"
#include "scheduler/place/placement.h"
#include "scheduler/place/sharing.h"
#include "scheduler/select/selector.h"
#include "scheduler/testing/no_turn_events.h"
#include "scheduler/testing/pass_world.h"

namespace sched::testing {

class EndsWorld : public PassWorld {
 public:
  // Partition p of all nodes under select/cons_tres; with more than one row jobs are stacked there.
  static Configuration of_cores(int max_share = 1) {
    Configuration configuration = one_partition();
    configuration.cluster.select = SelectType::kConsTres;
    configuration.partitions = {
        partition("p", nodes_named("abcd"),
                  max_share > 1 ? OverSubscribe::kForce : OverSubscribe::kNo, max_share)};
    configuration.partitions.front().is_default = true;
    return configuration;
  }

  explicit EndsWorld(const Configuration& configuration = one_partition())
      : PassWorld{configuration} {}

  // Adds a job that has run on all cores of these nodes since 0, up to `end`.
  Job& running(std::int64_t id, const std::string& letters, double end,
               const std::string& partition = {}) {
    Job& job = run(id, letters, partition);
    job.time_limit = seconds(end);
    return job;
  }
  // Does the same on the first `cores` cores of each node.
  Job& running_on_some(std::int64_t id, const std::string& letters, int cores, double end,
                       const std::string& partition = {}) {
    Job& job = running(id, letters, end, partition);
    for (NodeAllocation& use : job.allocation.nodes) use.cores = CoreSet::first(cores);
    return job;
  }
  // Moves the ends to this instant. REQUIRES: it is not before the last one.
  Ends& ends_at(double instant) {
    turns->go_to(at(instant), false);
    if (!ends.go_to(at(instant))) ends.forget();
    ends.read();
    return ends;
  }
  NodeSet set_of(const std::string& letters) const {
    NodeSet nodes = cluster.no_nodes();
    for (const char letter : letters) {
      nodes.set(cluster.rank(cluster.find_node(std::string{letter}).value()));
    }
    return nodes;
  }
  std::string letters_of(const NodeSet& nodes) const {
    std::string text;
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      text += cluster.spec_at(rank).name;
    }
    return text;
  }

  // Returns which of these nodes a pending job would get with these books; "-" = it does not fit.
  std::string chosen(Chooser& of_books, const Job& job, const NodeSet& nodes) {
    const PartitionIndex partition = job.queued.in.front().partition;
    const auto found = placement.will_run(
        of_books, {.job = job,
                   .partition = partition,
                   .nodes = nodes,
                   .now = ends.now(),
                   .sharing = resolve_sharing(cluster.parameters().select,
                                              cluster.partition(partition), job.request->sharing)});
    return found ? letters(*found) : "-";
  }

  NoTurnEvents events;
  std::unique_ptr<gang::Turns> turns =
      std::make_unique<gang::OwnTurns>(cluster, books, events, true);
  Ends ends{cluster, books, *turns};
  Placement placement{cluster, groups, books.usage(), books.allocated()};
};

}  // namespace sched::testing
