// The fields of SchedulerConfig and what it consists of, for both directions (kube/api/codec.h).
// Internal to api: only .cc files may include it.
#pragma once

#include "api/partition_codec.h"
#include "api/scheduler_config.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<SelectConfig> auto& s) {
  io.field("type", s.type);
  io.field("unit", s.unit);
  io.field("memory", s.memory);
  io.field("taskAffinity", s.task_affinity);
  io.field("leastLoaded", s.least_loaded);
  io.field("oneTaskPerCore", s.one_task_per_core);
  io.field("blockDistribution", s.block_distribution);
}

template <typename Io>
void visit(Io& io, Like<PreemptParameters> auto& s) {
  io.field("reorderCount", s.reorder_count);
  io.field("strictOrder", s.strict_order);
  io.field("youngestFirst", s.youngest_first);
  io.field("minExemptPriority", s.min_exempt_priority);
  io.field("reclaimLicenses", s.reclaim_licenses);
}

template <typename Io>
void visit(Io& io, Like<BackfillConfig> auto& s) {
  io.field("interval", s.interval);
  io.field("window", s.window);
  io.field("resolution", s.resolution);
  io.field("windowLinear", s.window_linear);
  io.field("maxJobTest", s.max_job_test);
  io.field("maxJobStart", s.max_job_start);
  io.field("maxJobPart", s.max_job_part);
  io.field("maxJobUser", s.max_job_user);
  io.field("maxJobUserPart", s.max_job_user_part);
  io.field("minAgeReserve", s.min_age_reserve);
  io.field("minPrioReserve", s.min_prio_reserve);
  io.field("jobPartCountReserve", s.job_part_count_reserve);
  io.field("maxJobArrayResv", s.max_job_array_resv);
  io.field("nodeSpaceSize", s.node_space_size);
  io.field("continue", s.continues);
  io.field("busyNodes", s.busy_nodes);
  io.field("oneResvPerJob", s.one_resv_per_job);
  io.field("runningJobReserve", s.running_job_reserve);
  io.field("licenses", s.licenses);
}

template <typename Io>
void visit(Io& io, Like<RequeueConfig> auto& s) {
  io.field("default", s.by_default);
  io.field("delay", s.delay);
  io.field("maxBatch", s.max_batch);
}

template <typename Io>
void visit(Io& io, Like<DependencyConfig> auto& s) {
  io.field("ifNeverSatisfied", s.if_never_satisfied);
}

template <typename Io>
void visit(Io& io, Like<NodeReserve> auto& s) {
  io.field("memoryPercent", s.memory_percent);
}

template <typename Io>
void visit(Io& io, Like<TimetableConfig> auto& s) {
  io.field("lead", s.lead);
  io.field("settle", s.settle);
  io.field("barrier", s.barrier);
  io.field("failOpenAfter", s.fail_open_after);
  io.field("clock", s.clock);
}

template <typename Io>
void visit(Io& io, Like<PriorityWeights> auto& s) {
  io.field("age", s.age);
  io.field("account", s.account);
  io.field("fairShare", s.fair_share);
  io.field("jobSize", s.job_size);
  io.field("partition", s.partition);
  io.field("qos", s.qos);
  io.field("cpus", s.cpus);
  io.field("memory", s.memory);
  io.field("nodes", s.nodes);
  io.field("gpus", s.gpus);
  io.field("gpusOfType", s.gpus_of_type);
}

template <typename Io>
void visit(Io& io, Like<PriorityConfig> auto& s) {
  io.field("type", s.type);
  io.field("weights", s.weights);
  io.field("maxAge", s.max_age);
  io.field("favorSmall", s.favor_small);
  io.field("fairShare", s.fair_share);
  io.field("dampeningFactor", s.dampening_factor);
  io.field("usageDecay", s.usage_decay);
  io.field("decayHalfLife", s.decay_half_life);
  io.field("usageResetPeriod", s.usage_reset_period);
  io.field("calcPeriod", s.calc_period);
  io.field("flags", s.flags);
}

template <typename Io>
void visit(Io& io, Like<DeviceResource> auto& s) {
  io.field("resource", s.resource);
  io.field("name", s.name);
  io.field("type", s.type);
}

template <typename Io>
void visit(Io& io, Like<DeviceProduct> auto& s) {
  io.field("product", s.product);
  io.field("type", s.type);
}

template <typename Io>
void visit(Io& io, Like<DevicesConfig> auto& s) {
  io.field("resources", s.resources);
  io.field("types", s.types);
}

template <typename Io>
void visit(Io& io, Like<SchedulerConfigSpec> auto& s) {
  io.field("select", s.select);
  io.field("schedulerType", s.scheduler_type);
  io.field("backfill", s.backfill);
  io.field("preemptType", s.preempt_type);
  io.field("preemptMode", s.preempt_mode);
  io.field("gang", s.gang);
  io.field("preemptWithin", s.preempt_within);
  io.field("preemptPriority", s.preempt_priority);
  io.field("preemptExemptTime", s.preempt_exempt_time);
  io.field("preemptParameters", s.preempt_parameters);
  io.field("placementPolicy", s.placement_policy);
  io.field("timeSlice", s.time_slice);
  io.field("killWait", s.kill_wait);
  io.field("completeWait", s.complete_wait);
  io.field("startTimeout", s.start_timeout);
  io.field("requeue", s.requeue);
  io.field("dependency", s.dependency);
  io.field("maxArraySize", s.max_array_size);
  io.field("overTimeLimit", s.over_time_limit);
  io.field("enforcePartitionLimits", s.enforce_partition_limits);
  io.field("memory", s.memory);
  io.field("defaultCPUsPerGPU", s.default_cpus_per_gpu);
  io.field("licenses", s.licenses);
  io.field("devices", s.devices);
  io.field("runtimeClasses", s.runtime_classes);
  io.field("nodeReserve", s.node_reserve);
  io.field("timetable", s.timetable);
  io.field("priority", s.priority);
}

template <typename Io>
void visit(Io& io, Like<SchedulerConfigStatus> auto& s) {
  io.field("observedGeneration", s.observed_generation);
  io.field("accepted", s.accepted);
  io.field("preemptMode", s.preempt_mode);
  io.field("nextJobID", s.next_job_id);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<SchedulerConfig> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

}  // namespace kube
