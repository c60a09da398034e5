#include "operator/gang/gang_observation.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <utility>

#include "kube/clock_watch.h"
#include "operator/gang/pod_pin.h"
#include "translation/freeze_hazards.h"

namespace control {
namespace {

using base::Instant;

// No time mends these, so the start is undone at once. SOURCE: kubelet's container waiting reasons
// (pkg/kubelet/images/types.go, kuberuntime).
constexpr auto kHopelessReasons = std::to_array<std::string_view>({"InvalidImageName"});
// These may pass (a registry that is down, a Secret that is about to be created), so they count
// only after kLaunchPatience.
constexpr auto kFailingReasons = std::to_array<std::string_view>(
    {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "ErrImageNeverPull",
     "RegistryUnavailable", "CreateContainerConfigError", "CreateContainerError",
     "RunContainerError", "CreatePodSandboxError", "ConfigPodSandboxError"});
// The container was made and its program never ran, so an exit code says nothing about the program.
constexpr auto kStartErrors = std::to_array<std::string_view>({"StartError", "ContainerCannotRun"});

template <typename List>
bool contains(const List& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string pod_text(const kube::Pod& pod) {
  return "pod " + pod.metadata.name;
}

// Returns true if a container of the pod runs or has ended, so that kubelet had admitted the pod.
bool ever_started(const kube::Pod& pod) {
  const auto started = [](const kube::ContainerStatus& status) {
    return status.state.running || status.state.terminated;
  };
  return std::ranges::any_of(pod.status.container_statuses, started) ||
         std::ranges::any_of(pod.status.init_container_statuses, started);
}

// Returns true if kubelet ended the pod for a reason of its own, as when it no longer admits it
// after a restart, and not because the time of its spec is over. REQUIRES: no container has failed.
bool was_refused_late(const kube::Pod& pod) {
  return !pod.status.reason.empty() && pod.status.reason != "DeadlineExceeded";
}

// Returns when its deletion was asked for. REQUIRES: it was. SOURCE: the API server writes
// deletionTimestamp as that instant and the grace period, and shortens both together.
Instant deletion_asked_at(const kube::Pod& pod) {
  return *pod.metadata.deletion_timestamp -
         std::chrono::seconds{pod.metadata.deletion_grace_period_seconds.value_or(0)};
}

// The clock of a node that is this far from the API server's, or less, fails no job whose pod was
// deleted.
constexpr base::Duration kClocksApartMax = std::chrono::seconds{30};

// Returns true if a container has ended by a signal that kubelet sends when a pod is deleted: 128
// and SIGTERM, or SIGKILL. SOURCE: runtimes say so; for the killer of processes that have too much
// memory the reason is another one.
bool ended_by_signal_of_deletion(const kube::Pod& pod) {
  return std::ranges::any_of(pod.status.container_statuses, [](const kube::ContainerStatus& one) {
    const auto& end = one.state.terminated;
    return end && end->reason == "Error" && (end->exit_code == 143 || end->exit_code == 137);
  });
}

// Why kubelet ended the pod, or did not take it.
std::string kubelets_words(const kube::Pod& pod) {
  const auto& [reason, message] = std::tie(pod.status.reason, pod.status.message);
  if (reason.empty() && message.empty()) return "its kubelet does not say why";
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

// Returns the failed container that ended first, or null.
const kube::ContainerTerminated* first_failed(const kube::Pod& pod) {
  const kube::ContainerTerminated* first = nullptr;
  for (const auto* statuses :
       {&pod.status.init_container_statuses, &pod.status.container_statuses}) {
    for (const kube::ContainerStatus& status : *statuses) {
      if (!status.state.terminated || status.state.terminated->exit_code == 0) continue;
      if (first == nullptr || status.state.terminated->finished_at < first->finished_at) {
        first = &*status.state.terminated;
      }
    }
  }
  return first;
}

// Returns true if a container of the pod has ended for one of these reasons. Init containers count:
// if one fails, no other starts.
bool any_ended_for(const kube::Pod& pod, std::initializer_list<std::string_view> reasons) {
  const auto matches = [&reasons](const kube::ContainerStatus& status) {
    return status.state.terminated &&
           std::ranges::find(reasons, status.state.terminated->reason) != reasons.end();
  };
  return std::ranges::any_of(pod.status.init_container_statuses, matches) ||
         std::ranges::any_of(pod.status.container_statuses, matches);
}

bool was_out_of_memory(const kube::Pod& pod) {
  return any_ended_for(pod, {"OOMKilled"});
}

// The node went down under the container: how its program would have ended is not known.
// SOURCE: containerd's CRI plugin after a reboot ("Unknown", 255), kubelet without a container
// ("ContainerStatusUnknown", 137). A program that ends so by itself has the reason "Error".
bool was_lost_with_its_node(const kube::Pod& pod) {
  return any_ended_for(pod, {"Unknown", "ContainerStatusUnknown"});
}

// Returns true if the pod was taken away, which says nothing about its program. SOURCE:
// kubelet's eviction and graceful node shutdown set a reason; the API server's eviction, taint
// manager and preemption set the condition DisruptionTarget.
bool is_disrupted(const kube::Pod& pod) {
  return pod.status.reason == "Evicted" || pod.status.reason == "NodeShutdown" ||
         pod.status.reason == "Terminated" || pod.status.reason == "NodeLost" ||
         kube::is_true(pod.status.conditions, "DisruptionTarget");
}

// Returns the first container that waits for a reason which may last, or null.
const kube::ContainerStatus* stuck_container(const kube::Pod& pod) {
  for (const auto* statuses :
       {&pod.status.init_container_statuses, &pod.status.container_statuses}) {
    for (const kube::ContainerStatus& status : *statuses) {
      if (!status.state.waiting) continue;
      const std::string& reason = status.state.waiting->reason;
      if (contains(kHopelessReasons, reason) || contains(kFailingReasons, reason)) return &status;
    }
  }
  return nullptr;
}

// Returns true if kubelet has said nothing of the pod's containers. No kubelet knows a pod that
// kube-scheduler has yet to bind.
bool kubelet_is_silent(const kube::Pod& pod) {
  return pod.spec.node_name && pod.status.container_statuses.empty() &&
         pod.status.init_container_statuses.empty();
}

// Returns "container main waits, ContainerCreating: …" of the first container that has yet to start
// or, if it is an init container, to end.
std::string waiting_text(const kube::ContainerStatus& status) {
  if (status.state.running) return "init container " + status.name + " runs";
  const auto& waiting = status.state.waiting;
  std::string text = "container " + status.name + " waits";
  if (waiting && !waiting->reason.empty()) text += ", " + waiting->reason;
  if (waiting && !waiting->message.empty()) text += ": " + waiting->message;
  return text;
}

// One look at all pods of a gang. Pods contradict each other while a gang starts or ends (one has
// failed, another cannot start, a third is missing), so each pod only adds what it knows, and run()
// decides at the end which of it counts:
// 1. per pod: missing, finished, succeeded, started; for a troubled pod also a failure or a launch
//    that failed.
// 2. the earliest failure wins, by the time at which its container ended: the others often fail
//    because of the first one.
// 3. early success against failure, by their times.
// 4. a failure or a success outweighs a launch that failed.
class Observer {
 public:
  Observer(const GangView& view, Instant now) : view_{view}, now_{now} {}

  GangObservation run() {
    bool all_running = true;
    Instant settled{base::Duration{0}};
    // A gang without slots (its allocation could not be read) is neither finished nor complete.
    out_.all_finished = !view_.slots.empty();
    out_.all_succeeded = !view_.slots.empty();
    // Nearly all pods of a gang are calm (SlotPod) at any time. The report of a calm pod was worked
    // out when it changed, so this costs a few operations for each.
    for (std::size_t i = 0; i < view_.slots.size(); ++i) {
      const PodSlot& slot = view_.slots[i];
      const SlotPod& one = view_.pods[i];
      if (!slot.has_pod()) continue;
      if (one.is_missing()) {
        // A pod whose success is known may go: its log alone is lost.
        if (view_.members != nullptr && view_.members->has_succeeded(slot.pod_index)) continue;
        note_waiting(slot, one);
        out_.missing.push_back(slot.index);
        out_.all_finished = out_.all_succeeded = all_running = false;
        continue;
      }
      count(one);
      if (!one.is_calm) look_at(slot, one);
      if (!one.has_started) note_waiting(slot, one);
      all_running = all_running && one.has_started;
      if (one.newest_start) {
        settled = std::max(settled, settled_at(*one.newest_start, one.seen_running, view_.settle));
      }
    }
    if (all_running && !view_.slots.empty()) out_.settled_at = settled;
    check_start_deadline(all_running);
    check_success();
    // A program that has failed outweighs a pod that cannot start: the job would fail again on
    // other nodes. For a job that is complete nothing more need start.
    if (out_.failure || out_.success) out_.launch.reset();
    return std::move(out_);
  }

 private:
  void count(const SlotPod& one) {
    out_.all_finished = out_.all_finished && one.is_finished;
    out_.all_succeeded = out_.all_succeeded && one.has_succeeded;
  }

  void look_at(const PodSlot& slot, const SlotPod& one) {
    const kube::Pod& pod = *one.pod;
    if (!out_.never_frozen) {
      if (const auto why = why_never_frozen(pod.spec)) {
        out_.never_frozen = pod_text(pod) + ": " + *why;
      }
    }
    if (view_.are_adopted && pod.metadata.deletion_timestamp) return;
    // Not deleted by the operator: then the job would have an ending, and its pods would not be
    // asked. It counts from when it was asked for: the others often fail because of it.
    if (pod.metadata.deletion_timestamp && (!one.is_finished || one.was_told_to_end)) {
      add_failure(deletion_asked_at(pod), {.state = sched::JobState::kNodeFail,
                                           .lost_member = true,
                                           .message = pod_text(pod) + " on node " + slot.node +
                                                      " was deleted by another client"});
      return;
    }
    if (one.has_succeeded) return;
    if (pod.status.phase == kube::PodPhase::kFailed) return look_at_failed(slot, one);
    // All containers of a gang that is ready have run, so no launch can fail.
    if (!view_.ready) look_at_waiting(slot, pod);
  }

  void look_at_failed(const PodSlot& slot, const SlotPod& one) {
    const kube::Pod& pod = *one.pod;
    // The order of the cases matters. kubelet refuses a pod before any container exists, a runtime
    // refuses a container before its program runs, and only then can an exit code be the program's
    // own.
    // Whatever reason kubelet has ("OutOfcpu", "UnexpectedAdmissionError", and new ones each year):
    // another node may take the pod.
    if (!view_.ready && !ever_started(pod)) {
      add_launch({.node_is_at_fault = true,
                  .node = slot.node,
                  .message = "node " + slot.node + " refused the pod: " + kubelets_words(pod)});
      return;
    }
    const kube::ContainerTerminated* failed = first_failed(pod);
    if (!view_.ready && failed != nullptr && contains(kStartErrors, failed->reason)) {
      add_launch({.node = slot.node,
                  .message = pod_text(pod) + " could not be started on node " + slot.node + ": " +
                             (failed->message.empty() ? failed->reason : failed->message)});
      return;
    }
    // A pod without a failed container (such as evicted before its start) counts as failed now.
    const Instant at = failed != nullptr ? failed->finished_at.value_or(now_) : now_;
    const int exit_code = failed != nullptr ? failed->exit_code : 1;
    // The order matters: an evicted pod and one that ran out of memory have failed containers too.
    if (was_out_of_memory(pod)) {
      add_failure(at, {.state = sched::JobState::kOutOfMemory,
                       .exit_code = exit_code,
                       .message = pod_text(pod) + " ran out of memory on node " + slot.node});
    } else if (is_disrupted(pod)) {
      add_failure(at, {.state = sched::JobState::kNodeFail,
                       .exit_code = exit_code,
                       .lost_member = true,
                       .message = pod_text(pod) + " was evicted from node " + slot.node + ": " +
                                  kubelets_words(pod)});
    } else if (was_lost_with_its_node(pod)) {
      add_failure(at, {.state = sched::JobState::kNodeFail,
                       .exit_code = exit_code,
                       .lost_member = true,
                       .message = pod_text(pod) + " was lost when node " + slot.node +
                                  " or its container runtime went down"});
    } else if (failed == nullptr && was_refused_late(pod)) {
      add_failure(at, {.state = sched::JobState::kNodeFail,
                       .lost_member = true,
                       .message = pod_text(pod) + " was ended by node " + slot.node + ": " +
                                  kubelets_words(pod)});
    } else {
      add_failure(at, {.state = sched::JobState::kFailed,
                       .exit_code = exit_code,
                       .wants_requeue = one.wants_requeue && slot.pod_index == 0,
                       .message = pod_text(pod) + " on node " + slot.node +
                                  " failed with exit code " + std::to_string(exit_code) +
                                  (pod.status.reason.empty() ? "" : ": " + kubelets_words(pod))});
    }
  }

  void look_at_waiting(const PodSlot& slot, const kube::Pod& pod) {
    if (const auto problem = binding_problem(pod)) {
      return note_failing(pod, {.node_is_at_fault = !problem->about_claims,
                                .lacks_devices = problem->about_devices,
                                .node = slot.node,
                                .message = "kube-scheduler cannot bind " + pod_text(pod) +
                                           " to node " + slot.node + ": " + problem->message});
    }
    const kube::ContainerStatus* stuck = stuck_container(pod);
    if (stuck == nullptr) return;
    const kube::ContainerWaiting& waiting = *stuck->state.waiting;
    const LaunchFailure failure{.node = slot.node,
                                .message = pod_text(pod) + " cannot start container " +
                                           stuck->name + " on node " + slot.node + ": " +
                                           waiting.reason +
                                           (waiting.message.empty() ? "" : ", " + waiting.message)};
    // node_is_at_fault stays false: the image or the Secret would be missing on any node.
    if (contains(kHopelessReasons, waiting.reason)) return add_launch(failure);
    note_failing(pod, failure);
  }

  void note_failing(const kube::Pod& pod, const LaunchFailure& failure) {
    out_.failing.push_back(pod.metadata.name);
    // Errors such as ImagePullBackOff may pass; only one that lasts undoes the start.
    const auto since = view_.failing_since->find(pod.metadata.name);
    const Instant deadline = (since == view_.failing_since->end() ? now_ : since->second) +
                             (failure.lacks_devices ? kDevicesPatience : kLaunchPatience);
    if (deadline <= now_) return add_launch(failure);
    look_again_at(deadline);
  }

  // A failure after the rule is met counts for nothing: workers often fail because their driver has
  // ended. Containers have times in whole seconds, so within one of them success wins.
  void check_success() {
    if (view_.success_policy == nullptr) return;
    if (view_.members == nullptr && out_.all_succeeded) return;
    std::vector<int> before;
    if (view_.members != nullptr) before = view_.members->succeeded();
    out_.success = early_success(*view_.success_policy, view_.slots, view_.pods, now_, before);
    if (!out_.success || !out_.failure) return;
    if (out_.success->at <= failed_at_) {
      out_.failure.reset();
    } else {
      out_.success.reset();
    }
  }

  // It is not known which of the pods is at fault, except for one that its kubelet says nothing
  // about.
  void check_start_deadline(bool all_running) {
    if (view_.ready || all_running || !view_.start_deadline) return;
    if (*view_.start_deadline > now_) return look_again_at(*view_.start_deadline);
    LaunchFailure failure{.message = "its pods did not all run within startTimeout"};
    if (out_.waits_for) {
      const auto index = static_cast<std::size_t>(*out_.waits_for);
      const SlotPod& one = view_.pods[index];
      failure.node = view_.slots[index].node;
      failure.node_is_at_fault = one.pod != nullptr && kubelet_is_silent(*one.pod);
      failure.message += ": " + why_waiting(view_.slots[index], one);
    }
    add_launch(std::move(failure));
  }

  void note_waiting(const PodSlot& slot, const SlotPod& one) {
    if (!out_.waits_for) out_.waits_for = slot.index;
    out_.awaits_init = out_.awaits_init || one.is_missing() || one.has_init_left;
    if (view_.members != nullptr && !view_.start_deadline) check_follower(slot, one);
  }

  // A pod that follows another does not hold up its gang forever: those before it ran there. The
  // time since it was first seen is measured by the operator's clock alone. The time since its
  // creation, by the API server's clock, limits what a change of leaders adds.
  void check_follower(const PodSlot& slot, const SlotPod& one) {
    if (one.pod == nullptr || !one.pod->metadata.creation_timestamp) return;
    const Instant created = *one.pod->metadata.creation_timestamp;
    const Instant since = std::min(one.seen.value_or(created), created + kube::ClockWatch::kOffMax);
    const Instant deadline = since + view_.start_timeout;
    if (deadline > now_) return look_again_at(deadline);
    add_launch({.node_is_at_fault = true,
                .node = slot.node,
                .message = "a pod did not run within startTimeout: " + why_waiting(slot, one)});
  }

  void add_failure(Instant at, GangEnd failure) {
    // Containers have times in whole seconds. Among failures of one instant a loss counts first,
    // since no program caused it, and then the pod's order.
    const bool is_first = !out_.failure || at < failed_at_ ||
                          (at == failed_at_ && failure.lost_member && !out_.failure->lost_member);
    if (!is_first) return;
    failed_at_ = at;
    out_.failure = std::move(failure);
  }
  void add_launch(LaunchFailure failure) {
    // The first in the order of the pods: the same one at each look, so that the message does not
    // flicker.
    if (!out_.launch) out_.launch = std::move(failure);
  }
  void look_again_at(Instant t) {
    if (!out_.look_again || t < *out_.look_again) out_.look_again = t;
  }

  const GangView& view_;
  const Instant now_;
  GangObservation out_;
  Instant failed_at_{};
};

}  // namespace

base::Instant settled_at(base::Instant newest_start, std::optional<base::Instant> seen_running,
                         base::Duration settle) {
  const Instant started = std::min(newest_start, seen_running.value_or(newest_start));
  return started + kStartedAtResolution + settle;
}

SlotPod::SlotPod(std::shared_ptr<const kube::Pod> that) : SlotPod{std::move(that), SlotPod{}} {}

SlotPod::SlotPod(std::shared_ptr<const kube::Pod> that, const SlotPod& known)
    : pod{std::move(that)}, uid{pod->metadata.uid}, was_seen{true} {
  is_finished = kube::is_finished(*pod);
  remember(known);
  look_at_times();
  if (is_finished) look_for_usage();
  was_told_to_end = is_end_of_a_deletion();
  has_succeeded = pod->status.phase == kube::PodPhase::kSucceeded && !was_told_to_end;
  // A calm pod is one about which look_at() has nothing to say. Every new case in look_at() needs
  // its condition here, or it is never seen.
  const bool is_troubled = pod->status.phase == kube::PodPhase::kFailed ||
                           pod->metadata.deletion_timestamp.has_value() ||
                           stuck_container(*pod) != nullptr || binding_problem(*pod);
  // Asked once per change of the pod, which is what makes the loop over a gang cheap.
  is_calm = (has_succeeded || !is_troubled) && !why_never_frozen(pod->spec);
}

// Keeps what was seen of it before.
void SlotPod::remember(const SlotPod& known) {
  const bool is_deleted = pod->metadata.deletion_timestamp.has_value();
  if (is_finished != is_deleted) deletion_came_first = is_deleted;
  if (known.uid != uid) return;
  seen = known.seen;
  seen_running = known.seen_running;
  seen_started = known.seen_started;
  if (known.deletion_came_first) deletion_came_first = known.deletion_came_first;
}

bool SlotPod::is_end_of_a_deletion() const {
  if (!is_finished || !pod->metadata.deletion_timestamp) return false;
  if (deletion_came_first) return *deletion_came_first;
  // Two clocks tell the times: the API server's, and that of its node.
  const base::Duration apart =
      ended_by_signal_of_deletion(*pod) ? kClocksApartMax : base::Duration{0};
  return !last_finished || deletion_asked_at(*pod) <= *last_finished + apart;
}

void SlotPod::look_at_times() {
  // A container that could not be started has a start in 1970.
  const auto note_start = [this](const std::optional<Instant>& started) {
    if (!started || *started <= Instant{}) return;
    if (!first_started || *started < *first_started) first_started = started;
  };
  // Also notes that of init containers: until they have ended no other container starts.
  const auto note_times = [&](const kube::ContainerStatus& status) {
    if (status.state.terminated) {
      note_start(status.state.terminated->started_at);
      last_finished = std::max(last_finished, status.state.terminated->finished_at);
    } else if (status.state.running) {
      note_start(status.state.running->started_at);
      runs = true;
    }
  };
  const auto& statuses = pod->status.container_statuses;
  // kubelet fills the list of statuses in late: fewer than there are containers means that some are
  // not known yet.
  bool all_started = !statuses.empty() && statuses.size() >= pod->spec.containers.size();
  for (const kube::ContainerStatus& status : statuses) {
    note_times(status);
    if (status.state.running && status.state.running->started_at) {
      newest_start = std::max(newest_start, status.state.running->started_at);
    } else if (!status.state.terminated) {
      all_started = false;
    }
  }
  std::size_t init_done = 0;
  for (const kube::ContainerStatus& status : pod->status.init_container_statuses) {
    note_times(status);
    if (status.state.terminated && status.state.terminated->exit_code == 0) ++init_done;
  }
  has_started = is_finished || all_started;
  // Sidecars that a webhook has added run where the containers run.
  has_init_left = !has_started && init_done < pod->spec.init_containers.size();
  // The clock of its node may be behind: nothing of it ran before it was created.
  const std::optional<Instant> created = pod->metadata.creation_timestamp;
  if (first_started && created && *first_started < *created) {
    clock_behind = *created - *first_started;
    first_started = created;
  }
  // A pod that has ended needs no time to settle.
  if (is_finished) newest_start.reset();
  runs = runs && !is_finished;
}

// Containers that webhooks have added may have messages of their own.
void SlotPod::look_for_usage() {
  for (const kube::ContainerStatus& status : pod->status.container_statuses) {
    const auto& end = status.state.terminated;
    if (!end || !kube::is_usage_message(end->message)) continue;
    if (const auto said = kube::read_usage_message(end->message)) {
      usage = std::make_shared<const kube::JobUsage>(said->usage);
      wants_requeue = said->wants_requeue;
    }
    return;
  }
}

SlotPod SlotPod::known_success() {
  SlotPod pod;
  pod.is_finished = pod.has_succeeded = pod.has_started = pod.is_calm = true;
  // When it ended does not matter: nothing had failed before it.
  pod.last_finished = Instant{};
  return pod;
}

SlotPod SlotPod::without_object() const {
  if (is_finished && !was_told_to_end) return *this;
  SlotPod missing;
  missing.uid = uid;
  missing.was_seen = was_seen;
  missing.deletion_came_first = deletion_came_first;
  missing.usage = usage;
  missing.seen_running = seen_running;
  missing.seen_started = seen_started;
  missing.seen = seen;
  return missing;
}

std::string why_waiting(const PodSlot& slot, const SlotPod& one) {
  const std::string where = "pod " + slot.name + " on node " + slot.node + ": ";
  if (one.pod == nullptr) return where + "it does not exist yet";
  const kube::Pod& pod = *one.pod;
  if (const auto problem = binding_problem(pod)) {
    return where + "kube-scheduler cannot bind it: " + problem->message;
  }
  for (const kube::ContainerStatus& status : pod.status.init_container_statuses) {
    if (!status.state.terminated) return where + waiting_text(status);
  }
  for (const kube::ContainerStatus& status : pod.status.container_statuses) {
    if (status.state.running || status.state.terminated) continue;
    return where + waiting_text(status);
  }
  return where + (pod.spec.node_name ? "its kubelet has not said anything of it"
                                     : "kube-scheduler has not bound it");
}

GangObservation observe_gang(const GangView& view, Instant now) {
  return Observer{view, now}.run();
}

}  // namespace control
