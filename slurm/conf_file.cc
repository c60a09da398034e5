// The file as a whole: cluster keys, nodes, partitions, DEFAULT lines.
//
// A line belongs to a node or to a partition if its first key is NodeName or PartitionName; all
// other lines hold keys of the cluster, perhaps several on a line. The first error ends the
// reading; it names its line, unless it lies in keys of several lines together.
#include <algorithm>

#include "slurm/conf.h"
#include "slurm/conf_actions.h"
#include "slurm/conf_lines.h"

namespace slurm {
namespace {

using Line = ConfLine;

// Every message of a file begins with its line. An unknown key is no less wrong than a wrong value.
base::Error at(std::size_t number, const base::Error& error) {
  return base::invalid_argument(error.with_context("line " + std::to_string(number)).message);
}

bool begins_with(const Line& line, std::string_view key) {
  return same_word(line.keys.front().key, key);
}

// Returns the keys of a line after those of the DEFAULT lines before it. Readers apply keys from
// front to back. So a key of the line wins over the same key of a DEFAULT line without a merge. The
// name DEFAULT itself is not among them (take_default).
std::vector<KeyValue> with_defaults(const std::vector<KeyValue>& defaults, const Line& line) {
  std::vector<KeyValue> keys = defaults;
  keys.insert(keys.end(), line.keys.begin(), line.keys.end());
  return keys;
}

// "NodeName=DEFAULT …" says what the lines behind it have unless they say otherwise; several such
// lines add up. Keys are applied in order, so the line's own come last and win. Returns false if
// the line is an ordinary one.
bool take_default(std::vector<KeyValue>& defaults, const Line& line) {
  if (!same_word(line.keys.front().value, "DEFAULT")) return false;
  defaults.insert(defaults.end(), line.keys.begin() + 1, line.keys.end());
  return true;
}

// A line may name many nodes ("n[1-1000]"), so the bound counts nodes and not lines, and is checked
// before the nodes are copied. DEFAULT lines hold for the lines after them only, hence one pass in
// the order of the file. Nodes that two lines name are not looked for here.
base::Status read_nodes(const std::vector<Line>& lines, std::vector<sched::NodeSpec>& nodes) {
  constexpr std::size_t kNodesMax = 65'536;
  std::vector<KeyValue> defaults;
  for (const Line& line : lines) {
    if (!begins_with(line, "NodeName") || take_default(defaults, line)) continue;
    const base::Result<std::vector<sched::NodeSpec>> read =
        read_node_keys(with_defaults(defaults, line));
    if (!read) return at(line.number, read.error());
    if (nodes.size() + read->size() > kNodesMax) {
      return at(line.number,
                base::invalid_argument("more than " + std::to_string(kNodesMax) + " nodes"));
    }
    nodes.insert(nodes.end(), read->begin(), read->end());
  }
  return {};
}

// "Nodes=ALL", and a partition without Nodes, mean the nodes of this file, so nodes are read first.
base::Status read_partitions(const std::vector<Line>& lines, SlurmConf& conf) {
  std::vector<std::string> all_nodes;
  for (const sched::NodeSpec& node : conf.nodes) all_nodes.push_back(node.name);
  std::vector<KeyValue> defaults;
  for (const Line& line : lines) {
    if (!begins_with(line, "PartitionName") || take_default(defaults, line)) continue;
    base::Result<sched::PartitionConfig> partition =
        read_partition_keys(with_defaults(defaults, line), all_nodes);
    if (!partition) return at(line.number, partition.error());
    conf.configuration.partitions.push_back(std::move(partition).value());
  }
  return {};
}

}  // namespace

// 1. Take the text apart into lines of keys.
// 2. Cluster keys may be on any line, and some depend on each other (SelectTypeParameters on
//    SelectType). They are collected, tried one by one for the line number of a mistake, and then
//    read together.
// 3. Nodes, then partitions, each with the DEFAULT lines before it.
// Keys without effect on scheduling are skipped by is_foreign_key() before any reader sees them, so
// that an existing file can be read as it is.
base::Result<SlurmConf> read_slurm_conf(std::string_view text) {
  if (text.size() > kSlurmConfBytesMax) {
    return base::invalid_argument("slurm.conf: larger than " + std::to_string(kSlurmConfBytesMax) +
                                  " bytes");
  }
  const ConfLines read = read_conf_lines(text);
  if (!read.errors.empty()) {
    return at(read.errors.front().number, base::invalid_argument(read.errors.front().message));
  }
  SlurmConf conf;
  std::vector<KeyValue> cluster;
  for (const Line& line : read.lines) {
    if (begins_with(line, "NodeName") || begins_with(line, "PartitionName")) continue;
    if (begins_with(line, kIncludeKey)) {  // the text comes without a directory
      return at(line.number, base::invalid_argument("include " + line.keys.front().value +
                                                    ": is not followed here; write its lines "
                                                    "in its place"));
    }
    for (const KeyValue& key : line.keys) {
      if (is_foreign_key(key.key)) continue;
      cluster.push_back(key);
      // Each key once alone, so that a mistake has its line.
      const std::vector<KeyValue> alone = {key};
      if (same_word(key.key, "SelectTypeParameters")) continue;
      const base::Result<sched::ClusterParameters> tried = read_cluster_keys(alone);
      if (!tried) return at(line.number, tried.error());
    }
  }
  base::Result<sched::ClusterParameters> parameters = read_cluster_keys(cluster);
  if (!parameters) return parameters.error();
  conf.configuration.cluster = std::move(parameters).value();
  base::Status status = read_nodes(read.lines, conf.nodes);
  if (!status) return status.error();
  status = read_partitions(read.lines, conf);
  if (!status) return status.error();
  return conf;
}

}  // namespace slurm
