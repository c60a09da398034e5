// The devices in SchedulerConfig: the extended resources that are counted, the name and type of the
// GRES for each, and the types of products.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kube {

// An extended resource of nodes that is counted. GPUs are without an entry.
struct DeviceResource {
  std::string resource;               // "example.com/fpga"
  std::string name;                   // of the GRES: "fpga"
  std::optional<std::string> type{};  // "u250"
  friend bool operator==(const DeviceResource&, const DeviceResource&) = default;
};

// A product by the value of its label, or words of it that stand together, and the type that it has
// instead of these words.
struct DeviceProduct {
  std::string product;  // "NVIDIA-A100-SXM4-80GB"
  std::string type;     // "a100fat"
  friend bool operator==(const DeviceProduct&, const DeviceProduct&) = default;
};

struct DevicesConfig {
  std::vector<DeviceResource> resources{};
  std::vector<DeviceProduct> types{};
  friend bool operator==(const DevicesConfig&, const DevicesConfig&) = default;
};

}  // namespace kube
