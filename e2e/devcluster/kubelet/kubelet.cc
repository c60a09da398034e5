#include "e2e/devcluster/kubelet/kubelet.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "e2e/devcluster/kubelet/api_calls.h"
#include "e2e/devcluster/kubelet/pod_feed.h"

namespace devcluster {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kRetryPause{50};  // after an API call or an rmdir that failed
constexpr seconds kForcedGrace{2};       // the least that kubelet gives, also when forced
constexpr seconds kTearDownPatience{5};
constexpr std::string_view kHostIp = "127.0.0.1";
constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::string_view kUnpullableImage = "invalid:";

// As long as a container id of containerd, and unique: pod UID and position.
std::string container_id(const PodSpec& spec, ContainerIndex index) {
  std::string id;
  for (const char c : spec.uid) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) id.push_back(c);
  }
  id += std::to_string(index.value());
  id.resize(64, '0');
  return id;
}

std::string log_file(const std::string& log_directory, const PodSpec& spec,
                     const std::string& container) {
  return log_directory + "/" + spec.namespace_name + "_" + spec.name + "_" + spec.uid + "/" +
         container + ".log";
}

// "1.5", as quantities are spelled in kubelet's messages.
std::string plain(std::int64_t value) {
  return std::to_string(value);
}

}  // namespace

struct Kubelet::Node {
  NodeSpec spec;
  std::int32_t number = 0;
  std::optional<NodeFault> fault;
};

struct Kubelet::Pod {
  explicit Pod(std::shared_ptr<const PodSpec> the_spec) : spec{the_spec}, machine{*the_spec} {}

  std::shared_ptr<const PodSpec> spec;
  PodMachine machine;
  DownwardFacts facts;
  std::shared_ptr<std::atomic<bool>> log_ended = std::make_shared<std::atomic<bool>>(false);
  std::map<ContainerIndex, Child> children;
  std::optional<base::Duration> deletion_grace;  // as last heard
  bool status_is_due = false;
  bool removal_is_due = false;
  bool event_is_due = false;
  bool object_gone = false;
  bool cgroup_made = false;
};

Kubelet::Kubelet(const kube::Clock& clock, kube::Transport& transport, KubeletConfig config)
    : clock_{clock},
      transport_{transport},
      config_{std::move(config)},
      wake_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  std::int32_t number = 0;
  for (const NodeSpec& node : config_.nodes) nodes_[node.name] = {node, number++, std::nullopt};
}

Kubelet::~Kubelet() {
  for (const auto& [name, node] : nodes_) {
    const base::Status status =
        os::destroy_cgroup(config_.cgroup.version, node_cgroup(name), kTearDownPatience);
    if (!status.ok()) config_.log(status.error().message);
  }
  reap_children();
}

base::Status Kubelet::register_nodes() {
  for (const auto& [name, node] : nodes_) {
    // kubelet makes the QoS directories at its start.
    for (const char* directory : {"/kubepods/burstable", "/kubepods/besteffort"}) {
      const base::Status status = os::make_cgroup(node_cgroup(name) + directory);
      if (!status.ok()) return status;
    }
    const base::Status status =
        create_or_adopt_node(transport_, node_object(node.spec, clock_.wall()));
    if (!status.ok()) return status.error().with_context("register node " + name);
  }
  return {};
}

void Kubelet::follow_pods(std::stop_token stop) {
  PodFeed feed{transport_,
               {.seen =
                    [this](const json& object) {
                      base::Result<PodSpec> spec = parse_pod(object);
                      if (!spec.ok()) return config_.log(spec.error().message);
                      if (!nodes_.contains(spec->node)) return;
                      post(PodSeen{std::make_shared<const PodSpec>(std::move(spec).value()),
                                   deletion_grace(object)});
                    },
                .gone = [this](const std::string& uid) { post(PodGone{uid}); },
                .listed = [this](const std::set<std::string>& uids) { post(PodsListed{uids}); }}};
  feed.follow(std::move(stop));
}

void Kubelet::post(Event event) {
  {
    const std::lock_guard lock{mutex_};
    events_.push_back(std::move(event));
  }
  wake();
}

