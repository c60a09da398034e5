// Nodes of a partition that take no new jobs, for its status: by reason, of bounded size however
// many nodes there are. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/partition.h"
#include "translation/node_translation.h"

namespace control {

// Bounds of Partition.status.unusable, as in its CRD.
inline constexpr std::size_t kUnusableGroupsMax = 16;
inline constexpr std::size_t kUnusableHostlistMax = 1024;  // characters
inline constexpr std::size_t kUnusableMessageMax = 512;    // characters

// Groups nodes, the largest group first, ties by reason and message; what exceeds the bound is one
// last group, Others. Names that do not fit are left out of a hostlist, and stay counted. The names
// of a group are in the order of the nodes' names.
std::vector<kube::UnusableNodes> group_unusable(
    std::map<NodeProblem, std::vector<std::string>> nodes);

}  // namespace control
