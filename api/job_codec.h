// The fields of Job and what it consists of, for both directions (kube/api/codec.h). Internal to
// api: only .cc files may include it.
#pragma once

#include "api/job.h"
#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<JobNodes> auto& s) {
  io.field("min", s.min);
  io.field("max", s.max);
}

template <typename Io>
void visit(Io& io, Like<JobDevice> auto& s) {
  io.field("name", s.name);
  io.field("type", s.type);
  io.field("count", s.count);
}

template <typename Io>
void visit(Io& io, Like<JobResources> auto& s) {
  io.field("nodes", s.nodes);
  io.field("tasks", s.tasks);
  io.field("tasksPerNode", s.tasks_per_node);
  io.field("tasksPerSocket", s.tasks_per_socket);
  io.field("tasksPerCore", s.tasks_per_core);
  io.field("cpusPerTask", s.cpus_per_task);
  io.field("memoryPerCPU", s.memory_per_cpu);
  io.field("memoryPerNode", s.memory_per_node);
  io.field("allMemory", s.all_memory);
  io.field("devices", s.devices);
  io.field("devicesOfJob", s.devices_of_job);
  io.field("devicesPerTask", s.devices_per_task);
  io.field("devicesPerSocket", s.devices_per_socket);
  io.field("cpusPerGPU", s.cpus_per_gpu);
  io.field("memoryPerGPU", s.memory_per_gpu);
  io.field("tasksPerGPU", s.tasks_per_gpu);
  io.field("licenses", s.licenses);
  io.field("overcommit", s.overcommit);
  io.field("useMinNodes", s.use_min_nodes);
}

template <typename Io>
void visit(Io& io, Like<JobPlacement> auto& s) {
  io.field("hostlist", s.hostlist);
  io.field("excludeHostlist", s.exclude_hostlist);
  io.field("contiguous", s.contiguous);
  io.field("constraint", s.constraint);
  io.field("sharing", s.sharing);
  io.field("minCPUsPerNode", s.min_cpus_per_node);
  io.field("socketsPerNode", s.sockets_per_node);
  io.field("coresPerSocket", s.cores_per_socket);
  io.field("threadsPerCore", s.threads_per_core);
  io.field("tmpDisk", s.tmp_disk);
}

template <typename Io>
void visit(Io& io, Like<JobSchedule> auto& s) {
  io.field("timeLimit", s.time_limit);
  io.field("timeMin", s.time_min);
  io.micro_time("beginTime", s.begin_time);
  io.micro_time("deadline", s.deadline);
  io.field("qos", s.qos);
  io.field("account", s.account);
  io.field("priority", s.priority);
  io.field("nice", s.nice);
}

template <typename Io>
void visit(Io& io, Like<DependencyTerm> auto& s) {
  io.field("type", s.type);
  io.field("jobID", s.job_id);
  io.field("jobName", s.job_name);
  io.field("task", s.task);
  io.field("delay", s.delay);
}

template <typename Io>
void visit(Io& io, Like<JobDependency> auto& s) {
  io.field("match", s.match);
  io.field("ifNeverSatisfied", s.if_never_satisfied);
  io.field("terms", s.terms);
}

template <typename Io>
void visit(Io& io, Like<SuccessRule> auto& s) {
  io.field("succeededIndexes", s.succeeded_indexes);
  io.field("succeededCount", s.succeeded_count);
}

template <typename Io>
void visit(Io& io, Like<SuccessPolicy> auto& s) {
  io.field("rules", s.rules);
}

template <typename Io>
void visit(Io& io, Like<JobLifecycle> auto& s) {
  io.field("requeue", s.requeue);
  io.field("startTimeout", s.start_timeout);
  io.field("ttlAfterFinished", s.ttl_after_finished);
  io.field("successPolicy", s.success_policy);
}

template <typename Io>
void visit(Io& io, Like<JobArray> auto& s) {
  io.field("tasks", s.tasks);
  io.field("parallelism", s.parallelism);
}

template <typename Io>
void visit(Io& io, Like<TaskControl> auto& s) {
  io.field("tasks", s.tasks);
  io.field("hold", s.hold);
  io.field("suspend", s.suspend);
  io.field("cancel", s.cancel);
  io.field("requeueRequest", s.requeue_request);
  io.field("releaseRequest", s.release_request);
  io.field("timeLimit", s.time_limit);
  io.field("priority", s.priority);
  io.field("nice", s.nice);
}

template <typename Io>
void visit(Io& io, Like<JobControl> auto& s) {
  io.field("hold", s.hold);
  io.field("suspend", s.suspend);
  io.field("cancel", s.cancel);
  io.field("requeueRequest", s.requeue_request);
  io.field("releaseRequest", s.release_request);
  io.field("tasks", s.tasks);
}

template <typename Io>
void visit(Io& io, Like<AdoptedPod> auto& s) {
  io.field("name", s.name);
  io.field("uid", s.uid);
}

template <typename Io>
void visit(Io& io, Like<BatchVariable> auto& s) {
  io.field("name", s.name);
  io.field("value", s.value);
}

