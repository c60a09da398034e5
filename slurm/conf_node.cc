// NodeName lines (1.3).
#include "slurm/conf.h"

#include <algorithm>
#include <array>

#include "scheduler/model/core_set.h"
#include "slurm/conf_actions.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/limits.h"
#include "slurm/quantities.h"

namespace slurm {
namespace {

using sched::NodeSpec;

// A file can only say how a node begins. UNKNOWN, the usual value, stands for "ask the node", which
// here is up.
base::Status node_state(NodeSpec& n, std::string_view key, std::string_view value) {
  return choose(n.state, key, value,
                {{"UNKNOWN", sched::NodeState::kUp},
                 {"IDLE", sched::NodeState::kUp},
                 {"DOWN", sched::NodeState::kDown},
                 {"DRAIN", sched::NodeState::kDrain},
                 {"DRAINED", sched::NodeState::kDrain}});
}

// "Feature" and "Features" are two spellings of one key; the later one on a line replaces the
// earlier.
base::Status features(NodeSpec& n, std::string_view, std::string_view value) {
  n.features = split(value, ',');
  return {};
}

// Reads MiB. A node without the key has 1 MiB, Slurm's default (1.3).
base::Status real_memory(NodeSpec& n, std::string_view key, std::string_view value) {
  return set_memory(n.memory, key, value);
}

// Slurm keeps these counts in 16 bits, of which the two highest values are reserved.
template <int NodeSpec::*field>
base::Status node_count(NodeSpec& n, std::string_view key, std::string_view value) {
  return set_integer(n.*field, key, value, {.min = 1, .max = 65'533});
}

// The other contents of gres.conf (files, cores) are not read.
base::Status gres(NodeSpec& n, std::string_view key, std::string_view value) {
  base::Result<sched::Devices> read = parse_gres(key, value);
  if (!read) return read.error();
  n.devices = std::move(read).value();
  return {};
}

// Keys that concern the network are ignored. Features that would make fewer cores usable than there
// are (core specialization, boards) are refused unless they are off: a job would get cores that
// Slurm keeps back.
using NodeKey = ConfKey<NodeSpec>;
constexpr std::array kNodeKeys = {
    NodeKey{"NodeName", string_key<&NodeSpec::name>},
    NodeKey{"CPUs", node_count<&NodeSpec::cpus>},
    NodeKey{"Procs", node_count<&NodeSpec::cpus>},
    NodeKey{"Sockets", node_count<&NodeSpec::sockets>},
    NodeKey{"CoresPerSocket", node_count<&NodeSpec::cores_per_socket>},
    NodeKey{"ThreadsPerCore", node_count<&NodeSpec::threads_per_core>},
    NodeKey{"RealMemory", real_memory},
    // Applied by read_node_keys, once RealMemory is known.
    NodeKey{"MemSpecLimit",
            [](NodeSpec&, std::string_view, std::string_view) { return base::Status{}; }},
    NodeKey{"Weight",
            [](NodeSpec& n, std::string_view key, std::string_view value) {
              return set_integer(n.weight, key, value, {.min = 0, .max = kUint32Max});
            }},
    NodeKey{"Features", features},
    NodeKey{"Feature", features},
    NodeKey{"State", node_state},
    NodeKey{"TmpDisk", [](NodeSpec& n, std::string_view key,
                          std::string_view value) { return set_memory(n.tmp_disk, key, value); }},
    NodeKey{"NodeAddr", ignored<NodeSpec>},
    NodeKey{"NodeHostname", ignored<NodeSpec>},
    NodeKey{"Port", ignored<NodeSpec>},
    NodeKey{"Gres", gres},
    NodeKey{"CoreSpecCount", absent_feature<NodeSpec>},
    NodeKey{"CpuSpecList", absent_feature<NodeSpec>},
    NodeKey{"Boards",
            [](NodeSpec&, std::string_view key, std::string_view value) {
              return value == "1" ? base::Status{}
                                  : not_supported(std::string{key} + "=" + std::string{value});
            }},
};

// Settles what several keys decide together, after all of them are read (1.3).
// 1. Sockets, if they are not given, follow from the CPUs.
// 2. CPUs, if they are not given, are all threads. If they are given they must be the cores or the
//    threads: any other number leaves open what a CPU of this node is.
// 3. MemSpecLimit is taken off the memory. The products are made in 64 bits, because each of the
//    three counts has up to 16.
base::Status complete_node(NodeSpec& node, std::span<const KeyValue> keys) {
  const auto given = [&](std::string_view key) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const KeyValue& k) { return same_word(k.key, key); });
  };
  const bool cpus_given = given("CPUs") || given("Procs");
  if (cpus_given && !given("Sockets")) {
    // Counts as slurmd does where Sockets is left out: as many as the CPUs make up.
    node.sockets = std::max(1, node.cpus / (node.cores_per_socket * node.threads_per_core));
  }
  const std::int64_t cores = std::int64_t{node.sockets} * node.cores_per_socket;
  if (cores > sched::kCoresPerNodeMax) {
    return base::invalid_argument("node " + node.name + ": has " + std::to_string(cores) +
                                  " cores; at most " + std::to_string(sched::kCoresPerNodeMax) +
                                  " are supported");
  }
  const std::int64_t threads = cores * node.threads_per_core;
  if (!cpus_given) node.cpus = static_cast<int>(threads);
  if (node.cpus != cores && node.cpus != threads) {
    return base::invalid_argument("node " + node.name + ": CPUs=" + std::to_string(node.cpus) +
                                  " is neither its " + std::to_string(cores) + " cores nor its " +
                                  std::to_string(threads) + " threads");
  }
  for (const KeyValue& key : keys) {
    if (!same_word(key.key, "MemSpecLimit")) continue;
    sched::MemoryMiB reserved{};
    const base::Status status = set_memory(reserved, key.key, key.value);
    if (!status) return status;
    if (reserved >= node.memory) {
      return base::invalid_argument("node " + node.name + ": MemSpecLimit leaves no memory");
    }
    // Kept for the system's own use: jobs never see it.
    node.memory -= reserved;
  }
  return {};
}

}  // namespace

// The line is read once, into the shape that all its nodes share. The name is then expanded: one
// shape, as many nodes as the hostlist names.
base::Result<std::vector<sched::NodeSpec>> read_node_keys(std::span<const KeyValue> keys) {
  NodeSpec shape;
  base::Status status = apply_keys(shape, keys, kNodeKeys, "a node");
  if (!status) return status.error();
  if (shape.name.empty()) return base::invalid_argument("NodeName: is missing");
  status = complete_node(shape, keys);
  if (!status) return status.error();
  const base::Result<std::vector<std::string>> names = expand_hostlist(shape.name);
  if (!names) return names.error().with_context("NodeName");
  // One line describes many nodes that differ in nothing but their names.
  std::vector<NodeSpec> nodes(names->size(), shape);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].name = (*names)[i];
  return nodes;
}

}  // namespace slurm
