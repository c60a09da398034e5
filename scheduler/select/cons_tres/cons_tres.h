// select/cons_tres: jobs get cores, CPUs or sockets of nodes, in rows that are stacked per
// partition (4.5 to 4.11), with memory (5) and victims (7.6.2, 7.6.3).
//
// Threads: none. Cost of a select: what changed since the last one of the same shape, plus
// O(nodes / 64 + runs of neighbors), while idle cores are found; O(nodes × partitions in use) when
// jobs must be stacked; O(candidates × their nodes) more when victims are looked for.
#pragma once

#include <memory>

#include "scheduler/select/selector.h"

namespace sched {

// `cluster` must be settled and outlive the selector; jobs given to add() and their allocations
// stay where they are until remove().
std::unique_ptr<Selector> make_cons_tres_selector(const Cluster& cluster);

}  // namespace sched
