// JobBook: the Jobs that exist, by UID, number and key, and which of them have something to do.
//
// There are thousands of jobs that have ended: their objects stay until they are deleted. Nothing
// that happens to other jobs looks at them, and when nothing is left to be said of one, it is put
// away: its object is all that is kept of it. find() takes it out again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/jobs/job_record.h"
#include "operator/jobs/pod_index.h"
#include "operator/jobs/status_after.h"
#include "operator/jobs/template_book.h"
#include "operator/loop/inbox.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of the number of jobs, if nothing else is said.
class JobBook {
 public:
  // `now`: of the present step. All references must live longer than this.
  JobBook(const base::Instant& now, const TemplateBook& templates, const PodIndex& pods)
      : now_{now}, templates_{templates}, pods_{pods} {}

  // --- what is seen ---
  struct Seen {
    std::int64_t term = 0;                                // the highest of another writer's status
    std::string late;                                     // UID: see take_late()
    std::vector<std::shared_ptr<const kube::Job>> ended;  // new, and put away at once
    std::vector<std::string> deleted;                     // UIDs
  };
  // New jobs get their place in the order in which they were made, as far as it is known. Jobs that
  // changed are touched.
  Seen observe(const Changes<kube::Job>& changes);
  // Call when a new leader has taken over what there was: from now on the number in the status of a
  // new job was not given by us, and jobs that are new are touched. `term`: its own.
  void restored(std::int64_t term = 0) {
    is_restored_ = true;
    term_ = term;
  }
  // Handles a stored status that another operator wrote, before the mirror takes it. A start by an
  // operator that no longer leads is undone. Returns false if that one has stored more: the jobs
  // must be listed again (late_status.h).
  bool take_late(JobRecord& job, const kube::JobStatus& stored);
  // Returns false if the pod is an orphan: its job is not known, or has ended, which the pod has
  // not. REQUIRES: it says that it is of a job.
  bool put_pod(const kube::ObjectKey& key, const PodPlace& place);
  void erase_pod(const kube::ObjectKey& key, const PodPlace& place);

  // --- records; a pointer is valid until the record is put away or forgotten ---
  // Null: not known. One that was put away is taken out, and is touched.
  JobRecord* find(const std::string& uid);
  JobRecord* find(sched::JobId id);
  // Does the same, but leaves out one that was put away.
  JobRecord* peek(const std::string& uid) const;
  JobRecord* peek(sched::JobId id) const;
  // Returns the array of a task. REQUIRES: `job` is one.
  JobRecord& array_of(const JobRecord& job) const { return *peek(uid_in(job.uid)); }
  // Makes the record of a task that has none: as it is stored, or (null) as one that waits with the
  // rest.
  JobRecord& make_task(JobRecord& array, int task, const kube::ArrayTask* stored);
  // By UID.
  template <typename Action>
  void for_each_unfinished(Action action) const {
    for (const auto& [uid, job] : unfinished_) action(*job);
  }
  // The objects of those that have ended.
  template <typename Action>
  void for_each_ended(Action action) const {
    for (const auto& [uid, job] : jobs_) {
      if (job->is_final() && !job->task) action(*job->object);
    }
    for (const auto& [uid, job] : finished_) action(*job.object);
  }
  // Also the objects of those that were put away.
  std::int64_t highest_id() const;
  std::int64_t highest_term() const;
  std::int64_t size() const { return static_cast<std::int64_t>(jobs_.size() + finished_.size()); }
  std::int64_t put_away_count() const { return static_cast<std::int64_t>(finished_.size()); }

  // --- what other jobs wait for ---
  // The number of the job of that name; 0 if there is none yet.
  sched::JobId number_of(const kube::ObjectKey& key) const;
  struct Outcome {
    std::string ns;
    sched::JobState state = sched::JobState::kPending;  // likewise while it has not ended
    std::optional<base::Instant> started;
  };
  // nullopt: no job that exists has the number.
  std::optional<Outcome> outcome_of(sched::JobId id) const;
  // Returns those of the tasks of an array; of another job none.
  kube::TaskOutcomes outcomes_of(sched::JobId array) const;
  // Has the job judged again when one of that name has a number.
  void await(const kube::ObjectKey& key, const std::string& uid) { awaited_[key].insert(uid); }

