#include "e2e/devcluster/devcluster.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "e2e/devcluster/apply.h"
#include "e2e/devcluster/pod_exec.h"
#include "e2e/devcluster/pod_log.h"

namespace devcluster {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Error;
using std::chrono::milliseconds;
using std::chrono::seconds;

// For machines that are busy: the Lease is free, so a leader is there soon.
constexpr seconds kLedPatience{20};
constexpr seconds kStopPatience{5};
constexpr seconds kPagePatience{10};
// How long one step of the kubelet may wait. A stop wakes it, so this is only an upper bound.
constexpr milliseconds kKubeletWait{1000};
constexpr int kLauncherPort = 6818;  // the operator's default
constexpr std::string_view kAgentPrefix = "agent-";
constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr const char* kLeasePath =
    "/apis/coordination.k8s.io/v1/namespaces/kubegang-system/leases/kubegang-operator";

// In the order of the hostlist, which is how nodes are shown.
std::vector<std::string> names_of(const std::vector<NodeSpec>& nodes) {
  std::vector<std::string> out;
  for (const NodeSpec& node : nodes) out.push_back(node.name);
  return out;
}

// The processors that the node claims to have, as the kernel would list them: one thread per core.
// The agent reads that instead of this machine's, or nodes would change their size when their agent
// is heard of.
void write_processors(const std::string& state_directory, const NodeSpec& node) {
  std::error_code error;
  const std::int64_t count = std::max<std::int64_t>(1, node.cpu.value() / 1000);
  for (std::int64_t cpu = 0; cpu < count; ++cpu) {
    const std::string topology = state_directory + "/cpu/cpu" + std::to_string(cpu) + "/topology";
    fs::create_directories(topology, error);
    // Cores are dealt out in blocks: with 8 CPUs and 2 sockets the first four are of socket 0.
    std::ofstream{topology + "/physical_package_id"} << cpu * node.sockets / count << "\n";
    std::ofstream{topology + "/core_id"} << cpu << "\n";
  }
  std::ofstream{state_directory + "/cpu/online"}
      << (count == 1 ? "0" : "0-" + std::to_string(count - 1)) << "\n";
}

}  // namespace

std::string agent_name(std::string_view node) {
  return std::string{kAgentPrefix} + std::string{node};
}

Devcluster::Devcluster(const kube::Clock& clock, DevclusterConfig config)
    : clock_{clock}, config_{std::move(config)}, stamps_{config_.directory + "/stamps"} {}

// Starts a whole cluster:
// 1. Remains of earlier devclusters are removed.
// 2. The directory, the cgroup with its guardian, the API server, the nodes.
// 3. The agents, then the operator: nodes without a ready agent get no jobs, so this way the first
//    jobs wait less.
// 4. The operator leads.
//
// If a step fails, the destructor takes back what the earlier ones did.
base::Result<std::unique_ptr<Devcluster>> Devcluster::start(const kube::Clock& clock,
                                                            DevclusterConfig config) {
  // On the heap from the beginning: threads and servers hold pointers to its parts.
  std::unique_ptr<Devcluster> cluster{new Devcluster{clock, std::move(config)}};
  // A devcluster that was killed together with its guardian leaves a cgroup with frozen processes.
  sweep_dead_instances();
  for (const auto step :
       {&Devcluster::lock_directory, &Devcluster::prepare_directory, &Devcluster::start_servers,
        &Devcluster::install_launcher, &Devcluster::start_nodes}) {
    const base::Status status = ((*cluster).*step)();
    if (!status.ok()) return status.error();
  }
  if (cluster->config_.with_agents) {
    for (const NodeSpec& node : cluster->config_.nodes) {
      const base::Status status = cluster->start_agent(node.name);
      if (!status.ok()) return status.error();
    }
  }
  if (cluster->config_.with_operator) {
    const OperatorSpec& spec = cluster->config_.operator_spec;
    if (const base::Status status = cluster->start_operator(spec); !status.ok()) {
      return status.error();
    }
    if (const base::Status status = cluster->wait_until_led(spec.name); !status.ok()) {
      return status.error();
    }
  }
  return cluster;
}

