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
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "api/wellknown.h"
#include "e2e/devcluster/kubelet/api_calls.h"
#include "e2e/devcluster/kubelet/pod_view.h"
#include "kube/api/node.h"
#include "kube/informer.h"

namespace devcluster {
namespace {

// How this kubelet is built. Decisions about one pod are in PodMachine, which knows neither
// processes nor the API: it gets what happened and returns actions. This class carries the
// actions out (carry_out()), tells the machine the outcomes, and keeps everything that can fail and
// be tried again: writes to the API stay due in `Pod` until they succeed, cgroups stay in
// `garbage_` until they can be removed.
//
// Two threads: follow_pods() runs the informer and only posts events; step() does everything else.
// They share `events_` and the list of logs, under `mutex_`.

using base::Code;
using base::Error;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kRetryPause{50};  // after an API call or an rmdir that failed
constexpr seconds kForcedGrace{2};       // the least that kubelet gives, also when forced
constexpr seconds kTearDownPatience{5};
constexpr std::string_view kHostIp = "127.0.0.1";
constexpr const char* kEnter = "/usr/bin/nsenter";  // of util-linux
constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// Lets a test make a pod that waits for its image forever.
constexpr std::string_view kUnpullableImage = "invalid:";

// As long as a container id of containerd, and unique: pod UID and position.
std::string container_id(const kube::Pod& pod, ContainerIndex index) {
  std::string id;
  for (const char c : pod.metadata.uid) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) id.push_back(c);
  }
  id += std::to_string(index.value());
  id.resize(64, '0');
  return id;
}

// The folder has the UID: a pod that is made again under its name must not append to the log of
// another.
std::string log_file(const std::string& log_directory, const kube::Pod& pod,
                     const std::string& container) {
  const kube::ObjectMeta& meta = pod.metadata;
  return log_directory + "/" + meta.ns + "_" + meta.name + "_" + meta.uid + "/" + container +
         ".log";
}

// REQUIRES: the pod has a subdomain.
std::string host_name(const kube::Pod& pod) {
  return pod.spec.hostname.value_or(pod.metadata.name);
}

std::string domain_in_cluster(const kube::Pod& pod) {
  return *pod.spec.subdomain + "." + pod.metadata.ns + ".svc." + kClusterDomain;
}

std::string name_in_cluster(const kube::Pod& pod) {
  return host_name(pod) + "." + domain_in_cluster(pod);
}

bool is_first_of_job(const kube::Pod& pod) {
  const auto task = pod.metadata.labels.find(std::string{kube::kLabelTask});
  return task != pod.metadata.labels.end() && task->second == "0";
}

// Makes each request once: what fails stays due (flush), and step() must not stand still for long.
kube::ClientOptions client_options() {
  return {.rate = {.per_second = 1000, .burst = 1000},
          .in_flight_max = 100,
          .call = {.attempts_max = 1},
          .field_manager = "kubelet"};
}

}  // namespace

// A node and its present fault, if there is one. `number` makes the addresses of its pods.
struct Kubelet::Node {
  NodeSpec spec;
  std::int32_t number = 0;
  std::optional<NodeFault> fault;
};

// A pod that this kubelet has taken: the machine that decides, the processes, and the writes to the
// API that are due. It stays until its object is gone and its processes have ended, whichever is
// later.
struct Kubelet::Pod {
  explicit Pod(std::shared_ptr<const kube::Pod> the_object)
      : object{std::move(the_object)}, machine{object} {}

  std::string node() const { return node_of(*object); }

  std::shared_ptr<const kube::Pod> object;  // as it was when the kubelet took it
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
      client_{transport, clock, sleeper_, client_options()},
      config_{std::move(config)},
      wake_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  std::int32_t number = 0;
  for (const NodeSpec& node : config_.nodes) nodes_[node.name] = {node, number++, std::nullopt};
}

// Kills all pods at once by their nodes' cgroups, then collects the exit codes, so that no zombie
// is left.
Kubelet::~Kubelet() {
  for (const auto& [name, node] : nodes_) {
    const base::Status status =
        os::destroy_cgroup(config_.cgroup.version, node_cgroup(name), kTearDownPatience);
    if (!status.ok()) config_.log(status.error().message);
  }
  reap_children();
}

