#include "node-agent/testing/agent_process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/job.h"
#include "api/scheduler_config.h"
#include "base/check.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"

namespace agent::testing {
namespace {

constexpr char kNode[] = "n1";
constexpr char kNamespace[] = "default";

// Calls that set a test up must work; a failure here is one of the test and not of the agent.
template <typename T>
T must(base::Result<T> result) {
  CHECK(result.ok(), result.error().message);
  return *std::move(result);
}

// For the program that this process executes next: what root gets there is what is left here.
void leave_no_capability() {
  for (unsigned long capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    ::prctl(PR_CAPBSET_DROP, capability);
  }
  ::prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL);
}

// Returns the exit code of a child once it ended; nullopt if it does not within the limit.
std::optional<int> wait_for(pid_t child, base::Duration limit) {
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }, limit);
  if (!ended) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

// A node without pods, on a server that the agent is about to reach over HTTPS. The test itself
// talks to the same server in memory, so it can go on with stop_server().
AgentProcess::AgentProcess(CgroupVersion version, std::string program, const std::string& crds)
    : program_{std::move(program)},
      cgroups_{version},
      server_{clock_},
      client_{transport_, clock_, sleeper_, {}} {
  const base::Status loaded = server_.load_crds(crds);
  CHECK(loaded.ok(), loaded.error().message);
  cgroups_.make("kubepods/burstable");
  kube::Node node;
  node.metadata.name = kNode;
  must(client_.create(node));
  start_server();
}

AgentProcess::~AgentProcess() {
  end();
}

// Gently first; the guard may be stopped (SIGSTOP) by a test.
void AgentProcess::end() {
  if (supervisor_ != 0) {
    signal(SIGCONT);
    signal(SIGTERM);
    if (!wait_for_end(std::chrono::seconds{5})) {
      signal(SIGKILL);
      wait_for_end(std::chrono::seconds{5});
    }
  }
  if (guard_ != 0) {
    ::kill(guard_, SIGCONT);
    if (!end_guard(SIGTERM)) end_guard(SIGKILL);
  }
}

// A server in front of objects that stay: after stop_server() and this, the agent finds the cluster
// as it left it.
void AgentProcess::start_server() {
  // The same port again after stop_server(): the program's kubeconfig stays right.
  front_end_ = must(devcluster::HttpsFrontEnd::start(server_, clock_, {.port = port_}));
  port_ = front_end_->port();
  const base::Status written = front_end_->write_kubeconfig(directory() + "/kubeconfig");
  CHECK(written.ok(), written.error().message);
}

void AgentProcess::stop_server() {
  front_end_.reset();
}

