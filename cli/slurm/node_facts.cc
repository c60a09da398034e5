#include "cli/slurm/node_facts.h"

#include <algorithm>
#include <array>

#include "api/annotations.h"
#include "api/device_resources.h"
#include "api/wellknown.h"
#include "cli/cluster/read.h"
#include "kube/api/time_format.h"
#include "scheduler/model/devices.h"
#include "slurm/text.h"

namespace cli {
namespace {

struct Words {
  const char* code;
  const char* name;
  const char* full;
};
// SOURCE: sinfo(1), "NODE STATE CODES"; scontrol(1), show node.
constexpr std::array kStates = {Words{"idle", "idle", "IDLE"},
                                Words{"mix", "mixed", "MIXED"},
                                Words{"alloc", "allocated", "ALLOCATED"},
                                Words{"drain", "drained", "IDLE+DRAIN"},
                                Words{"drng", "draining", "ALLOCATED+DRAIN"},
                                Words{"down", "down", "DOWN"},
                                Words{"unk", "unknown", "UNKNOWN"}};

constexpr std::int64_t kMiB = 1 << 20;

std::string annotation_of(const NodeLine& line, std::string_view name) {
  if (line.node == nullptr) return "";
  const auto found = line.node->metadata.annotations.find(std::string{name});
  return found == line.node->metadata.annotations.end() ? "" : found->second;
}

std::int64_t allocatable_mib(const NodeLine& line, const char* name) {
  if (line.node == nullptr) return 0;
  const auto found = line.node->status.allocatable.find(name);
  return found == line.node->status.allocatable.end() ? 0 : found->second.bytes().value() / kMiB;
}

}  // namespace

base::Result<Topologies> read_topologies(const Session& session, Output output) {
  const auto timetables = list_all<kube::NodeTimetable>(session, "", output);
  Topologies topologies;
  if (!timetables && timetables.error().code != base::Code::kPermissionDenied) {
    return timetables.error();
  }
  if (!timetables) return topologies;
  for (const kube::NodeTimetable& timetable : *timetables) {
    if (timetable.status.topology) {
      topologies.emplace(timetable.metadata.name, *timetable.status.topology);
    }
  }
  return topologies;
}

kube::NodeTopology topology_of(const NodeLine& line, const Topologies& topologies) {
  const auto found = line.names.size() == 1 ? topologies.find(line.names[0]) : topologies.end();
  if (found != topologies.end()) return found->second;
  return {.sockets = 1,
          .cores_per_socket = static_cast<std::int32_t>(line.cpus),
          .threads_per_core = 1};
}

std::string long_node_state(const std::string& state) {
  const auto found = std::ranges::find(kStates, state, &Words::code);
  return found == kStates.end() ? state : found->name;
}

std::string full_node_state(const std::string& state) {
  const auto found = std::ranges::find(kStates, state, &Words::code);
  return found == kStates.end() ? state : found->full;
}

std::string drain_reason(const NodeLine& line) {
  // The note of scontrol means nothing once the node was uncordoned.
  const bool is_cordoned = line.node != nullptr && line.node->spec.unschedulable;
  const std::string own = is_cordoned ? annotation_of(line, kube::kAnnotationReason) : "";
  return own.empty() ? line.reason : own;
}

std::string drain_user(const NodeLine& line) {
  return annotation_of(line, kube::kAnnotationReasonUser);
}

std::optional<base::Instant> drain_time(const NodeLine& line) {
  const auto time = kube::parse_instant(annotation_of(line, kube::kAnnotationReasonTime));
  return time ? std::optional{*time} : std::nullopt;
}

std::string node_address(const NodeLine& line) {
  if (line.node == nullptr) return "";
  for (const kube::NodeAddress& address : line.node->status.addresses) {
    if (address.type == "InternalIP") return address.address;
  }
  return line.node->metadata.name;
}

std::string node_features(const NodeLine& line) {
  std::string text;
  if (line.node == nullptr) return "(null)";
  for (const auto& [name, value] : line.node->metadata.labels) {
    const std::string domain = name.substr(0, name.find('/'));
    const bool is_kubernetes = domain.ends_with("kubernetes.io") || domain.ends_with("k8s.io");
    if (is_kubernetes || name == kube::kLabelWeight) continue;
    text += (text.empty() ? "" : ",") + name + (value.empty() ? "" : "=" + value);
  }
  return text.empty() ? "(null)" : text;
}

std::string node_comment(const NodeLine& line) {
  if (line.node == nullptr) return "";
  for (const kube::GpuResource& known : kube::kGpuResources) {
    if (!kube::has_several_products(known.resource, *line.node)) continue;
    return std::string{known.resource} +
           " is of several products: jobs that name a type do not get these GPUs";
  }
  return "";
}

std::string node_gres(const NodeLine& line) {
  const std::string text = gres_text(line.devices);
  return text.empty() ? "(null)" : text;
}

// Under the names that the node has for them now.
std::string node_gres_used(const NodeLine& line) {
  std::vector<kube::JobDevice> devices = line.devices;
  sched::Devices there, held;
  for (kube::JobDevice& each : devices) {
    sched::add_devices(there, {each.name, each.type}, std::max(each.count, 1));
    each.count = 0;
  }
  for (const kube::JobDevice& each : line.devices_allocated) {
    sched::add_devices(held, {each.name, each.type}, each.count);
  }
  for (const sched::DeviceCount& each : sched::in_words_of(there, held)) {
    for (kube::JobDevice& kind : devices) {
      if (kind.name == each.kind.name && kind.type == each.kind.type) kind.count = each.count;
    }
  }
  return devices.empty() ? "(null)" : gres_text(devices);
}

std::int64_t node_memory_mib(const NodeLine& line) {
  return allocatable_mib(line, "memory");
}

std::int64_t node_disk_mib(const NodeLine& line) {
  return allocatable_mib(line, "ephemeral-storage");
}

std::int64_t node_weight(const NodeLine& line) {
  if (line.node == nullptr) return 1;
  const auto label = line.node->metadata.labels.find(std::string{kube::kLabelWeight});
  if (label == line.node->metadata.labels.end()) return 1;
  const auto weight = slurm::parse_integer("weight", label->second, {});
  return weight ? *weight : 1;
}

std::vector<const kube::Partition*> partitions_in_order(const ClusterNodes& cluster) {
  std::vector<const kube::Partition*> all;
  for (const kube::Partition& partition : cluster.partitions) all.push_back(&partition);
  std::ranges::stable_sort(all, [](const auto* a, const auto* b) {
    return spec_in_force(*a).is_default.value_or(false) &&
           !spec_in_force(*b).is_default.value_or(false);
  });
  return all;
}

std::string over_subscribe(const kube::PartitionSpec& spec) {
  const kube::OverSubscribe rule = spec.over_subscribe.value_or(kube::OverSubscribe{});
  const std::string share = ":" + std::to_string(rule.max_share.value_or(4));
  switch (rule.policy.value_or(kube::OverSubscribePolicy::kNever)) {
    case kube::OverSubscribePolicy::kNever:
      return "NO";
    case kube::OverSubscribePolicy::kOnRequest:
      return "YES" + share;
    case kube::OverSubscribePolicy::kForce:
      return "FORCE" + share;
    case kube::OverSubscribePolicy::kExclusive:
      return "EXCLUSIVE";
  }
  return "NO";
}

std::string preempt_mode_word(kube::PreemptMode mode) {
  switch (mode) {
    case kube::PreemptMode::kDisabled:
      return "OFF";
    case kube::PreemptMode::kCancel:
      return "CANCEL";
    case kube::PreemptMode::kRequeue:
      return "REQUEUE";
    case kube::PreemptMode::kSuspend:
      return "SUSPEND";
  }
  return "OFF";
}

std::string preempt_mode(const kube::Partition& partition) {
  const auto& mode = partition.status.preempt_mode ? partition.status.preempt_mode
                                                   : spec_in_force(partition).preempt_mode;
  return preempt_mode_word(mode.value_or(kube::PreemptMode::kDisabled));
}

}  // namespace cli
