#include "api/device_resources.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>

#include "base/product_words.h"

namespace kube {
namespace {

constexpr int kDevicesMax = 65'535;

std::string lower_case(std::string_view text) {
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower;
}

constexpr std::string_view kGpu = "gpu";

const GpuResource* known_gpu(std::string_view resource) {
  const auto* const found = std::ranges::find(kGpuResources, resource, &GpuResource::resource);
  return found == std::end(kGpuResources) ? nullptr : found;
}

bool is_mig(std::string_view resource) {
  return resource.starts_with(kMigResource) && resource.size() > kMigResource.size();
}

const DeviceResource* entry_of(std::string_view resource, const DevicesConfig& config) {
  const auto found = std::ranges::find(config.resources, resource, &DeviceResource::resource);
  return found == config.resources.end() ? nullptr : &*found;
}

// Names and types as --gres can have them.
bool is_word(std::string_view word) {
  const auto is_letter_or_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !word.empty() && is_letter_or_digit(word.front()) &&
         std::ranges::all_of(word, [&](char c) {
           return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
         });
}

bool is_number(std::string_view word) {
  return std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the problem of a type by itself; "" if none.
std::string problem_of_type(const std::string& type) {
  if (is_word(type) && !is_number(type)) return "";
  return "invalid type \"" + type +
         "\"; use letters, digits and the signs _-., a letter among them";
}

std::string problem_of_resource(const DeviceResource& entry) {
  if (!is_extended(entry.resource)) {
    return ".resource: \"" + entry.resource +
           "\" is not an extended resource; write one as nodes have it, such as example.com/fpga";
  }
  if (known_gpu(entry.resource) != nullptr || is_mig(entry.resource)) {
    return ".resource: \"" + entry.resource +
           "\" is counted as gpu without an entry; remove it, and name its products in "
           "spec.devices.types";
  }
  if (!is_word(entry.name)) {
    return ".name: invalid name \"" + entry.name + "\"; use letters, digits and the signs _-.";
  }
  if (entry.name != kGpu && lower_case(entry.name) == kGpu) {
    return ".name: \"" + entry.name + "\" differs from gpu by capitals alone; write gpu";
  }
  if (entry.name == "none" || entry.name == "gres") {
    return ".name: \"" + entry.name + "\" means something else in --gres; use another name";
  }
  if (!entry.type) {
    return entry.name == kGpu ? ".type: is missing; other GPUs exist, so give these a type" : "";
  }
  if (std::string problem = problem_of_type(*entry.type); !problem.empty()) {
    return ".type: " + problem;
  }
  if (entry.name != kGpu) return "";
  for (const GpuResource& known : kGpuResources) {
    if (!base::has_words(lower_case(*entry.type), known.maker)) continue;
    return ".type: \"" + *entry.type + "\" has the word " + std::string{known.maker} +
           ", so pods that ask for " + std::string{known.resource} +
           " could get these; leave the word out";
  }
  return "";
}

// Two resources of one name: a pod names the resource, so each must be the only one of its type.
std::string problem_of_pair(const DeviceResource& one, const DeviceResource& other) {
  if (one.resource == other.resource) return ".resource: \"" + one.resource + "\" stands twice";
  if (one.name != other.name) return "";
  const std::string names = other.resource + " and " + one.resource + " are both " + one.name;
  if (!one.type || !other.type) return ".type: " + names + "; give each a type";
  const std::string type = lower_case(*one.type), other_type = lower_case(*other.type);
  if (!base::has_words(type, other_type) && !base::has_words(other_type, type)) return "";
  return ".type: " + names + ", and the type \"" + *one.type +
         "\" fits both; use types of which "
         "none is a word of the other";
}

}  // namespace

// SOURCE: k8s.io/kubernetes/pkg/apis/core/v1/helper, IsExtendedResourceName.
bool is_extended(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < resource.size() &&
         resource.find("kubernetes.io/") == std::string_view::npos &&
         !resource.starts_with("requests.");
}

bool is_gpu(std::string_view resource, const DevicesConfig& config) {
  const auto device = device_asked(resource, config);
  return device && device->name == kGpu;
}

std::optional<JobDevice> device_asked(std::string_view resource, const DevicesConfig& config) {
  if (is_mig(resource)) {
    return JobDevice{std::string{kGpu}, lower_case(resource.substr(kMigResource.size())), 0};
  }
  if (const GpuResource* known = known_gpu(resource)) {
    return JobDevice{std::string{kGpu}, std::string{known->maker}, 0};
  }
  const DeviceResource* entry = entry_of(resource, config);
  if (entry == nullptr) return std::nullopt;
  return JobDevice{entry->name, lower_case(entry->type.value_or("")), 0};
}

// SOURCE: gpu-feature-discovery names one of several products, with its own count; AMD's labeller
// has a label with a count for each product.
bool has_several_products(std::string_view resource, const Node& node) {
  const GpuResource* known = known_gpu(resource);
  if (known == nullptr) return false;
  const Labels& labels = node.metadata.labels;
  const std::string name{resource};
  const auto number = [&](const std::string& label) {
    const auto found = labels.find(label);
    std::int64_t value = 0;
    if (found == labels.end()) return value;
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  const auto there = node.status.allocatable.find(name);
  const std::int64_t count = number(name + ".count");
  const std::int64_t replicas =
      std::clamp<std::int64_t>(number(name + ".replicas"), 1, kDevicesMax);
  if (count > 0 && count <= kDevicesMax && there != node.status.allocatable.end() &&
      there->second.milli() / 1000 > count * replicas) {
    return true;
  }
  const std::string product = std::string{known->product} + ".";
  for (const std::string& prefix : {product, "beta." + product}) {
    const auto products = std::ranges::count_if(
        labels, [&](const auto& label) { return label.first.starts_with(prefix); });
    if (products > 1) return true;
  }
  return false;
}

std::optional<JobDevice> device_of(std::string_view resource, const Node& node,
                                   const DevicesConfig& config) {
  std::optional<JobDevice> device = device_asked(resource, config);
  const GpuResource* known = known_gpu(resource);
  if (!device || known == nullptr || has_several_products(resource, node)) return device;
  const auto label = node.metadata.labels.find(std::string{known->product});
  if (label == node.metadata.labels.end() || label->second.empty()) return device;
  std::string product = lower_case(label->second);
  const auto found = std::ranges::find_if(config.types, [&](const DeviceProduct& each) {
    return base::has_words(product, lower_case(each.product));
  });
  if (found != config.types.end()) product = lower_case(found->type);
  // Not each product's name has its maker's, by which pods ask that name a resource.
  const std::string& maker = device->type;
  device->type = product.starts_with(maker) ? product : maker + "-" + product;
  return device;
}

std::vector<JobDevice> devices_of(const Node& node, const DevicesConfig& config) {
  std::vector<JobDevice> devices;
  for (const auto& [resource, quantity] : node.status.allocatable) {
    auto device = device_of(resource, node, config);
    if (!device) continue;
    device->count = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(quantity.milli() / 1000, 0, kDevicesMax));
    devices.push_back(*std::move(device));
  }
  return devices;
}

std::vector<std::string> device_names(const DevicesConfig& config) {
  std::set<std::string> names{std::string{kGpu}};
  for (const DeviceResource& entry : config.resources) names.insert(entry.name);
  return {names.begin(), names.end()};
}

std::vector<std::string> devices_config_problems(const DevicesConfig& config) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < config.resources.size(); ++i) {
    const DeviceResource& entry = config.resources[i];
    std::string problem = problem_of_resource(entry);
    for (std::size_t j = 0; j < i && problem.empty(); ++j) {
      problem = problem_of_pair(entry, config.resources[j]);
    }
    if (problem.empty()) continue;
    problems.push_back("spec.devices.resources[" + std::to_string(i) + "]" + problem);
  }
  for (std::size_t i = 0; i < config.types.size(); ++i) {
    const DeviceProduct& each = config.types[i];
    const std::string where = "spec.devices.types[" + std::to_string(i) + "]";
    if (each.product.empty()) {
      problems.push_back(where + ".product: is missing; write the value of the product's label");
    }
    if (std::string problem = problem_of_type(each.type); !problem.empty()) {
      problems.push_back(where + ".type: " + problem);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (lower_case(config.types[j].product) != lower_case(each.product)) continue;
      problems.push_back(where + ".product: \"" + each.product + "\" stands twice");
    }
  }
  return problems;
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
