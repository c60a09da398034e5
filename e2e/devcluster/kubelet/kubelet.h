// The process kubelet: runs the pods of one or more nodes as local processes, each pod in its own
// cgroup laid out as kubelet's cgroupfs driver lays it out below the node's directory,
//   <instance>/<node>/kubepods[/burstable|/besteffort]/pod<uid>/<container id>
// and reports as kubelet does. Images are ignored (an event on each pod says so), there are no
// networks, probes or restarts, and of volumes only Secrets: a pod needs a `command` and
// restartPolicy Never. Pods that affinity ties to a node are bound to it, as kube-scheduler would.
// Pods with a subdomain have a host name and a resolv.conf (pod_view.h).
//
// An image name that begins with "invalid:" cannot be pulled (ErrImagePull). A field that is
// refused or not supported ends in the pod's status with a sentence.
//
// Two threads: one in follow_pods() (an informer of all pods), one that calls step() for as long as
// the kubelet lives. All other public functions may be called from any thread. One process start
// costs about 1 ms on v2.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "e2e/devcluster/kubelet/name_server.h"
#include "e2e/devcluster/kubelet/pod_machine.h"
#include "e2e/devcluster/kubelet/pod_status.h"
#include "e2e/devcluster/kubelet/spawn.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/sleeper.h"
#include "kube/transport.h"
#include "linux/cgroup_tree.h"

namespace devcluster {

struct KubeletConfig {
  std::vector<NodeSpec> nodes;
  os::CgroupRoot cgroup;         // of the instance; the nodes' directories are made below it
  std::string log_directory;     // <namespace>_<pod>_<uid>/<container>.log below it
  std::string view_directory{};  // files that pods see, in <uid> below it; "" = none
  PodNames* names = nullptr;     // of pods with a subdomain are kept there
  // Environment of every container; $(NAMESPACE), $(POD) and $(NODE) in the values are expanded.
  std::vector<std::pair<std::string, std::string>> environment;
  std::function<void(std::string_view)> log = [](std::string_view) {};  // one line, any thread
};

// Where a pod is on its node.
struct PodPlace {
  std::string namespace_name;
  std::string name;
  std::string node;
  std::string cgroup;
};

// A container's output.
struct LogFile {
  std::string path;
  std::shared_ptr<const std::atomic<bool>> ended;  // nothing more will be added
};

enum class NodeFault {
  kPoweredOff,  // its processes die, nothing is reported
  kCutOff,      // its processes go on, but nothing is heard of it and it hears nothing
};

class Kubelet {
 public:
  Kubelet(const kube::Clock& clock, kube::Transport& transport, KubeletConfig config);
  // Kills what is left and removes the nodes' cgroups. REQUIRES: no thread is in it.
  ~Kubelet();

  // Creates the Node objects, or adopts those that exist, and the nodes' cgroups.
  base::Status register_nodes();

  // Returns when `stop` is requested.
  void follow_pods(std::stop_token stop);

  // Does what is due, then waits for the next thing, `wait_max` at most.
  void step(base::Duration wait_max);
  // Ends a wait in step().
  void wake();

  // Returns the node's directory of cgroups, which its agent takes for the root of kubepods.
  std::string node_cgroup(std::string_view node) const;

  // The node disappears, or is there again (with kPoweredOff: rebooted, its pods have failed). The
  // Node's Ready condition follows, as the node lifecycle controller would have it.
  void fail_node(const std::string& node, NodeFault fault);
  void restore_node(const std::string& node);

  // Starts a program in a container that runs, with what the container has: cgroup, variables,
  // mounts, host name. Blocks while the container is frozen. The child is the caller's to reap.
  base::Result<Child> exec(const std::string& namespace_name, const std::string& pod,
                           const std::string& container, const std::vector<std::string>& command,
                           const std::array<int, 3>& streams) const;

  // Returns where the container writes to. Empty name = the pod's first container. kNotFound: no
  // such pod or container here.
  base::Result<LogFile> find_log(const std::string& namespace_name, const std::string& pod,
                                 const std::string& container) const;
  // Returns all pods that it has taken since it began, also those that are gone.
  std::vector<PodPlace> places() const;
  // Returns what it has written so far.
  base::Result<std::string> read_log(const std::string& namespace_name, const std::string& pod,
                                     const std::string& container) const;

 private:
  struct Pod;
  struct PodSeen {
    std::shared_ptr<const kube::Pod> pod;
  };
  struct PodGone {
    std::string uid;
  };
  struct NodeFails {
    std::string node;
    NodeFault fault = NodeFault::kPoweredOff;
  };
  struct NodeRestored {
    std::string node;
  };
  struct LogOwner {
    std::shared_ptr<const kube::Pod> pod;
    std::shared_ptr<std::atomic<bool>> ended;
  };
  struct Running {
    SpawnSpec spec;
    pid_t pid = 0;
  };
  using Event = std::variant<PodSeen, PodGone, NodeFails, NodeRestored>;
  struct Node;

  Now now() const;
  void post(Event event);
  void handle(const PodSeen& event);
  void handle(const PodGone& event);
  void handle(const NodeFails& event);
  void handle(const NodeRestored& event);

  void bind(const kube::Pod& pod, const std::string& node);
  void admit(Pod& pod);
  std::optional<std::pair<std::string, std::string>> refusal(const kube::Pod& pod) const;
  void carry_out(Pod& pod, Actions actions);
  Actions start_container(Pod& pod, ContainerIndex index);
  base::Result<SpawnSpec> container_command(Pod& pod, ContainerIndex index);
  void reap_children();
  void flush(Pod& pod);
  void collect_garbage();
  void wait_for_work(base::Duration wait_max);
  void write_image_event(const Pod& pod);
  void write_node_ready(const std::string& node, bool ready);
  std::string pod_directory(const kube::Pod& pod) const;
  std::string running_key(const Pod& pod, ContainerIndex index) const;

  const kube::Clock& clock_;
  kube::ThreadSleeper sleeper_;
  const kube::Client client_;
  const KubeletConfig config_;
  os::FileDescriptor wake_fd_;

  // Used by the thread in step() only.
  std::map<std::string, Node, std::less<>> nodes_;
  std::map<std::string, std::unique_ptr<Pod>> pods_;  // by UID
  std::set<std::string> garbage_;                     // cgroups that could not be removed yet
  std::uint32_t pods_started_ = 0;

  mutable std::mutex mutex_;
  std::deque<Event> events_;                    // GUARDED_BY(mutex_)
  std::map<std::string, LogOwner> log_owners_;  // by namespace/name, GUARDED_BY(mutex_)
  std::map<std::string, Running> running_;      // by namespace/name/container, GUARDED_BY(mutex_)
};

}  // namespace devcluster
