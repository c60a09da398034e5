// PodWrites: the pods of a start and its Service are made, and pods are ended. Nothing is made
// before CommitGate lets it, and nothing that has become needless while it waited for room. Pods
// that others have made are pinned instead of made, and stopped instead of deleted. Endings do not
// wait for room: each is asked for once, stays wanted until it is done, and frees nodes.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/pod_index.h"
#include "operator/loop/counters.h"
#include "operator/publish/commit_gate.h"
#include "operator/publish/waiting_line.h"
#include "operator/write/writer.h"
#include "translation/devices.h"

namespace control {

// Belongs to the loop's thread. Notes in a JobRecord the writes of its start that are under way or
// wait for room, and the pods that it asked to end; keeps nothing but the order in which jobs wait.
class PodWrites {
 public:
  PodWrites(const JobParts& parts, const PodIndex& places, const CommitGate& gate,
            CountedWriter& writer, LoopCounters& counters)
      : parts_{parts}, places_{places}, gate_{gate}, writer_{writer}, counters_{counters} {}

  // Makes the pods of these slots, or pins those that others have made, as soon as CommitGate lets
  // it and there is room (due). `time_limit`: that the pods hear of.
  void launch(JobRecord& job, const std::vector<int>& missing,
              std::optional<base::Duration> time_limit = {});
  // Makes the names of a gang's pods, made with its first pod; a new leader makes sure of it once,
  // since its predecessor may have got no further. Tried until it is there: without it the gang has
  // no names.
  void ensure_service(JobRecord& job);
  // Once. `kill_at`: when the grace period is over; nullopt: the pod's own, as far as a template
  // may ask for it.
  void end_pod(JobRecord& job, const kube::Pod& pod, std::optional<base::Instant> kill_at);
  // Ends all of them; does not create those that wait for room.
  void end_pods(JobRecord& job, std::optional<base::Instant> kill_at);
  // Has pods deleted once more, for which that was asked already: they may need to end sooner.
  void end_again(JobRecord& job);
  // `next`: the pod that is there now under that name; null: none.
  void observe(const PodPlace& before, const kube::Pod* next);
  // Keeps the pods of a task that has ended, of which no record will be left, for their logs; those
  // of the tasks that ended first are deleted, so that some of each outcome are left.
  void keep_pods(JobRecord& array, const JobRecord& ended);
  void delete_old_pods(JobRecord& array);
  // Notes the pods that the leader before kept.
  void restore_kept_pods(JobRecord& array);
  // Ends pods of earlier starts, whatever made them.
  void end_stale_pods(JobRecord& job);
  // Returns true if something of the job may still run.
  bool has_pods_left(const JobRecord& job) const;
  // Returns where; nullopt if a pod is on no node yet. Cost: O(pods).
  std::optional<std::set<std::string>> nodes_with_pods_left(const JobRecord& job) const;

  // Returns the pods to make or to pin for which there is room: a gang's by their slots, gangs in
  // the order in which their pods might be made. Cost: these.
  std::vector<Effect> due(std::size_t room);

  // Notes that the answer to the start's commit has the template too: it need not be read again.
  void keep_template(const kube::Job& answer, const std::string& key);
  void answered(TemplateRead&& outcome);
  // Each returns why the start must be undone, if so; `outcome.result` is left as it is.
  std::optional<StartUndo> answered(const PodCreated& outcome);
  // Also notes an adopted pod that no longer exists in LaunchNotes::gone.
  std::optional<StartUndo> answered(const PodPinned& outcome);
  void answered(ServiceCreated&& outcome);
  // The same.
  std::optional<StartUndo> answered(const StepSecretCreated& outcome);
  void answered(PodDeleted&& outcome);

 private:
  bool is_left(const kube::Pod& pod) const;
  bool has_step_secret(JobRecord& job);
  void line_up(JobRecord& job, kube::Job source, const std::vector<int>& missing);
  Effect take_next(JobRecord& job);
  static void withdraw(JobRecord& job);
  void note_made(JobRecord& job);
  std::optional<StartUndo> note_failure(JobRecord& job, Attempts& tries, const base::Error& error);
  bool have_failed_for_long(JobRecord& job, const std::string& why);
  void show_starting(JobRecord& job, const std::string& reason, const std::string& message);
  // Returns the CPUs that the slot's pod is bound to; "" = none.
  std::string cpuset_for(const PodSlot& slot) const;
  DeviceResources devices_for(const JobRecord& job, const PodSlot& slot) const;
  sched::MemoryRequest memory_of(const JobRecord& job) const;
  void stop_pod(JobRecord& job, const kube::Pod& pod);
  void delete_oldest(JobRecord& array, std::deque<KeptPods::Pod>& kept, std::size_t most);

  const JobParts parts_;
  const PodIndex& places_;
  const CommitGate& gate_;
  CountedWriter& writer_;
  LoopCounters& counters_;
  WaitingLine line_;  // UIDs of jobs that have pods to make or to pin
};

}  // namespace control
