#include "cli/cluster/info.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/device_resources.h"
#include "api/scheduler_config.h"
#include "api/wellknown.h"
#include "base/natural_order.h"
#include "cli/cluster/read.h"
#include "cli/table.h"
#include "scheduler/model/cluster.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

struct Held {
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::vector<kube::JobDevice> devices{};
};

// Returns what running and suspended jobs hold on each node, by its name. Jobs that take turns on
// the same cores are counted each, so a sum may exceed the node. A pending or ended job holds
// nothing, whatever its allocation was.
std::map<std::string, Held> held_by_node(const std::vector<kube::Job>& jobs) {
  std::map<std::string, Held> held;
  for (const kube::Job& job : jobs) {
    const bool active = job.status.state == kube::JobState::kRunning ||
                        job.status.state == kube::JobState::kSuspended;
    if (!active || !job.status.allocation) continue;
    for (const kube::NodeShare& part : job.status.allocation->shares) {
      const base::Result<std::vector<std::string>> names = slurm::expand_hostlist(part.hostlist);
      if (!names) continue;
      // A share without a count is the whole node. The number stands for that: more than any node
      // has, and small enough that a sum over all jobs does not overflow.
      constexpr std::int64_t kWhole = std::int64_t{1} << 31U;
      constexpr std::int64_t kMiB = 1 << 20;
      for (const std::string& name : *names) {
        held[name].cpus += part.cpus.value_or(kWhole);
        if (part.memory) held[name].memory_mib += part.memory->value() / kMiB;
        auto& devices = held[name].devices;
        devices.insert(devices.end(), part.devices.begin(), part.devices.end());
      }
    }
  }
  return held;
}

std::int64_t gpus_of(const std::vector<kube::JobDevice>& devices) {
  std::int64_t count = 0;
  for (const kube::JobDevice& each : devices) count += each.name == "gpu" ? each.count : 0;
  return count;
}

// Returns the nodes of which the operator says that they take no new jobs, with the reason.
// A hostlist that cannot be read is passed over: `info` shows what it can, and the operator has
// written it.
std::map<std::string, std::string> unusable_nodes(const kube::Partition& partition) {
  std::map<std::string, std::string> all;
  for (const kube::UnusableNodes& group : partition.status.unusable) {
    const base::Result<std::vector<std::string>> names = slurm::expand_hostlist(group.hostlist);
    if (!names) continue;
    for (const std::string& name : *names) all.emplace(name, group.reason);
  }
  return all;
}

// Returns the state as sinfo shows it:
// 1. down: kubelet does not report the node as ready
// 2. unk: its agent has not reported yet, as a slurmd that has not registered
// 3. drng, drain: it takes no new jobs, and has some, or none left
// 4. idle, alloc, mix: none, all or some of its CPUs are held
//
// The order of the tests is the order of importance: a node that is down is not called idle, even
// if it holds nothing. A node whose CPUs are not known counts as full as soon as a job is on it.
// `unusable`: why the operator gives it no new jobs, "" if it does.
std::string node_state(const kube::Node& node, std::string_view unusable, std::int64_t allocated) {
  if (!kube::is_true(node.status.conditions, "Ready")) return "down";
  const bool is_new = unusable == kube::kNodeNoAgent && allocated == 0;
  if (is_new && !node.spec.unschedulable) return "unk";
  if (node.spec.unschedulable || !unusable.empty()) return allocated > 0 ? "drng" : "drain";
  if (allocated == 0) return "idle";
  const auto cpus = node.status.allocatable.find("cpu");
  const bool full = cpus == node.status.allocatable.end() || allocated >= cpus->second.units();
  return full ? "alloc" : "mix";
}

// sinfo's words, which are shorter than slurm.conf's.
const char* partition_state(kube::PartitionState state) {
  switch (state) {
    case kube::PartitionState::kUp:
      return "up";
    case kube::PartitionState::kDown:
      return "down";
    case kube::PartitionState::kDrain:
      return "drain";
    case kube::PartitionState::kInactive:
      return "inact";
  }
  return "?";
}

// A partition names its nodes by a selector of labels or by a hostlist, never by both. `listed` are
// the names of the hostlist, expanded once for all nodes of the cluster.
bool has_node(const kube::PartitionSpec& spec, const std::set<std::string>& listed,
              const kube::Node& node) {
  if (spec.nodes.selector) return kube::matches(*spec.nodes.selector, node.metadata.labels);
  return listed.count(node.metadata.name) != 0;
}

