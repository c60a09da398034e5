#include "e2e/kubernetes/tests/harness.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kubernetes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScripts = KUBEGANG_SOURCE_DIR "/e2e/kubernetes";

// A test has three nodes of the cluster for itself, its lane. Returns the number of the first:
// ctest names the lane in the environment; outside ctest it is lane 1.
int first_node() {
  const char* lane = std::getenv(kLaneVariable);
  int first = 1;
  if (lane != nullptr) (void)std::sscanf(lane, "id:%d", &first);
  return first;
}

// `place`: 1 to 3 within the lane, as tests count nodes.
int number_of(int place) {
  return first_node() + place - 1;
}

// Read from the JSON, so it works for every kind.
bool has_condition(const json& object, const std::string& type) {
  const json all = object.value(json::json_pointer{"/status/conditions"}, json::array());
  return std::any_of(all.begin(), all.end(), [&](const json& condition) {
    return condition["type"] == type && condition["status"] == "True";
  });
}

// Tries the host's folders that may hold a node's kubepods, as the agents use them (install-chart).
std::string freezer_root() {
  return fs::exists("/sys/fs/cgroup/unified") ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
}

// Returns the flag of that name in cgroup.events; false also if the cgroup is gone.
bool is_now(const std::string& cgroup, const std::string& what) {
  std::ifstream events{cgroup + "/cgroup.events"};
  std::string name;
  for (int value = 0; events >> name >> value;) {
    if (name == what) return value == 1;
  }
  return false;
}

}  // namespace

// Tests know nodes by their place in the lane, so a test runs on any lane.
std::string Cluster::node(int place) {
  return "n" + std::to_string(number_of(place));
}

// As hostlists are shown in statuses.
std::string Cluster::nodes(int from, int to) {
  return "n[" + std::to_string(number_of(from)) + "-" + std::to_string(number_of(to)) + "]";
}

std::vector<std::string> Cluster::all_nodes() const {
  std::vector<std::string> names;
  for (int n = 1; n <= kNodesCount; ++n) names.push_back(node(n));
  return names;
}

bool Cluster::node_is_ready(int place) {
  const json found = get(node_path(place));
  return found.is_object() && has_condition(found, "Ready");
}

// Within the node's namespaces, as root.
Output Cluster::on_node(int place, const std::string& command) const {
  return script("node-exec " + std::to_string(number_of(place)) + " " + command);
}

// A node is a set of processes in namespaces of this machine: all of them are killed at once,
// without a word to the API server.
void Cluster::power_off(int place) {
  for (const json& pod : operators()) {
    ASSERT_NE(pod["spec"].value("nodeName", ""), node(place)) << "all tests need the operators";
  }
  const Output down = script("node-down " + std::to_string(number_of(place)));
  ASSERT_EQ(down.exit_code, 0) << down.text;
}

void Cluster::power_on(int place) {
  const Output up = script("node-up " + std::to_string(number_of(place)));
  ASSERT_EQ(up.exit_code, 0) << up.text;
}

Output Cluster::script(const std::string& command) const {
  return run_shell(std::string{kScripts} + "/" + command);
}

// Returns the node's folder in this machine's hierarchy; within the node it is the root.
std::string Cluster::node_cgroup(const std::string& node_name) const {
  return freezer_root() + "/kg-" + node_name;
}

// Kills the agent's processes, those of its guard too, and waits until kubelet has started them
// again.
void Cluster::kill_agent(const std::string& node_name) {
  const json before = agent_on(node_name);
  ASSERT_TRUE(before.is_object());
  const auto restarts = [](const json& pod) {
    return pod["status"]["containerStatuses"][0]["restartCount"].get<int>();
  };
  for (const int pid : processes_of(before)) ::kill(pid, SIGKILL);
  // A higher count of restarts is what tells the new agent from the old one in the pod's status.
  ASSERT_NO_FATAL_FAILURE(wait_until("kubelet has restarted the agent", [&] {
    const json now_is = agent_on(node_name);
    return now_is.is_object() && restarts(now_is) > restarts(before) &&
           now_is["status"]["containerStatuses"][0]["ready"] == true;
  }));
}

bool Cluster::has_processes(const std::string& cgroup) const {
  return is_now(cgroup, "populated");
}

// By the cgroups of the pod's containers, since the nodes have PID namespaces of their own.
std::vector<int> Cluster::processes_of(const json& pod) const {
  std::vector<int> out;
  const std::string cgroup = cgroup_of(pod);
  if (cgroup.empty()) return out;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator{cgroup, error}) {
    if (entry.path().filename() != "cgroup.procs") continue;
    std::ifstream in{entry.path()};
    for (int pid = 0; in >> pid;) {
      const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
      // The sandbox's own process belongs to no container.
      if (program.filename() != "pause") out.push_back(pid);
    }
  }
  return out;
}

// Pages that its processes share count for each of them.
std::int64_t Cluster::resident_kib(const json& pod) const {
  std::int64_t sum = 0;
  for (const int pid : processes_of(pod)) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/status"};
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("VmRSS:")) sum += std::stoll(line.substr(6));
    }
  }
  return sum;
}

}  // namespace kubernetes