  // --- changes ---
  void set_id(JobRecord& job, sched::JobId id);
  // Has it looked at again in this step.
  void touch(const std::string& uid) { touched_.insert(uid); }
  void touch_all();
  // Has its spec judged when it is looked at next (Wishes). The second returns whether that is so,
  // and takes it back.
  void judge_again(JobRecord& job) { job.judge_again.edit() = true; }
  bool take_judge_again(JobRecord& job) { return std::exchange(job.judge_again.edit(), false); }
  // Notes the spec that is in force from now on: that of its object, or another one.
  void accept(JobRecord& job) { accept(job, job.object); }
  void accept(JobRecord& job, std::shared_ptr<const kube::Job> basis) {
    job.accepted.edit() = std::move(basis);
  }
  // Changes the wanted status, `change(status)`, and marks it.
  template <typename Change>
  void change(JobRecord& job, WriteUrgency how, Change change) {
    change(job.wanted_unmarked());
    mark(job, how);
  }
  // Changes it as follows from a decision of the scheduler. Returns how urgent that is.
  template <typename Decision>
  WriteUrgency apply(JobRecord& job, const Decision& decision, const DecisionContext& context) {
    StatusAfter after = status_after(decision, std::move(job.wanted_unmarked()), context);
    job.wanted_unmarked() = std::move(after.status);
    mark(job, after.urgency);
    return after.urgency;
  }
  // Changes a condition of it, as of the newest spec. lastTransitionTime is now where the
  // condition's status changes. Returns false, and marks nothing, if it is so already.
  bool set_condition(JobRecord& job, WriteUrgency how, std::string_view type,
                     kube::ConditionStatus value, std::string reason, std::string message);
  // Has the status written, and after a commit point the job looked at again. A message that is too
  // long to be written is shortened.
  void mark(JobRecord& job, WriteUrgency how);
  // Has it looked at again at that instant, unless it is before.
  void set_timer(JobRecord& job, base::Instant at);
  // It has ended.
  void end(JobRecord& job) { unfinished_.erase(job.uid); }
  // Drops the record if the object says all that it knows: a new leader, which has nothing else,
  // would do the same. Returns true if the record is gone. REQUIRES: `job` is not a task.
  bool put_away(JobRecord& job);
  // Erases `job`: its object and its pods are gone; if it is a task, it has ended, as stored.
  void forget(JobRecord& job);

  // --- what must be done ---
  // Touches the jobs whose timers are due.
  void fire_timers();
  // UIDs of the jobs that were touched since the last call, in the order in which the jobs came:
  // the lower number goes to the earlier one, and the queue goes by that (3.3).
  std::vector<std::string> take_touched();
  // UIDs of the jobs that were marked since the last call.
  std::set<std::string> take_marked() { return std::exchange(marked_, {}); }
  const std::set<std::string>& marked() const { return marked_; }
  base::Instant next_due() const;

 private:
  struct Finished {
    std::shared_ptr<const kube::Job> object;  // the informer's own
    std::int64_t arrival = 0;
    sched::JobId id{};
  };
  void on_job(const std::shared_ptr<const kube::Job>& object, Seen& seen);
  void on_new_job(const std::shared_ptr<const kube::Job>& object, Seen& seen);
  JobRecord& make_record(const std::shared_ptr<const kube::Job>& object, std::int64_t arrival,
                         sched::JobId id);
  std::optional<Outcome> outcome_of_task(sched::JobId id) const;
  void take_array(JobRecord& array);
  void take_waiting(JobRecord& array, const std::vector<int>& tasks);
  void take_object(JobRecord& job, const std::shared_ptr<const kube::Job>& newer);
  JobRecord* take_out(const std::string& uid);
  void take_pods(JobRecord& job);
  void keep_finished(const std::shared_ptr<const kube::Job>& object, std::int64_t arrival,
                     sched::JobId id);
  void end_wait_for(const kube::ObjectKey& key);

  const base::Instant& now_;
  const TemplateBook& templates_;
  const PodIndex& pods_;
  bool is_restored_ = false;
  std::int64_t term_ = 0;  // of this leader; 0: it is not restored
  std::int64_t arrivals_ = 0;
  std::map<std::string, std::unique_ptr<JobRecord>> jobs_;  // by UID; the rest is in finished_
  std::map<std::string, JobRecord*> unfinished_;            // of them
  std::map<std::string, Finished> finished_;                // put away, by UID
  std::map<kube::ObjectKey, std::string> uid_of_;           // of the objects that exist
  std::map<sched::JobId, std::string> uid_by_id_;
  std::map<sched::JobId, const Finished*> finished_by_id_;
  std::map<kube::ObjectKey, std::set<std::string>> awaited_;  // UIDs of the jobs that wait for it
  std::set<std::string> touched_;
  std::set<std::string> marked_;
  std::set<std::pair<base::Instant, std::string>> timers_;
};

}  // namespace control
