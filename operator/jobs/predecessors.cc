#include "operator/jobs/predecessors.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "api/array_status.h"
#include "slurm/array.h"
#include "translation/reason_names.h"

namespace control {
namespace {

const kube::DependencyStatus* status_of(const kube::DependencyTerm& term,
                                        const std::vector<kube::DependencyStatus>& all) {
  const auto found = std::ranges::find_if(all, [&](const kube::DependencyStatus& each) {
    const bool same_job = term.job_name.empty()
                              ? each.job_name.empty() && each.job_id == term.job_id
                              : each.job_name == term.job_name;
    return each.type == term.type && each.delay == term.delay && each.task == term.task && same_job;
  });
  return found == all.end() ? nullptr : &*found;
}

// How a job has ended that is gone by now, as far as a term of it tells, which asks for that. One
// that was open had not been fulfilled. nullopt: the term asks for no outcome.
std::optional<sched::JobState> ended_as(const kube::DependencyStatus& term) {
  const bool met = term.state == kube::DependencyState::kFulfilled;
  switch (term.type) {
    case kube::DependencyType::kAfterOk:
    case kube::DependencyType::kAfterCorr:
      return met ? sched::JobState::kCompleted : sched::JobState::kFailed;
    case kube::DependencyType::kAfterNotOk:
      return met ? sched::JobState::kFailed : sched::JobState::kCompleted;
    case kube::DependencyType::kAfter:
    case kube::DependencyType::kAfterAny:
    case kube::DependencyType::kSingleton:
      return std::nullopt;
  }
  return std::nullopt;
}

// Adds the tasks that have succeeded of an array that has not, where the job has tasks of their
// numbers. REQUIRES: the last one in `known` is that array, if it is one.
void name_twins(const JobBook& jobs, const JobRecord& job, std::vector<sched::KnownJob>& known) {
  const sched::KnownJob whole = known.back();
  const auto& array = job.object->spec.array;
  if (!array || !sched::is_terminal(whole.state) || whole.state == sched::JobState::kCompleted) {
    return;
  }
  const kube::TaskOutcomes outcomes = jobs.outcomes_of(whole.job);
  const auto add = [&](int number) {
    if (outcomes.of(number) != kube::TaskOutcome::kSucceeded) return;
    known.push_back({sched::JobId::of_task(whole.job, number), sched::JobState::kCompleted, {}});
  };
  if (job.task) return add(*job.task);
  const auto tasks = slurm::parse_array("spec.array.tasks", array->tasks, kube::kArrayTasksMax);
  if (tasks) tasks->tasks.each(add);
}

}  // namespace

Predecessors find_predecessors(JobBook& jobs, const JobRecord& job) {
  Predecessors found;
  const auto& asked = job.object->spec.dependency;
  if (!asked) return found;
  found.dependency.any = asked->match == kube::DependencyMatch::kAny;
  if (asked->if_never_satisfied) {
    found.dependency.kill_invalid = asked->if_never_satisfied == kube::NeverSatisfied::kCancel;
  }
  for (std::size_t i = 0; i < asked->terms.size(); ++i) {
    const kube::DependencyTerm& term = asked->terms[i];
    sched::DependencyTerm& one = found.dependency.terms.emplace_back();
    one.kind = kind_of(term.type);
    one.delay = term.delay.value_or(base::Duration{0});
    if (term.type == kube::DependencyType::kSingleton) continue;
    const kube::DependencyStatus* before = status_of(term, job.wanted().dependency);
    if (before != nullptr && before->job_id) {
      one.job = sched::JobId{*before->job_id};
    } else if (term.job_id) {
      one.job = sched::JobId{*term.job_id};
    } else {
      one.job = jobs.number_of({.ns = job.key.ns, .name = term.job_name});
      if (one.job.number() == 0) {
        jobs.await({.ns = job.key.ns, .name = term.job_name}, job.uid);
        continue;
      }
    }
    if (term.task) one.job = sched::JobId::of_task(one.job, *term.task);
    const std::optional<JobBook::Outcome> outcome = jobs.outcome_of(one.job);
    if (!outcome) {
      const auto ended = before == nullptr || !before->job_id ? std::nullopt : ended_as(*before);
      if (ended) found.known.push_back({one.job, *ended, std::nullopt});
      continue;
    }
    // Jobs of other namespaces do not show how they ended.
    if (outcome->ns != job.key.ns) {
      found.problems.push_back("spec.dependency.terms[" + std::to_string(i) + "].jobID: job " +
                               std::to_string(one.job.number()) +
                               " is of another namespace; a job can wait for jobs of its own");
      continue;
    }
    found.known.push_back({one.job, outcome->state, outcome->started});
    if (term.type == kube::DependencyType::kAfterCorr) name_twins(jobs, job, found.known);
  }
  return found;
}

std::vector<kube::DependencyStatus> shown_terms(const kube::Job& job,
                                                const sched::Dependency& dependency,
                                                const std::vector<kube::DependencyStatus>& before) {
  std::vector<kube::DependencyStatus> all;
  for (std::size_t i = 0; i < dependency.terms.size(); ++i) {
    const kube::DependencyTerm& term = job.spec.dependency->terms[i];
    kube::DependencyStatus& one = all.emplace_back();
    one.type = term.type;
    one.job_name = term.job_name;
    one.task = term.task;
    one.delay = term.delay;
    if (const std::int64_t id = dependency.terms[i].job.number(); id != 0) one.job_id = id;
    if (const auto* was = status_of(term, before)) {
      one.state = was->state;
      one.failed_tasks = was->failed_tasks;
    }
  }
  return all;
}

std::vector<sched::TermState> stored_terms(const kube::JobSpec& spec,
                                           const kube::JobStatus& status) {
  std::vector<sched::TermState> states;
  if (!spec.dependency) return states;
  for (const kube::DependencyTerm& term : spec.dependency->terms) {
    const kube::DependencyStatus* one = status_of(term, status.dependency);
    states.push_back(one == nullptr ? sched::TermState::kOpen : term_state_of(one->state));
  }
  return states;
}

}  // namespace control