// Returns the condition that says why nothing of the partition is in force: it has no nodes, and no
// job gets it by default. Null if something is.
const kube::Condition* refusal_of(const kube::Partition& partition) {
  const kube::Condition* accepted =
      kube::find_condition(partition.status.conditions, kube::kAccepted);
  const bool is_refused = !partition.status.accepted && accepted != nullptr &&
                          accepted->status == kube::ConditionStatus::kFalse;
  return is_refused ? accepted : nullptr;
}

}  // namespace

const kube::PartitionSpec& spec_in_force(const kube::Partition& partition) {
  return partition.status.accepted ? *partition.status.accepted : partition.spec;
}

// It is the only line of a partition that has no nodes: a user would look in vain for a partition
// that is not shown.
InfoLine partition_line(const kube::Partition& partition) {
  if (const kube::Condition* refusal = refusal_of(partition)) {
    return {.partition = partition.metadata.name,
            .available = "inact",
            .time_limit = "n/a",
            .state = "n/a",
            .hostlist = {},
            .refused = refusal->message.empty() ? refusal->reason : refusal->message};
  }
  const kube::PartitionSpec& spec = spec_in_force(partition);
  return {.partition = partition.metadata.name + (spec.is_default.value_or(false) ? "*" : ""),
          .available = partition_state(spec.state.value_or(kube::PartitionState::kUp)),
          .time_limit = spec.limits && spec.limits->max_time
                            ? slurm::format_limit(spec.limits->max_time)
                            : "infinite",
          .state = "n/a",
          .hostlist = {}};
}

namespace {

// The names of a partition's hostlist; none if its nodes are selected by labels.
std::set<std::string> listed_nodes(const kube::PartitionSpec& spec) {
  const auto names = slurm::expand_hostlist(spec.nodes.hostlist.value_or(""));
  return names ? std::set<std::string>{names->begin(), names->end()} : std::set<std::string>{};
}

void add_nodes(const kube::Partition& partition, const ClusterNodes& cluster,
               const std::map<std::string, Held>& held, std::vector<NodeLine>& lines) {
  const kube::PartitionSpec& spec = spec_in_force(partition);
  const std::set<std::string> listed = listed_nodes(spec);
  const std::map<std::string, std::string> unusable = unusable_nodes(partition);
  for (const kube::Node& node : cluster.nodes) {
    if (!has_node(spec, listed, node)) continue;
    const std::string& name = node.metadata.name;
    const auto found = held.find(name);
    const Held own = found == held.end() ? Held{} : found->second;
    const auto why = unusable.find(name);
    NodeLine line{.partition = &partition,
                  .node = &node,
                  .names = {name},
                  .state = {},
                  .reason = why == unusable.end() ? "" : why->second};
    line.state = node_state(node, line.reason, own.cpus);
    const auto cpus = node.status.allocatable.find("cpu");
    if (cpus != node.status.allocatable.end()) line.cpus = cpus->second.units();
    line.cpus_allocated = std::min(own.cpus, line.cpus);
    line.memory_allocated_mib = own.memory_mib;
    line.devices = kube::devices_of(node, cluster.devices);
    line.devices_allocated = own.devices;
    lines.push_back(std::move(line));
  }
}

// The status has the number of all nodes, and groups of those that take no new jobs with as many
// names as fit. The others have names only if the partition lists its nodes, and all of them exist.
void add_groups(const kube::Partition& partition, std::vector<NodeLine>& lines) {
  const std::int64_t nodes = partition.status.nodes.value_or(0);
  const std::int64_t unusable = partition.status.unusable_nodes.value_or(0);
  const std::int64_t cpus = nodes > 0 ? partition.status.cpus.value_or(0) / nodes : 0;
  std::set<std::string> unusable_names;
  for (const auto& [name, reason] : unusable_nodes(partition)) unusable_names.insert(name);
  const auto add = [&](const char* state, std::int64_t count, const std::set<std::string>& of) {
    if (count <= 0) return;
    NodeLine line{.partition = &partition,
                  .names = {},
                  .count = count,
                  .state = state,
                  .reason = {},
                  .cpus = cpus};
    // Some of the names only would look like all of them.
    if (std::ssize(of) == count) line.names.assign(of.begin(), of.end());
    lines.push_back(std::move(line));
  };
  std::set<std::string> usable_names = listed_nodes(spec_in_force(partition));
  for (const std::string& name : unusable_names) usable_names.erase(name);
  add("drain", unusable, unusable_names);
  add("unk", nodes - unusable, usable_names);
}

}  // namespace

