#include "cli/import/node_lines.h"

#include <algorithm>
#include <array>
#include <optional>

#include "slurm/gres.h"
#include "slurm/hostlist.h"

namespace cli {
namespace {

using slurm::KeyValue;
using slurm::same_word;

constexpr std::size_t kNodesMax = 65'536;

// The last value of a key counts: that of a line, behind those of the DEFAULT lines. nullopt: there
// is none.
std::optional<std::string> value_of(const std::vector<KeyValue>& keys, std::string_view name) {
  std::optional<std::string> value;
  for (const KeyValue& key : keys) {
    if (same_word(key.key, name)) value = key.value;
  }
  return value;
}

// Feature and Features are one key.
std::vector<std::string> features_of(const std::vector<KeyValue>& keys) {
  std::string features;
  for (const KeyValue& key : keys) {
    if (same_word(key.key, "Feature") || same_word(key.key, "Features")) features = key.value;
  }
  std::vector<std::string> all = slurm::split(features, ',');
  std::erase(all, "");
  return all;
}

// SOURCE: Kubernetes, syntax of labels: at most 63 letters, digits, '-', '_' and '.', of which the
// first and the last are letters or digits.
bool is_label(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 63 && is_plain(name.front()) && is_plain(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_plain(c) || c == '-' || c == '_' || c == '.'; });
}

// Keys of a node that decide what jobs get, and what takes their place. The others say how large
// the node is and where, which kubelet and agent find out.
struct LostKey {
  std::string_view name;
  std::string_view advice;
};
constexpr std::array<LostKey, 3> kLost = {
    {{"MemSpecLimit", "set kubelet's systemReserved; what it keeps back jobs do not get"},
     {"CoreSpecCount", "set kubelet's systemReserved; what it keeps back jobs do not get"},
     {"CpuSpecList", "set kubelet's reservedSystemCPUs"}}};

// Writes "n[01-04,7]" as bash does: "n{01..04}" and "n{{01..04},7}"; blanks between the elements.
std::string shell_names(const std::vector<std::string>& names) {
  const std::string hostlist = slurm::compress_hostlist(names);
  std::string text;
  for (std::size_t i = 0; i < hostlist.size(); ++i) {
    if (hostlist[i] == ',') text += ' ';
    if (hostlist[i] != '[') {
      if (hostlist[i] != ',') text += hostlist[i];
      continue;
    }
    const std::size_t end = hostlist.find(']', i);
    const std::vector<std::string> parts =
        slurm::split(std::string_view{hostlist}.substr(i + 1, end - i - 1), ',');
    std::string inner;
    for (const std::string& part : parts) {
      const std::size_t dash = part.find('-');
      const std::string one = dash == std::string::npos
                                  ? part
                                  : "{" + part.substr(0, dash) + ".." + part.substr(dash + 1) + "}";
      inner += (inner.empty() ? "" : ",") + one;
    }
    text += parts.size() == 1 ? inner : "{" + inner + "}";
    i = end;
  }
  return text;
}

// Returns a resource that no node has, until an administrator has written the real one.
std::string stand_in(const std::string& name, const std::string& type) {
  return "example.com/" + name + (type.empty() ? "" : "-" + type);
}

std::string advice_on_type(const std::string& types) {
  return "if " + types +
         " is not a word of the product's label, name it in devices.types of the SchedulerConfig";
}

// Appends the names that can be nodes of Kubernetes; the others cannot be in a command.
void append(std::vector<std::string>& to, const std::vector<std::string>& names) {
  to.insert(to.end(), names.begin(), names.end());
}

}  // namespace

