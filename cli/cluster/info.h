// `kubectl gang info`: partitions and the states of their nodes, as sinfo shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/devices_config.h"
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
  std::string hostlist;   // of them; "" if the names are not known
  std::int64_t gpus = 0;  // of them together, and how many of these jobs hold
  std::int64_t gpus_held = 0;
  std::string refused{};  // why nothing of the partition is in force; "" if something is
  friend bool operator==(const InfoLine&, const InfoLine&) = default;
};

// The nodes as `info`, sinfo and scontrol show them: one read of the cluster, and the lines of it.
struct ClusterNodes {
  std::vector<kube::Partition> partitions;  // by name
  std::vector<kube::Node> nodes;
  std::vector<kube::Job> jobs;
  kube::DevicesConfig devices{};  // in force; that of GPUs alone if it may not be read
  // The user may read them all; else there are none, and the partitions' statuses are all that is
  // known.
  bool has_nodes = true;
};

// One node in one partition. For a user who may not read nodes: a group of nodes, whose names may
// be unknown.
struct NodeLine {
  const kube::Partition* partition = nullptr;
  const kube::Node* node = nullptr;
  std::vector<std::string> names;
  std::int64_t count = 1;
  std::string state;   // as InfoLine has it
  std::string reason;  // why it takes no new jobs; "" if it does
  std::int64_t cpus = 0;
  std::int64_t cpus_allocated = 0;  // at most `cpus`
  std::int64_t memory_allocated_mib = 0;
  std::vector<kube::JobDevice> devices{};            // that the node has
  std::vector<kube::JobDevice> devices_allocated{};  // of each job by itself
};

// Returns the table of devices in force; that of GPUs alone if there is none.
base::Result<kube::DevicesConfig> read_devices_config(const Session& session);

// `speaker` begins a sentence about what the user may not read.
base::Result<ClusterNodes> read_cluster_nodes(const Session& session, std::string_view speaker,
                                              Output output);

// Returns the lines by partition, then in the order of the nodes. Refused partitions have none. The
// lines point into `cluster`.
std::vector<NodeLine> node_lines(const ClusterNodes& cluster);

// Returns a partition without nodes.
InfoLine partition_line(const kube::Partition& partition);
// Returns the accepted spec, if anything was accepted yet.
const kube::PartitionSpec& spec_in_force(const kube::Partition& partition);

// Returns one line per partition and state of nodes; a partition without nodes has one line too.
// Partitions in the order of their names. `cpus` of a node are those of its allocatable resources.
// Users who may read neither nodes nor all jobs see numbers and names of nodes as the operator has
// published them; states are then drain (takes no new jobs, for whatever reason) and unk.
std::vector<InfoLine> info_lines(const ClusterNodes& cluster);

std::string format_info(const std::vector<InfoLine>& lines);

// Returns the nodes that take no new jobs, by partition and reason, as the operator says it (up to
// a minute ago).
std::string format_reasons(const std::vector<kube::Partition>& partitions);

struct InfoOptions {
  bool json = false;
  bool reasons = false;  // instead of the nodes' states
};
int run_info(const Session& session, const InfoOptions& options, Output output);

}  // namespace cli
