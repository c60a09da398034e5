#include "operator/translate/devices.h"

#include <algorithm>
#include <optional>

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

// nullopt: nobody knows what the resource is.
std::optional<sched::DeviceKind> kind_of(std::string_view resource, const kube::Node& node) {
  const auto device = kube::device_of(resource, node);
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

// The resource of devices that their node does not name.
std::string usual_resource(const std::string& type) {
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

// They are named after the resource.
std::vector<kube::Toleration> with_device_tolerations(std::vector<kube::Toleration> tolerations) {
  for (const GpuResource& known : kGpuResources) {
    tolerations.push_back({.key = std::string{known.resource}, .op = "Exists"});
  }
  return tolerations;
}

DeviceResources device_requests(const kube::ResourceRequirements& resources) {
  DeviceResources all;
  for (const auto* list : {&resources.requests, &resources.limits}) {
    for (const auto& [name, quantity] : *list) {
      if (is_device(name)) all[name] = std::max(all[name], count_of(quantity));
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

sched::Devices devices_of(const kube::Node& node, const DeviceResources& foreign) {
  sched::Devices devices;
  for (const auto& [resource, quantity] : node.status.allocatable) {
    const auto kind = kind_of(resource, node);
    if (!kind) continue;
    const auto taken = foreign.find(resource);
    const int left = count_of(quantity) - (taken == foreign.end() ? 0 : taken->second);
    if (left > 0) sched::add_devices(devices, *kind, left);
  }
  return devices;
}

DeviceResources resources_of(const std::vector<kube::JobDevice>& devices, const kube::Node* node) {
  // All that it has a name for, also with none left.
  std::map<sched::DeviceKind, std::string> resources;
  sched::Devices there;
  const kube::ResourceList none;
  for (const auto& [resource, quantity] : node == nullptr ? none : node->status.allocatable) {
    const auto kind = kind_of(resource, *node);
    if (kind && resources.try_emplace(*kind, resource).second) there.push_back({*kind, 1});
  }
  DeviceResources all;
  for (const sched::DeviceCount& each : sched::in_words_of(there, devices_from(devices))) {
    const auto found = resources.find(each.kind);
    if (found != resources.end()) {
      all[found->second] += each.count;
    } else if (resources.size() == 1) {
      all[resources.begin()->second] += each.count;
    } else {
      all[usual_resource(each.kind.type)] += each.count;
    }
  }
  return all;
}

std::vector<kube::JobDevice> devices_asked(const DeviceResources& resources, int pods) {
  std::vector<kube::JobDevice> all;
  for (const auto& [resource, count] : resources) {
    const auto known = std::ranges::find(kGpuResources, resource, &GpuResource::resource);
    const std::string type =
        known != std::end(kGpuResources)
            ? std::string{known->maker}
            : lower_case(std::string_view{resource}.substr(kMigResource.size()));
    const std::int64_t together = std::int64_t{count} * pods;
    all.push_back(
        {.name = "gpu",
         .type = type,
         .count = static_cast<std::int32_t>(std::min<std::int64_t>(together, kDevicesMax))});
  }
  return all;
}

// A type that the job names is more exact than a maker, and no type at all less.
std::optional<std::vector<kube::JobDevice>> same_devices(
    const std::vector<kube::JobDevice>& devices, const std::vector<kube::JobDevice>& of_template) {
  if (devices.empty()) return of_template;
  if (of_template.empty()) return devices;
  // With several kinds on either side there is no telling which of one is which of the other.
  if (devices.size() != 1 || of_template.size() != 1) return std::nullopt;
  const kube::JobDevice& asked = devices.front();
  const kube::JobDevice& in_pods = of_template.front();
  if (asked.name != in_pods.name || asked.count != in_pods.count) return std::nullopt;
  if (asked.type.empty()) return of_template;
  const bool is_maker = std::ranges::find(kGpuResources, in_pods.type, &GpuResource::maker) !=
                        std::end(kGpuResources);
  if (is_maker ? is_profile(asked.type) : lower_case(asked.type) != in_pods.type) {
    return std::nullopt;
  }
  return devices;
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
    if (each.name.empty()) {
      problems.push_back(where + ".name: is missing; write gpu");
    } else if (each.name != "gpu") {
      problems.push_back(where + ".name: no node has devices of the name \"" + each.name +
                         "\"; write gpu");
    }
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

}  // namespace control
