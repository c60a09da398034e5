// `kubectl gang info`: partitions and the states of their nodes, as sinfo shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/partition.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "kube/api/node.h"

namespace cli {

struct InfoLine {
  std::string partition;  // with '*' behind the default one
  std::string available;  // up, down, drain, inact
  std::string time_limit;
  std::string state;  // idle, mix, alloc, down, drain, drng (takes no new jobs, has some), unk
  std::int64_t nodes_count = 0;
  std::string hostlist;  // of them; "" if the names are not known
  friend bool operator==(const InfoLine&, const InfoLine&) = default;
};

// One line per partition and state of nodes; a partition without nodes has one line too. Partitions
// in the order of their names. `cpus` of a node are those of its allocatable resources.
std::vector<InfoLine> info_lines(const std::vector<kube::Partition>& partitions,
                                 const std::vector<kube::Node>& nodes,
                                 const std::vector<kube::Job>& jobs);

// The same for users who may read neither nodes nor all jobs: numbers and names of nodes as the
// operator has published them. States are drain (takes no new jobs, for whatever reason) and unk.
std::vector<InfoLine> info_lines_of_statuses(const std::vector<kube::Partition>& partitions);

std::string format_info(const std::vector<InfoLine>& lines);

// Nodes that take no new jobs, by partition and reason, as the operator says it (up to a minute
// ago).
std::string format_reasons(const std::vector<kube::Partition>& partitions);

struct InfoOptions {
  bool json = false;
  bool reasons = false;  // instead of the nodes' states
};
int run_info(const Session& session, const InfoOptions& options, Output output);

}  // namespace cli
