// Allocations in the API (Job.status.allocation: hostlists and core numbers, nodes with the same
// share together) and in the scheduler, both ways, exactly. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/job.h"
#include "base/result.h"
#include "scheduler/model/core_set.h"
#include "scheduler/model/job.h"

namespace control {

// Returns "0-3,8"; "" for the empty set.
std::string format_cores(const sched::CoreSet& cores);
base::Result<sched::CoreSet> parse_cores(std::string_view text);

using NodeNames = std::function<const std::string&(sched::NodeIndex)>;
kube::Allocation encode_allocation(const sched::Allocation& allocation, const NodeNames& name_of);

struct KnownNode {
  sched::NodeIndex index;
  int cores = 0;
  int cpus = 0;
};
using NodesByName = std::function<std::optional<KnownNode>(const std::string&)>;

// The allocation as it was encoded. Nodes that no longer exist are left out: their names are in
// `missing`. kInvalidArgument when the text is not what encode_allocation writes.
struct DecodedAllocation {
  sched::Allocation allocation;
  std::vector<std::string> missing;
};
base::Result<DecodedAllocation> decode_allocation(const kube::Allocation& allocation,
                                                  const NodesByName& find);

}  // namespace control
