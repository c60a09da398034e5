// Nodes and partitions as sinfo and scontrol show them, in Slurm's words. Pure, but for the
// topologies.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "api/partition.h"
#include "cli/cluster/info.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// Topologies by name of the node, as its agent has reported them. Empty if the user may not read
// timetables.
using Topologies = std::map<std::string, kube::NodeTopology>;
base::Result<Topologies> read_topologies(const Session& session, Output output);

// Returns the cores of a node; without a report one socket with a core for each CPU.
kube::NodeTopology topology_of(const NodeLine& line, const Topologies& topologies);

// Translates "idle" -> "idle", "mix" -> "mixed", "drng" -> "draining".
std::string long_node_state(const std::string& state);
// Translates "drain" -> "IDLE+DRAIN", as scontrol writes it.
std::string full_node_state(const std::string& state);

// Why a node takes no new jobs: the words of scontrol, or the operator's. "" if there are none.
std::string drain_reason(const NodeLine& line);
// Returns the user who has drained it ("" if that is not known), and when.
std::string drain_user(const NodeLine& line);
std::optional<base::Instant> drain_time(const NodeLine& line);

std::string node_address(const NodeLine& line);
// Labels that are not Kubernetes' own, "(null)" if there are none.
std::string node_features(const NodeLine& line);
// Returns the problem of the node's devices; "" if none.
std::string node_comment(const NodeLine& line);
// Returns "gpu:a100:4", and how many of these jobs hold: "gpu:a100:1". "(null)": it has none.
std::string node_gres(const NodeLine& line);
std::string node_gres_used(const NodeLine& line);
std::int64_t node_memory_mib(const NodeLine& line);
std::int64_t node_disk_mib(const NodeLine& line);
std::int64_t node_weight(const NodeLine& line);

// Returns the default partition first, then by name: slurm.conf's order is not in the API.
std::vector<const kube::Partition*> partitions_in_order(const ClusterNodes& cluster);

// Returns "NO", "YES:4", "FORCE:4", "EXCLUSIVE".
std::string over_subscribe(const kube::PartitionSpec& spec);
// Returns "OFF", "CANCEL", "REQUEUE", "SUSPEND".
std::string preempt_mode_word(kube::PreemptMode mode);
// The same of what is in force in a partition.
std::string preempt_mode(const kube::Partition& partition);

}  // namespace cli
