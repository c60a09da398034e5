// Extended resources of nodes that are devices which jobs may ask for, and their names and types as
// Slurm's GRES. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "kube/api/node.h"

namespace kube {

// A resource that every cluster has for its GPUs, and the label by which its nodes name the
// product. SOURCE: NVIDIA's gpu-feature-discovery, AMD's node labeller.
struct GpuResource {
  std::string_view resource;
  std::string_view product;
  std::string_view maker;
};
inline constexpr GpuResource kGpuResources[] = {
    {"nvidia.com/gpu", "nvidia.com/gpu.product", "nvidia"},
    {"amd.com/gpu", "amd.com/gpu.product-name", "amd"},
};
inline constexpr std::string_view kMigResource = "nvidia.com/mig-";

// Returns true if the resource is one whose devices are counted: nvidia.com/gpu, nvidia.com/mig-…
// and amd.com/gpu.
bool is_device(std::string_view resource);

// What the node calls the devices of that resource, with a count of 0: a GPU has its maker's name
// and the words of its product's label as its type, in lower case; a MIG profile has that. nullopt
// if it is not a device.
std::optional<JobDevice> device_of(std::string_view resource, const Node& node);

// All that the node has, in the order of the resources' names. A kind that has none left counts 0.
std::vector<JobDevice> devices_of(const Node& node);

// "gpu:nvidia-a100-sxm4-80gb:4", as Slurm writes what a node has. A GPU of which nothing but its
// maker is known has no type there. "" if there are none.
std::string gres_text(const std::vector<JobDevice>& devices);

}  // namespace kube
