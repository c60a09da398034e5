// Predecessors: the jobs that a dependency names. Pure, but for the note that one waits for a name.
#pragma once

#include <string>
#include <vector>

#include "api/job.h"
#include "operator/jobs/job_book.h"
#include "operator/jobs/job_record.h"
#include "scheduler/event.h"
#include "scheduler/model/dependency.h"

namespace control {

struct Predecessors {
  sched::Dependency dependency;        // of the spec; names are numbers
  std::vector<sched::KnownJob> known;  // of those that the scheduler may not know
  std::vector<std::string> problems;   // whole sentences
};

// A name is looked up once: afterwards the status says which job it was, which may be gone by now,
// or be another one of that name. A name that no job has is awaited (JobBook).
// Cost: O(terms × (terms + log jobs)).
Predecessors find_predecessors(JobBook& jobs, const JobRecord& job);

// Returns the terms as they are stored; what became of them before is kept.
std::vector<kube::DependencyStatus> shown_terms(const kube::Job& job,
                                                const sched::Dependency& dependency,
                                                const std::vector<kube::DependencyStatus>& before);
// Returns the state of each term of the spec, as it is stored.
std::vector<sched::TermState> stored_terms(const kube::JobSpec& spec,
                                           const kube::JobStatus& status);

}  // namespace control
