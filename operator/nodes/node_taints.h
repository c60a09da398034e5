// NodeTaints: Partition.spec.taintNodes. The taint kubegang.io/managed:NoSchedule on the nodes of
// such a partition keeps other pods off (architecture.md 4). The key is kubegang's: a node of no
// such partition loses it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/api/node.h"
#include "operator/publish/attempts.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread. Remembers only the nodes that want the taint and those that have to
// be written.
class NodeTaints {
 public:
  // Null when there is none of that name.
  using FindNode = std::function<const kube::Node*(const std::string& name)>;

  // Sets the nodes that need it, from the partitions as accepted.
  void want(std::set<std::string> nodes) { wanted_ = std::move(nodes); }
  bool wants(const std::string& node) const { return wanted_.contains(node); }
  // Called for each node after `want`: it is written if its taints differ.
  void observe(const kube::Node& node);

  // Returns the writes that are due, as many as there is `room` for (CountedWriter). Nodes that are
  // as they should be, or gone, are forgotten.
  std::vector<SetTaints> due(base::Instant now, const FindNode& find, std::size_t room);
  void answered(const TaintsSet& outcome, base::Instant now);
  // Never in the past: what is due now waits for nothing but room, which an outcome brings.
  base::Instant next_due(base::Instant now) const;

 private:
  bool differs(const kube::Node& node) const;

  std::set<std::string> wanted_;
  std::map<std::string, Attempts> to_write_;
};

}  // namespace control