// A Node that exists is taken over, and its status written again.
base::Status Kubelet::register_nodes() {
  for (const auto& [name, node] : nodes_) {
    // kubelet makes the QoS directories at its start.
    for (const char* directory : {"/kubepods/burstable", "/kubepods/besteffort"}) {
      const base::Status status = os::make_cgroup(node_cgroup(name) + directory);
      if (!status.ok()) return status;
    }
    const base::Status status =
        create_or_adopt_node(client_, node_object(node.spec, clock_.wall()));
    if (!status.ok()) return status.error().with_context("register node " + name);
  }
  return {};
}

// The informer watches all pods of the cluster, as one kubelet for several nodes; those of other
// nodes are dropped here.
void Kubelet::follow_pods(std::stop_token stop) {
  using Pointer = kube::Informer<kube::Pod>::Pointer;
  const auto seen = [this](const Pointer& pod) {
    // The names in `nodes_` do not change after the constructor, so this thread may look without a
    // lock.
    if (nodes_.contains(node_of(*pod))) post(PodSeen{pod});
    if (const auto node = node_to_bind(*pod); node && nodes_.contains(*node)) bind(*pod, *node);
  };
  kube::Informer<kube::Pod> informer{
      client_,
      clock_,
      {.backoff = {.first = kRetryPause, .max = kRetryPause}},
      {.on_add = seen,
       .on_update =
           [&](const Pointer& before, const Pointer& now) {
             // Deleted, and another one made under its name.
             if (before->metadata.uid != now->metadata.uid) post(PodGone{before->metadata.uid});
             seen(now);
           },
       .on_delete = [this](const Pointer& last) { post(PodGone{last->metadata.uid}); },
       .on_undecodable = [this](const kube::Undecodable& pod) { config_.log(pod.error.message); }}};
  while (!stop.stop_requested()) (void)sleeper_.sleep(informer.step(stop), stop);
}

// In the place of kube-scheduler. One that does not fit is refused on its node; what fails is tried
// again when the pod is seen again.
void Kubelet::bind(const kube::Pod& pod, const std::string& node) {
  const json binding{{"apiVersion", "v1"},
                     {"kind", "Binding"},
                     {"metadata", {{"name", pod.metadata.name}}},
                     {"target", {{"kind", "Node"}, {"name", node}}}};
  const auto bound = client_.call_json(
      kube::Method::kPost,
      "/api/v1/namespaces/" + pod.metadata.ns + "/pods/" + pod.metadata.name + "/binding",
      &binding);
  if (!bound.ok()) config_.log(bound.error().message);
}

// May be called from any thread; step() takes the events in their order.
void Kubelet::post(Event event) {
  {
    const std::lock_guard lock{mutex_};
    events_.push_back(std::move(event));
  }
  wake();
}

// An eventfd, which poll() waits on beside the processes' pidfds.
void Kubelet::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_.get(), &one, sizeof one);
}

Now Kubelet::now() const {
  return {clock_.wall(), clock_.monotonic()};
}

// 1. wait for an event, the end of a child, or a deadline
// 2. take what the watch and the tests have posted
// 3. reap ended containers
// 4. deadlines of grace times; a node without power has none
// 5. write what is due; what failed stays due
// 6. forget pods whose object is gone and whose processes have ended
// 7. remove the cgroups that are empty
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
  // One look at the clock for all pods: those with equal deadlines are killed in the same step.
  const Now at = now();
  for (const auto& [uid, pod] : pods_) {
    if (nodes_.find(pod->node())->second.fault != NodeFault::kPoweredOff) {
      carry_out(*pod, pod->machine.tick(at));
    }
  }
  for (const auto& [uid, pod] : pods_) flush(*pod);
  std::erase_if(pods_, [this](const auto& entry) {
    // A pod whose object was removed by force may still run. It is kept until its processes have
    // ended, so that their exit codes are taken and its cgroup is removed.
    const Pod& pod = *entry.second;
    const bool is_gone = pod.object_gone && !pod.machine.anything_runs();
    if (is_gone && config_.names != nullptr && pod.object->spec.subdomain) {
      config_.names->remove(name_in_cluster(*pod.object), pod.facts.pod_ip);
    }
    return is_gone;
  });
  collect_garbage();
}

