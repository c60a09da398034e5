// The fields of a Record, for JSON in both directions (kube/api/codec.h) and for the database
// (store.cc). Internal to records: only .cc files may include it.
#pragma once

#include "kube/api/codec.h"
#include "records/record.h"

namespace records {

template <typename Io>
void visit(Io& io, kube::codec::Like<Record> auto& s) {
  io.field("cluster", s.cluster);
  io.field("jobUID", s.job_uid);
  io.always("restart", s.restart);
  io.field("task", s.task);
  io.field("jobID", s.job_id);
  io.field("arrayID", s.array_id);
  io.field("namespace", s.ns);
  io.field("object", s.object);
  io.field("name", s.name);
  io.field("user", s.user);
  io.field("account", s.account);
  io.field("qos", s.qos);
  io.field("partition", s.partition);
  io.field("nodes", s.nodes);
  io.field("tasks", s.tasks);
  io.field("tasksPerNode", s.tasks_per_node);
  io.field("cpusPerTask", s.cpus_per_task);
  io.field("memoryPerCPU", s.memory_per_cpu);
  io.field("memoryPerNode", s.memory_per_node);
  io.field("timeLimit", s.time_limit);
  io.field("devices", s.devices);
  io.field("licenses", s.licenses);
  io.field("constraints", s.constraint);
  io.field("priority", s.priority);
  io.nonzero("isHeld", s.is_held);
  io.nonzero("isScript", s.is_script);
  io.field("workDir", s.work_dir);
  io.field("comment", s.comment);
  io.field("hostlist", s.hostlist);
  io.nonzero("allocatedNodes", s.allocated_nodes);
  io.nonzero("allocatedCPUs", s.allocated_cpus);
  io.nonzero("allocatedMemory", s.allocated_memory);
  io.micro_time("submitTime", s.submit_time);
  io.micro_time("eligibleTime", s.eligible_time);
  io.micro_time("startTime", s.start_time);
  io.micro_time("endTime", s.end_time);
  io.nonzero("elapsed", s.elapsed);
  io.micro_time("elapsedAsOf", s.elapsed_as_of);
  io.nonzero("suspended", s.suspended);
  io.field("state", s.state);
  io.field("reason", s.reason);
  io.field("exitCode", s.exit_code);
  io.field("preemptedBy", s.preempted_by);
  io.field("userCPU", s.user_cpu);
  io.field("systemCPU", s.system_cpu);
  io.field("maxRSS", s.max_rss);
  io.field("memoryPeak", s.memory_peak);
  io.field("steps", s.steps);
}

}  // namespace records