// In this order: the programs before the API server that they talk to, the kubelet's threads before
// the kubelet, and the guardian last, which removes whatever cgroup is left.
Devcluster::~Devcluster() {
  if (components_) components_->stop_all(kStopPatience);
  front_end_.reset();
  // The kubelet's thread may be in a wait; it looks at the stop only when it wakes.
  for (std::jthread* thread : {&feed_thread_, &kubelet_thread_}) thread->request_stop();
  if (kubelet_) kubelet_->wake();
  for (std::jthread* thread : {&feed_thread_, &kubelet_thread_}) {
    if (thread->joinable()) thread->join();
  }
  kubelet_.reset();
  components_.reset();
  guardian_.reset();
}

// Two in one directory would take each other's journals, stamps and kubeconfig away. The lock ends
// with the process, however that ends.
base::Status Devcluster::lock_directory() {
  std::error_code error;
  fs::create_directories(config_.directory, error);
  if (error) {
    return Error{Code::kPermissionDenied, "make " + config_.directory + ": " + error.message() +
                                              "; choose another directory with --dir"};
  }
  directory_lock_ =
      // The folder itself is locked, so no file for the lock is left behind.
      os::FileDescriptor{::open(config_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // A file system without locks counts as locked: only "another one has it" is an error.
  if (::flock(directory_lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Error{Code::kAlreadyExists, config_.directory +
                                         " is the directory of a devcluster that runs; end that, "
                                         "or choose another directory with --dir"};
}

// Logs, journals and stamps of an earlier run would be taken for this one's.
base::Status Devcluster::prepare_directory() {
  std::error_code error;
  // Stamps are emptied by StampStore.
  for (const char* part : {"/logs", "/state"}) {
    fs::remove_all(config_.directory + part, error);
    fs::create_directories(config_.directory + part, error);
    if (error) {
      return Error{Code::kPermissionDenied,
                   "make " + config_.directory + part + ": " + error.message()};
    }
  }
  for (const NodeSpec& node : config_.nodes) {
    write_processors(config_.directory + "/state/" + node.name, node);
  }
  return stamps_.prepare(node_names());
}

// As the init container of a batch script's pod does it.
base::Status Devcluster::install_launcher() {
  const std::string program = config_.program_directory + "/kubegang-launcher";
  const base::Result<Child> child =
      spawn({.argv = {program, "install", launcher_directory()},
             .output_path = config_.directory + "/logs/launcher.log"});
  if (!child.ok()) return child.error().with_context("the launcher of batch scripts");
  pollfd ends{.fd = child->pidfd.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&ends, 1, static_cast<int>(milliseconds{kStopPatience}.count()));
  const std::optional<ExitStatus> status = reap(*child);
  if (status && status->exit_code == 0) return {};
  return Error{Code::kInternal,
               "kubegang-launcher install failed: see " + config_.directory + "/logs/launcher.log"};
}

// Starts the guardian before anything that must not survive: from here on this process may be
// killed at any instruction.
base::Status Devcluster::start_servers() {
  base::Result<os::CgroupRoot> root = os::make_cgroup_root(config_.cgroup_version, instance_name());
  if (!root.ok()) return root.error().with_context("the devcluster freezes real processes");
  cgroup_ = std::move(root).value();
  base::Result<Guardian> guardian =
      Guardian::start(config_.program_directory + "/kubegang-devcluster", cgroup_,
                      config_.directory + "/logs/guardian.log");
  if (!guardian.ok()) {
    // Without a guardian nothing would remove it after a crash, so it is not kept even for a
    // moment.
    (void)os::destroy_cgroup(cgroup_.version, cgroup_.path, kStopPatience);
    return guardian.error();
  }
  guardian_.emplace(std::move(guardian).value());
  api_server_ = std::make_unique<ApiServer>(clock_);
  if (const base::Status status = api_server_->load_crds(config_.crds_directory); !status.ok()) {
    return status;
  }
  transport_ = std::make_unique<InProcessTransport>(*api_server_, "devcluster");
  // Where the operator's Lease is; an installation makes it.
  return apply_object(
      *transport_,
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "kubegang-system"}}}});
}