// Admits a pod that is new here; only the deletion of a known one matters, because a pod's
// spec does not change. On a node with a fault it is noted and nothing more: restore_node() goes on
// with it.
void Kubelet::handle(const PodSeen& event) {
  const std::string& uid = event.pod->metadata.uid;
  // Such a node hears nothing, although this kubelet does.
  const bool unreachable = nodes_.find(node_of(*event.pod))->second.fault.has_value();
  const std::optional<base::Duration> grace = deletion_grace(*event.pod);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) {
    Pod& pod = *pods_.emplace(uid, std::make_unique<Pod>(event.pod)).first->second;
    pod.deletion_grace = grace;
    if (!unreachable) admit(pod);
    return;
  }
  // A change of labels or of the status, which is mostly our own.
  if (!grace) return;
  Pod& pod = *found->second;
  pod.deletion_grace = grace;
  if (!unreachable) carry_out(pod, pod.machine.delete_requested(*grace, now()));
}

// The object was removed by force: kubelet then gives its least grace time.
void Kubelet::handle(const PodGone& event) {
  const auto found = pods_.find(event.uid);
  if (found == pods_.end()) return;
  Pod& pod = *found->second;
  pod.object_gone = true;
  if (nodes_.find(pod.node())->second.fault) return;
  carry_out(pod, pod.machine.delete_requested(kForcedGrace, now()));
}

// A node that is cut off runs on without telling anything; one without power loses its processes.
void Kubelet::handle(const NodeFails& event) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end()) return;
  // From here on flush() writes nothing for pods of the node.
  found->second.fault = event.fault;
  write_node_ready(event.node, false);
  if (event.fault == NodeFault::kCutOff) return;
  // A machine without power: its processes end at once, and it reports nothing.
  os::kill_below(config_.cgroup.version, node_cgroup(event.node));
}

// For each pod of the node:
// 1. one that was bound while the node was away is admitted now
// 2. after a lost power, all that ran has failed
// 3. a deletion that came in between is carried out
void Kubelet::handle(const NodeRestored& event) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end() || !found->second.fault) return;
  const bool rebooted = found->second.fault == NodeFault::kPoweredOff;
  found->second.fault.reset();
  write_node_ready(event.node, true);
  for (const auto& [uid, pod] : pods_) {
    if (pod->node() != event.node) continue;
    // Only admit() gives an address, so a pod without one was never admitted.
    if (pod->facts.pod_ip.empty()) {
      admit(*pod);
    } else if (rebooted) {
      carry_out(*pod, pod->machine.node_rebooted(now()));
    }
    if (pod->object_gone) {
      carry_out(*pod, pod->machine.delete_requested(kForcedGrace, now()));
    } else if (pod->deletion_grace) {
      // Reports a deletion that came while the node was away.
      carry_out(*pod, pod->machine.delete_requested(*pod->deletion_grace, now()));
    }
  }
}

// 1. an address, and a place in the list of logs
// 2. a pod that is being deleted, or has ended under an earlier kubelet, does not start
// 3. one that does not fit is refused
// 4. any other begins with its first container
void Kubelet::admit(Pod& pod) {
  const Node& node = nodes_.find(pod.node())->second;
  // Counts all pods that this kubelet has ever taken, on any node.
  const std::uint32_t number = pods_started_++;
  pod.facts.host_ip = kHostIp;
  // Addresses of the loopback network, so pods can listen on them without a network of their own.
  // Not unique forever: the number of pods goes round.
  pod.facts.pod_ip = "127." + std::to_string(64 + node.number % 128) + "." +
                     std::to_string(number / 250 % 250) + "." + std::to_string(number % 250 + 1);
  if (config_.names != nullptr && pod.object->spec.subdomain) {
    config_.names->set(name_in_cluster(*pod.object), pod.facts.pod_ip);
    if (is_first_of_job(*pod.object)) {
      config_.names->set_first(domain_in_cluster(*pod.object), host_name(*pod.object));
    }
  }
  {
    const std::lock_guard lock{mutex_};
    log_owners_[to_string(kube::key_of(pod.object->metadata))] = {pod.object, pod.log_ended};
  }
  if (pod.deletion_grace) {
    carry_out(pod, pod.machine.delete_requested(*pod.deletion_grace, now()));
  } else if (const auto phase = pod.object->status.phase;
             phase == kube::PodPhase::kSucceeded || phase == kube::PodPhase::kFailed) {
    return;  // ended before this kubelet began: nothing to run, nothing to report
  } else if (const auto why = refusal(*pod.object)) {
    carry_out(pod, pod.machine.refuse(why->first, why->second, now()));
  } else {
    pod.event_is_due = true;
    carry_out(pod, pod.machine.admit(now()));
  }
}