template <typename Io>
void visit(Io& io, Like<BatchSignal> auto& s) {
  io.field("name", s.name);
  io.field("before", s.before);
  io.field("target", s.target);
}

template <typename Io>
void visit(Io& io, Like<JobBatch> auto& s) {
  io.field("script", s.script);
  io.field("name", s.name);
  io.field("arguments", s.arguments);
  io.field("output", s.output);
  io.field("error", s.error);
  io.field("input", s.input);
  io.field("openMode", s.open_mode);
  io.field("workingDirectory", s.working_directory);
  io.field("environment", s.environment);
  io.field("comment", s.comment);
  io.field("signal", s.signal);
}

template <typename Io>
void visit(Io& io, Like<JobSpec> auto& s) {
  io.field("partitions", s.partitions);
  io.field("resources", s.resources);
  io.field("placement", s.placement);
  io.field("schedule", s.schedule);
  io.field("dependency", s.dependency);
  io.field("lifecycle", s.lifecycle);
  io.field("control", s.control);
  io.field("podPolicy", s.pod_policy);
  io.field("network", s.network);
  io.field("podDefaults", s.pod_defaults);
  io.field("completions", s.completions);
  io.field("completedIndexes", s.completed_indexes);
  io.field("adopted", s.adopted);
  io.field("array", s.array);
  io.field("batch", s.batch);
  io.field("testOnly", s.test_only);
  io.field("template", s.pod_template);
}

template <typename Io>
void visit(Io& io, Like<NodeShare> auto& s) {
  io.field("hostlist", s.hostlist);
  io.field("cores", s.cores);
  io.field("cpus", s.cpus);
  io.field("tasks", s.tasks);
  io.field("memory", s.memory);
  io.field("devices", s.devices);
}

template <typename Io>
void visit(Io& io, Like<Allocation> auto& s) {
  io.field("hostlist", s.hostlist);
  io.field("nodes", s.nodes);
  io.field("cpus", s.cpus);
  io.field("shares", s.shares);
}

template <typename Io>
void visit(Io& io, Like<StepUsage> auto& s) {
  io.field("id", s.id);
  io.field("name", s.name);
  io.always("tasks", s.tasks);
  io.always("nodes", s.nodes);
  io.nonzero("cpus", s.cpus);
  io.always("exitCode", s.exit_code);
  io.nonzero("signal", s.signal);
  io.micro_time("startTime", s.start_time);
  io.always("elapsed", s.elapsed);
  io.always("userCPU", s.user_cpu);
  io.always("systemCPU", s.system_cpu);
  io.always("maxRSS", s.max_rss);
}

template <typename Io>
void visit_steps(Io& io, Like<JobUsage> auto& s) {
  io.field("steps", s.steps);
  io.nonzero("moreSteps", s.more_steps);
}

template <typename Io>
void visit(Io& io, Like<JobUsage> auto& s) {
  io.always("userCPU", s.user_cpu);
  io.always("systemCPU", s.system_cpu);
  io.always("maxRSS", s.max_rss);
  io.nonzero("memoryPeak", s.memory_peak);
  visit_steps(io, s);
}

template <typename Io>
void visit(Io& io, Like<UsageMessage> auto& s) {
  io.nonzero("requeue", s.wants_requeue);
  visit(io, s.usage);
}

template <typename Io>
void visit(Io& io, Like<RunTime> auto& s) {
  io.field("elapsed", s.elapsed);
  io.micro_time("asOf", s.as_of);
}

template <typename Io>
void visit(Io& io, Like<JobClaim> auto& s) {
  io.field("hostlist", s.hostlist);
  io.field("cores", s.cores);
  io.micro_time("since", s.since);
  io.micro_time("until", s.until);
}

template <typename Io>
void visit(Io& io, Like<JobReference> auto& s) {
  io.field("namespace", s.ns);
  io.field("name", s.name);
  io.field("uid", s.uid);
}

template <typename Io>
void visit(Io& io, Like<JobEnding> auto& s) {
  io.field("verdict", s.verdict);
  io.field("reason", s.reason);
  io.field("exitCode", s.exit_code);
  io.micro_time("since", s.since);
  io.micro_time("graceEnd", s.grace_end);
  io.field("by", s.by);
}

template <typename Io>
void visit(Io& io, Like<JobRetry> auto& s) {
  io.micro_time("at", s.at);
  io.field("avoidNodes", s.avoid_nodes);
  io.micro_time("avoidUntil", s.avoid_until);
}

template <typename Io>
void visit(Io& io, Like<JobHeld> auto& s) {
  io.field("reason", s.reason);
}

template <typename Io>
void visit(Io& io, Like<DependencyStatus> auto& s) {
  io.field("type", s.type);
  io.field("jobID", s.job_id);
  io.field("jobName", s.job_name);
  io.field("task", s.task);
  io.field("delay", s.delay);
  io.field("state", s.state);
  io.field("failedTasks", s.failed_tasks);
}

template <typename Io>
void visit(Io& io, Like<JobObserved> auto& s) {
  io.field("requeueRequest", s.requeue_request);
  io.field("releaseRequest", s.release_request);
  io.field("timeLimit", s.time_limit);
}

