#include "slurm/distribution.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "slurm/text.h"

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

// As strtok() takes them: empty ones do not count.
std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (const std::string& part : split(text, separator)) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// Reads the parts behind the first. SOURCE: recorded: "*" is cyclic for sockets, and for cores what
// sockets have.
base::Result<std::string> parse_within(const std::vector<std::string>& parts) {
  constexpr std::array<std::string_view, 3> kKnown = {"block", "cyclic", "fcyclic"};
  std::string within;
  std::string before = "cyclic";
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string part = parts[i] == "*" ? before : parts[i];
    if (std::ranges::find(kKnown, part) == kKnown.end()) return invalid();
    within += ":" + part;
    before = part;
  }
  return within;
}

constexpr int kTimesMax = 65'536;  // of a name in a file

constexpr std::pair<std::string_view, NodeDistribution> kNames[] = {
    {"block", NodeDistribution::kBlock},
    {"*", NodeDistribution::kBlock},
    {"cyclic", NodeDistribution::kCyclic},
    {"arbitrary", NodeDistribution::kArbitrary}};

constexpr std::pair<std::string_view, NodePacking> kPackings[] = {{"pack", NodePacking::kPack},
                                                                  {"nopack", NodePacking::kNoPack}};

}  // namespace

base::Result<DistributionOption> parse_distribution(std::string_view value) {
  constexpr std::string_view kPlane = "plane=";
  constexpr std::size_t kPartsMax = 3;
  const std::string text = lower_case(value);
  if (text.starts_with(kPlane)) return parse_plane(std::string_view{text}.substr(kPlane.size()));
  DistributionOption option;
  const std::size_t comma = text.find(',');
  // A packing alone leaves the rest as it is.
  const std::string packing = comma == std::string::npos ? text : text.substr(comma + 1);
  for (const auto& [name, known] : kPackings) {
    if (packing == name) option.packing = known;
  }
  const bool has_packing = option.packing != NodePacking::kDefault;
  if (comma == std::string::npos && has_packing) return option;
  if (comma != std::string::npos && !has_packing) return invalid();
  const std::vector<std::string> parts = parts_of(text.substr(0, comma), ':');
  if (parts.empty() || parts.size() > kPartsMax) return invalid();
  for (const auto& [name, nodes] : kNames) {
    if (parts.front() == name) option.nodes = nodes;
  }
  auto within = parse_within(parts);
  if (!within) return within.error();
  option.within = std::move(within).value();
  const bool is_alone = option.within.empty() && !has_packing;
  if (option.nodes == NodeDistribution::kDefault) return invalid();
  if (option.nodes == NodeDistribution::kArbitrary && !is_alone) return invalid();
  return option;
}

std::string distribution_text(const DistributionOption& option) {
  if (option.nodes == NodeDistribution::kPlane) return "plane";
  std::string text;
  for (const auto& [name, nodes] : kNames) {
    if (option.nodes == nodes && name != "*") text = name;
  }
  text += option.within;
  for (const auto& [name, packing] : kPackings) {
    if (option.packing == packing) text += (text.empty() ? "" : ",") + std::string{name};
  }
  return text;
}

std::string read_hostfile(std::string_view text) {
  std::string list;
  for (const std::string& whole : split(text, '\n')) {
    std::string_view line = trim(std::string_view{whole}.substr(0, whole.find('#')));
    int count = 1;
    const std::size_t star = line.find('*');
    if (star != std::string_view::npos) {
      std::from_chars(line.data() + star + 1, line.data() + line.size(), count);
      line = trim(line.substr(0, star));
    }
    if (line.empty()) continue;
    for (int i = 0; i < std::min(count, kTimesMax); ++i) {
      list += (list.empty() ? "" : ",") + std::string{line};
    }
  }
  return list;
}

}  // namespace slurm