// Returns why kubelet's admission says no, as a reason and a message; nullopt if the pod fits. The
// use is summed up again each time: a node has few pods here.
std::optional<std::pair<std::string, std::string>> Kubelet::refusal(const kube::Pod& pod) const {
  const std::string policy = pod.spec.restart_policy.value_or("Always");
  if (policy != "Never") {
    return std::pair{"UnsupportedRestartPolicy",
                     "spec.restartPolicy is " + policy +
                         ": the process kubelet runs each container once; set Never"};
  }
  const NodeSpec& node = nodes_.find(node_of(pod))->second.spec;
  Resources used;
  std::int32_t count = 0;
  for (const auto& [uid, other] : pods_) {
    // A pod that has ended takes no room, even while its object is still there.
    if (uid == pod.metadata.uid || other->node() != node.name || other->machine.ended()) continue;
    const Resources one = pod_requests(*other->object);
    used.cpu += one.cpu;
    used.memory += one.memory;
    used.gpus += one.gpus;
    ++count;
  }
  const Resources wanted = pod_requests(pod);
  // The words of the real kubelet, which the operator's tests compare.
  const auto no = [](const char* what, std::int64_t requested, std::int64_t in_use,
                     std::int64_t capacity) {
    return std::pair{std::string{"OutOf"} + what,
                     std::string{"Node didn't have enough resource: "} + what + ", requested: " +
                         std::to_string(requested) + ", used: " + std::to_string(in_use) +
                         ", capacity: " + std::to_string(capacity)};
  };
  if (count + 1 > node.pods_max) return no("pods", 1, count, node.pods_max);
  if (used.cpu + wanted.cpu > node.cpu) {
    return no("cpu", wanted.cpu.value(), used.cpu.value(), node.cpu.value());
  }
  if (used.memory + wanted.memory > node.memory) {
    return no("memory", wanted.memory.value(), used.memory.value(), node.memory.value());
  }
  if (used.gpus + wanted.gpus > node.gpus) {
    return no("nvidia.com/gpu", wanted.gpus, used.gpus, node.gpus);
  }
  return std::nullopt;
}

// Actions may bring further ones (a container that cannot start): those come after the rest.
void Kubelet::carry_out(Pod& pod, Actions actions) {
  // By index, and by a copy of each action: the list grows while it is carried out.
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action action = actions[i];
    if (const auto* start = std::get_if<StartContainer>(&action)) {
      Actions more = start_container(pod, start->container);
      actions.insert(actions.end(), more.begin(), more.end());
    } else if (const auto* signal = std::get_if<SignalContainer>(&action)) {
      const auto child = pod.children.find(signal->container);
      // It may have ended since the machine decided.
      if (child != pod.children.end()) ::kill(child->second.pid, signal->signal);
    } else if (std::holds_alternative<KillPod>(action)) {
      os::kill_below(config_.cgroup.version, pod_directory(*pod.object));
    } else if (std::holds_alternative<WriteStatus>(action)) {
      pod.status_is_due = true;
    } else if (std::holds_alternative<RemovePod>(action)) {
      pod.removal_is_due = true;
    }
  }
  // The log may end for its readers, and the pod's cgroup go, only when the last process has ended.
  // A removal that is due counts as an end: no further container will start.
  const bool over = (pod.machine.ended() || pod.removal_is_due) && !pod.machine.anything_runs();
  pod.log_ended->store(over);
  if (over && pod.cgroup_made) {
    pod.cgroup_made = false;
    garbage_.insert(pod_directory(*pod.object));
  }
}

