// The record of one Job object (one UID), or of a task of an array. Data that JobBook keeps; which
// part of jobs/ notes what is said beside it. The wanted status is changed by JobBook::change,
// which marks it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/array_status.h"
#include "api/job.h"
#include "base/rare.h"
#include "kube/api/pod.h"
#include "operator/gang/gang_observation.h"
#include "operator/publish/attempts.h"
#include "operator/publish/mirror.h"
#include "operator/write/effect.h"
#include "scheduler/event.h"
#include "scheduler/model/array.h"
#include "scheduler/model/job.h"
#include "translation/pod_slots.h"
#include "translation/task_key.h"
#include "translation/template_check.h"

namespace control {

// A start that has to be undone once all pods of it are gone (sched::StartRefused).
struct StartUndo {
  std::vector<std::string> avoid_nodes;
  base::Duration avoid_for{0};
  bool hold = false;
  bool api_refused = false;  // back off before the next try
  std::string message;
};

// Pods of a start that are made, or pinned, when there is room for it among the writes.
struct PodsToCreate {
  Shared<kube::Job> job;  // with its template, and the allocation of this start
  Shared<GangLayout> gang;
  std::deque<int> slots;  // their indexes
};

// Everything that belongs to one start of a job: it is forgotten as a whole.
struct GangStart {
  std::vector<PodSlot> slots;      // of status.wanted.allocation
  std::vector<SlotPod> slot_pods;  // the pod of each
  std::optional<Members> members;  // of a job with spec.completions
  // The number of successful pods that is stored, or will be with the next status. The object of
  // one that is not stored yet is gone, and this number alone counts it.
  std::size_t successes_noted = 0;
  bool success_at_risk = false;
  std::vector<std::string> nodes;     // of the slots, each once
  std::set<std::string> clean_nodes;  // while it ends: those that the scheduler knows
  bool launching = false;             // its template is being read
  // As the answer to the start's commit, or a read, has it, until its pods are made; empty: it has
  // to be read.
  kube::RawJson launch_template;
  base::Rare<kube::JobBatch> launch_batch;   // comes and goes with it
  std::optional<base::Duration> time_limit;  // with overTimeLimit; as its pods know it
  base::Rare<DefaultsInForce> defaults;      // as its first pod got them
  // Indexes of slots whose pods' creation (or pinning) is under way, or waits in to_create.
  std::set<int> creating;
  base::Rare<PodsToCreate> to_create;
  std::set<int> gone;  // of an adopted gang: indexes of slots whose pods no longer exist
  Attempts pod_tries;  // of reading the template, and creating or pinning pods
  // Since when each creation (or pin) of a pod has failed without being refused, and whether an
  // event said so.
  std::optional<base::Instant> failing_pods;
  bool failing_pods_told = false;
  bool has_service = false;
  Attempts service_tries{{.first = std::chrono::milliseconds{200}, .max = std::chrono::minutes{1}}};
  std::string service_problem;  // as reported last
  bool has_step_secret = false;
  Attempts secret_tries{{.first = std::chrono::milliseconds{200}, .max = std::chrono::minutes{1}}};
  std::map<std::string, base::Instant> failing_since;
  // Since when it is ready, where no job has to be stopped for another: readiness_is_late.
  std::optional<base::Instant> late_readiness;
  bool never_frozen = false;  // no timetable lists its pods (condition NeverFrozen)
  // It is not ready, and its pods may wait in init containers for each other: no timetable lists
  // them, so that none is frozen (architecture.md 2).
  bool awaits_init = false;
  // Since when its user has asked for a suspension that waits for agents of its nodes.
  std::optional<base::Instant> suspension_waits;
  base::Rare<StartUndo> undo;
  std::string end_message;  // of an end by itself: what was seen
  // The ending of this job waits until that one's commit (a claim, or its readiness) is stored.
  std::optional<sched::JobId> commit_after;
};

// Keeps the status of a Job. JobBook alone marks it, since it has the list of what is marked.
class JobMirror : public StatusMirror<kube::Job> {
 public:
  using StatusMirror<kube::Job>::StatusMirror;