void Kubelet::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_.get(), &one, sizeof one);
}

Now Kubelet::now() const {
  return {clock_.wall(), clock_.monotonic()};
}

void Kubelet::step(base::Duration wait_max) {
  wait_for_work(wait_max);
  std::deque<Event> events;
  {
    const std::lock_guard lock{mutex_};
    events.swap(events_);
  }
  for (Event& event : events) {
    std::visit([this](auto& one) { handle(std::move(one)); }, event);
  }
  reap_children();
  const Now at = now();
  for (const auto& [uid, pod] : pods_) {
    if (nodes_.find(pod->spec->node)->second.fault != NodeFault::kPoweredOff) {
      carry_out(*pod, pod->machine.tick(at));
    }
  }
  for (const auto& [uid, pod] : pods_) flush(*pod);
  std::erase_if(pods_, [](const auto& entry) {
    const Pod& pod = *entry.second;
    return pod.object_gone && !pod.machine.anything_runs();
  });
  collect_garbage();
}

void Kubelet::handle(PodSeen event) {
  auto found = pods_.find(event.spec->uid);
  if (found == pods_.end()) {
    auto pod = std::make_unique<Pod>(event.spec);
    found = pods_.emplace(event.spec->uid, std::move(pod)).first;
    found->second->deletion_grace = event.deletion_grace;
    if (!nodes_.find(event.spec->node)->second.fault) admit(*found->second);
    return;
  }
  Pod& pod = *found->second;
  if (!event.deletion_grace) return;
  pod.deletion_grace = event.deletion_grace;
  if (nodes_.find(pod.spec->node)->second.fault) return;
  carry_out(pod, pod.machine.delete_requested(*event.deletion_grace, now()));
}

void Kubelet::handle(const PodGone& event) {
  const auto found = pods_.find(event.uid);
  if (found == pods_.end()) return;
  Pod& pod = *found->second;
  pod.object_gone = true;
  if (nodes_.find(pod.spec->node)->second.fault) return;
  carry_out(pod, pod.machine.delete_requested(kForcedGrace, now()));
}

void Kubelet::handle(const PodsListed& event) {
  std::vector<std::string> missing;
  for (const auto& [uid, pod] : pods_) {
    if (!event.uids.contains(uid)) missing.push_back(uid);
  }
  for (const std::string& uid : missing) handle(PodGone{uid});
}

void Kubelet::handle(const NodeFails& event) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end()) return;
  found->second.fault = event.fault;
  write_node_ready(event.node, false);
  if (event.fault == NodeFault::kCutOff) return;
  os::kill_below(config_.cgroup.version, node_cgroup(event.node));
}

void Kubelet::handle(const NodeRestored& event) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end() || !found->second.fault) return;
  const bool rebooted = found->second.fault == NodeFault::kPoweredOff;
  found->second.fault.reset();
  write_node_ready(event.node, true);
  for (const auto& [uid, pod] : pods_) {
    if (pod->spec->node != event.node) continue;
    if (pod->facts.pod_ip.empty()) {
      admit(*pod);
    } else if (rebooted) {
      carry_out(*pod, pod->machine.node_rebooted(now()));
    }
    if (pod->object_gone) {
      carry_out(*pod, pod->machine.delete_requested(kForcedGrace, now()));
    } else if (pod->deletion_grace) {
      carry_out(*pod, pod->machine.delete_requested(*pod->deletion_grace, now()));
    }
  }
}

void Kubelet::admit(Pod& pod) {
  const Node& node = nodes_.find(pod.spec->node)->second;
  const std::uint32_t number = pods_started_++;
  pod.facts.host_ip = kHostIp;
  pod.facts.pod_ip = "127." + std::to_string(64 + node.number % 128) + "." +
                     std::to_string(number / 250 % 250) + "." + std::to_string(number % 250 + 1);
  {
    const std::lock_guard lock{mutex_};
    log_owners_[pod.spec->namespace_name + "/" + pod.spec->name] = {pod.spec, pod.log_ended};
  }
  if (pod.deletion_grace) {
    carry_out(pod, pod.machine.delete_requested(*pod.deletion_grace, now()));
  } else if (pod.spec->phase == "Succeeded" || pod.spec->phase == "Failed") {
    return;  // ended before this kubelet began: nothing to run, nothing to report
  } else if (const auto why = refusal(*pod.spec)) {
    carry_out(pod, pod.machine.refuse(why->first, why->second, now()));
  } else {
    pod.event_is_due = true;
    carry_out(pod, pod.machine.admit(now()));
  }
}

