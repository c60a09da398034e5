// A whole cluster on this machine: the in-memory API server on HTTPS, nodes run by the process
// kubelet, one kubegang-agent per node and the kubegang-operator. Everything it starts is below one
// cgroup and ends with it (guardian.h).
//
//   <directory>/kubeconfig            for people and kubectl
//   <directory>/logs/…                operator.log, agent-<node>.log, guardian.log
//   <directory>/logs/pods/…           the containers' output
//   <directory>/stamps/<node>/…       what the probes say
//   <directory>/state/<node>/         the agents' journals
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "e2e/devcluster/components.h"
#include "e2e/devcluster/guardian.h"
#include "e2e/devcluster/kubelet/kubelet.h"
#include "e2e/devcluster/stamp_store.h"
#include "kube/clock.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/transport.h"
#include "linux/file_descriptor.h"

namespace devcluster {

inline constexpr std::string_view kOperator = "operator";
// Returns the name of a node's agent among the components.
std::string agent_name(std::string_view node);

struct OperatorSpec {
  std::string name = std::string{kOperator};  // among the components
  std::vector<std::string> arguments;         // beside those that it needs
  std::vector<std::string> environment;       // NAME=value
};

struct DevclusterConfig {
  std::string directory;          // absolute
  std::string program_directory;  // where kubegang-operator, kubegang-agent, … are
  std::string crds_directory;
  std::vector<NodeSpec> nodes;
  std::optional<os::CgroupVersion> cgroup_version;
  int port = 0;  // 0 = any free one
  bool with_agents = true;
  bool with_operator = true;
  OperatorSpec operator_spec;
  std::function<void(std::string_view)> log = [](std::string_view) {};  // one line, any thread
};

// start() and all that starts and ends components belong to one thread.
class Devcluster {
 public:
  // Everything runs when it returns, and the operator leads. An error says what is missing and what
  // to do about it; kAlreadyExists: the directory is that of a devcluster which runs.
  static base::Result<std::unique_ptr<Devcluster>> start(const kube::Clock& clock,
                                                         DevclusterConfig config);
  // Ends everything: the programs, the pods, the cgroups.
  ~Devcluster();

  const DevclusterConfig& config() const { return config_; }
  std::string kubeconfig_path() const { return config_.directory + "/kubeconfig"; }
  std::string url() const { return front_end_->url(); }
  ApiServer& api_server() { return *api_server_; }
  Kubelet& kubelet() { return *kubelet_; }
  Components& components() { return *components_; }
  const StampStore& stamps() const { return stamps_; }
  // Into the API server without a network, as an administrator.
  kube::Transport& transport() { return *transport_; }
  std::vector<std::string> node_names() const;

  base::Status start_agent(const std::string& node);
  base::Status start_operator(const OperatorSpec& spec);
  // `kubectl gang dashboard` for the user who has started this program, behind sudo too. Returns
  // the address that opens it in one browser.
  base::Result<std::string> start_page();
  // Starts programs again that have ended, as a Deployment or a DaemonSet would. One line for each.
  std::vector<std::string> restart_ended();
  // To operators, agents and kubectl: the API server's process is killed, and started again: it has
  // what it stored and knows nothing of the past, so watches are listed again. The kubelet, which
  // is a part of this process, is not cut off.
  void kill_api_server() { front_end_->close(); }
  base::Status start_api_server_again();
  // Until the Lease has a holder: kTimeout, or kUnavailable when `name` has ended, with its log.
  base::Status wait_until_led(const std::string& name);

 private:
  Devcluster(const kube::Clock& clock, DevclusterConfig config);

  base::Status lock_directory();
  base::Status prepare_directory();
  base::Status install_launcher();
  std::string launcher_directory() const { return config_.directory + "/launcher"; }
  base::Status start_servers();
  base::Status start_nodes();
  ComponentSpec agent_spec(const std::string& node) const;
  ComponentSpec operator_spec(const OperatorSpec& spec) const;

  const kube::Clock& clock_;
  const DevclusterConfig config_;
  StampStore stamps_;
  os::FileDescriptor directory_lock_;
  os::CgroupRoot cgroup_;
  // In the order of their start; they end in the reverse one.
  std::optional<Guardian> guardian_;
  std::unique_ptr<ApiServer> api_server_;
  std::unique_ptr<InProcessTransport> transport_;
  PodNames names_;
  std::optional<NameServer> name_server_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<HttpsFrontEnd> front_end_;
  std::unique_ptr<Components> components_;
  std::jthread feed_thread_;
  std::jthread kubelet_thread_;
};

// Returns the directory `name` in `start` or the nearest of its parents that has it: how a program
// in build/bin finds crds/ and examples/demo/. kNotFound names what was looked for.
base::Result<std::string> find_upwards(const std::string& start, const std::string& name);

// Gives a file or folder to the user behind sudo, if there is one: what root made in build/ must
// not lock out its owner.
void give_to_invoking_user(const std::string& path);

}  // namespace devcluster
