// Refusals: what the selector has refused, so that a job which needs no less is not asked about
// again. Jobs of one kind ask for the same but for the size; one of them cannot start where another
// one cannot that needs no more, on no fewer nodes, with as many jobs gone.
//
// Threads: none. Cost: O(64 × nodes / 64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/model/node_set.h"

namespace sched {

struct JobKind {
  int number = 0;
  int nodes = 0;           // in all; more of them are not easier to find …
  std::int64_t tasks = 0;  // … with as many tasks on each, and more tasks neither
};

class Refusals {
 public:
  struct Asked {
    const JobKind& kind;
    bool may_stack;  // as the job would share its nodes
    const NodeSet& nodes;
  };
  // Returns with how many jobs gone, in the order of their ends, and with fewer, such a job is
  // known to be refused; nullopt if nothing is known.
  std::optional<std::size_t> up_to(const Asked& asked) const;
  // Notes that it was refused with `gone` jobs gone, and would be with fewer.
  void add(const Asked& asked, std::size_t gone);
  // Jobs have left; one that came takes nothing back.
  void forget() { all_.clear(); }

 private:
  struct Refusal {
    JobKind kind;
    bool may_stack;
    NodeSet nodes;
    std::size_t gone;
  };
  std::vector<Refusal> all_;  // in the order in which they came; no one says more than another
};

}  // namespace sched
