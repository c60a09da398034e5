// Offer: how many CPUs each node offers to one job in one attempt, by rank, with sums that let runs
// of neighbors be weighed without looking at each node.
//
// Cost: set O(64), sums O(nodes / 64).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/model/node_set.h"

namespace sched::cons_tres {

// CPUs are charged CPUs, from 0 to 65,535. A node that offers 0 is no member of nodes().
class Offer {
 public:
  explicit Offer(int node_count)
      : cpus_(static_cast<std::size_t>((node_count + 63) / 64 * 64)),
        blocks_(static_cast<std::size_t>((node_count + 63) / 64)),
        nodes_{node_count} {}

  // Keeps total and count exact, and only marks the block of 64 ranks as stale: an attempt changes
  // many nodes before it asks for a sum of some.
  void set(int rank, int cpus) {
    std::uint16_t& here = cpus_[static_cast<std::size_t>(rank)];
    if (here == cpus) return;
    total_ += cpus - here;
    count_ += (cpus > 0 ? 1 : 0) - (here > 0 ? 1 : 0);
    here = static_cast<std::uint16_t>(cpus);
    nodes_.assign(rank, cpus > 0);
    blocks_[static_cast<std::size_t>(rank) / 64].fresh = false;
  }

  int cpus(int rank) const { return cpus_[static_cast<std::size_t>(rank)]; }
  const NodeSet& nodes() const { return nodes_; }  // those that offer anything
  int count() const { return count_; }
  std::int64_t total() const { return total_; }

  // CPUs of the ranks begin … end − 1: whole blocks by their sums, both ends node by node.
  std::int64_t of_run(int begin, int end) const {
    std::int64_t sum = 0;
    for (int rank = begin; rank < end;) {
      if (rank % 64 == 0 && end - rank >= 64) {
        sum += block(rank / 64).sum;
        rank += 64;
      } else {
        sum += cpus(rank++);
      }
    }
    return sum;
  }

  // The node in begin … end − 1 that offers least among those that offer `need`; the first of
  // equals; -1 when there is none.
  int tightest(int begin, int end, int need) const {
    int best = -1, best_cpus = 0;
    for (int rank = begin; rank < end;) {
      if (rank % 64 == 0 && end - rank >= 64) {
        const Block& whole = block(rank / 64);
        // No node of the block can win: none holds `need`, or none is tighter than the best so far.
        if (whole.most < need || (best >= 0 && whole.least_offer >= best_cpus)) {
          rank += 64;
          continue;
        }
      }
      const int here = cpus(rank);
      if (here >= need && here > 0 && (best < 0 || here < best_cpus)) {
        best = rank;
        best_cpus = here;
        // Nothing is tighter than that, and the first of equals counts.
        if (here == need) break;
      }
      ++rank;
    }
    return best;
  }

 private:
  struct Block {  // of 64 ranks
    std::int32_t sum = 0;
    std::uint16_t least_offer = 0;  // of those that offer something
    std::uint16_t most = 0;
    bool fresh = true;
  };
  // Brings the block up to date if a node of it has changed since it was last asked for.
  const Block& block(int number) const {
    Block& found = blocks_[static_cast<std::size_t>(number)];
    if (found.fresh) return found;
    found = Block{};
    std::uint16_t least = UINT16_MAX;
    for (int rank = number * 64; rank < number * 64 + 64; ++rank) {
      const std::uint16_t here = cpus_[static_cast<std::size_t>(rank)];
      found.sum += here;
      found.most = std::max(found.most, here);
      if (here > 0) least = std::min(least, here);
    }
    found.least_offer = found.most > 0 ? least : std::uint16_t{0};
    return found;
  }

  std::vector<std::uint16_t> cpus_;
  mutable std::vector<Block> blocks_;  // sums are worked out when they are asked for
  NodeSet nodes_;
  int count_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace sched::cons_tres