// Returns how to start the container, or why it cannot be started: kInvalidArgument and kNotFound
// are errors of the pod's configuration. The environment is built up in three layers, later ones
// win: a minimal one, that of KubeletConfig, and the container's own.
base::Result<SpawnSpec> Kubelet::container_command(Pod& pod, ContainerIndex index) {
  const kube::Container& container = pod.machine.container(index);
  if (container.command.empty() && container.args.empty()) {
    return base::invalid_argument("no command specified: images are ignored here, so container " +
                                  container.name + " needs a command");
  }
  const kube::ObjectMeta& meta = pod.object->metadata;
  // Variables for file names in the environment of containers, such as that of the stamps.
  const std::map<std::string, std::string> identity{
      {"NAMESPACE", meta.ns}, {"POD", meta.name}, {"NODE", pod.node()}};
  std::map<std::string, std::string> merged{
      {"PATH", std::string{kPath}},
      {"HOME", "/root"},
      {"HOSTNAME", pod.object->spec.hostname.value_or(meta.name)}};
  for (const auto& [name, value] : config_.environment) {
    merged[name] = expand_references(value, identity);
  }
  // Asks the API server for keys of ConfigMaps and Secrets at each start; nothing is cached.
  ApiKeyLookup lookup{client_};
  base::Result<std::vector<std::string>> environment = container_environment(
      *pod.object, container, pod.facts, {merged.begin(), merged.end()}, lookup);
  if (!environment.ok()) return environment.error();
  // References in command and args are to the container's environment, as in Kubernetes.
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
  out.output_path = log_file(config_.log_directory, *pod.object, container.name);
  if (config_.view_directory.empty()) return out;
  const base::Status seen =
      add_view(client_, *pod.object, container, config_.view_directory + "/" + meta.uid, out);
  if (!seen.ok()) return seen.error();
  return out;
}

namespace {

// SOURCE: kubelet keeps no more of it.
constexpr std::size_t kTerminationMessageMax = 4'096;

std::string termination_log_of(const SpawnSpec& spec) {
  return spec.output_path + ".termination";
}

// All processes see one /dev, so the launcher of a batch script, which alone writes there, is given
// another file than its container's /dev/termination-log.
void give_termination_log(SpawnSpec& spec) {
  const bool is_script = spec.argv.size() > 1 && spec.argv[1] == "batch" &&
                         spec.argv[0].ends_with("/kubegang-launcher");
  if (!is_script) return;
  std::ofstream{termination_log_of(spec), std::ios::trunc};
  spec.argv.insert(spec.argv.begin() + 2, "--termination-log=" + termination_log_of(spec));
}

// Empty if there is none.
std::string read_termination_log(const SpawnSpec& spec) {
  std::ifstream file{termination_log_of(spec)};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  text.resize(std::min(text.size(), kTerminationMessageMax));
  return text;
}

}  // namespace

// Starts a container:
// 1. Images are ignored, except names that mean one which cannot be pulled.
// 2. The command and its environment are worked out.
// 3. The container's cgroup is made below the pod's, and the process in it.
//
// Each step that fails is a state of the container that the real kubelet has, too.
Actions Kubelet::start_container(Pod& pod, ContainerIndex index) {
  // The machine asked for this start before the deletion came.
  if (pod.machine.deleting()) return {};
  const kube::Container& container = pod.machine.container(index);
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
  const std::string id = container_id(*pod.object, index);
  command->cgroup = os::CgroupRoot{config_.cgroup.version, pod_directory(*pod.object) + "/" + id};
  // Without the folder the spawn below fails and says so.
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path{command->output_path}.parent_path(),
                                      error);
  give_termination_log(*command);
  // Even if the next line fails: it may have made the pod's part of the path.
  pod.cgroup_made = true;
  if (const base::Status made = os::make_cgroup(command->cgroup->path); !made.ok()) {
    return pod.machine.start_failed(index, "ContainerCannotRun", made.error().message, now());
  }
  base::Result<Child> child = spawn(*command);
  if (!child.ok()) {
    return pod.machine.start_failed(index, "StartError", child.error().message, now());
  }
  {
    const std::lock_guard lock{mutex_};
    running_[running_key(pod, index)] = {*command, child->pid};
  }
  // The machine gets the start afterwards, so a signal that it asks for finds the child.
  pod.children[index] = std::move(child).value();
  return pod.machine.started(index, id, now());
}

