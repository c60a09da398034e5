// Hostlists as the API's fields take them: a node of Kubernetes has a DNS name, so fewer characters
// than a node of Slurm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cli {

inline constexpr std::size_t kHostlistFieldBytesMax = 8'192;  // maxLength in the CRDs

// Returns why the API server would refuse the hostlist; nullopt if it would not.
// SOURCE: crds/, pattern and maxLength of Partition.spec.nodes.hostlist and of the hostlists in
// Job.spec.placement.
inline std::optional<std::string> hostlist_problem(std::string_view hostlist) {
  if (hostlist.size() > kHostlistFieldBytesMax) {
    return "longer than " + std::to_string(kHostlistFieldBytesMax) + " characters as a hostlist";
  }
  const auto is_allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view{".,[]-"}.find(c) != std::string_view::npos;
  };
  const auto wrong = std::find_if_not(hostlist.begin(), hostlist.end(), is_allowed);
  if (wrong == hostlist.end()) return std::nullopt;
  return "'" + std::string{*wrong} +
         "' in a name; nodes of Kubernetes have letters, digits, '-' and "
         "'.' only";
}

}  // namespace cli