// Fields that jobs and tasks of arrays share: the times and holds that a new leader goes on from.
template <typename Io>
void visit_books(Io& io, auto& s) {
  io.micro_time("preemptEligibleTime", s.preempt_eligible_time);
  io.field("timeLimit", s.time_limit);
  io.field("runTime", s.run_time);
  io.field("suspendTime", s.suspend_time);
  io.field("claim", s.claim);
  io.field("ending", s.ending);
  io.field("held", s.held);
  io.field("retry", s.retry);
}

template <typename Io>
void visit(Io& io, Like<ArrayTask> auto& s) {
  io.always("task", s.task);
  io.field("jobID", s.job_id);
  io.field("state", s.state);
  io.field("reason", s.reason);
  io.field("message", s.message);
  io.field("starts", s.starts);
  io.field("restarts", s.restarts);
  io.field("nodeFailures", s.node_failures);
  io.field("allocation", s.allocation);
  io.field("partition", s.partition);
  io.micro_time("submitTime", s.submit_time);
  io.micro_time("eligibleTime", s.eligible_time);
  io.micro_time("allocatedTime", s.allocated_time);
  io.micro_time("startTime", s.start_time);
  visit_books(io, s);
  io.field("exitCode", s.exit_code);
  io.field("succeededIndexes", s.succeeded_indexes);
  io.field("observed", s.observed);
  io.field("neverFrozen", s.never_frozen);
  io.field("usage", s.usage);
}

template <typename Io>
void visit(Io& io, Like<ForecastStops> auto& s) {
  io.always("suspended", s.suspended);
  io.always("requeued", s.requeued);
  io.always("cancelled", s.cancelled);
  io.field("jobs", s.jobs);
}

template <typename Io>
void visit(Io& io, Like<JobForecast> auto& s) {
  io.micro_time("asOf", s.as_of);
  io.field("jobID", s.job_id);
  io.micro_time("startTime", s.start_time);
  io.field("partition", s.partition);
  io.field("hostlist", s.hostlist);
  io.always("nodes", s.nodes);
  io.always("cpus", s.cpus);
  io.field("stops", s.stops);
  io.field("message", s.message);
}

template <typename Io>
void visit(Io& io, Like<TaskEnd> auto& s) {
  io.always("task", s.task);
  io.field("jobID", s.job_id);
  io.field("state", s.state);
  io.field("reason", s.reason);
  io.field("restarts", s.restarts);
  io.field("allocation", s.allocation);
  io.field("partition", s.partition);
  io.micro_time("submitTime", s.submit_time);
  io.micro_time("eligibleTime", s.eligible_time);
  io.micro_time("startTime", s.start_time);
  io.micro_time("endTime", s.end_time);
  io.field("timeLimit", s.time_limit);
  io.field("runTime", s.run_time);
  io.field("suspendTime", s.suspend_time);
  io.field("exitCode", s.exit_code);
  io.field("usage", s.usage);
}

template <typename Io>
void visit(Io& io, Like<ArrayCounts> auto& s) {
  io.always("waiting", s.waiting);
  io.always("running", s.running);
  io.always("succeeded", s.succeeded);
  io.always("failed", s.failed);
  io.always("cancelled", s.cancelled);
}

template <typename Io>
void visit(Io& io, Like<ArrayStatus> auto& s) {
  io.field("summary", s.summary);
  io.field("counts", s.counts);
  io.field("tasks", s.tasks);
  io.field("succeeded", s.succeeded);
  io.field("failed", s.failed);
  io.field("cancelled", s.cancelled);
  io.field("outcomes", s.outcomes);
  io.field("ended", s.ended);
  io.field("packed", s.packed);
}

template <typename Io>
void visit(Io& io, Like<JobStatus> auto& s) {
  io.field("observedGeneration", s.observed_generation);
  io.field("state", s.state);
  io.field("reason", s.reason);
  io.field("message", s.message);
  io.field("jobID", s.job_id);
  io.field("user", s.user);
  io.field("priority", s.priority);
  io.field("term", s.term);
  io.field("starts", s.starts);
  io.field("restarts", s.restarts);
  io.field("nodeFailures", s.node_failures);
  io.field("allocation", s.allocation);
  io.field("partition", s.partition);
  io.micro_time("submitTime", s.submit_time);
  io.micro_time("eligibleTime", s.eligible_time);
  io.micro_time("startTime", s.start_time);
  io.micro_time("endTime", s.end_time);
  io.micro_time("expectedStartTime", s.expected_start_time);
  io.field("plannedNodes", s.planned_nodes);
  visit_books(io, s);
  io.field("dependency", s.dependency);
  io.field("exitCode", s.exit_code);
  io.field("usage", s.usage);
  io.field("succeededIndexes", s.succeeded_indexes);
  io.field("memberIndexes", s.member_indexes);
  io.field("forecast", s.forecast);
  io.field("array", s.array);
  io.field("observed", s.observed);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<Job> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

}  // namespace kube
