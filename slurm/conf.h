// slurm.conf: its keys, read into the scheduler's configuration (1.1 – 1.4). `simulate` reads them
// from scenario files, the import from a slurm.conf. SOURCE: slurm.conf(5), sacctmgr(1). Pure.
//
// A key that is unknown, has an impossible value or belongs to a feature that is not there is an
// error that names it. Whether a combination is legal (1.6) is decided by the scheduler's own
// check, not here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scheduler/model/config.h"
#include "scheduler/model/node.h"
#include "slurm/text.h"

namespace slurm {

inline constexpr std::size_t kSlurmConfBytesMax = 8U << 20U;

// Cluster-wide keys; absent ones have Slurm's defaults. A later key wins.
base::Result<sched::ClusterParameters> read_cluster_keys(std::span<const KeyValue> keys);

// Reads one PartitionName line. `all_nodes` is what Nodes=ALL and an absent Nodes mean.
base::Result<sched::PartitionConfig> read_partition_keys(std::span<const KeyValue> keys,
                                                         std::span<const std::string> all_nodes);

// Reads one NodeName line: as many nodes as its hostlist names.
base::Result<std::vector<sched::NodeSpec>> read_node_keys(std::span<const KeyValue> keys);

// Reads one QOS as sacctmgr shows it: Name, Priority, Preempt, PreemptMode, PreemptExemptTime,
// GraceTime, Flags and limits.
base::Result<sched::QosConfig> read_qos_keys(std::span<const KeyValue> keys);

// Reads one account, or one user in an account, as sacctmgr has them: Name, Parent or Account,
// Fairshare, Priority and limits.
base::Result<sched::AccountConfig> read_account_keys(std::span<const KeyValue> keys);
base::Result<sched::UserConfig> read_user_keys(std::span<const KeyValue> keys);

struct SlurmConf {
  sched::Configuration configuration;
  std::vector<sched::NodeSpec> nodes;
};
// Reads a whole slurm.conf: comments, continued lines, DEFAULT lines. Errors name the line.
base::Result<SlurmConf> read_slurm_conf(std::string_view text);

}  // namespace slurm
