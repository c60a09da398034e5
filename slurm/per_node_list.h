// Slurm's spelling of a number for each node of a job, in the job's order: 2, 2, 1 is "2(x2),1".
// SOURCE: sbatch(1), SLURM_TASKS_PER_NODE. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace slurm {

template <typename Number>
std::string per_node_list(const std::vector<Number>& values) {
  std::string list;
  for (std::size_t first = 0; first < values.size();) {
    std::size_t last = first;
    while (last + 1 < values.size() && values[last + 1] == values[first]) ++last;
    list += (list.empty() ? "" : ",") + std::to_string(values[first]);
    if (last > first) list += "(x" + std::to_string(last - first + 1) + ")";
    first = last + 1;
  }
  return list;
}

}  // namespace slurm
