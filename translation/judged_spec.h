// The part of a pod's spec that decides whether a gang can take the pod. The operator keeps only
// this of pods behind kubegang's gate and of templates of batch Jobs: their authors choose the
// rest, up to 1.5 MB of each (faults.md 5). Pure.
#pragma once

#include "kube/api/pod.h"
#include "kube/api/raw_json.h"

namespace control {

// Returns the fields that check_template, shape_of and translate_pod_gang read, so that these say
// the same of the result as of `spec`; only a sentence that quotes a text of more than 253 bytes
// quotes less of it. The result takes at most 64 KiB: a list that is longer than a template may
// have is cut, or replaced, so that it is still refused; programs, variables, volumes and probes
// are gone.
kube::PodSpec judged_spec(kube::PodSpec spec);

// Gives `to` the restart policy and the fields of `from` that freeze_hazards reads: of a probe only
// that it is there.
void keep_hazards(const kube::Container& from, kube::Container& to);

// Does the same as judged_spec for a template that the API server has accepted as a pod's.
kube::RawJson judged_template(const kube::RawJson& pod_template);

}  // namespace control
