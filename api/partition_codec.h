// The fields of Partition and what it consists of, for both directions (kube/api/codec.h). Internal
// to api: only .cc files may include it.
#pragma once

#include "api/partition.h"
#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<PartitionNodes> auto& s) {
  io.field("hostlist", s.hostlist);
  io.field("selector", s.selector);
}

template <typename Io>
void visit(Io& io, Like<OverSubscribe> auto& s) {
  io.field("policy", s.policy);
  io.field("maxShare", s.max_share);
}

// Also of SchedulerConfig.
template <typename Io>
void visit(Io& io, Like<MemoryLimits> auto& s) {
  io.field("defaultPerCPU", s.default_per_cpu);
  io.field("maxPerCPU", s.max_per_cpu);
  io.field("defaultPerNode", s.default_per_node);
  io.field("maxPerNode", s.max_per_node);
  io.field("defaultPerGPU", s.default_per_gpu);
}

template <typename Io>
void visit(Io& io, Like<BillingWeights> auto& s) {
  io.field("milliPerCPU", s.milli_per_cpu);
  io.field("milliPerGiB", s.milli_per_gibibyte);
  io.field("milliPerNode", s.milli_per_node);
  io.field("milliPerGPU", s.milli_per_gpu);
  io.field("milliPerGPUOfType", s.milli_per_gpu_of_type);
}

template <typename Io>
void visit(Io& io, Like<PartitionLimits> auto& s) {
  io.field("minNodes", s.min_nodes);
  io.field("maxNodes", s.max_nodes);
  io.field("defaultTime", s.default_time);
  io.field("maxTime", s.max_time);
  io.field("maxCPUsPerNode", s.max_cpus_per_node);
}

template <typename Io>
void visit(Io& io, Like<AccessList> auto& s) {
  io.field("namespaces", s.namespaces);
  io.field("qos", s.qos);
}

template <typename Io>
void visit(Io& io, Like<PodDefaults> auto& s) {
  io.field("image", s.image);
  io.field("imagePullSecrets", s.image_pull_secrets);
  io.field("volumes", s.volumes);
  io.field("volumeMounts", s.volume_mounts);
  io.field("env", s.env);
  io.field("securityContext", s.security_context);
  io.field("identity", s.identity);
}

template <typename Io>
void visit(Io& io, Like<PartitionSpec> auto& s) {
  io.field("nodes", s.nodes);
  io.field("default", s.is_default);
  io.field("state", s.state);
  io.field("priorityTier", s.priority_tier);
  io.field("overSubscribe", s.over_subscribe);
  io.field("exclusiveUser", s.exclusive_user);
  io.field("preemptMode", s.preempt_mode);
  io.field("preemptPriority", s.preempt_priority);
  io.field("graceTime", s.grace_time);
  io.field("memory", s.memory);
  io.field("defaultCPUsPerGPU", s.default_cpus_per_gpu);
  io.field("limits", s.limits);
  io.field("overTimeLimit", s.over_time_limit);
  io.field("leastLoaded", s.least_loaded);
  io.field("qos", s.qos);
  io.field("priorityJobFactor", s.priority_job_factor);
  io.field("billingWeights", s.billing_weights);
  io.field("allow", s.allow);
  io.field("deny", s.deny);
  io.field("taintNodes", s.taint_nodes);
  io.field("podDefaults", s.pod_defaults);
}

template <typename Io>
void visit(Io& io, Like<PartitionJobCounts> auto& s) {
  io.field("pending", s.pending);
  io.field("running", s.running);
  io.field("suspended", s.suspended);
}

template <typename Io>
void visit(Io& io, Like<UnusableNodes> auto& s) {
  io.field("reason", s.reason);
  io.field("message", s.message);
  io.always("nodes", s.nodes);
  io.field("hostlist", s.hostlist);
}

template <typename Io>
void visit(Io& io, Like<PartitionStatus> auto& s) {
  io.field("observedGeneration", s.observed_generation);
  io.field("accepted", s.accepted);
  io.field("preemptMode", s.preempt_mode);
  io.field("nodes", s.nodes);
  io.field("cpus", s.cpus);
  io.field("unusableNodes", s.unusable_nodes);
  io.field("unusable", s.unusable);
  io.field("jobs", s.jobs);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<Partition> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

}  // namespace kube