// Cost: jobs × nodes of each, and partitions × nodes of the cluster.
std::vector<NodeLine> node_lines(const ClusterNodes& cluster) {
  const std::map<std::string, Held> held = held_by_node(cluster.jobs);
  std::vector<NodeLine> lines;
  for (const kube::Partition& partition : cluster.partitions) {
    if (refusal_of(partition) != nullptr) continue;
    if (cluster.has_nodes) {
      add_nodes(partition, cluster, held, lines);
    } else {
      add_groups(partition, lines);
    }
  }
  return lines;
}

// A partition stands in a line for each state that its nodes have, as in sinfo, so the number of
// lines depends on the states and not on the number of nodes. Nodes of one state become one
// hostlist, in natural order.
// For example, a default partition of four nodes, of which two are busy and one is drained:
//
//   PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
//   batch*       up 2-00:00:00      2  alloc n[1-2]
//   batch*       up 2-00:00:00      1  drain n3
//   batch*       up 2-00:00:00      1   idle n4
std::vector<InfoLine> info_lines(const ClusterNodes& cluster) {
  struct Group {
    std::int64_t count = 0;
    std::vector<std::string> names;
    std::int64_t gpus = 0, gpus_held = 0;
  };
  std::map<const kube::Partition*, std::map<std::string, Group>> groups;
  for (const NodeLine& line : node_lines(cluster)) {
    Group& group = groups[line.partition][line.state];
    group.count += line.count;
    group.names.insert(group.names.end(), line.names.begin(), line.names.end());
    group.gpus += gpus_of(line.devices);
    group.gpus_held += gpus_of(line.devices_allocated);
  }
  std::vector<InfoLine> lines;
  for (const kube::Partition& partition : cluster.partitions) {
    const std::map<std::string, Group>& by_state = groups[&partition];
    if (by_state.empty()) lines.push_back(partition_line(partition));
    for (const auto& [state, group] : by_state) {
      InfoLine line = partition_line(partition);
      line.state = state;
      line.nodes_count = group.count;
      line.hostlist = slurm::compress_hostlist(group.names);
      line.gpus = group.gpus;
      line.gpus_held = group.gpus_held;
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

// Nodes last: the hostlist is the one column that may be long. Below the table is why partitions
// are refused.
std::string format_info(const std::vector<InfoLine>& lines) {
  // sinfo's widths (sinfo(1), default format).
  std::vector<Column> columns = {Column{"PARTITION", 9, true}, Column{"AVAIL", 5},
                                 Column{"TIMELIMIT", 10},      Column{"NODES", 6},
                                 Column{"STATE", 6},           Column{"NODELIST", 0, true}};
  // GPUs that are held, of those that there are; only if there are any.
  const bool has_gpus =
      std::ranges::any_of(lines, [](const InfoLine& line) { return line.gpus > 0; });
  if (has_gpus) columns.insert(columns.end() - 1, Column{"GPUS", 6});
  std::vector<std::vector<std::string>> rows;
  for (const InfoLine& line : lines) {
    rows.push_back({line.partition, line.available, line.time_limit,
                    std::to_string(line.nodes_count), line.state, line.hostlist});
    if (!has_gpus) continue;
    const std::string held = std::to_string(line.gpus_held) + "/" + std::to_string(line.gpus);
    rows.back().insert(rows.back().end() - 1, held);
  }
  std::string text = format_table(columns, rows);
  for (const InfoLine& line : lines) {
    if (!line.refused.empty()) {
      text += "partition " + line.partition + " is refused: " + line.refused + "\n";
    }
  }
  return text;
}

// SOURCE: sinfo.1, --list-reasons. A node of two partitions stands in a line for each.
std::string format_reasons(const std::vector<kube::Partition>& partitions) {
  const std::array<Column, 5> columns = {Column{"REASON", 20, true}, Column{"PARTITION", 9, true},
                                         Column{"NODES", 6}, Column{"NODELIST", 20, true},
                                         Column{"MESSAGE", 0, true}};
  std::vector<std::vector<std::string>> rows;
  for (const kube::Partition& partition : partitions) {
    for (const kube::UnusableNodes& group : partition.status.unusable) {
      rows.push_back({group.reason, partition.metadata.name, std::to_string(group.nodes),
                      group.hostlist, group.message});
    }
  }
  return format_table(columns, rows);
}

namespace {

// The groups as the operator has published them, both for people and for programs.
void print_reasons(const std::vector<kube::Partition>& partitions, bool as_json, Output output) {
  if (!as_json) {
    output.out << format_reasons(partitions);
    return;
  }
  Json json = Json::array();
  for (const kube::Partition& partition : partitions) {
    for (const kube::UnusableNodes& group : partition.status.unusable) {
      json.push_back({{"reason", group.reason},
                      {"partition", partition.metadata.name},
                      {"nodes", group.nodes},
                      {"hostlist", group.hostlist},
                      {"message", group.message}});
    }
  }
  output.out << json.dump(2) << "\n";
}

}  // namespace

base::Result<kube::DevicesConfig> read_devices_config(const Session& session) {
  const auto config = session.client.get<kube::SchedulerConfig>(
      {.ns = "", .name = std::string{kube::kSchedulerConfigName}});
  if (!config && config.error().code == base::Code::kNotFound) return kube::DevicesConfig{};
  if (!config) return config.error();
  const auto& spec = config->status.accepted ? *config->status.accepted : config->spec;
  return spec.devices.value_or(kube::DevicesConfig{});
}

// Reads what the user's rights allow: with nodes and all jobs the states of nodes, else what the
// partitions say. kubegang's own roles give no right to nodes, so for most users this is the usual
// case.
base::Result<ClusterNodes> read_cluster_nodes(const Session& session, std::string_view speaker,
                                              Output output) {
  ClusterNodes cluster;
  auto partitions = list_all<kube::Partition>(session, "", output);
  if (!partitions) return partitions.error();
  cluster.partitions = std::move(*partitions);
  std::ranges::sort(cluster.partitions, {},
                    [](const kube::Partition& partition) { return partition.metadata.name; });
  const auto without = [&](const char* what) {
    output.err << speaker << ": " << what
               << " may not be read, so states of nodes are not shown; they need the rights to "
                  "list nodes and the jobs.kubegang.io of all namespaces\n";
    cluster.has_nodes = false;
    return cluster;
  };
  const auto is_forbidden = [](const auto& list) {
    return !list && list.error().code == base::Code::kPermissionDenied;
  };
  auto nodes = list_all<kube::Node>(session, "", output);
  if (is_forbidden(nodes)) return without("nodes");
  if (!nodes) return nodes.error();
  auto jobs = list_all<kube::Job>(session, "", output);
  if (is_forbidden(jobs)) return without("jobs of all namespaces");
  if (!jobs) return jobs.error();
  if (auto devices = read_devices_config(session)) cluster.devices = *std::move(devices);
  cluster.nodes = std::move(*nodes);
  cluster.jobs = std::move(*jobs);
  return cluster;
}

// Three lists, and no watch: the table is one picture. The nodes and jobs are not read if only
// reasons are asked for, because few users may list nodes.
// Jobs of all namespaces, since a node may be full of jobs of other namespaces.
int run_info(const Session& session, const InfoOptions& options, Output output) {
  const auto fail = [&](const base::Error& error) {
    output.err << "kubectl-gang info: " << error.message << "\n";
    return kExitFailed;
  };
  if (options.reasons) {
    const auto partitions = list_all<kube::Partition>(session, "", output);
    if (!partitions) return fail(partitions.error());
    print_reasons(*partitions, options.json, output);
    return kExitOk;
  }
  const auto cluster = read_cluster_nodes(session, "kubectl-gang info", output);
  if (!cluster) return fail(cluster.error());
  const std::vector<InfoLine> lines = info_lines(*cluster);
  if (!options.json) {
    output.out << format_info(lines);
    return kExitOk;
  }
  Json json = Json::array();
  for (const InfoLine& line : lines) {
    json.push_back({{"partition", line.partition},
                    {"available", line.available},
                    {"timeLimit", line.time_limit},
                    {"state", line.state},
                    {"nodes", line.nodes_count},
                    {"gpus", line.gpus},
                    {"gpusHeld", line.gpus_held},
                    {"nodeList", line.hostlist},
                    {"refused", line.refused}});
  }
  output.out << json.dump(2) << "\n";
  return kExitOk;
}

}  // namespace cli
