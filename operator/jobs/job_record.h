// The record of one Job object (one UID), or of a task of an array: data that JobBook keeps. Each
// field has one owner, the part that alone writes it; all others read it, and ask the owner for a
// change. Owned<T, Owner> lets the compiler see to that. Fields that are not Owned are JobBook's.
// The wanted status is changed by JobBook::change, which marks it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

class Decisions;
class GangRunner;
class JobBook;
class PodWrites;
class StatusPublisher;
class TaskEnds;
class Wishes;
struct JobRecord;

// A value that its Owner alone writes, and each part reads.
template <typename T, typename Owner>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T value) : value_{std::move(value)} {}
  Owned(const Owned&) = default;
  Owned(Owned&&) noexcept = default;
  ~Owned() = default;

  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  friend Owner;
  friend struct JobRecord;  // clear_start()
  friend struct OwnedInTests;
  Owned& operator=(Owned&&) noexcept = default;
  T& edit() { return value_; }

  T value_{};
};

// The pods of one start of a job.
struct StartPods {
  std::vector<PodSlot> slots;      // of status.wanted.allocation
  std::vector<SlotPod> slot_pods;  // the pod of each
  std::optional<Members> members;  // of a job with spec.completions
  std::vector<std::string> nodes;  // of the slots, each once
  // The number of successful pods that is stored, or will be with the next status. The object of
  // one that is not stored yet is gone, and this number alone counts it.
  std::size_t successes_noted = 0;
  bool success_at_risk = false;
};

// Notes of GangRunner about a start.
struct GangNotes {
  std::set<std::string> clean_nodes;  // while it ends: those that the scheduler knows
  std::map<std::string, base::Instant> failing_since;
  // Since when it is ready, where no job has to be stopped for another: readiness_is_late.
  std::optional<base::Instant> late_readiness;
  bool never_frozen = false;  // no timetable lists its pods (condition NeverFrozen)
  // It is not ready, and its pods may wait in init containers for each other: no timetable lists
  // them, so that none is frozen (architecture.md 2).
  bool awaits_init = false;
  base::Rare<StartUndo> undo;
  std::string end_message;  // of an end by itself, or of a start that is undone: what was seen
};

// Notes of PodWrites about a start: writes that are under way, or wait for room.
struct LaunchNotes {
  bool launching = false;  // its template is being read
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
};

// Notes of Wishes: what the scheduler got of a job.
struct WishNotes {
  bool submitted = false;
  // Never null. Where they are equal it is the scheduler's own, and tasks have that of their array.
  std::shared_ptr<const sched::JobRequest> request = no_request();
  bool told_suspend = false;
  bool told_cancel = false;
  bool judge_when_free = false;  // what it is judged against changed while it had nodes
  std::string pod_warning;  // why the API server would refuse its pods, as tried while it waited

  static std::shared_ptr<const sched::JobRequest> no_request();
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

// Wishes for single tasks of an array, and the scheduler's knowledge of them: Wishes.
struct ArrayWishes {
  sched::TaskSet all;
  // The array has become illegal: what of it waits is held until it is mended.
  bool waits_for_mend = false;
  std::map<int, bool> told_holds;
  std::set<int> told_cancels;
  // For tasks whose terms differ from those of the array.
  std::map<int, sched::TaskTerms> told_terms;
  std::int64_t told_generation = -1;
};

// spec.control.tasks of an array, read once for each generation of the spec.
class TaskControls {
 public:
  struct Entry {
    sched::TaskSet tasks;
    kube::TaskControl wish;
  };
  const std::vector<Entry>& of(const kube::Job& array);

 private:
  std::vector<Entry> entries_;
  std::int64_t generation_ = -1;
};

// The write of an array's status: StatusPublisher.
struct ArrayWrite {
  // The tasks that the write under way is about, by key, with what it says of each.
  std::map<std::string, kube::JobStatus> in_flight;
  // After a write of its status: until when it is not written again, unless `points` starts and
  // ends are to be written, and from when on what only informs.
  struct Rest {
    base::Instant until{};
    base::Instant informs_at{};
    std::size_t points = 0;
  };
  Rest rest;
};

// Pods of tasks of an array that have ended, which are kept for their logs, the oldest first, each
// until it is gone: PodWrites.
struct KeptPods {
  struct Pod {
    std::string name, uid;
  };
  std::deque<Pod> failed, good;
};

// The part of an array beside what each job has: the fates of its tasks. Those that have started,
// or that the scheduler treats apart from the rest, have records of their own.
class ArrayRecord {
 public:
  // The record's own, by these functions: JobBook adds tasks, StatusPublisher notes ends.
  const std::map<int, JobRecord*>& tasks() const { return tasks_; }  // by number
  // For tasks that have ended, as it is stored or under way.
  const kube::TaskOutcomes& outcomes() const { return outcomes_; }
  int exit_code() const { return exit_code_; }  // the highest of those that have ended
  void add_task(int number, JobRecord& task) {
    if (tasks_.insert_or_assign(number, &task).second && is_open(number)) ++open_records_;
  }
  void erase_task(int number) {
    if (tasks_.erase(number) > 0 && is_open(number)) --open_records_;
  }
  void note_end(int number, kube::TaskOutcome outcome, int exit_code = 0) {
    if (is_open(number) && tasks_.contains(number)) --open_records_;
    outcomes_.set(number, outcome);
    exit_code_ = std::max(exit_code_, exit_code);
  }
  // REQUIRES: it has no tasks yet.
  void restore(const kube::ArrayStatus& stored, int exit_code) {
    outcomes_ = kube::TaskOutcomes{stored};
    exit_code_ = exit_code;
  }
  bool has_begun() const { return !tasks_.empty() || outcomes_.ended() > 0; }
  // Returns true if some of its tasks have neither ended nor a record.
  bool has_rest() const {
    return !*rest_ended && outcomes_.ended() + open_records_ < wishes->all.size();
  }
  // Returns true if there is a task of this number that has not ended.
  bool is_open(int number) const { return outcomes_.of(number) == kube::TaskOutcome::kNone; }