// At the same port. The kernel makes the connections, and the program waits for the other side of
// TLS.
void AgentProcess::silence_server() {
  stop_server();
  silent_server_ =
      os::FileDescriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int on = 1;
  ::setsockopt(silent_server_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* any = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: bind's signature
  CHECK(::bind(silent_server_.get(), any, sizeof address) == 0);
  CHECK(::listen(silent_server_.get(), SOMAXCONN) == 0);
}

std::size_t AgentProcess::silent_connections() {
  for (;;) {
    os::FileDescriptor connection{::accept(silent_server_.get(), nullptr, nullptr)};
    if (!connection.is_open()) return silent_connections_.size();
    silent_connections_.push_back(std::move(connection));
  }
}

// A pipe that is full and never read: from then on, a thread that writes a log line blocks forever,
// as one does behind a log collector that hangs.
void AgentProcess::log_to_a_full_pipe() {
  int ends[2];
  CHECK(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  log_reader_ = os::FileDescriptor{ends[0]};
  log_pipe_ = os::FileDescriptor{ends[1]};
  const std::string page(4096, 'x');
  while (::write(log_pipe_.get(), page.data(), page.size()) > 0) {
  }
  CHECK(::fcntl(log_pipe_.get(), F_SETFL, 0) == 0);  // From now on a write waits.
}

// Runs the program with these arguments; logs where all of them do.
pid_t AgentProcess::spawn(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = {program_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // From here to execv() only calls that are safe after fork(): other threads may hold locks.
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child > 0) return child;
  end_with_parent(parent);
  const int file = log_pipe_.is_open()
                       ? log_pipe_.get()
                       : ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(file, STDERR_FILENO);
  if (without_capabilities_) leave_no_capability();
  ::execv(program_.c_str(), pointers.data());
  ::_exit(127);
}

// Port 0 for the metrics, since tests run beside each other; the log tells which one it became. The
// lease is the one that renew_lease() writes.
void AgentProcess::start(const std::vector<std::string>& more_flags) {
  std::vector<std::string> arguments = {
      "--node-name=" + std::string{kNode}, "--kubeconfig=" + directory() + "/kubeconfig",
      "--cgroup-root=" + cgroups_.root(),  "--run-dir=" + run_directory(),
      "--metrics-address=127.0.0.1:0",     "--lease=default/operator"};
  arguments.insert(arguments.end(), more_flags.begin(), more_flags.end());
  supervisor_ = spawn(arguments);
}

void AgentProcess::start_guard() {
  guard_ = spawn({"guard", "--cgroup-root=" + cgroups_.root(), "--run-dir=" + run_directory()});
}

// nullopt leaves the guard as it is, and a test may try again with another signal.
std::optional<int> AgentProcess::end_guard(int signal_number, base::Duration limit) {
  ::kill(guard_, signal_number);
  const std::optional<int> code = wait_for(guard_, limit);
  if (code) guard_ = 0;
  return code;
}

// The supervisor has one child at a time, the worker.
std::optional<pid_t> AgentProcess::worker() const {
  const std::string pid = std::to_string(supervisor_);
  std::ifstream children{"/proc/" + pid + "/task/" + pid + "/children"};
  pid_t child = 0;
  if (!(children >> child)) return std::nullopt;
  return child;
}

std::optional<int> AgentProcess::wait_for_end(base::Duration limit) {
  const std::optional<int> code = wait_for(supervisor_, limit);
  if (code) supervisor_ = 0;
  return code;
}

void AgentProcess::signal(int signal_number) const {
  ::kill(supervisor_, signal_number);
}

// A pod as the agent meets it after a while: a cgroup with a process that counts, and the status
// "Running" of an hour ago.
void AgentProcess::add_pod(const std::string& name, const std::string& job, int grace_seconds,
                           base::Duration pause) {
  // A real one: the server collects pods whose owner does not exist.
  const nlohmann::json json = {
      {"apiVersion", "kubegang.io/v1alpha1"},
      {"kind", "Job"},
      {"metadata", {{"name", job}, {"namespace", kNamespace}}},
      {"spec",
       {{"template", {{"spec", {{"containers", {{{"name", "main"}, {"image", "none"}}}}}}}}}}};
  const std::string job_uid = must(client_.create_json<kube::Job>(kNamespace, json)).metadata.uid;
  kube::Pod pod;
  pod.metadata.name = name;
  pod.metadata.ns = kNamespace;
  pod.metadata.owner_references = {{.api_version = std::string{kube::kGroup} + "/v1alpha1",
                                    .kind = "Job",
                                    .name = job,
                                    .uid = job_uid,
                                    .controller = true}};
  pod.spec.node_name = kNode;
  pod.spec.termination_grace_period_seconds = grace_seconds;
  kube::Container container;
  container.name = "main";
  container.image = "none";
  pod.spec.containers = {container};
  // As kubelet does: the cgroup and its process first, then the status that says Running, an hour
  // ago so that it has settled.
  const kube::Pod created = must(client_.create(pod));
  const std::string path = cgroups_.add_pod(created.metadata.uid);
  pods_[name] = {.uid = created.metadata.uid,
                 .path = path,
                 .job = job_uid,
                 .progress = &cgroups_.spawn_counter(path, pause)};
  kube::Pod running = created;
  running.status.phase = kube::PodPhase::kRunning;
  running.status.qos_class = kube::QosClass::kBurstable;
  kube::ContainerStatus status;
  status.name = "main";
  status.state.running =
      kube::ContainerRunning{.started_at = clock_.wall() - std::chrono::hours{1}};
  running.status.container_statuses = {status};
  must(client_.patch_status_from(created, running, false));
}

void AgentProcess::delete_pod(const std::string& name) {
  const base::Status removed = client_.remove<kube::Pod>({kNamespace, name});
  CHECK(removed.ok(), removed.error().message);
}

// Reads what the agent has asked for; the kernel decides when the tasks stop.
bool AgentProcess::is_asked_frozen(const std::string& pod) const {
  return cgroups_.is_asked_frozen(path(pod));
}

// In the operator's place: pods in the order of their indexes, all of their active row.
void AgentProcess::publish(std::int64_t term, std::int64_t revision,
                           const std::vector<std::string>& pods,
                           std::vector<timetable::PodSet> cycle, base::Duration slice,
                           std::vector<timetable::PlanEntry> plan) {
  kube::NodeTimetable object;
  object.metadata.name = kNode;
  object.spec.term = term;
  object.spec.revision = revision;
  object.spec.as_of = clock_.wall();
  for (const std::string& name : pods) {
    object.spec.pods.push_back({.ns = kNamespace,
                                .name = name,
                                .job_uid = pods_.at(name).job,
                                .row = kube::TimetableRow::kActive});
  }
  object.spec.timetable = {.slice = slice,
                           .pods_count = pods.size(),
                           .plan = std::move(plan),
                           .cycle = std::move(cycle)};
  // Written until no conflict; each try takes the newest resourceVersion.
  for (;;) {
    const auto existing = client_.get<kube::NodeTimetable>({"", kNode});
    if (!existing) {
      must(client_.create(object));
      return;
    }
    object.metadata = existing->metadata;
    const auto updated = client_.update(object);
    if (updated.ok()) return;
    // The agent wrote its status in between.
    CHECK(updated.error().code == base::Code::kConflict, updated.error().message);
  }
}

kube::NodeTimetable AgentProcess::timetable() const {
  return must(client_.get<kube::NodeTimetable>({"", kNode}));
}

// The operator's sign of life. An agent whose lease is too old goes on by its fail-open rule, so
// tests of that rule stop calling this.
void AgentProcess::renew_lease() {
  const auto existing = client_.get<kube::Lease>({"default", "operator"});
  kube::Lease lease;
  if (existing) lease = *existing;
  lease.metadata.ns = "default";
  lease.metadata.name = "operator";
  lease.spec.holder_identity = "operator-1";
  lease.spec.renew_time = clock_.wall();
  must(existing ? client_.update(lease) : client_.create(lease));
}

// The annotation of an administrator who wants nothing frozen on this node, whatever any timetable
// says.
void AgentProcess::set_kill_switch(bool on) {
  const nlohmann::json value = on ? nlohmann::json("disabled") : nlohmann::json(nullptr);
  must(client_.patch<kube::Node>(
      {"", kNode}, {{"metadata", {{"annotations", {{"kubegang.io/freeze", value}}}}}}));
}

// Only accepted settings count, as the operator writes them into the status after it has checked
// the spec; here no operator does.
void AgentProcess::set_fail_open_after(base::Duration after) {
  kube::SchedulerConfig config;
  config.metadata.name = std::string{kube::kSchedulerConfigName};
  config.spec.gang = true;
  const kube::SchedulerConfig created = must(client_.create(config));
  kube::SchedulerConfig accepted = created;
  accepted.status.accepted.emplace().timetable.emplace().fail_open_after = after;
  must(client_.patch_status_from(created, accepted, false));
}

}  // namespace agent::testing
