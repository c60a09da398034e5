// Devices between Kubernetes and the scheduler: a node's extended resources are devices of a name
// and a type (Slurm's GRES), and what a job gets of them its pods ask for by these resources. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/device_resources.h"
#include "api/job.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "scheduler/model/devices.h"

namespace control {

// How many of each extended resource, by its name.
using DeviceResources = std::map<std::string, int>;

// The most kinds of devices that a container may ask for.
inline constexpr std::size_t kDeviceKindsPerContainerMax = 2;

// Returns a container's request: limit and request are equal, and a template may have either.
DeviceResources device_requests(const kube::ResourceRequirements& resources);

// Returns what a pod takes of its node, as Kubernetes adds it up: its containers together, or an
// init container if that needs more; sidecars run beside both.
DeviceResources device_requests(const kube::PodSpec& spec);

// Returns the devices of the node that `foreign` leaves.
sched::Devices devices_of(const kube::Node& node, const DeviceResources& foreign,
                          const kube::DevicesConfig& config);

// Returns the resources by which a pod on that node asks for these devices. It asks for all of them
// even if the node is null or has lost some, so that kube-scheduler does not bind it.
DeviceResources resources_of(const std::vector<kube::JobDevice>& devices, const kube::Node* node,
                             const kube::DevicesConfig& config);

// Returns all that the job itself asks for, in whatever form; the counts are those of the forms.
std::vector<kube::JobDevice> devices_named(const kube::JobResources& resources);

// Keys of the taints that nodes with devices of this resource have by custom. They are named after
// it, and the profiles of a GPU stand for the GPU.
std::vector<std::string> device_taints(const std::string& resource);

// Tolerations of these taints, of the resources that devices of a job may be.
std::vector<kube::Toleration> with_device_tolerations(std::vector<kube::Toleration> tolerations,
                                                      const std::vector<kube::JobDevice>& devices,
                                                      const DeviceResources& resources,
                                                      const kube::DevicesConfig& config);

// Returns the same request as a job's, of `pods` pods that each ask for `resources`. Any type of
// the maker will do. Resources that are not counted are left out.
std::vector<kube::JobDevice> devices_asked(const DeviceResources& resources, int pods,
                                           const kube::DevicesConfig& config);

// Returns the request of a job that names devices and has a template that asks for `of_template` on
// each node. nullopt if these are not the same devices.
std::optional<std::vector<kube::JobDevice>> same_devices(
    const std::vector<kube::JobDevice>& devices, const std::vector<kube::JobDevice>& of_template);

// Returns "gpu:a100:2", as Slurm writes it.
std::string device_text(const std::vector<kube::JobDevice>& devices);

// As the scheduler counts them, and back.
sched::Devices devices_from(const std::vector<kube::JobDevice>& devices);
std::vector<kube::JobDevice> devices_to(const sched::Devices& devices);

// Whole sentences that begin with `field`: what is wrong with them whatever the cluster has.
std::vector<std::string> device_problems(const std::vector<kube::JobDevice>& devices,
                                         std::string_view field);
// Does the same for names that no devices of the cluster have.
std::vector<std::string> unknown_devices(const std::vector<kube::JobDevice>& devices,
                                         std::string_view field, const kube::DevicesConfig& config);

// Returns "fpga, gpu or nic": the names that devices of the cluster have.
std::string device_names_text(const kube::DevicesConfig& config);

}  // namespace control
