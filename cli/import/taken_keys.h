// The keys of a line that can be taken.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "cli/import/remarks.h"
#include "slurm/text.h"

namespace cli {

struct PlacedKey {
  FilePlace place;
  slurm::KeyValue key;
};

// Returns ok if all these keys together can be translated; the error says why not.
using CanTake = std::function<base::Status(std::span<const slurm::KeyValue>)>;

// Takes one key after the other, and the words of a list that can be taken. Reports the others.
// REQUIRES: `first` can be taken.
std::vector<slurm::KeyValue> take_keys(std::vector<slurm::KeyValue> first,
                                       std::span<const PlacedKey> keys, const CanTake& can_take,
                                       Remarks& remarks);

}  // namespace cli
