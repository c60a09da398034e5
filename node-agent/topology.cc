#include "node-agent/topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace agent {
namespace {

constexpr int kCpuIdMax = 8191;  // CONFIG_NR_CPUS' largest value

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "0-3,8" → 0 1 2 3 8.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::optional<int> first = parse_number(range.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : parse_number(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kCpuIdMax) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  if (cpus.empty()) return std::nullopt;
  return cpus;
}

// A machine that does not tell has one thread per core and one package.
int topology_number(const std::string& directory, int cpu, const std::string& name, int otherwise) {
  const std::optional<std::string> line =
      read_line(directory + "/cpu" + std::to_string(cpu) + "/topology/" + name);
  if (!line) return otherwise;
  return parse_number(*line).value_or(otherwise);
}

}  // namespace

base::Result<kube::NodeTopology> read_topology(const std::string& directory) {
  const std::optional<std::string> online = read_line(directory + "/online");
  if (!online) {
    return base::Error{base::Code::kNotFound, "topology: " + directory + "/online cannot be read"};
  }
  const std::optional<std::vector<int>> cpus = parse_cpu_list(*online);
  if (!cpus) {
    return base::invalid_argument("topology: " + directory + "/online: \"" + *online +
                                  "\" is not a list of CPUs");
  }
  std::map<int, std::map<int, int>> threads;  // package → core → threads
  for (const int cpu : *cpus) {
    const int package = topology_number(directory, cpu, "physical_package_id", 0);
    ++threads[package][topology_number(directory, cpu, "core_id", cpu)];
  }
  std::size_t cores = threads.begin()->second.size();
  int threads_per_core = threads.begin()->second.begin()->second;
  for (const auto& [package, of_package] : threads) {
    cores = std::min(cores, of_package.size());
    for (const auto& [core, count] : of_package) {
      threads_per_core = std::min(threads_per_core, count);
    }
  }
  return kube::NodeTopology{.sockets = static_cast<std::int32_t>(threads.size()),
                            .cores_per_socket = static_cast<std::int32_t>(cores),
                            .threads_per_core = threads_per_core,
                            .cpu_ids = *online};
}

}  // namespace agent
