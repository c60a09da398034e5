#include "operator/nodes/unusable_nodes.h"

#include <algorithm>
#include <utility>

#include "base/cut_text.h"
#include "slurm/hostlist.h"

namespace control {
namespace {

// Names that differ in more than a number do not compress: then fewer and fewer of them are tried.
std::string bounded_hostlist(std::vector<std::string> names) {
  std::string list = slurm::compress_hostlist(names);
  while (list.size() > kUnusableHostlistMax) {
    names.resize(names.size() / 2);
    list = slurm::compress_hostlist(names);
  }
  return list;
}

}  // namespace

std::vector<kube::UnusableNodes> group_unusable(
    std::map<NodeProblem, std::vector<std::string>> nodes) {
  using Group = std::pair<NodeProblem, std::vector<std::string>>;
  std::vector<Group> groups{nodes.begin(), nodes.end()};
  // The largest groups come first, so those that are cut off as "Others" concern the fewest nodes.
  // The map's order decides among equals: the status is the same for each leader.
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.second.size() > b.second.size();
  });
  if (groups.size() > kUnusableGroupsMax) {
    // A status has a bounded size: CRD objects are limited by etcd, and a message of a thousand
    // groups says nothing.
    Group others{{"Others", "take no new jobs for further reasons"}, {}};
    for (std::size_t i = kUnusableGroupsMax - 1; i < groups.size(); ++i) {
      others.second.insert(others.second.end(), groups[i].second.begin(), groups[i].second.end());
    }
    groups.resize(kUnusableGroupsMax - 1);
    groups.push_back(std::move(others));
  }
  std::vector<kube::UnusableNodes> unusable;
  for (auto& [problem, names] : groups) {
    const auto count = static_cast<std::int32_t>(names.size());
    unusable.push_back({.reason = problem.reason,
                        // It may quote an agent's reason, of up to 1,024 characters.
                        .message = base::shortened(problem.message, kUnusableMessageMax),
                        .nodes = count,
                        .hostlist = bounded_hostlist(std::move(names))});
  }
  return unusable;
}

}  // namespace control
