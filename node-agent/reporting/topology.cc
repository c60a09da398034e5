#include "node-agent/reporting/topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "linux/cpu_list.h"

namespace agent {
namespace {

// Returns the first line; nullopt if the file cannot be read or is empty.
std::optional<std::string> read_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// A machine that does not say so has one thread per core and one package.
int topology_number(const std::string& directory, int cpu, const std::string& name, int otherwise) {
  const std::optional<std::string> line =
      read_line(directory + "/cpu" + std::to_string(cpu) + "/topology/" + name);
  if (!line) return otherwise;
  int number = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), number);
  return error == std::errc{} && end == line->data() + line->size() ? number : otherwise;
}

}  // namespace

// 1. read which CPUs are online, 2. group them by package and core, 3. find the smallest package
//    and the smallest core, 4. list the CPUs of that many cores and threads in order.
// For example two packages of four cores with two threads each, CPU 9 being offline. The core of
// CPU 9 has one thread left, so one thread per core counts: 2 sockets, 4 cores, 1 thread, and
// cpu_ids names eight CPUs, one of each core.
base::Result<kube::NodeTopology> read_topology(const std::string& directory) {
  const std::optional<std::string> online = read_line(directory + "/online");
  if (!online) {
    return base::Error{base::Code::kNotFound, "topology: " + directory + "/online cannot be read"};
  }
  const std::optional<std::vector<int>> cpus = os::parse_cpu_list(*online);
  if (!cpus) {
    return base::invalid_argument("topology: " + directory + "/online: \"" + *online +
                                  "\" is not a list of CPUs");
  }
  std::map<int, std::map<int, std::vector<int>>> packages;  // package → core → CPUs
  for (const int cpu : *cpus) {
    // `core_id` is unique only within its package. Without one each CPU is a core of its own.
    const int package = topology_number(directory, cpu, "physical_package_id", 0);
    packages[package][topology_number(directory, cpu, "core_id", cpu)].push_back(cpu);
  }
  // The API describes a regular machine: sockets × cores × threads. If CPUs are offline, the
  // smallest package and core decide, and the surplus CPUs are left out of cpu_ids, so that the
  // product and the list agree.
  std::size_t cores_count = packages.begin()->second.size();
  std::size_t threads_count = packages.begin()->second.begin()->second.size();
  for (const auto& [package, cores] : packages) {
    cores_count = std::min(cores_count, cores.size());
    for (const auto& [core, threads] : cores) {
      threads_count = std::min(threads_count, threads.size());
    }
  }
  std::vector<int> in_order;
  for (const auto& [package, cores] : packages) {
    std::size_t number = 0;
    for (auto core = cores.begin(); number < cores_count; ++core, ++number) {
      in_order.insert(in_order.end(), core->second.begin(),
                      core->second.begin() + static_cast<std::ptrdiff_t>(threads_count));
    }
  }
  return kube::NodeTopology{.sockets = static_cast<std::int32_t>(packages.size()),
                            .cores_per_socket = static_cast<std::int32_t>(cores_count),
                            .threads_per_core = static_cast<std::int32_t>(threads_count),
                            .cpu_ids = os::format_cpu_list(in_order)};
}

std::optional<kube::NodeTopology> TopologyWatch::read() {
  std::optional<std::string> online = read_line(directory_ + "/online");
  // Only a change of the online CPUs can change the rest, and reading the whole tree takes two
  // files for each CPU.
  if (topology_ && online && online == online_) return topology_;
  online_ = std::move(online);
  const base::Result<kube::NodeTopology> now = read_topology(directory_);
  error_ = now ? "" : now.error().message;
  topology_ = now ? std::optional{*now} : std::nullopt;
  return topology_;
}

}  // namespace agent
