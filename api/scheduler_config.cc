#include "api/scheduler_config.h"

#include "api/partition_codec.h"

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
void visit(Io& io, Like<RequeueConfig> auto& s) {
  io.field("default", s.by_default);
  io.field("delay", s.delay);
  io.field("maxBatch", s.max_batch);
}

template <typename Io>
void visit(Io& io, Like<SchedulerPassConfig> auto& s) {
  io.field("type", s.type);
  io.field("interval", s.interval);
  io.field("window", s.window);
  io.field("resolution", s.resolution);
  io.field("maxJobTest", s.max_job_test);
}

template <typename Io>
void visit(Io& io, Like<PriorityWeights> auto& s) {
  io.field("age", s.age);
  io.field("fairShare", s.fair_share);
  io.field("jobSize", s.job_size);
  io.field("partition", s.partition);
  io.field("qos", s.qos);
}

template <typename Io>
void visit(Io& io, Like<PriorityConfig> auto& s) {
  io.field("type", s.type);
  io.field("weights", s.weights);
  io.field("decayHalfLife", s.decay_half_life);
}

template <typename Io>
void visit(Io& io, Like<NodeReserve> auto& s) {
  io.field("memoryPercent", s.memory_percent);
}

template <typename Io>
void visit(Io& io, Like<TopologyConfig> auto& s) {
  io.field("plugin", s.plugin);
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
void visit(Io& io, Like<SchedulerConfigSpec> auto& s) {
  io.field("select", s.select);
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
  io.field("requeue", s.requeue);
  io.field("overTimeLimit", s.over_time_limit);
  io.field("enforcePartitionLimits", s.enforce_partition_limits);
  io.field("scheduler", s.scheduler);
  io.field("priority", s.priority);
  io.field("memory", s.memory);
  io.field("nodeReserve", s.node_reserve);
  io.field("licenses", s.licenses);
  io.field("topology", s.topology);
  io.field("timetable", s.timetable);
}

template <typename Io>
void visit(Io& io, Like<SchedulerConfigStatus> auto& s) {
  io.field("accepted", s.accepted);
  io.field("nextJobID", s.next_job_id);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<SchedulerConfig> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

template <>
base::Result<SchedulerConfig> decode<SchedulerConfig>(const nlohmann::json& object) {
  return codec::decode_object<SchedulerConfig>(object);
}
nlohmann::json encode(const SchedulerConfig& config) {
  return codec::encode_object(config);
}

}  // namespace kube
