// The command line of kubegang-agent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/meta.h"

namespace agent {

enum class Command { kRun, kGuard, kInspect, kCheck };

struct Options {
  Command command = Command::kRun;
  std::string node_name{};
  std::string kubeconfig{};   // "" = the service account of the pod we run in
  std::string cgroup_root{};  // "" = found by itself
  std::string kubelet_cgroup_root{};
  std::string run_directory = "/run/kubegang";
  std::string metrics_address = "0.0.0.0:9473";  // "" = no server
  std::string lease = "kubegang-system/kubegang-operator";
  std::string cpu_directory = "/sys/devices/system/cpu";
  std::string log_level = "info";
  bool fifo = true;
  bool supervise = true;
  bool whole_cluster = false;  // of `check`

  kube::ObjectKey lease_key() const;
};

struct HostPort {
  std::string host{};
  int port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
// Parses "127.0.0.1:9473", ":0" (all addresses), "[::1]:80".
std::optional<HostPort> parse_host_port(std::string_view text);

struct ParsedOptions {
  Options options{};
  // Set when the program is over: after --help and --version 0, after a mistake 2, with what is to
  // be printed.
  std::optional<int> exit_code{};
  std::string text{};
};

ParsedOptions parse_options(const std::vector<std::string>& arguments);

}  // namespace agent
