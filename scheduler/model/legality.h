// The rules by which a configuration may come into force (1.6): C1 to C20, and the ranges of 1.1,
// 1.2 and 1.4. Pure; what cannot be expressed in Configuration (unknown tokens, GANG in a
// partition's mode) is refused where it is read.
#pragma once

#include <string>
#include <vector>

#include "scheduler/model/config.h"

namespace sched {

enum class IssueSeverity {
  kError,    // refused: the last accepted configuration stays in force
  kWarning,  // legal, but hardly wanted
};
enum class IssueObject { kCluster, kPartition, kQos, kAccount };

struct ConfigIssue {
  IssueSeverity severity = IssueSeverity::kError;
  std::string rule;  // "C1"; "range" for a value out of range; "name" for a name that is not there
  IssueObject object = IssueObject::kCluster;
  std::string name;     // of the partition, QOS or account
  std::string field;    // as in Slurm's manual: "PreemptMode"
  std::string message;  // one sentence: what is wrong and what to change
  friend bool operator==(const ConfigIssue&, const ConfigIssue&) = default;
};

// Returns everything that is wrong: cluster first, then partitions, QOS and accounts in their
// order. The configuration is legal when no issue is an error.
// Cost: O(partitions × nodes + QOS²).
std::vector<ConfigIssue> check(const Configuration& configuration);
bool is_legal(const std::vector<ConfigIssue>& issues);

}  // namespace sched
