// JobBooks: the one writer of a job's life. It owns the job table, the list of allocated jobs, what
// every node holds (NodeUsage), the selector with its books, and the list of decisions, and keeps
// them in step: a job that has an allocation is in all of them, any other job in none.
//
// Everything else reads. The reason to wait, the run time and the place in the gang belong to other
// parts (see the sections of Job), which never write its state, allocation or reason.
//
// version() counts the changes after which a waiting job may start, so that a pass over an
// unchanged state can be left out. A change made through JobBooks is counted here; callers report
// what JobBooks cannot see (nodes, the queue) with changed().
//
// Threads: none. Cost: begin, release_cores and end O(nodes of the job) and the selector's; reshape
// O(allocated jobs).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/jobs/node_usage.h"
#include "scheduler/select/selector.h"

namespace sched {

class JobBooks {
 public:
  explicit JobBooks(const Cluster& cluster);
  JobBooks(const JobBooks&) = delete;
  JobBooks& operator=(const JobBooks&) = delete;

  // --- reading ---
  Job* find(JobId id) { return table_.find(id); }
  const Job* find(JobId id) const { return table_.find(id); }
  JobTable& table() { return table_; }
  const JobTable& table() const { return table_; }
  // By table order.
  const std::map<std::int64_t, Job*>& allocated() const { return allocated_; }
  const NodeUsage& usage() const { return usage_; }
  // Returns when the job that began to complete last did so, of those that complete; nullopt if
  // none does.
  std::optional<base::Instant> completing_since() const {
    if (completing_since_.empty()) return std::nullopt;
    return *completing_since_.rbegin();
  }
  // For questions; only JobBooks books what jobs hold.
  Selector& selector() { return *selector_; }
  // Returns the jobs that hold nodes for which others must still leave: victims (P14), or those
  // that run where a job wants to go on that its user has resumed (T11).
  const std::set<JobId>& claimants() const { return claimants_; }
  std::uint64_t version() const { return version_; }

  // --- listeners, called in the order in which they were added ---
  using Listener = std::function<void(Job&)>;
  // The job has just got its allocation (a start, or a restore).
  void on_begin(Listener listener) { begin_listeners_.push_back(std::move(listener)); }
  // The job is about to lose it; nothing has changed yet.
  void on_end(Listener listener) { end_listeners_.push_back(std::move(listener)); }

  // The job is over (terminal state), or its record is about to be erased. Also called for an
  // array, which still has all tasks, when those that wait are over and others go on.
  void on_over(Listener listener) { over_listeners_.push_back(std::move(listener)); }
  // Jobs that wait may find less on these nodes than before, or for longer, though no job began
  // there: a claim, a user's resume, another limit of a job that runs, a node that changed.
  using NodesListener = std::function<void(const Allocation&)>;
  void on_less(NodesListener listener) { less_listeners_.push_back(std::move(listener)); }

  // --- records ---
  // A pending job, or one that is being restored. REQUIRES: no job with this id.
  Job& add(JobFacts facts);
  // The task no longer waits as its array does, but as a job of its own. It is in no queue yet, and
  // where the array had a claim or a plan it has none. REQUIRES: it waits in the array.
  Job& split(Job& array, int task);
  // Returns the tasks of arrays that have ended; all that is kept of them is in the array.
  std::vector<JobId> take_ended_tasks() { return std::exchange(ended_tasks_, {}); }
  // REQUIRES: the job has no allocation and is in no queue.
  void erase(Job& job);
  // The user changed the request: of a pending job all of it, of a running one its time limit and
  // priority, and whether it is held once it waits again.
  void set_request(Job& job, const JobRequest& request);
  // Changes a wish in the job's own copy of the request.
  template <typename Change>
  void change_request(Job& job, Change change) {
    job.change_request([&](JobRequest& own) {
      change(own);
      if (job.whole != nullptr) own.array.reset();  // the set of all tasks: one copy is enough
    });
    job.select.request = job.request.get();
  }

  // --- the allocation: begin, then set_ready, set_ending, release_cores, leave_nodes, end ---
  // The job runs on these nodes from now on (T2). Decides Start.
  void begin(Job& job, PartitionIndex partition, Allocation allocation, SharingStatus sharing,
             base::Instant now);
  // A new leader: books a job whose partition, allocation, state and times are set already.
  void restore(Job& job);
  // Notes that all its pods are ready: its start time, which preemption counts from (7.3).
  void set_ready(Job& job, base::Instant now);
  // Sets or changes the decided end. The job keeps everything until release_cores().
  void set_ending(Job& job, Ending ending);
  // Frees cores and memory of a job whose processes are on their way out; its nodes count as
  // completing (R2.1). REQUIRES: an ending.
  void release_cores(Job& job);
  // Nothing of it is left on these of its nodes. REQUIRES: an ending; it has not left them before.
  void leave_nodes(Job& job, const std::vector<NodeIndex>& nodes);
  // Ends the allocation; the job is `next` from here on: pending, or a terminal state.
  void end(Job& job, JobState next);
  // Makes the selector and the node usage again: the nodes or the configuration changed.
  void reshape();