// Why kubelet's admission says no: reason and message as kubelet words them.
std::optional<std::pair<std::string, std::string>> Kubelet::refusal(const PodSpec& spec) const {
  if (spec.restart_policy != "Never") {
    return std::pair{"UnsupportedRestartPolicy",
                     "spec.restartPolicy is " + spec.restart_policy +
                         ": the process kubelet runs each container once; set Never"};
  }
  const NodeSpec& node = nodes_.find(spec.node)->second.spec;
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::int32_t count = 0;
  for (const auto& [uid, other] : pods_) {
    const PodPhase phase = other->machine.phase();
    if (uid == spec.uid || other->spec->node != spec.node || phase == PodPhase::kFailed ||
        phase == PodPhase::kSucceeded) {
      continue;
    }
    const Resources used = pod_requests(*other->spec);
    cpu += used.cpu->value();
    memory += used.memory->value();
    ++count;
  }
  const Resources wanted = pod_requests(spec);
  const auto no = [](const char* reason, const char* what, std::int64_t requested,
                     std::int64_t used, std::int64_t capacity) {
    return std::pair{std::string{"OutOf"} + reason,
                     std::string{"Node didn't have enough resource: "} + what +
                         ", requested: " + plain(requested) + ", used: " + plain(used) +
                         ", capacity: " + plain(capacity)};
  };
  if (count + 1 > node.pods_max) return no("pods", "pods", 1, count, node.pods_max);
  if (cpu + wanted.cpu->value() > node.cpu.value()) {
    return no("cpu", "cpu", wanted.cpu->value(), cpu, node.cpu.value());
  }
  if (memory + wanted.memory->value() > node.memory.value()) {
    return no("memory", "memory", wanted.memory->value(), memory, node.memory.value());
  }
  return std::nullopt;
}

// Actions may bring further ones (a container that cannot start): those come after the rest.
void Kubelet::carry_out(Pod& pod, Actions actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action action = actions[i];
    if (const auto* start = std::get_if<StartContainer>(&action)) {
      Actions more = start_container(pod, start->container);
      actions.insert(actions.end(), more.begin(), more.end());
    } else if (const auto* signal = std::get_if<SignalContainer>(&action)) {
      const auto child = pod.children.find(signal->container);
      if (child != pod.children.end()) ::kill(child->second.pid, signal->signal);
    } else if (std::holds_alternative<KillPod>(action)) {
      os::kill_below(config_.cgroup.version, pod_directory(*pod.spec));
    } else if (std::holds_alternative<WriteStatus>(action)) {
      pod.status_is_due = true;
    } else if (std::holds_alternative<RemovePod>(action)) {
      pod.removal_is_due = true;
    }
  }
  const PodPhase phase = pod.machine.phase();
  const bool ended = phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
  pod.log_ended->store((ended || pod.removal_is_due) && !pod.machine.anything_runs());
  if ((ended || pod.removal_is_due) && pod.cgroup_made && !pod.machine.anything_runs()) {
    pod.cgroup_made = false;
    garbage_.insert(pod_directory(*pod.spec));
  }
}