// Reports a hostlist that cannot be read once, and leaves its nodes out.
void NodeLines::add_nodes(FilePlace place, const std::vector<KeyValue>& keys, Remarks& remarks) {
  std::vector<KeyValue> all = defaults_;
  all.insert(all.end(), keys.begin() + 1, keys.end());
  if (same_word(keys.front().value, "DEFAULT")) {
    defaults_ = std::move(all);
    return;
  }
  const auto read = slurm::expand_node_list(keys.front().value);
  if (!read || names_.size() + read->size() > kNodesMax) {
    remarks.add(RemarkKind::kLost, place,
                "NodeName: " + (read ? "more than " + std::to_string(kNodesMax) + " nodes"
                                     : read.error().message));
    return;
  }
  append(names_, *read);
  for (const LostKey& lost : kLost) {
    const std::optional<std::string> value = value_of(all, lost.name);
    if (!value || value->empty() || *value == "0" || same_word(*value, "(null)")) continue;
    remarks.add(RemarkKind::kSetting, place,
                std::string{lost.name} + "=" + *value + ": " + std::string{lost.advice});
  }
  if (const auto gres = value_of(all, "Gres"); gres && !same_word(*gres, "(null)")) {
    add_gres(place, *gres, *read, remarks);
  }
  // The labels that the line becomes.
  std::string labels;
  const std::string weight = value_of(all, "Weight").value_or("1");
  if (weight != "1" && is_label(weight)) labels += " kubegang.io/weight=" + weight;
  for (const std::string& feature : features_of(all)) {
    append(nodes_of_feature_[feature], *read);
    if (is_label(feature)) {
      labels += " " + feature + "=";
    } else {
      remarks.add(RemarkKind::kSetting, place,
                  "Feature=" + feature + ": is not a label of Kubernetes; choose another name");
    }
  }
  if (!labels.empty()) append(labeled_[labels], *read);
  // The node's state.
  const std::string state = value_of(all, "State").value_or("UNKNOWN");
  if (same_word(state, "CLOUD") || same_word(state, "FUTURE")) {
    remarks.add(RemarkKind::kNote, place,
                "State=" + state + ": nodes that come and go are the cluster autoscaler's matter");
  } else if (!same_word(state, "UNKNOWN") && !same_word(state, "IDLE")) {
    append(cordoned_, *read);  // DOWN, DRAIN, FAIL
  }
}

// A node's device plugin says how many it has. The files add names and types.
void NodeLines::add_gres(FilePlace place, const std::string& value,
                         const std::vector<std::string>& nodes, Remarks& remarks) {
  const base::Result<sched::Devices> read = slurm::parse_gres("Gres", value);
  if (!read) {
    remarks.add(RemarkKind::kLost, place, read.error().message);
    return;
  }
  std::string types;
  bool has_gpus = false;
  for (const sched::DeviceCount& each : *read) {
    if (each.kind.name != slurm::kGpu) {
      add_device(place, "Gres=" + sched::to_string(each), each.kind, remarks);
      continue;
    }
    has_gpus = true;
    if (!each.kind.type.empty()) types += (types.empty() ? "" : " and ") + each.kind.type;
  }
  if (!has_gpus) return;
  if (!types.empty()) typed_gpus_.insert(nodes.begin(), nodes.end());
  remarks.add(RemarkKind::kNote, place,
              "Gres=" + value +
                  ": the node's GPUs are what its device plugin reports; install that "
                  "of their maker" +
                  (types.empty() ? "" : "; " + advice_on_type(types)));
}

// A kind of devices beside GPUs. `text`: what says that nodes have some.
void NodeLines::add_device(FilePlace place, const std::string& text, const sched::DeviceKind& kind,
                           Remarks& remarks) {
  devices_[kind.name].insert(kind.type);
  remarks.add(RemarkKind::kSetting, place,
              text + ": nodes have " + kind.name +
                  " under the name of an extended resource, for which " +
                  stand_in(kind.name, kind.type) +
                  " stands in devices.resources of the SchedulerConfig; "
                  "write the one that the device plugin gives");
}