 private:
  friend class JobBook;
  using StatusMirror<kube::Job>::change;
  using StatusMirror<kube::Job>::mark;
};

struct JobRecord;

// The part of an array beside what each job has: the fates of its tasks. Those that have started,
// or that the scheduler treats apart from the rest, have records of their own.
struct ArrayRecord {
  sched::TaskSet all;
  // For tasks that have ended, as it is stored or under way.
  kube::TaskOutcomes outcomes;
  std::map<int, JobRecord*> tasks;  // by number
  // How often tasks without records have started, as users may have seen: JobBook::take_late.
  std::map<int, std::int64_t> undone_starts;
  int exit_code = 0;  // the highest of those that have ended
  // Set when no task waits any longer: the rest was canceled, or has ended otherwise, as this.
  std::optional<kube::TaskOutcome> rest_ended;
  // With records: tasks of stored ends, each with the version that told its end first: TaskEnds.
  std::map<int, std::int64_t> ends_told;
  // With a throttle: jobs for which tasks end by preemption. What starts in their place is written
  // after the commits of these. Decisions adds to it, StatusPublisher takes away.
  std::set<sched::JobId> ends_for;
  // The tasks that the write under way is about, by key, with what it says of each:
  // StatusPublisher.
  std::map<std::string, kube::JobStatus> in_flight;
  // After a write of its status: until when it is not written again, unless `points` starts and
  // ends are to be written, and from when on what only informs: StatusPublisher.
  struct Rest {
    base::Instant until{};
    base::Instant informs_at{};
    std::size_t points = 0;
  };
  Rest rest;
  // spec.control.tasks as it is in this generation of the spec, and the scheduler's knowledge of
  // single tasks: Wishes.
  struct Wish {
    sched::TaskSet tasks;
    kube::TaskControl wish;
  };
  std::vector<Wish> wishes;
  std::int64_t wishes_generation = -1;
  // The array has become illegal: what of it waits is held until it is mended (Wishes).
  bool waits_for_mend = false;
  std::map<int, bool> told_holds;
  std::set<int> told_cancels;
  // For tasks whose terms differ from those of the array.
  std::map<int, sched::TaskTerms> told_terms;
  std::int64_t told_generation = -1;
  // Pods of tasks that have ended, which are kept for their logs, the oldest first, each until it
  // is gone.
  struct KeptPod {
    std::string name, uid;
  };
  std::deque<KeptPod> failed_pods, good_pods;

  void add_task(int number, JobRecord& task) {
    if (tasks.insert_or_assign(number, &task).second && is_open(number)) ++open_records;
  }
  void erase_task(int number) {
    if (tasks.erase(number) > 0 && is_open(number)) --open_records;
  }
  void note_outcome(int number, kube::TaskOutcome outcome) {
    if (is_open(number) && tasks.contains(number)) --open_records;
    outcomes.set(number, outcome);
  }
  bool has_begun() const { return !tasks.empty() || outcomes.ended() > 0; }
  // Returns true if some of its tasks have neither ended nor a record.
  bool has_rest() const { return !rest_ended && outcomes.ended() + open_records < all.size(); }
  // Returns true if there is a task of this number that has not ended.
  bool is_open(int number) const { return outcomes.of(number) == kube::TaskOutcome::kNone; }

 private:
  int open_records = 0;  // of tasks that have not ended
};

struct JobRecord {
  kube::ObjectKey key;
  // The object's UID; for a task of an array, with its number (record_key).
  std::string uid;
  std::optional<int> task;                  // of an array
  std::unique_ptr<ArrayRecord> array;       // of an array as a whole
  std::int64_t arrival = 0;                 // when it was heard of, counted
  sched::JobId id{};                        // 0 = none yet
  std::shared_ptr<const kube::Job> object;  // newest seen; without template
  std::shared_ptr<const TemplateFacts> pod_template;
  bool deleted = false;  // the object is gone; the record stays until its pods are
  JobMirror status;

