// Moves: the jobs that got or lost cores, or whose expected ends may be others than before. A
// reader that keeps such things of all allocated jobs (backfill/ends) looks at these again
// instead of all of them. Some are named more than once, and some may be gone by now.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/ids.h"

namespace sched {

struct Moves {
  bool all = true;                 // so many that they are not told apart
  std::vector<std::int64_t> jobs;  // by their table order
  std::vector<NodeIndex> nodes;    // that they have or had
};

}  // namespace sched
