// srun's and sbatch's --distribution. Pure.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slurm {

// How tasks go to nodes.
enum class NodeDistribution { kDefault, kBlock, kCyclic, kPlane };
// As few nodes as hold them and each as full as it goes, or evenly.
enum class NodePacking { kDefault, kPack, kNoPack };

struct DistributionOption {
  NodeDistribution nodes = NodeDistribution::kDefault;
  int plane = 0;  // of kPlane
  NodePacking packing = NodePacking::kDefault;
  friend bool operator==(const DistributionOption&, const DistributionOption&) = default;
};

// "block", "cyclic:block", "plane=2", "block,nopack". The parts behind a colon are about sockets
// and cores, which the allocation's binding leaves as it is: they are read, and not kept.
// kInvalidArgument: there is no such, or it is not there yet.
base::Result<DistributionOption> parse_distribution(std::string_view value);

}  // namespace slurm