// Where the command of the container comes from, or why it cannot run. kInvalidArgument and
// kNotFound are errors of the pod's configuration.
base::Result<SpawnSpec> Kubelet::container_command(Pod& pod, ContainerIndex index) {
  const ContainerSpec& container = pod.machine.container(index);
  if (container.command.empty() && container.args.empty()) {
    return base::invalid_argument("no command specified: images are ignored here, so container " +
                                  container.name + " needs a command");
  }
  const std::map<std::string, std::string> identity{
      {"NAMESPACE", pod.spec->namespace_name}, {"POD", pod.spec->name}, {"NODE", pod.spec->node}};
  std::map<std::string, std::string> merged{
      {"PATH", std::string{kPath}}, {"HOME", "/root"}, {"HOSTNAME", pod.spec->hostname}};
  for (const auto& [name, value] : config_.environment) {
    merged[name] = expand_references(value, identity);
  }
  ApiKeyLookup lookup{transport_};
  base::Result<std::vector<std::string>> environment = container_environment(
      *pod.spec, container, pod.facts, {merged.begin(), merged.end()}, lookup);
  if (!environment.ok()) return environment.error();
  std::map<std::string, std::string> known;
  for (const std::string& entry : *environment) {
    const auto split = entry.find('=');
    known[entry.substr(0, split)] = entry.substr(split + 1);
  }
  SpawnSpec out{.environment = std::move(environment).value()};
  for (const auto* words : {&container.command, &container.args}) {
    for (const std::string& word : *words) out.argv.push_back(expand_references(word, known));
  }
  if (!container.working_dir.empty()) out.working_dir = container.working_dir;
  out.output_path = log_file(config_.log_directory, *pod.spec, container.name);
  return out;
}

Actions Kubelet::start_container(Pod& pod, ContainerIndex index) {
  if (pod.machine.deleting()) return {};
  const ContainerSpec& container = pod.machine.container(index);
  if (container.image.starts_with(kUnpullableImage)) {
    return pod.machine.start_blocked(index, "ErrImagePull",
                                     "failed to pull and unpack image \"" + container.image +
                                         "\": not found (names that begin with \"invalid:\" never "
                                         "are)");
  }
  base::Result<SpawnSpec> command = container_command(pod, index);
  if (!command.ok()) {
    return pod.machine.start_blocked(index, "CreateContainerConfigError", command.error().message);
  }
  const std::string id = container_id(*pod.spec, index);
  command->cgroup = os::CgroupRoot{config_.cgroup.version, pod_directory(*pod.spec) + "/" + id};
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path{command->output_path}.parent_path(),
                                      error);
  pod.cgroup_made = true;
  if (const base::Status made = os::make_cgroup(command->cgroup->path); !made.ok()) {
    return pod.machine.start_failed(index, "ContainerCannotRun", made.error().message, now());
  }
  base::Result<Child> child = spawn(*command);
  if (!child.ok()) {
    return pod.machine.start_failed(index, "StartError", child.error().message, now());
  }
  pod.children[index] = std::move(child).value();
  return pod.machine.started(index, id, now());
}

void Kubelet::reap_children() {
  for (const auto& [uid, pod] : pods_) {
    for (auto it = pod->children.begin(); it != pod->children.end();) {
      const std::optional<ExitStatus> exit = reap(it->second);
      if (!exit) {
        ++it;
        continue;
      }
      const ContainerIndex index = it->first;
      it = pod->children.erase(it);
      // Whatever the container's first process leaves behind ends with it.
      const std::string directory =
          pod_directory(*pod->spec) + "/" + container_id(*pod->spec, index);
      if (os::cgroup_exists(directory)) garbage_.insert(directory);
      if (nodes_.find(pod->spec->node)->second.fault == NodeFault::kPoweredOff) continue;
      carry_out(*pod, pod->machine.exited(index, *exit, now()));
    }
  }
}

// Writes what is due. What fails stays due.
void Kubelet::flush(Pod& pod) {
  if (nodes_.find(pod.spec->node)->second.fault) return;
  if (pod.status_is_due && !pod.object_gone) {
    const base::Status status = write_status(pod);
    if (!status.ok() && status.error().code != Code::kNotFound) {
      return config_.log(status.error().with_context("write status of " + pod.spec->name).message);
    }
  }
  pod.status_is_due = false;
  if (pod.event_is_due && !pod.object_gone) write_image_event(pod);
  pod.event_is_due = false;
  if (!pod.removal_is_due) return;
  if (!pod.object_gone) {
    const base::Status status = remove_object(pod);
    if (!status.ok() && status.error().code != Code::kNotFound) {
      return config_.log(status.error().with_context("remove " + pod.spec->name).message);
    }
  }
  pod.removal_is_due = false;
  pod.object_gone = true;
}

