// Offer: how many CPUs each node offers to one job in one attempt, by rank, with sums that let runs
// of neighbors be weighed without looking at each node: sums of blocks of 64 ranks, and of groups
// of 64 blocks. Reads from outside of the processor's caches cost most, so a group that cannot
// matter saves more than its 64 additions.
//
// Cost: set O(1); sums and tightest O(nodes / 4096 + 64), and O(64) for each block and each group
// in which something has been set since.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/model/node_set.h"

namespace sched::cons_tres {

// CPUs are charged CPUs, from 0 to 65,535. A node that offers 0 is not in nodes().
class Offer {
 public:
  explicit Offer(int node_count)
      : cpus_(static_cast<std::size_t>((node_count + 63) / 64 * 64)),
        blocks_(static_cast<std::size_t>((node_count + 63) / 64)),
        groups_(static_cast<std::size_t>(node_count / kGroup)),
        nodes_{node_count} {}

  // Keeps total and count exact, and only marks the sums as stale: an attempt changes many nodes
  // before it asks for a sum of some.
  void set(int rank, int cpus) {
    std::uint16_t& here = cpus_[static_cast<std::size_t>(rank)];
    if (here == cpus) return;
    total_ += cpus - here;
    count_ += (cpus > 0 ? 1 : 0) - (here > 0 ? 1 : 0);
    here = static_cast<std::uint16_t>(cpus);
    nodes_.assign(rank, cpus > 0);
    const auto at = static_cast<std::size_t>(rank);
    blocks_[at / kBlock].fresh = false;
    if (at / kGroup < groups_.size()) groups_[at / kGroup].fresh = false;
  }

  int cpus(int rank) const { return cpus_[static_cast<std::size_t>(rank)]; }
  const NodeSet& nodes() const { return nodes_; }  // those that offer anything
  int count() const { return count_; }
  std::int64_t total() const { return total_; }

  // CPUs of the ranks begin … end − 1: whole groups and blocks by their sums, both ends node by
  // node.
  std::int64_t of_run(int begin, int end) const {
    std::int64_t sum = 0;
    for (int rank = begin; rank < end;) {
      if (is_whole(rank, end, kGroup)) {
        sum += group(rank / kGroup).cpus;
        rank += kGroup;
      } else if (is_whole(rank, end, kBlock)) {
        sum += block(rank / kBlock).cpus;
        rank += kBlock;
      } else {
        sum += cpus(rank++);
      }
    }
    return sum;
  }

  // Returns the node in begin … end − 1 that offers least among those that offer `need`; the first
  // of equals; -1 when there is none.
  int tightest(int begin, int end, int need) const {
    int best = -1, best_cpus = 0;
    // None of them can win: none holds `need`, or none is tighter than the best so far.
    const auto is_in_vain = [&](const Sums& nodes) {
      return nodes.most < need || (best >= 0 && nodes.least_offer >= best_cpus);
    };
    for (int rank = begin; rank < end;) {
      if (is_whole(rank, end, kGroup) && is_in_vain(group(rank / kGroup))) {
        rank += kGroup;
        continue;
      }
      if (is_whole(rank, end, kBlock) && is_in_vain(block(rank / kBlock))) {
        rank += kBlock;
        continue;
      }
      const int here = cpus(rank);
      if (here >= need && here > 0 && (best < 0 || here < best_cpus)) {
        best = rank;
        best_cpus = here;
        // No other is tighter than that, and the first of equals counts.
        if (here == need) break;
      }
      ++rank;
    }
    return best;
  }

 private:
  static constexpr int kBlock = 64;           // ranks
  static constexpr int kGroup = 64 * kBlock;  // ranks

  struct Sums {  // of the nodes of a block or a group
    std::int32_t cpus = 0;
    std::uint16_t least_offer = UINT16_MAX;  // of those that offer something
    std::uint16_t most = 0;
    bool fresh = true;

    void add(std::int32_t more, std::uint16_t least, std::uint16_t largest) {
      cpus += more;
      least_offer = std::min(least_offer, least);
      most = std::max(most, largest);
    }
  };

  static bool is_whole(int rank, int end, int size) {
    return rank % size == 0 && end - rank >= size;
  }
  // Each brings its sums up to date if a node has changed since they were last asked for.
  const Sums& block(int number) const {
    Sums& found = blocks_[static_cast<std::size_t>(number)];
    if (found.fresh) return found;
    found = Sums{};
    for (int rank = number * kBlock; rank < (number + 1) * kBlock; ++rank) {
      const std::uint16_t here = cpus_[static_cast<std::size_t>(rank)];
      if (here > 0) found.add(here, here, here);
    }
    return found;
  }
  const Sums& group(int number) const {
    Sums& found = groups_[static_cast<std::size_t>(number)];
    if (found.fresh) return found;
    found = Sums{};
    constexpr int kBlocks = kGroup / kBlock;
    for (int i = number * kBlocks; i < (number + 1) * kBlocks; ++i) {
      const Sums& part = block(i);
      found.add(part.cpus, part.least_offer, part.most);
    }
    return found;
  }

  std::vector<std::uint16_t> cpus_;
  mutable std::vector<Sums> blocks_;  // worked out when they are asked for
  mutable std::vector<Sums> groups_;  // likewise; of whole ones
  NodeSet nodes_;
  int count_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace sched::cons_tres
