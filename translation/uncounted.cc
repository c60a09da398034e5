#include "translation/uncounted.h"

#include <algorithm>
#include <set>

#include "translation/devices.h"

namespace control {
namespace {

constexpr std::string_view kShared =
    " not counted yet, so two gangs would share them; remove it, or run the pods without kubegang";

// Devices that are counted, as the API server takes them: it would refuse the pods only when the
// gang has nodes.
void check_devices(const kube::ResourceRequirements& resources, const std::string& where,
                   std::vector<std::string>& problems) {
  for (const auto& [name, request] : resources.requests) {
    const auto limit = resources.limits.find(name);
    if (!kube::is_extended(name) || request.milli() == 0) continue;
    if (limit != resources.limits.end() && limit->second.milli() == request.milli()) continue;
    problems.push_back(
        where + ": \"" + name +
        "\": devices need a limit that is equal to the request; name the limit alone");
  }
  for (const auto& [name, limit] : resources.limits) {
    if (!kube::is_extended(name) || (limit.milli() >= 0 && limit.milli() % 1000 == 0)) continue;
    problems.push_back(where + ": \"" + name +
                       "\": a part of a device is not possible; use a whole number");
  }
  if (device_requests(resources).size() > kDeviceKindsPerContainerMax) {
    problems.push_back(where + ": more than " + std::to_string(kDeviceKindsPerContainerMax) +
                       " kinds of devices are not possible; use fewer");
  }
}

void check_container(const kube::Container& container, const std::string& where, bool host_network,
                     std::vector<std::string>& problems) {
  // The API server copies a limit of such a resource to the request of a pod, not of a template.
  std::set<std::string> names;
  for (const auto* list : {&container.resources.requests, &container.resources.limits}) {
    for (const auto& [name, quantity] : *list) {
      if (!is_counted(name) && !kube::is_extended(name) && quantity.milli() != 0)
        names.insert(name);
    }
  }
  check_devices(container.resources, where + ".resources", problems);
  std::size_t told = 0;
  for (const std::string& name : names) {
    if (told++ == kUncountedToldMax) break;
    problems.push_back(where + ".resources: \"" + name + "\": " +
                       (name.starts_with("hugepages-") ? "huge pages" : "resources of this kind") +
                       " are" + std::string{kShared});
  }
  const kube::ContainerPort* port = port_of_node(container, host_network);
  if (port == nullptr) return;
  const int number = port->host_port != 0 ? port->host_port : port->container_port;
  problems.push_back(where + ".ports: port " + std::to_string(number) +
                     " of the node is not counted, so two pods that need it could get one node; " +
                     (host_network ? "remove it from the list, a pod with hostNetwork can open "
                                     "ports that it does not list"
                                   : "remove hostPort"));
}

}  // namespace

bool is_counted(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage";
}

const kube::ContainerPort* port_of_node(const kube::Container& container, bool host_network) {
  const auto found = std::ranges::find_if(container.ports, [&](const kube::ContainerPort& port) {
    return host_network || port.host_port != 0;
  });
  return found == container.ports.end() ? nullptr : &*found;
}

std::vector<std::string> uncounted_of(const kube::PodSpec& spec, std::string_view prefix) {
  std::vector<std::string> problems;
  const std::string begin{prefix};
  if (spec.resources) {
    problems.push_back(begin +
                       "resources: those of a pod as a whole are not counted; name them in the "
                       "pod's containers instead");
  }
  for (const auto& [list, containers] :
       {std::pair{"initContainers", &spec.init_containers}, {"containers", &spec.containers}}) {
    for (std::size_t i = 0; i < containers->size(); ++i) {
      check_container((*containers)[i], begin + list + "[" + std::to_string(i) + "]",
                      spec.host_network, problems);
    }
  }
  return problems;
}

}  // namespace control
