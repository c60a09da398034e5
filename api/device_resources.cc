#include "api/device_resources.h"

#include <algorithm>
#include <cstdint>

namespace kube {
namespace {

constexpr int kDevicesMax = 65'535;

std::string lower_case(std::string_view text) {
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace

bool is_device(std::string_view resource) {
  return (resource.starts_with(kMigResource) && resource.size() > kMigResource.size()) ||
         std::ranges::find(kGpuResources, resource, &GpuResource::resource) !=
             std::end(kGpuResources);
}

std::optional<JobDevice> device_of(std::string_view resource, const Node& node) {
  if (!is_device(resource)) return std::nullopt;
  if (resource.starts_with(kMigResource)) {
    return JobDevice{"gpu", lower_case(resource.substr(kMigResource.size())), 0};
  }
  const auto known = std::ranges::find(kGpuResources, resource, &GpuResource::resource);
  const auto label = node.metadata.labels.find(std::string{known->product});
  std::string type{known->maker};
  if (label == node.metadata.labels.end() || label->second.empty()) {
    return JobDevice{"gpu", type, 0};
  }
  // Not each product's name has its maker's, by which pods ask that name a resource.
  const std::string product = lower_case(label->second);
  if (product.starts_with(type)) return JobDevice{"gpu", product, 0};
  return JobDevice{"gpu", type + "-" + product, 0};
}

std::vector<JobDevice> devices_of(const Node& node) {
  std::vector<JobDevice> devices;
  for (const auto& [resource, quantity] : node.status.allocatable) {
    auto device = device_of(resource, node);
    if (!device) continue;
    device->count = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(quantity.milli() / 1000, 0, kDevicesMax));
    devices.push_back(*std::move(device));
  }
  return devices;
}

std::string gres_text(const std::vector<JobDevice>& devices) {
  std::string text;
  for (const JobDevice& each : devices) {
    const bool is_unknown =
        std::ranges::find(kGpuResources, each.type, &GpuResource::maker) != std::end(kGpuResources);
    text += (text.empty() ? "" : ",") + each.name;
    if (!each.type.empty() && !is_unknown) text += ":" + each.type;
    text += ":" + std::to_string(each.count);
  }
  return text;
}

}  // namespace kube
