// The rights to a partition, from slurm.conf's keys. A partition that was closed is never opened.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/import/remarks.h"
#include "cli/import/taken_keys.h"

namespace cli {

struct PartitionAccess {
  std::optional<std::vector<std::string>> namespaces{};  // the only ones that may use it
  bool is_closed = false;                                // by a rule that a Partition cannot have
};

// Takes the keys about access out of `keys` and tells what becomes of them. The last value of a key
// counts.
PartitionAccess take_access(std::vector<PlacedKey>& keys, Remarks& remarks);

}  // namespace cli
