#include "cli/slurm/sinfo_command.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <ranges>
#include <set>

#include "base/natural_order.h"
#include "cli/slurm/format.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/node_facts.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace cli {
namespace {

// SOURCE: sinfo(1), the formats of --long, --summarize, --list-reasons and --Node.
constexpr const char* kFormat = "%9P %.5a %.10l %.6D %.6t %N";
constexpr const char* kLongFormat = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
constexpr const char* kSummary = "%9P %.5a %.10l %.16F %N";
constexpr const char* kReasons = "%20E %9u %19H %N";
constexpr const char* kLongReasons = "%20E %12U %19H %6t %N";
constexpr const char* kNodes = " %.6D %.9P %6t";
constexpr const char* kLongNodes = " %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E";

// A line: nodes of one partition, or of several, that do not differ in what is printed of them. The
// lines are of different nodes; a partition without nodes has none.
struct NodeGroup {
  const kube::Partition* partition = nullptr;
  std::vector<const NodeLine*> lines;
  const Topologies* topologies = nullptr;
};
using Field = SlurmField<NodeGroup>;
using Cell = FormatCell<NodeGroup>;

const kube::PartitionSpec& spec_of(const NodeGroup& group) {
  return spec_in_force(*group.partition);
}

std::string state_of(const NodeGroup& group) {
  return group.lines.empty() ? "n/a" : group.lines.front()->state;
}

// Returns "4", or "4+" of nodes that have 4 or more, as sinfo writes it.
template <class Value>
std::string least_of(const NodeGroup& group, Value value) {
  if (group.lines.empty()) return "0";
  const auto [least, most] =
      std::ranges::minmax(group.lines | std::views::transform([&](const NodeLine* line) {
                            return static_cast<std::int64_t>(value(*line));
                          }));
  return std::to_string(least) + (least == most ? "" : "+");
}

std::string topology(const NodeGroup& group, std::int32_t kube::NodeTopology::*part) {
  return least_of(group,
                  [&](const NodeLine& line) { return topology_of(line, *group.topologies).*part; });
}

std::string sockets_cores_threads(const NodeGroup& group) {
  return topology(group, &kube::NodeTopology::sockets) + ":" +
         topology(group, &kube::NodeTopology::cores_per_socket) + ":" +
         topology(group, &kube::NodeTopology::threads_per_core);
}

bool takes_no_jobs(const NodeLine& line) {
  static const std::set<std::string> kOut{"down", "drain", "drng", "unk"};
  return kOut.contains(line.state);
}

std::int64_t count_of(const NodeGroup& group) {
  std::int64_t count = 0;
  for (const NodeLine* line : group.lines) count += line->count;
  return count;
}

// SOURCE: a node that is being drained counts as allocated as long as it has jobs.
struct NodeCounts {
  std::int64_t allocated = 0, idle = 0, other = 0;
};
NodeCounts node_counts(const NodeGroup& group) {
  NodeCounts counts;
  for (const NodeLine* line : group.lines) {
    const bool has_jobs = line->state == "alloc" || line->state == "mix" || line->state == "drng";
    (has_jobs               ? counts.allocated
     : takes_no_jobs(*line) ? counts.other
                            : counts.idle) += line->count;
  }
  return counts;
}

NodeCounts cpu_counts(const NodeGroup& group) {
  NodeCounts counts;
  for (const NodeLine* line : group.lines) {
    const std::int64_t free = line->cpus - line->cpus_allocated;
    counts.allocated += line->cpus_allocated * line->count;
    (takes_no_jobs(*line) ? counts.other : counts.idle) += free * line->count;
  }
  return counts;
}

std::string joined(const NodeCounts& counts) {
  return std::to_string(counts.allocated) + "/" + std::to_string(counts.idle) + "/" +
         std::to_string(counts.other) + "/" +
         std::to_string(counts.allocated + counts.idle + counts.other);
}

std::string hostlist_of(const NodeGroup& group) {
  std::vector<std::string> names;
  for (const NodeLine* line : group.lines) {
    names.insert(names.end(), line->names.begin(), line->names.end());
  }
  return slurm::compress_hostlist(names);
}

std::string time_limit_text(const std::optional<base::Duration>& limit, const char* none) {
  return limit ? slurm::format_limit(limit) : none;
}

std::string job_size(const NodeGroup& group) {
  const kube::PartitionLimits limits = spec_of(group).limits.value_or(kube::PartitionLimits{});
  const int least = limits.min_nodes.value_or(1);
  if (!limits.max_nodes) return std::to_string(least) + "-infinite";
  return std::to_string(least) +
         (*limits.max_nodes == least ? "" : "-" + std::to_string(*limits.max_nodes));
}

std::string groups_of(const NodeGroup& group) {
  const auto& allow = spec_of(group).allow;
  if (!allow || !allow->namespaces) return "all";
  std::string text;
  for (const std::string& name : *allow->namespaces) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string first_or(const NodeGroup& group, std::string (*value)(const NodeLine&),
                     const char* none) {
  const std::string text = group.lines.empty() ? "" : value(*group.lines.front());
  return text.empty() ? none : text;
}

std::string reason_time(const NodeGroup& group) {
  return slurm_time(group.lines.empty() ? std::nullopt : drain_time(*group.lines.front()));
}

std::string limit_of_cpus(const NodeGroup& group) {
  const auto& limits = spec_of(group).limits;
  return limits && limits->max_cpus_per_node ? std::to_string(*limits->max_cpus_per_node)
                                             : "UNLIMITED";
}

// SOURCE: recorded: of a default partition with a long name the star stays.
std::string cut_partition(const NodeGroup&, const std::string& value, std::size_t width,
                          bool at_right) {
  const bool is_default = value.ends_with('*');
  return is_default ? placed(value, width - 1, at_right) + "*" : placed(value, width, at_right);
}

// SOURCE: sinfo(1), --format and --Format.
constexpr std::array kFields = {
    Field{'P',
          "partition",
          "PARTITION",
          [](const NodeGroup& g) { return partition_line(*g.partition).partition; },
          {},
          cut_partition},
    Field{'R', "partitionname", "PARTITION",
          [](const NodeGroup& g) { return g.partition->metadata.name; }},
    Field{'a', "available", "AVAIL",
          [](const NodeGroup& g) { return partition_line(*g.partition).available; }},
    Field{'l', "time", "TIMELIMIT",
          [](const NodeGroup& g) { return partition_line(*g.partition).time_limit; }},
    Field{'L', "defaulttime", "DEFAULTTIME",
          [](const NodeGroup& g) {
            const auto& limits = spec_of(g).limits;
            return time_limit_text(limits ? limits->default_time : std::nullopt, "n/a");
          }},
    Field{'s', "size", "JOB_SIZE", job_size},
    Field{'h', "oversubscribe", "OVERSUBSCRIBE",
          [](const NodeGroup& g) { return over_subscribe(spec_of(g)); }},
    Field{'M', "preemptmode", "PREEMPT_MODE",
          [](const NodeGroup& g) { return preempt_mode(*g.partition); }},
    Field{'p', "prioritytier", "PRIO_TIER",
          [](const NodeGroup& g) { return std::to_string(spec_of(g).priority_tier.value_or(1)); }},
    Field{'I', "priorityjobfactor", "PRIO_JOB_FACTOR",
          [](const NodeGroup& g) {
            return std::to_string(spec_of(g).priority_job_factor.value_or(1));
          }},
    Field{'g', "groups", "GROUPS", groups_of},
    Field{'B', "maxcpuspernode", "MAX_CPUS_PER_NODE", limit_of_cpus},
    Field{'D', "nodes", "NODES", [](const NodeGroup& g) { return std::to_string(count_of(g)); }},
    Field{'t', "statecompact", "STATE", state_of},
    Field{'T', "statelong", "STATE",
          [](const NodeGroup& g) { return long_node_state(state_of(g)); }},
    Field{'\0', "statecomplete", "STATECOMPLETE",
          [](const NodeGroup& g) { return slurm::lower_case(full_node_state(state_of(g))); }},
    Field{'N', "nodelist", "NODELIST", hostlist_of},
    Field{'n', "nodehost", "HOSTNAMES", hostlist_of},
    Field{'o', "nodeaddr", "NODE_ADDR",
          [](const NodeGroup& g) { return first_or(g, node_address, "n/a"); }},
    Field{'A', "nodeai", "NODES(A/I)",
          [](const NodeGroup& g) {
            const NodeCounts counts = node_counts(g);
            return std::to_string(counts.allocated) + "/" + std::to_string(counts.idle);
          }},
    Field{'F', "nodeaiot", "NODES(A/I/O/T)",
          [](const NodeGroup& g) { return joined(node_counts(g)); }},
    Field{'C', "cpusstate", "CPUS(A/I/O/T)",
          [](const NodeGroup& g) { return joined(cpu_counts(g)); }},
    Field{'c', "cpus", "CPUS",
          [](const NodeGroup& g) { return least_of(g, [](const auto& l) { return l.cpus; }); }},
    Field{'X', "sockets", "SOCKETS",
          [](const NodeGroup& g) { return topology(g, &kube::NodeTopology::sockets); }},
    Field{'Y', "cores", "CORES",
          [](const NodeGroup& g) { return topology(g, &kube::NodeTopology::cores_per_socket); }},
    Field{'Z', "threads", "THREADS",
          [](const NodeGroup& g) { return topology(g, &kube::NodeTopology::threads_per_core); }},
    Field{'z', "socketcorethread", "S:C:T", sockets_cores_threads},
    Field{'m', "memory", "MEMORY", [](const NodeGroup& g) { return least_of(g, node_memory_mib); }},
    Field{'\0', "allocmem", "ALLOCMEM",
          [](const NodeGroup& g) {
            return least_of(g, [](const auto& l) { return l.memory_allocated_mib; });
          }},
    Field{'d', "disk", "TMP_DISK", [](const NodeGroup& g) { return least_of(g, node_disk_mib); }},
    Field{'w', "weight", "WEIGHT", [](const NodeGroup& g) { return least_of(g, node_weight); }},
    Field{'f', "features", "AVAIL_FEATURES",
          [](const NodeGroup& g) { return first_or(g, node_features, "(null)"); }},
    Field{'b', "features_act", "ACTIVE_FEATURES",
          [](const NodeGroup& g) { return first_or(g, node_features, "(null)"); }},
    Field{'E', "reason", "REASON",
          [](const NodeGroup& g) { return first_or(g, drain_reason, "none"); }},
    Field{'u', "user", "USER",
          [](const NodeGroup& g) { return first_or(g, drain_user, "Unknown"); }},
    Field{'U', "userlong", "USER",
          [](const NodeGroup& g) { return first_or(g, drain_user, "Unknown"); }},
    Field{'H', "timestamp", "TIMESTAMP", reason_time},
    Field{'v', "version", "VERSION",
          [](const NodeGroup& g) {
            const auto version = [](const NodeLine& line) {
              return line.node == nullptr ? "" : line.node->status.node_info.kubelet_version;
            };
            return first_or(g, version, "unknown");
          }},
    Field{'e', "freemem", "FREE_MEM", nullptr, "N/A"},
    Field{'O', "cpusload", "CPU_LOAD", nullptr, "N/A"},
    Field{'G', "gres", "GRES", [](const NodeGroup& g) { return first_or(g, node_gres, "(null)"); }},
    Field{'\0', "gresused", "GRES_USED",
          [](const NodeGroup& g) { return first_or(g, node_gres_used, "(null)"); }},
    Field{'r', "root", "ROOT", nullptr, "no"},
    Field{'S', "allocnodes", "ALLOCNODES", nullptr, "all"},
    Field{'V', "cluster", "CLUSTER", nullptr, "N/A"},
    Field{'\0', "comment", "COMMENT", nullptr, "(null)"},
    Field{'\0', "extra", "EXTRA", nullptr, "(null)"},
    Field{'\0', "port", "PORT", nullptr, "N/A"},
};

// SOURCE: nodes stand in one line if they agree in all other fields that are printed.
constexpr std::string_view kSummed = "DNAFC";
constexpr std::string_view kLeast = "cXYZzmdweO";  // "4+"; with --exact not in one line either
constexpr std::string_view kOfPartition = "PRalLshMpIgBrS";

constexpr WordTakes kNothing = WordTakes::kNothing;
constexpr WordTakes kValue = WordTakes::kValue;
constexpr std::string_view kNoEffect = "accepted; it is so anyway";
constexpr std::array kOptions = {
    WordOption{'o', "format", kValue, "letters of fields, with widths"},
    WordOption{'O', "Format", kValue, "names of fields, with widths"},
    WordOption{'h', "noheader", kNothing, "no heading"},
    WordOption{'N', "Node", kNothing, "a line for each node"},
    WordOption{'R', "list-reasons", kNothing, "why nodes take no new jobs"},
    WordOption{'s', "summarize", kNothing, "a line for each partition"},
    WordOption{'l', "long", kNothing, "the long format"},
    WordOption{'p', "partition", kValue, "only these partitions"},
    WordOption{'n', "nodes", kValue, "only these nodes"},
    WordOption{'t', "states", kValue, "only nodes in these states"},
    WordOption{'r', "responding", kNothing, "only nodes that are not down"},
    WordOption{'d', "dead", kNothing, "only nodes that are down"},
    WordOption{'e', "exact", kNothing, "nodes of different sizes in different lines"},
    WordOption{'S', "sort", kValue, "letters of fields, with - for the reverse"},
    WordOption{'M', "clusters", kValue, "a context of the kubeconfig"},
    WordOption{'a', "all", kNothing, kNoEffect},
    WordOption{'\0', "hide", kNothing, kNoEffect},
    WordOption{'\0', "local", kNothing, kNoEffect},
    WordOption{'\0', "noconvert", kNothing, kNoEffect},
    WordOption{'v', "verbose", kNothing, kNoEffect},
    WordOption{'i', "iterate", kValue, "", "is not there yet; use watch(1)"},
    WordOption{'T', "reservation", kNothing, "", "kubegang has no reservations"},
    WordOption{'\0', "federation", kNothing, "", "kubegang has no federations"},
    WordOption{'\0', "json", kNothing, "", "use kubectl gang info -o json"},
    WordOption{'\0', "yaml", kNothing, "", "use kubectl gang info -o yaml"}};

// SOURCE: sinfo(1), "ENVIRONMENT VARIABLES".
constexpr std::array kVariables = {
    InputVariable{"SINFO_FORMAT", "format"}, InputVariable{"SINFO_PARTITION", "partition"},
    InputVariable{"SINFO_SORT", "sort"}, InputVariable{"SLURM_CLUSTERS", "clusters"}};

struct SinfoOptions {
  std::string format;       // letters, or
  std::string long_format;  // names
  bool has_heading = true;
  bool has_date = false;
  bool by_node = false;
  bool only_reasons = false;
  bool is_exact = false;
  std::set<std::string> partitions, nodes, states;  // empty: all
  std::string sort;
  std::string context;
};

int fail(Output output, const std::string& message) {
  output.err << "sinfo: error: " << message << "\n";
  return kExitFailed;
}

// The states here of a word of --states: a node that is drained is idle, too.
// SOURCE: sinfo(1), --states. Those of which kubegang has none fit no node.
struct StateWord {
  std::string_view word;
  std::array<const char*, 3> states;  // null: none
};
constexpr std::array kStateWords = {
    StateWord{"idle", {"idle", "drain"}},
    // SOURCE: recorded: a node that has jobs and free CPUs is allocated, too.
    StateWord{"alloc", {"alloc", "mix", "drng"}}, StateWord{"allocated", {"alloc", "mix", "drng"}},
    StateWord{"mix", {"mix", nullptr}}, StateWord{"mixed", {"mix", nullptr}},
    StateWord{"down", {"down", nullptr}}, StateWord{"drain", {"drain", "drng"}},
    StateWord{"drained", {"drain", nullptr}}, StateWord{"draining", {"drng", nullptr}},
    StateWord{"drng", {"drng", nullptr}}, StateWord{"unk", {"unk", nullptr}},
    StateWord{"unknown", {"unk", nullptr}}, StateWord{"no_respond", {"down", nullptr}},
    StateWord{"comp", {nullptr, nullptr}}, StateWord{"completing", {nullptr, nullptr}},
    StateWord{"fail", {nullptr, nullptr}}, StateWord{"future", {nullptr, nullptr}},
    StateWord{"maint", {nullptr, nullptr}}, StateWord{"planned", {nullptr, nullptr}},
    StateWord{"reserved", {nullptr, nullptr}}, StateWord{"resv", {nullptr, nullptr}},
    StateWord{"reboot", {nullptr, nullptr}}, StateWord{"cloud", {nullptr, nullptr}},
    StateWord{"perfctrs", {nullptr, nullptr}}};

base::Status add_states(const std::string& text, SinfoOptions& options) {
  for (const std::string& word : list_of(text)) {
    if (slurm::same_word(word, "all")) continue;
    const auto found = std::ranges::find_if(
        kStateWords, [&](const StateWord& state) { return slurm::same_word(state.word, word); });
    if (found == kStateWords.end()) {
      std::string all;
      for (const StateWord& state : kStateWords) {
        all += (all.empty() ? "" : ",") + std::string{state.word};
      }
      return base::invalid_argument("Bad state string: \"" + word +
                                    "\"\nsinfo: error: valid states: " + all);
    }
    options.states.insert("-");  // so that a word that fits no node shows none
    for (const char* state : found->states) {
      if (state != nullptr) options.states.insert(state);
    }
  }
  return {};
}

base::Status apply(const ReadOption& option, SinfoOptions& options) {
  const std::string& name = option.name;
  if (name == "noheader") options.has_heading = false;
  if (name == "Node") options.by_node = true;
  if (name == "list-reasons") options.only_reasons = true;
  if (name == "long") options.has_date = true;
  if (name == "exact") options.is_exact = true;
  if (name == "format") options.format = option.value;
  if (name == "Format") options.long_format = option.value;
  if (name == "sort") options.sort = option.value;
  if (name == "clusters") options.context = option.value;
  if (name == "responding") options.states = {"idle", "mix", "alloc", "drain", "drng", "unk"};
  if (name == "dead") options.states = {"down"};
  if (name == "states") return add_states(option.value, options);
  if (name == "partition") {
    for (std::string& word : list_of(option.value)) options.partitions.insert(std::move(word));
  }
  if (name == "nodes") {
    const auto nodes = slurm::expand_hostlist(option.value);
    if (!nodes) return nodes.error();
    options.nodes.insert(nodes->begin(), nodes->end());
  }
  return {};
}

bool has(const ReadWords& words, std::string_view name) {
  return std::ranges::any_of(words.options, [&](const auto& o) { return o.name == name; });
}

// SOURCE: the column of --Node is as wide as the longest name of a node, and at least 9.
std::string default_format(const ReadWords& words, const std::vector<NodeLine>& lines) {
  const bool is_long = has(words, "long");
  if (has(words, "summarize")) return kSummary;
  if (has(words, "list-reasons")) return is_long ? kLongReasons : kReasons;
  if (!has(words, "Node")) return is_long ? kLongFormat : kFormat;
  std::size_t width = 9;
  for (const NodeLine& line : lines) {
    for (const std::string& name : line.names) width = std::max(width, name.size());
  }
  return "%" + std::to_string(width) + "N" + (is_long ? kLongNodes : kNodes);
}

bool is_shown(const NodeLine& line, const SinfoOptions& options) {
  const bool has_name =
      options.nodes.empty() || std::ranges::any_of(line.names, [&](const auto& name) {
        return options.nodes.contains(name);
      });
  const std::string& partition = line.partition->metadata.name;
  return has_name && (options.states.empty() || options.states.contains(line.state)) &&
         (options.partitions.empty() || options.partitions.contains(partition)) &&
         (!options.only_reasons || !drain_reason(line).empty());
}

bool is_one_of(char letter, std::string_view letters) {
  return letter != '\0' && letters.find(letter) != std::string_view::npos;
}

// SOURCE: without --sort, states go from those that need attention to those that are free.
int state_rank_of(const std::string& state) {
  constexpr std::array<std::string_view, 7> kOrder = {"drng", "drain", "mix", "alloc",
                                                      "idle", "down",  "unk"};
  return static_cast<int>(std::ranges::find(kOrder, state) - kOrder.begin());
}

class Table {
 public:
  Table(const SinfoOptions& options, std::span<const Cell> cells, const Topologies& topologies)
      : options_{options}, cells_{cells}, topologies_{topologies} {}

  void add(const NodeLine& line) {
    NodeGroup alone{.partition = line.partition, .lines = {&line}, .topologies = &topologies_};
    std::vector<std::string> key;
    if (options_.by_node) {
      key = line.names;
      key.push_back(line.partition->metadata.name);
    }
    for (const Cell& cell : cells_) {
      const char letter = cell.field == nullptr ? '\0' : cell.field->letter;
      if (cell.field == nullptr || is_one_of(letter, kSummed)) continue;
      if (!options_.is_exact && is_one_of(letter, kLeast)) continue;
      key.push_back(cell.field->of(alone));
    }
    const auto [at, is_new] = places_.try_emplace(key, groups_.size());
    if (is_new) {
      groups_.push_back(std::move(alone));
      return;
    }
    // A node of two partitions counts once.
    NodeGroup& group = groups_[at->second];
    const bool is_there =
        line.node != nullptr && std::ranges::any_of(group.lines, [&](const NodeLine* other) {
          return other->node == line.node;
        });
    if (!is_there) group.lines.push_back(&line);
  }

  // A partition none of whose nodes is shown, if the format says something of partitions.
  void add_empty(const kube::Partition& partition) {
    const bool says = std::ranges::any_of(cells_, [](const Cell& cell) {
      return cell.field != nullptr && is_one_of(cell.field->letter, kOfPartition);
    });
    if (!says || options_.by_node || options_.only_reasons) return;
    groups_.push_back({.partition = &partition, .lines = {}, .topologies = &topologies_});
  }

  std::vector<NodeGroup>& groups() { return groups_; }

 private:
  const SinfoOptions& options_;
  std::span<const Cell> cells_;
  const Topologies& topologies_;
  std::map<std::vector<std::string>, std::size_t> places_;
  std::vector<NodeGroup> groups_;
};

// Letters with + and - before them; '#', the order of the configuration, means nothing here.
void sort(std::vector<NodeGroup>& groups, const std::string& keys, Output output) {
  struct Key {
    const Field* field;
    bool is_reverse;
  };
  std::vector<Key> order;
  bool is_reverse = false;
  for (const char letter : keys) {
    if (letter == '-' || letter == '+') is_reverse = letter == '-';
    if (std::string_view{"-+,#"}.find(letter) != std::string_view::npos) continue;
    const auto field = std::ranges::find(kFields, letter, &Field::letter);
    if (field == kFields.end()) {
      output.err << "sinfo: error: Invalid sort specification: " << letter << "\n";
    } else {
      order.push_back({&*field, is_reverse});
    }
    is_reverse = false;
  }
  for (const Key& key : order | std::views::reverse) {
    const auto is_before = [&](const NodeGroup& a, const NodeGroup& b) {
      if (is_one_of(key.field->letter, "tT")) {
        return state_rank_of(state_of(a)) > state_rank_of(state_of(b));
      }
      return base::natural_less(key.field->of(a), key.field->of(b));
    };
    std::ranges::stable_sort(groups, [&](const NodeGroup& a, const NodeGroup& b) {
      return key.is_reverse ? is_before(b, a) : is_before(a, b);
    });
  }
}

void sort_by_default(std::vector<NodeGroup>& groups, const ReadWords& words) {
  if (has(words, "Node")) {
    std::ranges::stable_sort(groups, [](const NodeGroup& a, const NodeGroup& b) {
      return base::natural_less(hostlist_of(a), hostlist_of(b));
    });
  }
}

int show(const Session& session, const ReadWords& words, const SinfoOptions& options,
         Output output) {
  const auto cluster = read_cluster_nodes(session, "sinfo", output);
  if (!cluster) return fail(output, cluster.error().message);
  const auto topologies = read_topologies(session, output);
  if (!topologies) return fail(output, topologies.error().message);
  std::vector<NodeLine> lines = node_lines(*cluster);
  std::vector<std::string> unknown;
  const std::span<const Field> fields{kFields};
  const std::vector<Cell> cells =
      !options.long_format.empty()
          ? read_fields(fields, options.long_format, unknown)
          : read_letters(fields,
                         options.format.empty() ? default_format(words, lines) : options.format,
                         unknown);
  for (const std::string& name : unknown) {
    output.err << "sinfo: error: Invalid node format specification: " << name << "\n";
  }
  std::ranges::stable_sort(lines, {}, [](const NodeLine& l) { return state_rank_of(l.state); });
  Table table{options, cells, *topologies};
  for (const kube::Partition* partition : partitions_in_order(*cluster)) {
    if (!options.partitions.empty() && !options.partitions.contains(partition->metadata.name)) {
      continue;
    }
    bool is_empty = true;
    for (const NodeLine& line : lines) {
      if (line.partition != partition || !is_shown(line, options)) continue;
      table.add(line);
      is_empty = false;
    }
    if (is_empty) table.add_empty(*partition);
  }
  if (options.sort.empty()) {
    sort_by_default(table.groups(), words);
  } else {
    sort(table.groups(), options.sort, output);
  }
  if (options.has_date && options.has_heading)
    output.out << slurm_date(session.clock.wall()) << "\n";
  const std::span<const Cell> columns{cells};
  if (options.has_heading) output.out << format_heading(columns) << "\n";
  for (const NodeGroup& group : table.groups()) {
    output.out << format_line(columns, group) << "\n";
  }
  return kExitOk;
}

}  // namespace

int run_sinfo(std::span<const std::string> arguments, const WithCluster& with_cluster,
              Output output) {
  if (const auto answer = answer_about_itself("sinfo", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  auto words = read_options(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  add_variables(kVariables, *words);
  SinfoOptions options;
  for (const ReadOption& option : words->options) {
    if (const base::Status status = apply(option, options); !status) {
      return fail(output, status.error().message);
    }
  }
  return with_cluster.in(options.context)(
      [&](const Session& session) { return show(session, *words, options, output); });
}

SlurmReference sinfo_reference() {
  return reference_of<NodeGroup>("sinfo", kOptions, kFields);
}

}  // namespace cli
