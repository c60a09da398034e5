// The members of every type that is saved. Enumerators are saved as their numbers: whoever changes
// an enumeration or a member raises kSaveVersion (engine/save.cc).
#pragma once

#include "scheduler/gang/component.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/model/config.h"
#include "scheduler/model/node.h"
#include "scheduler/plan.h"
#include "scheduler/save/archive.h"

namespace sched::save {

template <typename A>
void visit(A& a, MemoryLimit& v) {
  all(a, v.per_cpu, v.per_node);
}
template <typename A>
void visit(A& a, PreemptParameters& v) {
  all(a, v.reorder_count, v.strict_order, v.youngest_first, v.min_exempt_priority,
      v.reclaim_licenses);
}
template <typename A>
void visit(A& a, QueueParameters& v) {
  all(a, v.default_queue_depth, v.partition_job_depth, v.max_job_start, v.sched_interval,
      v.requeue_delay, v.max_batch_requeue, v.defer, v.backfill_interval);
}
template <typename A>
void visit(A& a, ClusterParameters& v) {
  all(a, v.select, v.unit, v.memory, v.least_loaded, v.one_task_per_core, v.core_default_dist_block,
      v.task_affinity, v.preempt_type, v.preempt_mode, v.gang, v.preempt_within, v.preempt_priority,
      v.preempt_exempt_time, v.preempt, v.placement, v.time_slice, v.kill_wait, v.message_timeout,
      v.requeue_default, v.over_time_limit, v.enforce_part_limits, v.scheduler, v.queue,
      v.default_memory, v.max_memory, v.timetable_lead);
}
template <typename A>
void visit(A& a, PartitionConfig& v) {
  all(a, v.name, v.nodes, v.is_default, v.state, v.priority_tier, v.priority_job_factor,
      v.over_subscribe, v.max_share, v.exclusive_user, v.preempt_mode, v.preempt_priority,
      v.grace_time, v.default_memory, v.max_memory, v.min_nodes, v.max_nodes, v.max_cpus_per_node,
      v.default_time, v.max_time, v.over_time_limit, v.least_loaded, v.qos, v.allow_users,
      v.deny_users, v.allow_qos, v.deny_qos);
}
template <typename A>
void visit(A& a, QosConfig& v) {
  all(a, v.name, v.priority, v.preempt, v.preempt_mode, v.preempt_within, v.preempt_priority,
      v.preempt_exempt_time, v.grace_time, v.deny_on_limit, v.partition_min_nodes,
      v.partition_max_nodes, v.partition_time_limit, v.over_part_qos, v.no_reserve,
      v.max_jobs_per_user, v.max_cpus_per_user, v.max_nodes_per_job, v.group_cpus, v.max_time);
}
template <typename A>
void visit(A& a, Configuration& v) {
  all(a, v.cluster, v.partitions, v.qos);
}
template <typename A>
void visit(A& a, NodeSpec& v) {
  all(a, v.name, v.sockets, v.cores_per_socket, v.threads_per_core, v.cpus, v.memory, v.tmp_disk,
      v.weight, v.features, v.state, v.pods_max);
}
template <typename A>
void visit(A& a, MemoryPerCpu& v) {
  visit(a, v.amount);
}
template <typename A>
void visit(A& a, MemoryPerNode& v) {
  visit(a, v.amount);
}
template <typename A>
void visit(A& a, JobRequest& v) {
  all(a, v.id, v.name, v.user, v.submit_time, v.partitions, v.min_nodes, v.nodes_given, v.max_nodes,
      v.tasks, v.tasks_per_node, v.tasks_per_socket, v.tasks_per_core, v.cpus_per_task,
      v.min_cpus_per_node, v.sockets_per_node, v.cores_per_socket, v.threads_per_core, v.overcommit,
      v.use_min_nodes, v.memory, v.tmp_disk, v.sharing, v.required_nodes, v.excluded_nodes,
      v.contiguous, v.constraint, v.time_limit, v.time_min, v.begin_time, v.deadline, v.qos,
      v.priority, v.nice, v.hold, v.suspend, v.requeue, v.pod_per_task);
}
template <typename A>
void visit(A& a, NodeAllocation& v) {
  all(a, v.node, v.cores, v.cpus, v.tasks, v.memory);
}
template <typename A>
void visit(A& a, Allocation& v) {
  all(a, v.nodes, v.whole_nodes);
}
template <typename A>
void visit(A& a, Ending& v) {
  all(a, v.final_state, v.verdict, v.grace_end, v.preemptor, v.exit_code, v.killed);
}
template <typename A>
void visit(A& a, JobClock& v) {
  all(a, v.phase, v.run, v.suspended, v.as_of);
}
template <typename A>
void visit(A& a, SharingStatus& v) {
  all(a, v.whole_nodes, v.may_stack, v.shares_nodes, v.max_share);
}
template <typename A>
void visit(A& a, Job& v) {
  all(a, v.id, v.table_order, v.request, v.state, v.reason, v.message, v.priority, v.held,
      v.held_by_suspend, v.submit_time, v.eligible_time, v.not_before, v.restarts, v.exit_code,
      v.queued_in, v.avoid_nodes, v.avoid_until, v.claim, v.claim_until, v.partition, v.allocation,
      v.sharing, v.allocated_at, v.ready, v.start_time, v.time_limit, v.limit_timer, v.clock,
      v.ending, v.user_suspended, v.cores_released, v.in_gang);
  all(a, v.select.may_stack, v.select.victim_mode, v.select.exempt_until);
}
template <typename A>
void visit(A& a, timetable::PlanEntry& v) {
  all(a, v.until, v.run);
}
template <typename A>
void visit(A& a, timetable::Timetable& v) {
  all(a, v.slice, v.pods_count, v.plan, v.cycle);
}
template <typename A>
void visit(A& a, NodeTimetableEntry& v) {
  all(a, v.job, v.row, v.ran);
}
template <typename A>
void visit(A& a, NodePlan& v) {
  all(a, v.node, v.as_of, v.entries, v.timetable);
}

}  // namespace sched::save

namespace sched::gang {

template <typename A>
void visit(A& a, Grid& v) {
  save::all(a, v.slice, v.old_slice, v.change_at, v.lead);
}
template <typename A>
void visit(A& a, Place& v) {
  save::all(a, v.job, v.row, v.resumed, v.held);
}
template <typename A>
void visit(A& a, PendingOp& v) {
  save::all(a, v.at, v.join);
}

}  // namespace sched::gang