  // --- what the scheduler got, and from which spec: Wishes ---
  bool submitted = false;
  // Never null. Where they are equal it is the scheduler's own, and tasks have that of their array.
  std::shared_ptr<const sched::JobRequest> request = no_request();
  // With the spec that was accepted last, to tell what changed: `object`, if that has the same.
  std::shared_ptr<const kube::Job> accepted;
  bool told_suspend = false;
  bool told_cancel = false;
  // Jobs that it waits for no more, or that have just got the numbers that its terms name; nothing
  // is written of it before that is stored of them. Decisions and Wishes add to it, StatusPublisher
  // takes away.
  std::set<sched::JobId> commit_after_ends;
  bool judge_again = true;       // its spec, or what it is judged against, changed
  bool judge_when_free = false;  // what it is judged against changed while it had nodes
  int api_refusals = 0;          // in a row, of its pods, by the API server
  // Why its last start was undone, or ended by itself; told until the next.
  std::string last_end;
  std::string pod_warning;  // why the API server would refuse its pods, as tried while it waited

  // --- its present start and its pods: Decisions, GangRunner, PodWrites ---
  GangStart start;
  // Pods of all starts, by name; those that no slot of this start has.
  std::map<std::string, std::shared_ptr<const kube::Pod>> pods;
  std::set<std::string> stale_pods;
  std::set<std::string> deleting;  // pods that we deleted, by UID

  base::Instant timer{base::kNever};  // when to look again without a change

  // These functions keep in step: start.slots, start.slot_pods, start.nodes, start.members, pods,
  // stale_pods. Cost: log(pods) each, but take_slots and clear_start, which look at all.
  void take_slots(std::vector<PodSlot> of_start, std::optional<Members> members = {});
  void clear_start();
  // Without members: pods of these indexes have succeeded, as stored. They may be gone by now.
  void know_successes(const std::vector<int>& indexes);
  // Lets the next pods follow those at places of members that have succeeded, on nodes that
  // take them; returns the slots that have another pod now as they were. REQUIRES: start.members.
  // Cost: its places.
  std::vector<PodSlot> fill_places(const std::function<bool(const std::string& node)>& takes_pods);
  void put_pod(const std::string& name, std::shared_ptr<const kube::Pod> pod);
  void erase_pod(const std::string& name);

  // Returns true if a pod of this name belongs to the present start, even if the pod is gone.
  bool is_of_start(const std::string& name) const;
  // Returns the spec that is in force.
  const kube::JobSpec& basis() const { return accepted->spec; }
  void accept_spec() { accepted = object; }
  // Takes a newer version of the Job. If the specs are equal, nothing of the one before is kept.
  void take_object(const std::shared_ptr<const kube::Job>& newer) {
    object = newer;
    if (accepted->spec == object->spec) accepted = object;
  }
  // Returns the UID of its Job.
  const std::string& object_uid() const { return object->metadata.uid; }
  JobIdentity identity() const {
    return {key.name, object_uid(), wanted().starts.value_or(0), task};
  }
  // Returns true if the job's tasks are pods that others have made.
  bool is_adopted() const { return object != nullptr && !object->spec.adopted.empty(); }

  const kube::JobStatus& wanted() const { return status.wanted(); }
  kube::JobStatus& wanted_unmarked() { return status.wanted_unmarked(); }

  // Returns true if it is an array with a limit of tasks that run at once.
  bool has_throttle() const { return request->array && request->array->at_once; }
  bool is_final() const { return wanted().state && kube::is_final(*wanted().state); }
  bool is_allocated() const { return !is_final() && wanted().allocation.has_value(); }
  // Returns true if its pods are ready, nothing waits for the write that says so, and that is not
  // stored yet.
  bool readiness_is_late() const;

 private:
  static std::shared_ptr<const sched::JobRequest> no_request();
  const PodSlot* slot_named(const std::string& name) const;
  bool is_done(const std::string& name, const kube::Pod& pod) const;
};

}  // namespace control
