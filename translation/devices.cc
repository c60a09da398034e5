#include "translation/devices.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace control {
namespace {

using kube::GpuResource;
using kube::kGpuResources;
using kube::kMigResource;

constexpr int kDevicesMax = 65'535;

std::string lower_case(std::string_view text) {
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower;
}

// nullopt: it is not counted.
std::optional<sched::DeviceKind> kind_of(std::string_view resource, const kube::Node& node,
                                         const kube::DevicesConfig& config) {
  const auto device = kube::device_of(resource, node, config);
  if (!device) return std::nullopt;
  return sched::DeviceKind{device->name, device->type};
}

int count_of(const kube::Quantity& quantity) {
  return static_cast<int>(std::clamp<std::int64_t>(quantity.milli() / 1000, 0, kDevicesMax));
}

// A MIG profile such as 1g.5gb, which is another resource than the whole GPU.
bool is_profile(std::string_view type) {
  return type.size() > 1 && type[0] >= '0' && type[0] <= '9' && lower_case(type)[1] == 'g';
}

// Returns the resource of devices that their node does not name.
std::string usual_resource(const sched::DeviceKind& kind, const kube::DevicesConfig& config) {
  const std::string& type = kind.type;
  const auto entry = std::ranges::find_if(config.resources, [&](const kube::DeviceResource& each) {
    const bool same_type = type.empty() || !each.type || lower_case(*each.type) == type;
    return each.name == kind.name && same_type;
  });
  if (entry != config.resources.end()) return entry->resource;
  if (is_profile(type)) return std::string{kMigResource} + type;
  const auto known = std::ranges::find_if(
      kGpuResources, [&](const GpuResource& each) { return type.starts_with(each.maker); });
  return std::string{known == std::end(kGpuResources) ? kGpuResources[0].resource
                                                      : known->resource};
}

void add(DeviceResources& to, const DeviceResources& more) {
  for (const auto& [name, count] : more) to[name] = std::min(to[name] + count, kDevicesMax);
}

void keep_larger(DeviceResources& to, const DeviceResources& from) {
  for (const auto& [name, count] : from) to[name] = std::max(to[name], count);
}

}  // namespace

std::vector<kube::JobDevice> devices_named(const kube::JobResources& resources) {
  std::vector<kube::JobDevice> all = resources.devices;
  for (const auto* more :
       {&resources.devices_of_job, &resources.devices_per_task, &resources.devices_per_socket}) {
    all.insert(all.end(), more->begin(), more->end());
  }
  if (all.empty() && resources.tasks_per_gpu)
    all.push_back({.name = "gpu", .type = {}, .count = 1});
  return all;
}

std::vector<std::string> device_taints(const std::string& resource) {
  std::vector<std::string> keys{resource};
  if (resource.starts_with(kMigResource)) keys.emplace_back(kGpuResources[0].resource);
  return keys;
}

// For a job that names devices: each resource of that name.
std::vector<kube::Toleration> with_device_tolerations(std::vector<kube::Toleration> tolerations,
                                                      const std::vector<kube::JobDevice>& devices,
                                                      const DeviceResources& resources,
                                                      const kube::DevicesConfig& config) {
  std::set<std::string> keys;
  const auto add_keys = [&](const std::string& resource) {
    for (std::string& key : device_taints(resource)) keys.insert(std::move(key));
  };
  for (const auto& [resource, count] : resources) add_keys(resource);
  for (const kube::JobDevice& each : devices) {
    if (each.name == "gpu") {
      for (const GpuResource& known : kGpuResources) add_keys(std::string{known.resource});
    }
    for (const kube::DeviceResource& entry : config.resources) {
      if (entry.name == each.name) add_keys(entry.resource);
    }
  }
  for (const std::string& key : keys) tolerations.push_back({.key = key, .op = "Exists"});
  return tolerations;
}

DeviceResources device_requests(const kube::ResourceRequirements& resources) {
  DeviceResources all;
  for (const auto* list : {&resources.requests, &resources.limits}) {
    for (const auto& [name, quantity] : *list) {
      if (kube::is_extended(name)) all[name] = std::max(all[name], count_of(quantity));
    }
  }
  std::erase_if(all, [](const auto& each) { return each.second == 0; });
  return all;
}

// SOURCE: k8s.io/component-helpers/resource, PodRequests.
DeviceResources device_requests(const kube::PodSpec& spec) {
  DeviceResources sidecars, init;
  for (const kube::Container& container : spec.init_containers) {
    DeviceResources beside = sidecars;
    add(beside, device_requests(container.resources));
    keep_larger(init, beside);
    if (container.restart_policy == "Always") sidecars = beside;
  }
  DeviceResources all = sidecars;
  for (const kube::Container& container : spec.containers) {
    add(all, device_requests(container.resources));
  }
  keep_larger(all, init);
  return all;
}

sched::Devices devices_of(const kube::Node& node, const DeviceResources& foreign,
                          const kube::DevicesConfig& config) {
  sched::Devices devices;
  for (const auto& [resource, quantity] : node.status.allocatable) {
    const auto kind = kind_of(resource, node, config);
    if (!kind) continue;
    const auto taken = foreign.find(resource);
    const int left = count_of(quantity) - (taken == foreign.end() ? 0 : taken->second);
    if (left > 0) sched::add_devices(devices, *kind, left);
  }
  return devices;
}