// Starts the kubelet's threads last, when the Nodes exist and the front end listens.
base::Status Devcluster::start_nodes() {
  base::Result<NameServer> name_server = NameServer::start(names_);
  // Port 53 is root's; without it pods have no names, and the rest works.
  if (name_server.ok()) {
    name_server_.emplace(std::move(name_server).value());
  } else {
    config_.log(name_server.error().message);
  }
  kubelet_ = std::make_unique<Kubelet>(
      clock_, *transport_,
      KubeletConfig{.nodes = config_.nodes,
                    .cgroup = cgroup_,
                    .log_directory = config_.directory + "/logs/pods",
                    .view_directory = config_.directory + "/state/pods",
                    .names = &names_,
                    .environment = {{"PATH", config_.program_directory + ":" + std::string{kPath}},
                                    {"KUBEGANG_STAMP_FILE", stamps_.file_pattern()}},
                    .log = config_.log});
  // kubectl logs asks the API server, which asks the kubelet's node.
  api_server_->set_pod_log_hook(pod_log_hook(*kubelet_));
  api_server_->set_pod_exec_hook(pod_exec_hook(*kubelet_));
  if (const base::Status status = kubelet_->register_nodes(); !status.ok()) return status;
  base::Result<std::unique_ptr<HttpsFrontEnd>> front_end =
      HttpsFrontEnd::start(*api_server_, clock_, {.port = config_.port});
  if (!front_end.ok()) return front_end.error();
  // Now programs may connect; the agents are started later, with the kubeconfig that is written
  // here.
  front_end_ = std::move(front_end).value();
  if (const base::Status status = front_end_->write_kubeconfig(kubeconfig_path()); !status.ok()) {
    return status;
  }
  give_to_invoking_user(config_.directory);
  give_to_invoking_user(kubeconfig_path());
  // Both threads end when stop is requested in the destructor.
  feed_thread_ = std::jthread{[this](std::stop_token stop) { kubelet_->follow_pods(stop); }};
  kubelet_thread_ = std::jthread{[this](std::stop_token stop) {
    while (!stop.stop_requested()) kubelet_->step(kKubeletWait);
  }};
  components_ = std::make_unique<Components>(cgroup_);
  return {};
}

// The Lease names its holder as soon as there is one.
base::Status Devcluster::wait_until_led(const std::string& name) {
  // The real clock, since this waits for a real process.
  const auto deadline = std::chrono::steady_clock::now() + kLedPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    const base::Result<kube::Response> response = transport_->send({.path = kLeasePath});
    if (response.ok() && response->status == 200) {
      const auto lease = nlohmann::json::parse(response->body, nullptr, false);
      const nlohmann::json::json_pointer holder{"/spec/holderIdentity"};
      if (!lease.value(holder, std::string{}).empty()) return {};
    }
    // An operator that refuses its command line has ended by now; waiting on would hide its
    // message.
    if (!components_->runs(name)) {
      return Error{Code::kUnavailable,
                   "the operator has ended: see " + config_.directory + "/logs/" + name + ".log"};
    }
    ::poll(nullptr, 0, 5);
  }
  return Error{Code::kTimeout, "the operator does not lead after 20 s: see " + config_.directory +
                                   "/logs/operator.log"};
}

// As in the configuration.
std::vector<std::string> Devcluster::node_names() const {
  return names_of(config_.nodes);
}

// An agent of the devcluster sees one node's cgroups as its root, and the processors that the node
// claims to have. Port 0: several agents share this machine.
ComponentSpec Devcluster::agent_spec(const std::string& node) const {
  const std::string state = config_.directory + "/state/" + node;
  return {.argv = {config_.program_directory + "/kubegang-agent", "--kubeconfig", kubeconfig_path(),
                   "--node-name", node, "--cgroup-root", kubelet_->node_cgroup(node), "--run-dir",
                   state, "--cpu-dir", state + "/cpu", "--metrics-address", "127.0.0.1:0"},
          .environment = {"PATH=" + std::string{kPath}},
          .log_path = config_.directory + "/logs/" + agent_name(node) + ".log"};
}