  // --- claims of preemptors that wait for their victims (P14) ---
  // Decides Claim.
  void set_claim(Job& job, Allocation claim, base::Instant until);
  // Does the same without deciding it: a new leader found it.
  void restore_claim(Job& job, Allocation claim, base::Instant until);
  // `tell`: decides that it was given up; false when another decision of the job says so.
  void clear_claim(Job& job, bool tell, base::Instant now);
  // Keeps the job's own nodes for it, like those of a claim, since its user has resumed it and it
  // waits for room. Decides nothing, because the user's wish already says that the job waits. Has
  // no effect if the job has a claim.
  void wait_for_room(Job& job);
  // A claim holds until its victims must have been gone; then the job competes again.
  void expire_claims(base::Instant now);

  // --- state and reason ---
  // The gang stops the job, or lets it go on. Decides Suspend or Resume. Neither counts as a
  // change: whether another job starts does not depend on whose turn it is.
  void suspend(Job& job, Reason why);
  void resume(Job& job);
  // Does the same without a decision: a new leader found it so.
  void restore_turn(Job& job, bool runs, Reason why);
  // T10: its user suspends the job. It gives its cores back and keeps its memory; then, when the
  // gang has let it go, it is suspended. Decides Suspend and Waits.
  void give_cores_back(Job& job);
  void suspend_by_user(Job& job);
  // T11 of a job that the gang had stopped: it keeps its cores, and nothing but its user's resume
  // lets it go on.
  void hold_by_user(Job& job);
  // T11: takes the cores back and decides Resume. False, and nothing changed, when no row is free
  // for the job, unless `even_without_room`.
  bool resume_by_user(Job& job, bool even_without_room);
  void unhold_by_user(Job& job);
  // The job waits again after end(): a requeue, or a start that was refused. Its next start is not
  // before Job::not_before. Decides StateChange.
  void return_to_queue(Job& job, Reason why, int exit_code, base::Instant now);
  // Sets a terminal state and decides StateChange. For an array, the tasks that wait end so, and
  // the array is over if no other task is left. REQUIRES: no allocation.
  void finish(Job& job, JobState state, Reason why = Reason::kNone);
  // Why it waits. Decides Waits if that changed.
  void set_reason(Job& job, Reason reason, std::string message = {});
  // Between these two, set_reason() of a job with several queue records decides nothing; then what
  // was said last of it is compared with what was said before (a pass tries its records one by
  // one).
  void begin_pass() { in_pass_ = true; }
  void end_pass();
  // Sets when and where it is expected to start, if that is known. Decides Planned if that changed.
  void set_plan(Job& job, std::optional<Job::Plan> plan);

  // --- decisions and changes that JobBooks does not make ---
  void decide(Decision decision) { decisions_.push_back(std::move(decision)); }
  std::vector<Decision> take_decisions() { return std::exchange(decisions_, {}); }
  // Nodes, configuration or queue changed so that a waiting job may start.
  void changed() { ++version_; }
  // The node came again, without a change of topology: other memory, or another number of pods.
  void node_changed(NodeIndex node) {
    usage_.node_changed(node);
    selector_->node_changed(cluster_.rank(node));
    tell_less({.nodes = {{.node = node}}});
  }

 private:
  void book(Job& job);
  void end_completing(const Job& job);
  void set_state(Job& job, JobState state);
  void decide_end(const Job& job, JobState state);
  void finish_array(Job& array, JobState state, Reason why);
  void task_over(Job& task);
  void show(Job& job) const;
  void tell_less(const Allocation& nodes) const {
    for (const NodesListener& listener : less_listeners_) listener(nodes);
  }

  const Cluster& cluster_;
  JobTable table_;
  std::map<std::int64_t, Job*> allocated_;
  NodeUsage usage_;
  std::multiset<base::Instant> completing_since_;  // the grace_end of each job that completes
  std::unique_ptr<Selector> selector_;
  std::set<JobId> claimants_;
  std::uint64_t version_ = 1;
  std::vector<Decision> decisions_;
  std::vector<Listener> begin_listeners_;
  std::vector<Listener> end_listeners_;
  std::vector<Listener> over_listeners_;
  std::vector<NodesListener> less_listeners_;

  struct Said {
    Reason reason;
    std::string message;
  };
  std::vector<JobId> ended_tasks_;
  bool in_pass_ = false;
  std::map<JobId, Said> said_before_pass_;
};

}  // namespace sched