// A line says which files on which nodes are devices of which name and type. Files, numbers and the
// cores beside them are the device plugin's matter and kubelet's; the name and the type are what
// jobs ask for.
void NodeLines::add_gres_line(FilePlace place, const std::vector<KeyValue>& keys,
                              Remarks& remarks) {
  const sched::DeviceKind kind{.name = value_of(keys, "Name").value_or(""),
                               .type = value_of(keys, "Type").value_or("")};
  if (const auto detect = value_of(keys, "AutoDetect"); detect && !same_word(*detect, "off")) {
    remarks.add(RemarkKind::kNote, place,
                "AutoDetect=" + *detect + ": the device plugin finds the devices, and " +
                    "gpu-feature-discovery or AMD's node labeller their products");
  }
  if (kind.name.empty()) return;
  const std::string text = "Name=" + kind.name + (kind.type.empty() ? "" : " Type=" + kind.type);
  const auto nodes = resolve(value_of(keys, "NodeName").value_or("ALL"));
  if (!nodes) {
    remarks.add(RemarkKind::kLost, place, text + ": NodeName: " + nodes.error().message);
  } else if (same_word(kind.name, "mps") || same_word(kind.name, "shard")) {
    remarks.add(RemarkKind::kLost, place, text + ": jobs get whole GPUs, and no parts of one");
  } else if (kind.name != slurm::kGpu) {
    add_device(place, text, kind, remarks);
  } else if (!kind.type.empty()) {
    typed_gpus_.insert(nodes->begin(), nodes->end());
    remarks.add(RemarkKind::kSetting, place, text + ": " + advice_on_type(kind.type));
  }
}

void NodeLines::add_down(FilePlace place, const std::vector<KeyValue>& keys, Remarks& remarks) {
  const auto read = slurm::expand_node_list(keys.front().value);
  if (read) {
    append(cordoned_, *read);
  } else {
    remarks.add(RemarkKind::kLost, place, "DownNodes: " + read.error().message);
  }
}

void NodeLines::add_set(FilePlace place, const std::vector<KeyValue>& keys, Remarks& remarks) {
  std::vector<std::string> nodes;
  for (const std::string& feature : features_of(keys)) {
    const auto found = nodes_of_feature_.find(feature);
    if (found != nodes_of_feature_.end()) append(nodes, found->second);
  }
  const auto list = resolve(value_of(keys, "Nodes").value_or(""));
  if (list) {
    append(nodes, *list);
  } else {
    remarks.add(RemarkKind::kLost, place, "NodeSet: " + list.error().message);
  }
  sets_[keys.front().value] = std::move(nodes);
}

// Slurm looks for a set first: its name may be that of a node, too.
base::Result<std::vector<std::string>> NodeLines::resolve(std::string_view list) const {
  if (same_word(list, "ALL")) return names_;
  const auto read = slurm::expand_node_list(list);
  if (!read) return read.error();
  std::vector<std::string> nodes;
  for (const std::string& name : *read) {
    const auto found = sets_.find(name);
    if (found == sets_.end()) {
      nodes.push_back(name);
    } else {
      append(nodes, found->second);
    }
    if (nodes.size() > kNodesMax) {
      return base::invalid_argument("more than " + std::to_string(kNodesMax) + " nodes");
    }
  }
  return nodes;
}

// Resources of one name need a type each, so what has no type is left out beside others.
std::vector<kube::DeviceResource> NodeLines::devices() const {
  std::vector<kube::DeviceResource> all;
  for (const auto& [name, types] : devices_) {
    for (const std::string& type : types) {
      if (type.empty() && types.size() > 1) continue;
      all.push_back({.resource = stand_in(name, type), .name = name});
      if (!type.empty()) all.back().type = type;
    }
  }
  return all;
}

std::vector<std::string> NodeLines::commands() const {
  std::vector<std::string> commands;
  if (!typed_gpus_.empty()) {
    commands.push_back("kubectl get node " + shell_names({typed_gpus_.begin(), typed_gpus_.end()}) +
                       " -L nvidia.com/gpu.product,amd.com/gpu.product-name");
  }
  for (const auto& [labels, nodes] : labeled_) {
    commands.push_back("kubectl label node " + shell_names(nodes) + labels);
  }
  if (!cordoned_.empty()) commands.push_back("kubectl cordon " + shell_names(cordoned_));
  return commands;
}

}  // namespace cli
