// Mates: jobs upon which another one may be stacked so that both lie on the same nodes (4.4.3 step
// 1b), in the order of the job table. They are kept by their number of nodes and by how many jobs
// run on the fullest of these, since a job asks for mates of its size on nodes where few jobs run.
//
// Cost: add, remove and a change of a node O(nodes of the job × jobs there × log jobs); a walk
// O(running) for each mate that is visited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/select/linear/node_books.h"
#include "scheduler/select/selector.h"

namespace sched::linear {

class Mates {
 public:
  // `cluster` must be settled and outlive this.
  explicit Mates(const Cluster& cluster)
      : cluster_{cluster}, on_(static_cast<std::size_t>(cluster.node_count())) {}

  // Notes that the job was taken into the books, or out of them: it runs there or no longer does. A
  // job that refuses to be stacked is not a mate, but counts on its nodes all the same.
  void add(const SelectJob& job, const NodeBooks& books);
  void remove(const SelectJob& job, const NodeBooks& books);

  // Calls visit(job) for the mates that have as many nodes, on none of which more than `running`
  // jobs run, in job-table order until it returns true.
  template <typename Visit>
  void find(int nodes, bool contiguous, int running, const Visit& visit) const {
    const auto sized = by_size_.find({nodes, contiguous});
    if (sized == by_size_.end()) return;
    const Levels& levels = sized->second;
    const std::size_t end = std::min(levels.size(), static_cast<std::size_t>(running) + 1);
    std::vector<Level::const_iterator> heads;
    for (std::size_t i = 0; i < end; ++i) heads.push_back(levels[i].begin());
    while (true) {
      std::size_t best = end;
      for (std::size_t i = 0; i < end; ++i) {
        if (heads[i] == levels[i].end()) continue;
        if (best == end || heads[i]->first < heads[best]->first) best = i;
      }
      if (best == end || visit(*(heads[best]++)->second)) return;
    }
  }

 private:
  using Level = std::map<std::int64_t, const SelectJob*>;  // by table order
  using Levels = std::vector<Level>;  // by how many jobs run on the fullest node
  struct Mate {
    const SelectJob* job = nullptr;
    Levels* levels = nullptr;
    std::vector<int> nodes_with;  // by how many jobs run there
    std::size_t level = 0;        // the last that is not 0
  };

  static void move(Mate& mate, std::size_t from, std::size_t to);

  const Cluster& cluster_;
  std::map<std::pair<int, bool>, Levels> by_size_;
  std::map<std::int64_t, Mate> mates_;  // by table order
  std::vector<std::vector<Mate*>> on_;  // by rank
};

}  // namespace sched::linear
