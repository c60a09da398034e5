// Extended resources of nodes that are devices which jobs may ask for, and their names and types as
// Slurm's GRES. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/devices_config.h"
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

// Returns true if the resource is an extended one, which a device plugin or an administrator gives
// to nodes. Whether it is counted is another question.
bool is_extended(std::string_view resource);

// Returns true if the devices of that resource are GPUs: nvidia.com/gpu, nvidia.com/mig-…,
// amd.com/gpu, and those that the table calls so.
bool is_gpu(std::string_view resource, const DevicesConfig& config);

// Returns the devices that a pod asks for by that resource, with a count of 0: of a GPU the type is
// its maker's name, which each product of that maker has, too, of a MIG profile the profile, of
// another the one in the table. nullopt if they are not counted.
std::optional<JobDevice> device_asked(std::string_view resource, const DevicesConfig& config);

// Returns true if the labels of the node show GPUs of several products behind that resource. Which
// of them a pod gets is its device plugin's choice.
bool has_several_products(std::string_view resource, const Node& node);

// Returns what the node calls the devices of that resource, with a count of 0: as device_asked, and
// of a GPU the words of its product's label, in lower case, or the type that the table has for
// them. Those of several products have no type but their maker.
std::optional<JobDevice> device_of(std::string_view resource, const Node& node,
                                   const DevicesConfig& config);

// Returns all that the node has, in the order of the resources' names. 0: a kind with none left.
std::vector<JobDevice> devices_of(const Node& node, const DevicesConfig& config);

// Returns the names that devices of the cluster can have, in order: "gpu" and those of the table.
std::vector<std::string> device_names(const DevicesConfig& config);

// Returns the problems of the table: whole sentences that begin with a field of `spec.devices`.
std::vector<std::string> devices_config_problems(const DevicesConfig& config);

// Returns "gpu:nvidia-a100-sxm4-80gb:4", as Slurm writes what a node has. A GPU of which nothing
// but its maker is known has no type there. "" if there are none.
std::string gres_text(const std::vector<JobDevice>& devices);

}  // namespace kube
