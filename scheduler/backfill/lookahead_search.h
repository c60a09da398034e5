// What one question to the Lookahead keeps while it is answered. For lookahead*.cc alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/backfill/lookahead.h"
#include "scheduler/model/allocation_nodes.h"
#include "scheduler/model/asked_product.h"
#include "scheduler/place/node_counts.h"
#include "scheduler/place/sharing.h"
#include "scheduler/select/memory_demand.h"

namespace sched {

inline constexpr base::Duration kFirstWindow = std::chrono::seconds{30};

// The least that a job needs. Divided by the most threads that any core there has, so that cores
// stay a lower bound: a job that is refused by it cannot fit.
struct Lookahead::Needs {
  Needs(Lookahead& lookahead, const Job& job, PartitionIndex index) {
    const Cluster& cluster = lookahead.cluster_;
    const JobRequest& asked = job.request;
    const NodeCounts counts = node_counts(cluster, asked, index);
    const Partition& partition = cluster.partition(index);
    const Hardware& most = lookahead.hardware(index);
    const auto in_cores = [threads = most.threads](std::int64_t cpus) {
      return (cpus + threads - 1) / threads;
    };
    whole = resolve_sharing(cluster.parameters().select, partition, asked.sharing).whole_nodes;
    nodes = counts.min;
    nodes_max = std::max(counts.min, counts.max);
    const int of_task = asked.overcommit ? 1 : std::max(1, asked.cpus_per_task);
    const std::int64_t cpus =
        asked.overcommit ? counts.min : std::int64_t{tasks_of(asked, counts.min)} * of_task;
    cores = in_cores(cpus);
    const int tasks = asked.overcommit ? 1 : std::max(1, asked.tasks_per_node.value_or(1));
    // What the other nodes cannot have, each of them must.
    const std::int64_t others = std::int64_t{nodes_max - 1} * most.cpus;
    const int cpus_of_node =
        clamped(std::max<std::int64_t>({1, asked_product(of_task, tasks), cpus - others}));
    of_node = static_cast<int>(in_cores(cpus_of_node));
    const CountedDemand demand =
        memory_demand(cluster.parameters(), partition.config, asked.memory).memory;
    least = {.cores = whole ? 0 : of_node, .cpus = whole ? 0 : cpus_of_node, .memory = demand};
    if (demand.per == CountedPer::kCpu) memory = demand.charge(clamped(cpus), 0);
  }
  static int clamped(std::int64_t cpus) {
    return static_cast<int>(std::min<std::int64_t>(cpus, kAskedMax));
  }

  bool whole = false;  // all cores of each node
  int of_node = 1;     // else so many
  int nodes = 1, nodes_max = 1;
  std::int64_t cores = 1;   // in all
  std::int64_t memory = 0;  // in all, where it is charged for each CPU; MiB
  Least least;
};

// Free cores of the nodes in question, as jobs leave. A job that does not fit by this count does
// not fit.
struct Lookahead::Count {
  Count(Lookahead& lookahead, const Question& question)
      : cluster{lookahead.cluster_},
        nodes{question.nodes},
        needs{lookahead, question.job, question.partition},
        free{lookahead.free_} {
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      const int here = free[static_cast<std::size_t>(rank)].cores;
      total += here;
      if (here >= needed_on(rank)) ++ready;
    }
  }

  int needed_on(int rank) const {
    return needs.whole ? cluster.spec_at(rank).cores() : needs.of_node;
  }
  // The job leaves its nodes.
  void add(const Job& job) {
    if (job.user_suspended) return;  // its cores are free already
    for_each_rank(cluster, job.allocation, [&](int rank, const NodeAllocation& use) {
      if (!nodes.test(rank)) return;
      int& here = free[static_cast<std::size_t>(rank)].cores;
      const int needed = needed_on(rank), cores = use.cores.count();
      // Counted when a node crosses what is needed, once; jobs only leave.
      if (here < needed && here + cores >= needed) ++ready;
      here += cores;
      total += cores;
    });
  }
  // Necessary, not sufficient: memory, sockets and stacking are the selector's to judge.
  bool may_fit() const { return ready >= needs.nodes && total >= needs.cores; }

  const Cluster& cluster;
  const NodeSet& nodes;
  const Needs needs;
  std::vector<Free> free;  // by rank
  int ready = 0;           // nodes that have what is needed on each
  std::int64_t total = 0;  // free cores
};

// One will_run, for one way of sharing.
struct Lookahead::Search {
  const Question& question;
  const SharingStatus& sharing;
  std::optional<Count> count;  // nothing where cores cannot be counted
  RowRoom* room = nullptr;     // there, if jobs may be stacked
  RowRoom::Needs room_needs{};
  std::optional<std::size_t>* floor = nullptr;  // of floors_
  // By the room, with fewer of ends_ gone the job does not fit. At first only whether that is 0.
  std::size_t least_gone = 0;
  bool has_victims = false;  // some of ends_ are marked
  const Victims* victims = nullptr;  // these: they are taken away from the beginning
  base::Duration window = kFirstWindow;        // of the next batch
  std::optional<base::Instant> windows_begin;  // as recorded
  bool takes_extra_row = false;
  bool is_future = false;
  std::optional<std::size_t> refused{};  // with so many of ends_ gone, and fewer

  void forget_room() {
    room = nullptr;
    least_gone = 0;
  }
  // With so many of ends_ gone. Necessary, not sufficient.
  bool may_fit(std::size_t gone) const {
    return (!count || count->may_fit()) && gone >= least_gone;
  }
};

}  // namespace sched