// A container ends with its first process. Processes that are left in its cgroup are killed with
// the cgroup (collect_garbage). A node without power reports nothing: its pods fail when it is
// back.
void Kubelet::reap_children() {
  // All children are asked in each step. A pidfd that has become readable is what ended the wait.
  for (const auto& [uid, pod] : pods_) {
    for (auto it = pod->children.begin(); it != pod->children.end();) {
      const std::optional<ExitStatus> exit = reap(it->second);
      if (!exit) {
        ++it;
        continue;
      }
      const ContainerIndex index = it->first;
      it = pod->children.erase(it);
      std::string message;
      {
        const std::lock_guard lock{mutex_};
        const auto running = running_.find(running_key(*pod, index));
        if (running != running_.end()) {
          message = read_termination_log(running->second.spec);
          running_.erase(running);
        }
      }
      // Whatever the container's first process leaves behind ends with it.
      const std::string directory =
          pod_directory(*pod->object) + "/" + container_id(*pod->object, index);
      if (os::cgroup_exists(directory)) garbage_.insert(directory);
      // node_rebooted() follows later, which gives these containers the exit code
      // that kubelet gives them.
      if (nodes_.find(pod->node())->second.fault == NodeFault::kPoweredOff) continue;
      carry_out(*pod, pod->machine.exited(index, *exit, now(), std::move(message)));
    }
  }
}

// Writes what is due, in the order in which the API must see it: the status, the event, the removal
// of the object. A write that fails stays due and holds the later ones back; that the object is
// gone is not a failure.
void Kubelet::flush(Pod& pod) {
  if (nodes_.find(pod.node())->second.fault) return;
  if (pod.status_is_due && !pod.object_gone) {
    const base::Status status =
        // Conditional on the UID: a pod of the same name that was made since must not get this
        // status.
        patch_pod_status(client_, *pod.object, pod_status_patch(pod.machine, pod.facts));
    if (!status.ok() && status.error().code != Code::kNotFound) {
      return config_.log(
          status.error().with_context("write status of " + pod.object->metadata.name).message);
    }
  }
  pod.status_is_due = false;
  if (pod.event_is_due && !pod.object_gone) write_image_event(pod);
  pod.event_is_due = false;
  if (!pod.removal_is_due) return;
  if (!pod.object_gone) {
    const base::Status status = delete_pod_now(client_, *pod.object);
    if (!status.ok() && status.error().code != Code::kNotFound) {
      return config_.log(
          status.error().with_context("remove " + pod.object->metadata.name).message);
    }
  }
  pod.removal_is_due = false;
  pod.object_gone = true;
}

// Without patience: a cgroup whose processes are still dying is tried again in 50 ms.
void Kubelet::collect_garbage() {
  std::erase_if(garbage_, [this](const std::string& path) {
    return os::destroy_cgroup(config_.cgroup.version, path, base::Duration{0}).ok();
  });
}

// Until the eventfd, the end of a process, the next deadline, or the pause after a write that
// failed, whichever comes first.
void Kubelet::wait_for_work(base::Duration wait_max) {
  base::Duration wait = wait_max;
  if (!garbage_.empty()) wait = std::min<base::Duration>(wait, kRetryPause);
  std::vector<pollfd> fds{{wake_fd_.get(), POLLIN, 0}};
  const Now at = now();
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [index, child] : pod->children) fds.push_back({child.pidfd.get(), POLLIN, 0});
    // The end of a grace time.
    if (const auto deadline = pod->machine.deadline()) {
      wait = std::min(wait, std::max(base::Duration{0}, *deadline - at.monotonic));
    }
    if (pod->status_is_due || pod->removal_is_due) {
      wait = std::min<base::Duration>(wait, kRetryPause);
    }
  }
  // Rounded up: a wait that ends a fraction of a millisecond early would find nothing due and spin.
  const auto millis = std::chrono::ceil<milliseconds>(wait).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(millis));
  std::uint64_t count = 0;
  (void)!::read(wake_fd_.get(), &count, sizeof count);
}

