// srun's and sbatch's --distribution. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slurm {

// How tasks go to nodes.
enum class NodeDistribution { kDefault, kBlock, kCyclic, kPlane, kArbitrary };
// As few nodes as hold them and each as full as it goes, or evenly.
enum class NodePacking { kDefault, kPack, kNoPack };

struct DistributionOption {
  NodeDistribution nodes = NodeDistribution::kDefault;
  int plane = 0;  // of kPlane
  NodePacking packing = NodePacking::kDefault;
  // The parts about sockets and cores, ":cyclic:block". The allocation's binding leaves them as it
  // is; SLURM_DISTRIBUTION shows them.
  std::string within;
  friend bool operator==(const DistributionOption&, const DistributionOption&) = default;
};

// Parses "block", "cyclic:block", "plane=2", "block,nopack", in any case. kInvalidArgument: there
// is no such.
base::Result<DistributionOption> parse_distribution(std::string_view value);

// Returns SLURM_DISTRIBUTION of a job: "block:cyclic:cyclic" of "block:*".
std::string distribution_text(const DistributionOption& option);

// Reads the nodes of a file as a list with commas: a name or a list of names a line, "n1*2" twice,
// "#" begins a comment. SOURCE: Slurm's slurm_read_hostfile().
std::string read_hostfile(std::string_view text);

}  // namespace slurm