DeviceResources resources_of(const std::vector<kube::JobDevice>& devices, const kube::Node* node,
                             const kube::DevicesConfig& config) {
  // All that it has a name for, also with none left.
  std::map<sched::DeviceKind, std::string> resources;
  sched::Devices there;
  const kube::ResourceList none;
  for (const auto& [resource, quantity] : node == nullptr ? none : node->status.allocatable) {
    const auto kind = kind_of(resource, *node, config);
    if (kind && resources.try_emplace(*kind, resource).second) there.push_back({*kind, 1});
  }
  DeviceResources all;
  for (const sched::DeviceCount& each : sched::in_words_of(there, devices_from(devices))) {
    const auto found = resources.find(each.kind);
    if (found != resources.end()) {
      all[found->second] += each.count;
      continue;
    }
    // If the node has only one resource of the name, there is no doubt.
    std::vector<std::string> of_name;
    for (const auto& [kind, resource] : resources) {
      if (kind.name == each.kind.name) of_name.push_back(resource);
    }
    all[of_name.size() == 1 ? of_name.front() : usual_resource(each.kind, config)] += each.count;
  }
  return all;
}

std::vector<kube::JobDevice> devices_asked(const DeviceResources& resources, int pods,
                                           const kube::DevicesConfig& config) {
  std::vector<kube::JobDevice> all;
  for (const auto& [resource, count] : resources) {
    auto device = kube::device_asked(resource, config);
    if (!device) continue;
    device->count =
        static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{count} * pods, kDevicesMax));
    all.push_back(*std::move(device));
  }
  return all;
}

// A type that the job names is more exact than a maker, and no type at all less. With several kinds
// of one name on either side there is no telling which of one is which of the other.
std::optional<std::vector<kube::JobDevice>> same_devices(
    const std::vector<kube::JobDevice>& devices, const std::vector<kube::JobDevice>& of_template) {
  if (devices.empty()) return of_template;
  if (of_template.empty()) return devices;
  if (devices.size() != of_template.size()) return std::nullopt;
  std::vector<kube::JobDevice> all;
  for (const kube::JobDevice& in_pods : of_template) {
    if (std::ranges::count(of_template, in_pods.name, &kube::JobDevice::name) > 1 ||
        std::ranges::count(devices, in_pods.name, &kube::JobDevice::name) != 1) {
      return std::nullopt;
    }
    const kube::JobDevice& asked =
        *std::ranges::find(devices, in_pods.name, &kube::JobDevice::name);
    if (asked.count != in_pods.count) return std::nullopt;
    const bool is_maker = in_pods.name == "gpu" &&
                          std::ranges::find(kGpuResources, in_pods.type, &GpuResource::maker) !=
                              std::end(kGpuResources);
    const bool fits = asked.type.empty() || in_pods.type.empty() ||
                      (is_maker ? !is_profile(asked.type) : lower_case(asked.type) == in_pods.type);
    if (!fits) return std::nullopt;
    all.push_back(asked.type.empty() ? in_pods : asked);
  }
  return all;
}

std::string device_text(const std::vector<kube::JobDevice>& devices) {
  return sched::to_string(devices_from(devices));
}

sched::Devices devices_from(const std::vector<kube::JobDevice>& devices) {
  sched::Devices all;
  for (const kube::JobDevice& each : devices) {
    sched::add_devices(all, {each.name, lower_case(each.type)}, each.count);
  }
  return all;
}

std::vector<kube::JobDevice> devices_to(const sched::Devices& devices) {
  std::vector<kube::JobDevice> all;
  for (const sched::DeviceCount& each : devices) {
    all.push_back({each.kind.name, each.kind.type, each.count});
  }
  return all;
}

std::vector<std::string> device_problems(const std::vector<kube::JobDevice>& devices,
                                         std::string_view field) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const kube::JobDevice& each = devices[i];
    const std::string where = std::string{field} + "[" + std::to_string(i) + "]";
    if (each.name.empty()) problems.push_back(where + ".name: is missing; write gpu");
    if (each.count < 1 || each.count > kDevicesMax) {
      problems.push_back(where + ".count: " + std::to_string(each.count) +
                         " is not possible; use 1 to " + std::to_string(kDevicesMax));
    }
    for (std::size_t j = 0; j < i; ++j) {
      const kube::JobDevice& other = devices[j];
      if (other.name != each.name) continue;
      if (other.type.empty() || each.type.empty() ||
          lower_case(other.type) == lower_case(each.type)) {
        problems.push_back(where + ": \"" + each.name +
                           "\" stands twice; give each entry another type, or make one of them");
      }
    }
  }
  return problems;
}

std::vector<std::string> unknown_devices(const std::vector<kube::JobDevice>& devices,
                                         std::string_view field,
                                         const kube::DevicesConfig& config) {
  const std::vector<std::string> names = kube::device_names(config);
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string& name = devices[i].name;
    if (name.empty() || std::ranges::find(names, name) != names.end()) continue;
    problems.push_back(std::string{field} + "[" + std::to_string(i) +
                       "].name: no node has devices of the name \"" + name + "\"; write " +
                       device_names_text(config));
  }
  return problems;
}

std::string device_names_text(const kube::DevicesConfig& config) {
  const std::vector<std::string> names = kube::device_names(config);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace control