// `spec` adds options, and variables such as KUBEGANG_CRASH_AT.
ComponentSpec Devcluster::operator_spec(const OperatorSpec& spec) const {
  ComponentSpec out{.argv = {config_.program_directory + "/kubegang-operator", "--kubeconfig",
                             kubeconfig_path(), "--listen", "127.0.0.1:0"},
                    .environment = {"PATH=" + std::string{kPath}},
                    .log_path = config_.directory + "/logs/" + spec.name + ".log"};
  // Pods are processes of this machine, so all find the launcher in one folder.
  out.argv.insert(out.argv.end(), {"--launcher-directory", launcher_directory()});
  if (name_server_) {
    // Pods of several devclusters have the same addresses, so their launchers need ports apart.
    out.argv.insert(out.argv.end(),
                    {"--name-servers", name_server_->address(), "--cluster-domain", kClusterDomain,
                     "--launcher-port", std::to_string(kLauncherPort + name_server_->number())});
  }
  out.argv.insert(out.argv.end(), spec.arguments.begin(), spec.arguments.end());
  out.environment.insert(out.environment.end(), spec.environment.begin(), spec.environment.end());
  return out;
}

base::Status Devcluster::start_agent(const std::string& node) {
  return components_->start(agent_name(node), agent_spec(node));
}

base::Status Devcluster::start_operator(const OperatorSpec& spec) {
  return components_->start(spec.name, operator_spec(spec));
}

// As after a restart of a kube-apiserver, whose watch cache is empty then: watches must list again
// instead of going on from an old version.
base::Status Devcluster::start_api_server_again() {
  api_server_->compact();
  return front_end_->open_again();
}

// The page refuses every other user of the machine, even root's browser.
base::Result<std::string> Devcluster::start_page() {
  const std::string log = config_.directory + "/logs/page.log";
  std::vector<std::string> argv;
  const char* uid = std::getenv("SUDO_UID");
  const char* gid = std::getenv("SUDO_GID");
  if (uid != nullptr && gid != nullptr && ::geteuid() == 0) {
    argv = {"setpriv", std::string{"--reuid="} + uid, std::string{"--regid="} + gid,
            "--clear-groups"};
  }
  const std::string program = config_.program_directory + "/kubectl-gang";
  argv.insert(argv.end(), {program, "dashboard", "-A", "--kubeconfig", kubeconfig_path()});
  const base::Status started = components_->start(
      "page", {.argv = std::move(argv), .environment = {"PATH=/usr/bin:/bin"}, .log_path = log});
  if (!started.ok()) return started.error();
  const base::Duration end = clock_.monotonic() + kPagePatience;
  while (clock_.monotonic() < end && components_->runs("page")) {
    std::ifstream in{log};
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("http://") && !in.eof()) return line;
    }
    std::this_thread::sleep_for(milliseconds{20});
  }
  return Error{Code::kUnavailable, "the page does not start: see " + log};
}

std::vector<std::string> Devcluster::restart_ended() {
  std::vector<std::string> lines;
  for (const std::string& name : components_->names()) {
    if (components_->runs(name)) continue;
    // It has ended, so the wait returns at once.
    const std::optional<ExitStatus> ended = components_->wait(name, base::Duration{0});
    const base::Status again = components_->start_again(name);
    lines.push_back(name + " ended with " + std::to_string(ended ? ended->exit_code : 0) +
                    (again.ok() ? ", started again" : ": " + again.error().message));
  }
  return lines;
}

// Ends at the root of the file system.
base::Result<std::string> find_upwards(const std::string& start, const std::string& name) {
  std::error_code error;
  for (fs::path at = fs::absolute(start, error); !at.empty(); at = at.parent_path()) {
    if (fs::is_directory(at / name, error)) return (at / name).string();
    if (at == at.root_path()) break;
  }
  return Error{Code::kNotFound, "no folder " + name + "/ in " + start + " or above it"};
}

// Under sudo the files would belong to root, and the user could neither read the kubeconfig nor
// remove the directory.
void give_to_invoking_user(const std::string& path) {
  // Without sudo the files have the right owner already.
  const char* uid = std::getenv("SUDO_UID");
  const char* gid = std::getenv("SUDO_GID");
  if (uid == nullptr || gid == nullptr || ::geteuid() != 0) return;
  (void)!::chown(path.c_str(), static_cast<uid_t>(std::strtoul(uid, nullptr, 10)),
                 static_cast<gid_t>(std::strtoul(gid, nullptr, 10)));
}

}  // namespace devcluster
