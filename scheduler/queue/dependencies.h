// Dependencies: which job waits for which, and the state of each term (13.1). A job that starts or
// ends settles the terms that name it, and no others. A term that is met or failed stays so: a
// requeue takes nothing back.
//
// Slurm asks each waiting job again in each pass; here the jobs whose terms changed are handed over
// by take_changed(), and their owner admits them, or ends those that can never start.
//
// An array (13.4) is waited for as all its tasks; for kAfter until none of them waits. A task that
// waits as its array is waited for under its own id.
//
// Threads: none. Cost: a start or an end O(log terms), and O(its terms) for each job that waits for
// it; add and remove O(terms × log); refused O(what can be reached by terms). Memory: a node of a
// set and a byte for each term.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/event.h"
#include "scheduler/jobs/job_books.h"

namespace sched {

// Returns the jobs that the job waits for, in a sentence. REQUIRES: its terms are open or failed.
std::string dependency_message(const Job& job);

class Dependencies {
 public:
  // `now`: of the present step. Listens to the books.
  Dependencies(JobBooks& books, const base::Instant& now);

  // Returns why a request with this dependency is turned away: it waits for itself, or for a job
  // that waits for it.
  std::optional<std::string> refused(const JobRequest& request) const;

  // Lets the job wait for what its request says. A term that names an unknown job does not wait,
  // whatever its kind (recorded). REQUIRES: it is pending.
  void add(Job& job, const std::vector<KnownJob>& known_jobs);
  // Gives the job as many states as the request has terms, which holds for each job in the table
  // from its Submit or its restore on. Those that the job has stay.
  static void fit_terms(Job& job);
  // Restores the terms as they are stored. It is not known how a job ended that is gone by now, so
  // a term that asks for that has failed. REQUIRES: it is pending; all other jobs are in the table.
  using Known = std::map<JobId, KnownJob>;
  void restore(Job& job, const Known& known);
  // Takes a request that the user changed. Terms are judged again if the dependency is another one.
  // No other function gives a job another dependency. REQUIRES: it is pending, and the new
  // dependency is not refused.
  void change(Job& job, const JobRequest& request, const std::vector<KnownJob>& known);
  // The task has just become a job of its own (JobBooks::split).
  void split(Job& array, Job& task);
  // The job is about to be erased and may be added again: others go on waiting for it.
  void keep_waiting_for(JobId id) { returns_ = id; }
  // A job that was never in the table, or is in it no more, is over.
  void over_elsewhere(JobId id, JobState state);

  // Waiting jobs of which a term has changed since the last call, by number.
  std::set<JobId> take_changed() { return std::exchange(changed_, {}); }
  // Returns the tasks that must become jobs of their own, since with aftercorr they no longer wait,
  // or wait in vain. The caller splits each off.
  std::set<JobId> take_splits() { return std::exchange(splits_, {}); }
  bool has_changed() const { return !changed_.empty() || !splits_.empty(); }

  // Returns when the delay of a term is over.
  std::optional<base::Instant> next_due() const;
  void fire_timers();

  // Empty, or what is inconsistent; for tests. Cost: O(terms of waiting jobs).
  std::string check_invariants() const;

 private:
  using Edge = std::tuple<JobId, JobId, std::uint32_t>;  // who is waited for, who waits, its term
  // Jobs of one user and name that are not over.
  struct Namesakes {
    std::set<JobId> jobs;
    int allocated = 0;
  };
  using Name = std::pair<std::string, std::string>;  // user and name

  void remove(const Job& job);
  void open(Job& job, std::uint32_t term);
  void open_known(Job& job, std::uint32_t term, const Known& known);
  TermState split_known(const Job& job, std::uint32_t term, const Known& known);
  void set(Job& job, std::uint32_t term, TermState state);
  void settle(JobId id, const auto& state_of_term);
  void begun(const Job& job);
  void over(const Job& job);
  void see_started(JobId id, base::Instant since);
  void waiting_over(const Job& array);
  void ended_of(JobId array);
  void split_ended(const Job& job, const Job& other);
  void open_again(JobId array);
  TermState outcome_of_rest(const Job& job, JobState other);
  std::set<JobId> named_tasks(JobId array) const;
  JobId waited_for(const Job& job, const DependencyTerm& term) const;
  bool is_known(JobId id) const;
  static TermState outcome(DependencyKind kind, JobState state);
  static TermState outcome(DependencyKind kind, TaskOutcome ended);

  // --- singletons; counted from the first one on ---
  static Name name_of(const Job& job) { return {job.request->user, job.request->name}; }
  void count_names();
  bool is_alone(const Job& job) const;
  static bool was_alone(const Job& job);
  void left(const Name& name);

  JobBooks& books_;
  const base::Instant& now_;
  std::set<Edge> edges_;  // of open terms
  std::set<std::pair<base::Instant, Edge>> timers_;
  std::set<JobId> changed_;
  std::set<JobId> splits_;
  // Tasks that are split for a term that has failed for them alone.
  std::set<std::pair<JobId, std::uint32_t>> failed_twins_;
  std::optional<JobId> returns_;
  bool counts_names_ = false;
  std::map<Name, Namesakes> names_;
};

}  // namespace sched
