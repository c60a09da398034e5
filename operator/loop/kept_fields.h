// The fields of an object that the informers keep: those that the operator reads, by name. Anyone
// who may create an object chooses what is in it, up to 1.5 MB, and the operator holds all of them.
// The part that stays of one has a bound that its author does not choose (faults.md 5). A part of
// the operator that reads another field must add it here. Pure.
#pragma once

#include "kube/api/batch_job.h"
#include "kube/api/known_fields.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"

namespace control {

// Each of these drops all other fields, and gives their memory back.

// Keeps what is read of a pod, which is one of three: behind kubegang's gate (translate_pod_gang
// reads it), of a job (node_of, observe_gang, SuspensionNotes), or another pod (memory_request,
// AgentPods).
void keep_what_is_read(kube::Pod& pod);
// Returns true if the pod, as it is kept, takes memory of its node and means nothing else: it is
// not a job's, not behind kubegang's gate, and not an agent's.
bool concerns_only_its_node(const kube::Pod& pod);
// Returns the fields that are read of a pod: all that kube::Pod has, but what is dropped here of
// each pod and may be long. A job's pod has 20 variables in its environment, a third of its text.
const kube::KnownFields& fields_of_pods();

// Keeps of the template only what is judged; the whole one is read again when a kubegang Job is
// made (CreateJob). The status is kept as it is: the operator writes the difference to it.
void keep_what_is_read(kube::BatchJob& job);

// Keeps all taints: they are written back as a whole. Keeps labels up to 64 KiB, kubegang's first.
void keep_what_is_read(kube::Node& node);

// Keeps names, versions and times, without labels, annotations and owners.
void keep_identity(kube::ObjectMeta& metadata);
// Keeps the metadata that a kubegang Job needs.
void keep_what_jobs_need(kube::ObjectMeta& metadata);

}  // namespace control
