// NodeBooks: what select/linear must know of each node (4.4.1): how many jobs are on it, and how
// much of its memory and how many of its devices they hold. Counted over all partitions (R4.5);
// indexed by rank.
//
// Cost: a change O(nodes of the job), times the numbers of with_running() that were asked about if
// a job that refuses to be stacked comes or goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"
#include "scheduler/select/counted.h"
#include "scheduler/select/device_books.h"
#include "scheduler/select/selector.h"

namespace sched::linear {

class NodeBooks {
 public:
  // `cluster` must be settled and outlive this.
  explicit NodeBooks(const Cluster& cluster);

  void add(const SelectJob& job);
  // Removes the job, even if its user had suspended it.
  void remove(const SelectJob& job);
  // T10, T11: a job that its user suspends does not count as running, and keeps its memory (but see
  // P5).
  void stop(const SelectJob& job);
  void go_on(const SelectJob& job);

  // P5, as recorded: a suspend by the user, or as a victim, gives back all the memory that the
  // nodes have, and a resume takes as much. So even an empty node may lack memory.
  bool has_p5() const;

  // The node's memory may be another one.
  void node_changed(int rank);

  // Returns the nodes without any job; none is below first_empty().
  const NodeSet& empty() const { return empty_; }
  int first_empty() const { return first_empty_; }
  // Nodes where the demand fits if they are empty and all their CPUs are taken. Valid until the
  // next call of any function. Cost: O(1) for one of the last demands, otherwise O(nodes).
  const NodeSet& roomy(const CountedDemand& demand) const;
  // Jobs that run on the node.
  int running(int rank) const { return nodes_[index(rank)].running; }
  // Returns false if as many jobs run on each node as are there.
  bool has_stopped() const { return stopped_ != 0; }
  // Returns the nodes where at most `most` jobs run, none of which refuses to be stacked, and their
  // number. Valid until the next call. Cost: O(1), but O(nodes) for a number that is asked about
  // for the first time. REQUIRES: 0 <= most < kRunningMax.
  static constexpr int kRunningMax = 64;
  const NodeSet& with_running(int most) const { return level(most).nodes; }
  int count_with_running(int most) const { return level(most).count; }
  // Returns true if a job may come to a node where at most these numbers of others may run and be
  // (4.4.2).
  bool admits(int rank, int run_limit, int total_limit) const {
    const Node& node = nodes_[index(rank)];
    return node.exclusive == 0 && node.running <= run_limit && node.total <= total_limit;
  }
  const CountedBook& memory() const { return memory_; }  // in MiB
  const DeviceBooks& devices() const { return devices_; }

  // Selector::Trial.
  class Trial final : public Selector::Trial {
   public:
    explicit Trial(NodeBooks& books) : books_{books} {}
    ~Trial() override;
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    void remove(const SelectJob& job, Keep keep) override;
    bool put_back() override;

   private:
    struct Removed {
      const SelectJob* job;
      Keep keep;
      std::vector<std::int64_t> held;  // P5: on its nodes before; else empty
    };
    NodeBooks& books_;
    std::vector<Removed> removed_;
  };

 private:
  struct Node {
    int exclusive = 0;  // running jobs that refuse to be stacked
    int running = 0;    // not suspended by their users
    int total = 0;
  };
  struct Roomy {
    CountedDemand demand;
    NodeSet nodes;
  };
  struct Level {
    NodeSet nodes;
    int count = 0;
  };
  static constexpr std::size_t kRoomyMax = 8;
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void count_running(const SelectJob& job, int delta);
  void count_presence(const SelectJob& job, int delta);
  static std::size_t first_level(const Node& node) {
    return node.exclusive != 0 ? kRunningMax : static_cast<std::size_t>(node.running);
  }
  const Level& level(int most) const;
  void change_levels(int rank, std::size_t before, std::size_t now);
  void give_memory_of_nodes(const SelectJob& job);
  bool is_roomy(const CountedDemand& demand, int rank) const;

  const Cluster& cluster_;
  std::vector<Node> nodes_;
  CountedBook memory_;
  DeviceBooks devices_;
  NodeSet empty_;
  int first_empty_ = 0;
  std::int64_t stopped_ = 0;           // over all nodes: jobs that are there and do not run
  mutable std::vector<Roomy> roomy_;   // filled by questions; oldest first
  mutable std::vector<Level> levels_;  // grown by questions
};

}  // namespace sched::linear
