// spec.podFailurePolicy of a batch Job, as it holds for a gang. Pure.
//
// The batch group asks the rules about each pod that has failed. A gang fails as a whole, and what
// is stored of that is the exit code of the container that failed first; so the rules are asked
// once for each attempt, about that container. Disruptions (rules with onPodConditions) never end a
// gang: it is requeued, and that counts as no failure whether or not a rule says so. SOURCE:
// pkg/controller/job/pod_failure_policy.go of Kubernetes.
#pragma once

#include <string>
#include <vector>

#include "kube/api/batch_job.h"

namespace control {

enum class FailureAction {
  kCount,   // it counts for backoffLimit
  kIgnore,  // it is tried again and counts for nothing
  kFailJob  // the batch Job has failed, however many retries are left
};

struct FailureVerdict {
  FailureAction action = FailureAction::kCount;
  int rule = -1;  // index of the rule that says so; -1: none does
};

// Judges an attempt whose first failed container ended with `exit_code`. The first rule that
// matches decides; without one the failure counts.
FailureVerdict judge_failure(const kube::BatchJobSpec& spec, int exit_code);

// Returns the rules that cannot hold for a gang, each in a sentence that says what to change.
std::vector<std::string> failure_policy_problems(const kube::BatchJobSpec& spec);

}  // namespace control
