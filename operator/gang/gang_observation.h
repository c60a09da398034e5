// The state of one start of a job, from all its pods together: settled, finished, failed, or
// unable to start. Pure: the same pods at the same instant give the same answer, so a new leader
// comes to the same conclusions (architecture.md 2, "Starting into contention", and 5).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/job_usage.h"
#include "base/time.h"
#include "kube/api/pod.h"
#include "operator/gang/success_policy.h"
#include "scheduler/model/job.h"
#include "translation/members.h"
#include "translation/pod_slots.h"

namespace control {

// A container that cannot be started, or a pod that cannot be bound, is given that long before the
// start is given up.
inline constexpr base::Duration kLaunchPatience = std::chrono::seconds{60};
// The patience with a pod for whose devices its node has no room. The scheduler has counted them,
// so no other pod of kubegang is about to give them back; kube-scheduler may be behind for this
// long.
inline constexpr base::Duration kDevicesPatience = std::chrono::seconds{5};
// startedAt is in whole seconds: the container started somewhere in the second after it.
inline constexpr base::Duration kStartedAtResolution = std::chrono::seconds{1};

// The job's own end, seen in its pods.
struct GangEnd {
  // kFailed, kOutOfMemory, kNodeFail; kCompleted by its successPolicy
  sched::JobState state = sched::JobState::kFailed;
  int exit_code = 0;
  // The gang lost a member through no fault of its own (evicted, deleted, node gone): it may be
  // requeued.
  bool lost_member = false;
  // It never ran: its pods could not be made or started, and it may not be queued again.
  bool launch_failed = false;
  bool wants_requeue = false;  // its script has asked to run again
  std::string message;
};

// A start that failed before any of its programs ran, because of the start itself.
struct LaunchFailure {
  // kubelet refused the pod, or kube-scheduler cannot bind it there: others may take it. Otherwise
  // the pod is at fault: requeue and hold.
  bool node_is_at_fault = false;
  bool lacks_devices = false;  // the node has fewer devices than were counted
  std::string node;
  std::string message;
};

struct GangObservation {
  std::vector<int> missing;   // indexes of slots without a pod
  bool all_finished = false;  // every pod exists and is Succeeded or Failed
  bool all_succeeded = false;
  // When all pods have settled (may lie ahead); nothing while a container has yet to start.
  std::optional<base::Instant> settled_at;
  std::optional<GangEnd> failure;           // the first that happened
  std::optional<EarlySuccess> success;      // successPolicy was met before anything failed
  std::optional<LaunchFailure> launch;      // only while nothing else failed
  std::vector<std::string> failing;         // pods whose containers cannot be started at present
  std::optional<base::Instant> look_again;  // when a wait for `failing` or startTimeout is over
  std::optional<int> waits_for;             // index of the first slot whose pod does not run
  // A pod is missing or has an init container to finish, for which the others may wait.
  bool awaits_init = false;
  // Why its pods must not be frozen, of the first that must not (freeze_hazards.h).
  std::optional<std::string> never_frozen;
};

// The pod of a slot and what does not depend on the time of what it says. Worked out once for each
// version of the pod: a gang of thousands is looked at whenever one of them changes.
//
// A pod that has ended by itself stays what it is here when its object is deleted: a clean-up takes
// nothing of what it has done.
struct SlotPod {
  std::shared_ptr<const kube::Pod> pod;  // null: missing, or known to have succeeded earlier
  std::string uid;                       // its own, or that of the pod that was here last
  bool was_seen = false;                 // by this leader, whether its object still exists or not
  bool is_finished = false;
  // It was deleted before it had ended, so its end says nothing about its program. What this leader
  // saw first of the two counts, whatever the clock of its node is; if it saw both at once, their
  // times do.
  bool was_told_to_end = false;
  std::optional<bool> deletion_came_first;  // as it was seen
  bool has_succeeded = false;               // and was not ended by a deletion
  bool has_started = false;    // all of its containers run or have ended, or it is finished
  bool runs = false;           // one of them does, or an init container
  bool has_init_left = false;  // an init container has yet to end
  // It only counts: it has not failed, is not being deleted, waits for nothing that may never come,
  // and may be frozen.
  bool is_calm = false;
  std::optional<base::Instant> newest_start;  // of those that run
  // When this leader first saw all of them run, one that had begun, and the pod, by its own clock.
  std::optional<base::Instant> seen_running;
  std::optional<base::Instant> seen_started;
  std::optional<base::Instant> seen;
  // First start and last end of its containers, init containers too.
  std::optional<base::Instant> first_started;
  std::optional<base::Instant> last_finished;
  // By how much the clock of its node was behind, at least, when it started.
  base::Duration clock_behind{0};
  // The job's usage, as its launcher reported it at its end.
  std::shared_ptr<const kube::JobUsage> usage;
  bool wants_requeue = false;  // as its launcher reported

  SlotPod() = default;
  explicit SlotPod(std::shared_ptr<const kube::Pod> that);
  // `known`: what was in the slot before, which may be an older version of that pod.
  SlotPod(std::shared_ptr<const kube::Pod> that, const SlotPod& known);
  // Makes a pod that is stored as succeeded and whose object is gone.
  static SlotPod known_success();

  // Returns what is left of it when its object is gone.
  SlotPod without_object() const;
  bool is_missing() const { return pod == nullptr && !has_succeeded; }

 private:
  void remember(const SlotPod& known);
  bool is_end_of_a_deletion() const;
  void look_at_times();
  void look_for_usage();
};

struct GangView {
  std::span<const PodSlot> slots;
  std::span<const SlotPod> pods;  // of each slot
  // Since when each pod in `failing` was seen failing.
  const std::map<std::string, base::Instant>* failing_since = nullptr;
  base::Duration settle = std::chrono::seconds{2};
  std::optional<base::Instant> start_deadline;  // of the gang; nothing once it is ready
  // The limit for a pod that follows another at its place, from when this leader first saw it on;
  // of one that the leader before made, from its creation on (check_follower).
  base::Duration start_timeout = std::chrono::minutes{30};
  bool ready = false;  // all of its pods have run: nothing fails to launch
  const kube::SuccessPolicy* success_policy = nullptr;  // null: all pods must succeed
  const Members* members = nullptr;                     // null: each slot has one pod and no other
  // Others have made the pods: one that they delete is as good as gone, however it ends then.
  bool are_adopted = false;
};

// Returns when a pod has settled whose youngest container started then, as kubelet says. A pod that
// runs settles `settle` and a second after it was seen running at the latest, whatever the clock of
// its node is: the agents count alike (NodePolicy::is_settled).
base::Instant settled_at(base::Instant newest_start, std::optional<base::Instant> seen_running,
                         base::Duration settle);

// Cost: a few nanoseconds for a pod that is calm.
GangObservation observe_gang(const GangView& view, base::Instant now);

// Why a pod does not run yet: which one, where, and what kubelet or kube-scheduler says of it.
std::string why_waiting(const PodSlot& slot, const SlotPod& one);

}  // namespace control