void Kubelet::collect_garbage() {
  std::erase_if(garbage_, [this](const std::string& path) {
    return os::destroy_cgroup(config_.cgroup.version, path, base::Duration{0}).ok();
  });
}

void Kubelet::wait_for_work(base::Duration wait_max) {
  base::Duration wait = wait_max;
  if (!garbage_.empty()) wait = std::min<base::Duration>(wait, kRetryPause);
  std::vector<pollfd> fds{{wake_fd_.get(), POLLIN, 0}};
  const Now at = now();
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [index, child] : pod->children) fds.push_back({child.pidfd.get(), POLLIN, 0});
    if (const auto deadline = pod->machine.deadline()) {
      wait = std::min(wait, std::max(base::Duration{0}, *deadline - at.monotonic));
    }
    if (pod->status_is_due || pod->removal_is_due) {
      wait = std::min<base::Duration>(wait, kRetryPause);
    }
  }
  const auto millis = std::chrono::ceil<milliseconds>(wait).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(millis));
  std::uint64_t count = 0;
  (void)!::read(wake_fd_.get(), &count, sizeof count);
}

base::Status Kubelet::write_status(const Pod& pod) {
  return patch_pod_status(transport_, *pod.spec, pod_status_patch(pod.machine, pod.facts));
}

base::Status Kubelet::remove_object(const Pod& pod) {
  return delete_pod_now(transport_, *pod.spec);
}

void Kubelet::write_image_event(const Pod& pod) {
  const base::Status status = create_pod_event(
      transport_, *pod.spec, "ImageIgnored",
      "the devcluster runs the command as a local process and ignores the image \"" +
          pod.spec->containers.front().image + "\"",
      clock_.wall());
  if (!status.ok()) config_.log(status.error().with_context("event of " + pod.spec->name).message);
}

void Kubelet::write_node_ready(const std::string& node, bool ready) {
  const base::Status status =
      patch_node_status(transport_, node, node_ready_patch(ready, clock_.wall()));
  if (!status.ok()) config_.log(status.error().with_context("status of node " + node).message);
}

std::string Kubelet::node_cgroup(std::string_view node) const {
  return config_.cgroup.path + "/" + std::string{node};
}

std::string Kubelet::pod_directory(const PodSpec& pod) const {
  return node_cgroup(pod.node) + "/" + pod_cgroup(qos_class(pod), pod.uid);
}

std::vector<PodPlace> Kubelet::places() const {
  const std::lock_guard lock{mutex_};
  std::vector<PodPlace> out;
  for (const auto& [key, owner] : log_owners_) {
    const PodSpec& spec = *owner.spec;
    out.push_back({spec.namespace_name, spec.name, spec.node, pod_directory(spec)});
  }
  return out;
}

void Kubelet::fail_node(const std::string& node, NodeFault fault) {
  post(NodeFails{node, fault});
}

void Kubelet::restore_node(const std::string& node) {
  post(NodeRestored{node});
}

base::Result<LogFile> Kubelet::find_log(const std::string& namespace_name, const std::string& pod,
                                        const std::string& container) const {
  LogOwner owner;
  {
    const std::lock_guard lock{mutex_};
    const auto found = log_owners_.find(namespace_name + "/" + pod);
    if (found != log_owners_.end()) owner = found->second;
  }
  if (!owner.spec) {
    return Error{Code::kNotFound, "pod " + namespace_name + "/" + pod + " is not here"};
  }
  const std::string name = container.empty() ? owner.spec->containers.front().name : container;
  for (const auto* containers : {&owner.spec->containers, &owner.spec->init_containers}) {
    for (const ContainerSpec& entry : *containers) {
      if (entry.name != name) continue;
      return LogFile{log_file(config_.log_directory, *owner.spec, name), owner.ended};
    }
  }
  return Error{Code::kNotFound, "container " + name + " is not in pod " + pod};
}

base::Result<std::string> Kubelet::read_log(const std::string& namespace_name,
                                            const std::string& pod,
                                            const std::string& container) const {
  const base::Result<LogFile> log = find_log(namespace_name, pod, container);
  if (!log.ok()) return log.error();
  std::ifstream in{log->path};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

}  // namespace devcluster