// Tells users of the devcluster once for each pod that its image was not run.
void Kubelet::write_image_event(const Pod& pod) {
  const base::Status status = create_pod_event(
      client_, *pod.object, "ImageIgnored",
      "the devcluster runs the command as a local process and ignores the image \"" +
          pod.object->spec.containers.front().image + "\"",
      clock_.wall());
  if (!status.ok())
    config_.log(status.error().with_context("event of " + pod.object->metadata.name).message);
}

// In a real cluster the node controller writes Unknown for a silent kubelet. Without such a
// controller here, the fault and its end write it.
void Kubelet::write_node_ready(const std::string& node, bool ready) {
  const base::Status status =
      client_.patch_status<kube::Node>({.name = node}, node_ready_patch(ready, clock_.wall()))
          .status();
  if (!status.ok()) config_.log(status.error().with_context("status of node " + node).message);
}

std::string Kubelet::node_cgroup(std::string_view node) const {
  return config_.cgroup.path + "/" + std::string{node};
}

std::string Kubelet::pod_directory(const kube::Pod& pod) const {
  return node_cgroup(node_of(pod)) + "/" + pod_cgroup(qos_class(pod), pod.metadata.uid);
}

std::vector<PodPlace> Kubelet::places() const {
  const std::lock_guard lock{mutex_};
  std::vector<PodPlace> out;
  for (const auto& [key, owner] : log_owners_) {
    const kube::ObjectMeta& meta = owner.pod->metadata;
    out.push_back({meta.ns, meta.name, node_of(*owner.pod), pod_directory(*owner.pod)});
  }
  return out;
}

void Kubelet::fail_node(const std::string& node, NodeFault fault) {
  post(NodeFails{node, fault});
}

void Kubelet::restore_node(const std::string& node) {
  post(NodeRestored{node});
}

std::string Kubelet::running_key(const Pod& pod, ContainerIndex index) const {
  return to_string(kube::key_of(pod.object->metadata)) + "/" + pod.machine.container(index).name;
}

// The mounts and the host name are those of the container's first process.
base::Result<Child> Kubelet::exec(const std::string& namespace_name, const std::string& pod,
                                  const std::string& container,
                                  const std::vector<std::string>& command,
                                  const std::array<int, 3>& streams) const {
  Running running;
  {
    const std::lock_guard lock{mutex_};
    const auto found = running_.find(namespace_name + "/" + pod + "/" + container);
    if (found == running_.end()) {
      return Error{Code::kNotFound, "container not found (\"" + container + "\")"};
    }
    running = found->second;
  }
  SpawnSpec& spec = running.spec;
  spec.streams = streams;
  spec.argv = command;
  const bool has_view = !spec.mounts.empty() || !spec.hostname.empty();
  if (has_view) {
    const std::vector<std::string> enter{kEnter,
                                         "--target=" + std::to_string(running.pid),
                                         "--mount",
                                         "--uts",
                                         "--wd=" + spec.working_dir,
                                         "--"};
    spec.argv.insert(spec.argv.begin(), enter.begin(), enter.end());
    spec.mounts.clear();
    spec.hostname.clear();
  }
  return spawn(spec);
}

base::Result<LogFile> Kubelet::find_log(const std::string& namespace_name, const std::string& pod,
                                        const std::string& container) const {
  // Copied under the lock and used without it: the pod is held by its shared pointer.
  LogOwner owner;
  {
    const std::lock_guard lock{mutex_};
    const auto found = log_owners_.find(namespace_name + "/" + pod);
    if (found != log_owners_.end()) owner = found->second;
  }
  if (!owner.pod) {
    return Error{Code::kNotFound, "pod " + namespace_name + "/" + pod + " is not here"};
  }
  const std::string name = container.empty() ? owner.pod->spec.containers.front().name : container;
  for (const auto* containers : {&owner.pod->spec.containers, &owner.pod->spec.init_containers}) {
    for (const kube::Container& entry : *containers) {
      if (entry.name != name) continue;
      return LogFile{log_file(config_.log_directory, *owner.pod, name), owner.ended};
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
