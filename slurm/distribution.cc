#include "slurm/distribution.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace slurm {
namespace {

base::Error invalid() {
  return base::invalid_argument("Invalid --distribution specification");
}

base::Result<DistributionOption> parse_plane(std::string_view size) {
  DistributionOption option{.nodes = NodeDistribution::kPlane};
  const char* const end = size.data() + size.size();
  const auto read = std::from_chars(size.data(), end, option.plane);
  if (read.ec != std::errc{} || read.ptr != end || option.plane < 1) {
    return base::invalid_argument("--distribution: invalid size of a plane \"" + std::string{size} +
                                  "\" (a number from 1 up)");
  }
  return option;
}

}  // namespace

base::Result<DistributionOption> parse_distribution(std::string_view value) {
  constexpr std::string_view kPlane = "plane=";
  if (value.starts_with(kPlane)) return parse_plane(value.substr(kPlane.size()));
  const std::string_view first = value.substr(0, value.find_first_of(":,"));
  std::string_view left = value.substr(first.size());
  constexpr std::array<std::string_view, 4> kWithin = {"*", "block", "cyclic", "fcyclic"};
  while (left.starts_with(':')) {
    left.remove_prefix(1);
    const std::string_view within = left.substr(0, left.find_first_of(":,"));
    if (std::ranges::find(kWithin, within) == kWithin.end()) return invalid();
    left.remove_prefix(within.size());
  }
  if (first == "arbitrary") {
    return base::invalid_argument("--distribution=" + std::string{value} +
                                  ": is not there yet; block, cyclic and plane=N are");
  }
  if (!left.empty() && left != ",pack" && left != ",nopack") return invalid();
  // Alone they are block's.
  if (value == "pack") {
    return DistributionOption{.nodes = NodeDistribution::kBlock, .packing = NodePacking::kPack};
  }
  if (value == "nopack") {
    return DistributionOption{.nodes = NodeDistribution::kBlock, .packing = NodePacking::kNoPack};
  }
  const NodePacking packing = left.empty()      ? NodePacking::kDefault
                              : left == ",pack" ? NodePacking::kPack
                                                : NodePacking::kNoPack;
  // "*" is the default, for each of the parts.
  constexpr std::pair<std::string_view, NodeDistribution> kKnown[] = {
      {"block", NodeDistribution::kBlock},
      {"*", NodeDistribution::kDefault},
      {"cyclic", NodeDistribution::kCyclic}};
  for (const auto& [name, nodes] : kKnown) {
    if (first == name) return DistributionOption{.nodes = nodes, .packing = packing};
  }
  return invalid();
}

}  // namespace slurm
