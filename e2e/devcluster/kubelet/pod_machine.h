// The life of one pod on its node as a state machine: which container is to be started, signalled
// or killed next, and what its status says. No I/O, no clock, no thread: the kubelet feeds it what
// happened and carries out the actions that come back, in their order.
//
//   init containers, one after the other -> containers, all at once -> all ended -> Succeeded,
//   Failed at any time: a deletion -> SIGTERM -> (grace period) -> SIGKILL -> all ended -> removed
//
// Only restartPolicy Never is supported (what a Job's template must have).
// SOURCE: kubernetes.io "Pod Lifecycle"; kubernetes-e2e.md 6.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/strong_int.h"
#include "base/time.h"
#include "e2e/devcluster/kubelet/spawn.h"
#include "kube/api/pod.h"

namespace devcluster {

// When something happened: `wall` is shown in the status, intervals are measured on `monotonic`.
struct Now {
  base::Instant wall{};
  base::Duration monotonic{};
};

// Position in the pod's init containers followed by its containers.
using ContainerIndex = base::StrongInt<struct ContainerIndexTag, std::int32_t>;

struct StartContainer {
  ContainerIndex container;
  friend bool operator==(const StartContainer&, const StartContainer&) = default;
};
struct SignalContainer {
  ContainerIndex container;
  int signal = 0;
  friend bool operator==(const SignalContainer&, const SignalContainer&) = default;
};
// SIGKILL to everything in the pod's cgroup, thawed first and after where that is needed.
struct KillPod {
  friend bool operator==(const KillPod&, const KillPod&) = default;
};
struct WriteStatus {
  friend bool operator==(const WriteStatus&, const WriteStatus&) = default;
};
// Nothing of the pod runs: remove its cgroup, and the object with grace period 0.
struct RemovePod {
  friend bool operator==(const RemovePod&, const RemovePod&) = default;
};
using Action = std::variant<StartContainer, SignalContainer, KillPod, WriteStatus, RemovePod>;
using Actions = std::vector<Action>;

struct ContainerRecord {
  enum class State { kWaiting, kRunning, kTerminated };
  State state = State::kWaiting;
  std::string reason = "ContainerCreating";
  std::string message;
  std::string id;  // of the runtime, empty before the start
  base::Instant started_at{};
  base::Instant finished_at{};
  ExitStatus exit;
};

class PodMachine {
 public:
  explicit PodMachine(std::shared_ptr<const kube::Pod> pod);

  // The kubelet has taken the pod.
  Actions admit(Now now);
  // The kubelet refuses it for good, with a reason such as OutOfcpu.
  Actions refuse(std::string reason, std::string message, Now now);
  Actions started(ContainerIndex container, std::string id, Now now);
  // It will never run. `reason` StartError or ContainerCannotRun.
  Actions start_failed(ContainerIndex container, std::string reason, std::string message, Now now);
  // It cannot run yet and stays waiting: ErrImagePull, CreateContainerConfigError.
  Actions start_blocked(ContainerIndex container, std::string reason, std::string message);
  // `message`: what it has left in its termination log.
  Actions exited(ContainerIndex container, ExitStatus exit, Now now, std::string message = {});
  // Again with a shorter grace period: that one counts.
  Actions delete_requested(base::Duration grace, Now now);
  // To be called at deadline(); an earlier call does nothing.
  Actions tick(Now now);
  // Notes that the node lost power with the pod on it: all that ran has ended, with code 255.
  Actions node_rebooted(Now now);

  // On the monotonic clock.
  std::optional<base::Duration> deadline() const { return deadline_; }

  const kube::Pod& pod() const { return *pod_; }
  const kube::Container& container(ContainerIndex index) const;
  std::size_t init_count() const { return pod_->spec.init_containers.size(); }
  const std::vector<ContainerRecord>& records() const { return records_; }
  kube::PodPhase phase() const;  // never kUnknown
  bool ended() const;            // Succeeded or Failed
  bool initialized() const;
  bool deleting() const { return deleting_; }
  bool anything_runs() const;
  base::Instant admitted_at() const { return admitted_at_; }
  // Returns the reason of the pod as a whole; empty unless it was refused.
  const std::string& reason() const { return reason_; }
  const std::string& message() const { return message_; }

 private:
  Actions go_on();
  ContainerRecord& record(ContainerIndex index);
  bool is_init(ContainerIndex index) const;
  bool init_failed() const;
  void abandon_waiting();

  const std::shared_ptr<const kube::Pod> pod_;
  std::vector<ContainerRecord> records_;
  std::vector<bool> asked_;  // StartContainer was given out
  base::Instant admitted_at_{};
  std::string reason_;
  std::string message_;
  bool refused_ = false;
  bool deleting_ = false;
  bool removed_ = false;
  std::optional<base::Duration> deadline_;
};

}  // namespace devcluster