  Owned<ArrayWishes, Wishes> wishes;
  TaskControls controls;
  Owned<ArrayWrite, StatusPublisher> write;
  Owned<KeptPods, PodWrites> kept_pods;
  // How often tasks without records have started, as users may have seen: JobBook::take_late.
  Owned<std::map<int, std::int64_t>, JobBook> undone_starts;
  // Set when no task waits any longer: the rest was canceled, or has ended otherwise, as this.
  Owned<std::optional<kube::TaskOutcome>, Decisions> rest_ended;
  // With records: tasks of stored ends, each with the version that told its end first.
  Owned<std::map<int, std::int64_t>, TaskEnds> ends_told;
  // With a throttle: jobs for which tasks end by preemption. What starts in their place is written
  // after the commits of these.
  Owned<std::set<sched::JobId>, StatusPublisher> ends_for;

 private:
  std::map<int, JobRecord*> tasks_;
  kube::TaskOutcomes outcomes_;
  int exit_code_ = 0;
  int open_records_ = 0;  // of tasks that have not ended
};

struct JobRecord {
  JobRecord() = default;
  // With these notes to begin with.
  explicit JobRecord(WishNotes notes) : wishes{std::move(notes)} {}

  // --- the job: JobBook ---
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
  base::Instant timer{base::kNever};  // when to look again without a change
  // With the spec that was accepted last, to tell what changed: `object`, if that has the same.
  Owned<std::shared_ptr<const kube::Job>, JobBook> accepted;
  Owned<bool, JobBook> judge_again{true};  // its spec, or what it is judged against, changed

  // --- the job, as others have it ---
  Owned<WishNotes, Wishes> wishes;
  // Jobs that it waits for no more, or that have just got the numbers that its terms name; nothing
  // is written of it before that is stored of them.
  Owned<std::set<sched::JobId>, StatusPublisher> commit_after_ends;
  // Why its last start was undone, or ended by itself; told until the next.
  Owned<std::string, Decisions> last_end;
  Owned<int, GangRunner> api_refusals;               // in a row, of its pods, by the API server
  Owned<std::set<std::string>, PodWrites> deleting;  // pods that we deleted, by UID

  // --- its present start: clear_start() forgets these, whosever they are ---
  Owned<StartPods, JobRecord> start;
  Owned<GangNotes, GangRunner> gang;
  Owned<LaunchNotes, PodWrites> launch;
  // Since when its user has asked for a suspension that waits for agents of its nodes.
  Owned<std::optional<base::Instant>, Wishes> suspension_waits;
  // The ending of this job waits until that one's commit (a claim, or its readiness) is stored.
  Owned<std::optional<sched::JobId>, StatusPublisher> commit_after;

  // --- its pods ---
  // Pods of all starts, by name; those that no slot of this start has.
  Owned<std::map<std::string, std::shared_ptr<const kube::Pod>>, JobRecord> pods;
  Owned<std::set<std::string>, JobRecord> stale_pods;

  // These functions keep start, pods and stale_pods in step. JobBook calls those for single pods,
  // GangRunner and Decisions the others. Cost: log(pods) each, but take_slots and clear_start,
  // which look at all, and fill_places and see_pods: the places.
  void take_slots(std::vector<PodSlot> of_start, std::optional<Members> members = {});
  void clear_start();
  // Without members: pods of these indexes have succeeded, as stored. They may be gone by now.
  void know_successes(const std::vector<int>& indexes);
  // Lets the next pods follow those at places of members that have succeeded, on nodes that
  // take them; returns the slots that have another pod now as they were. REQUIRES: start->members.
  std::vector<PodSlot> fill_places(const std::function<bool(const std::string& node)>& takes_pods);
  // Notes when its pods, and their containers, are first seen.
  void see_pods(base::Instant now);
  // Notes that the pod of that index has succeeded; false: that was known. REQUIRES:
  // start->members.
  bool note_success(int index) { return start.edit().members->note_success(index); }
  // Without members: notes how many pods have succeeded. Returns whether that is news, and whether
  // the object of one is gone since the last call.
  struct Successes {
    bool are_new = false, are_at_risk = false;
  };
  Successes note_successes(std::size_t count);
  void put_pod(const std::string& name, std::shared_ptr<const kube::Pod> pod);
  void erase_pod(const std::string& name);

  // Returns true if a pod of this name belongs to the present start, even if the pod is gone.
  bool is_of_start(const std::string& name) const;
  // Returns the spec that is in force.
  const kube::JobSpec& basis() const { return (*accepted)->spec; }
  // Returns what the scheduler got.
  const sched::JobRequest& request() const { return *wishes->request; }
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
  bool has_throttle() const { return request().array && request().array->at_once; }
  bool is_final() const { return wanted().state && kube::is_final(*wanted().state); }
  bool is_allocated() const { return !is_final() && wanted().allocation.has_value(); }
  // Returns true if its pods are ready, nothing waits for the write that says so, and that is not
  // stored yet.
  bool readiness_is_late() const;

 private:
  const PodSlot* slot_named(const std::string& name) const;
  bool is_done(const std::string& name, const kube::Pod& pod) const;
};

}  // namespace control
