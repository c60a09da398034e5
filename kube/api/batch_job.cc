#include "kube/api/batch_job.h"

#include "kube/api/meta_codec.h"

namespace kube {

// The two policies are read because kube-controller-manager does not carry them out for a Job that
// is managed by another controller (spec.managedBy): the operator must.
template <typename Io>
void visit(Io& io, Like<BatchExitCodes> auto& s) {
  io.field("containerName", s.container_name);
  io.field("operator", s.op);
  io.field("values", s.values);
}

template <typename Io>
void visit(Io& io, Like<BatchPodCondition> auto& s) {
  io.field("type", s.type);
}

template <typename Io>
void visit(Io& io, Like<BatchFailureRule> auto& s) {
  io.field("action", s.action);
  io.field("onExitCodes", s.on_exit_codes);
  io.field("onPodConditions", s.on_pod_conditions);
}

template <typename Io>
void visit(Io& io, Like<BatchFailurePolicy> auto& s) {
  io.field("rules", s.rules);
}

template <typename Io>
void visit(Io& io, Like<BatchSuccessRule> auto& s) {
  io.field("succeededIndexes", s.succeeded_indexes);
  io.field("succeededCount", s.succeeded_count);
}

template <typename Io>
void visit(Io& io, Like<BatchSuccessPolicy> auto& s) {
  io.field("rules", s.rules);
}

// The template stays text: most of it is never looked at, and pods are made of all of it.
template <typename Io>
void visit(Io& io, Like<BatchJobSpec> auto& s) {
  io.field("parallelism", s.parallelism);
  io.field("completions", s.completions);
  io.field("backoffLimit", s.backoff_limit);
  io.field("backoffLimitPerIndex", s.backoff_limit_per_index);
  io.field("maxFailedIndexes", s.max_failed_indexes);
  io.field("activeDeadlineSeconds", s.active_deadline_seconds);
  io.field("completionMode", s.completion_mode);
  io.field("managedBy", s.managed_by);
  io.nonzero("suspend", s.suspend);
  io.field("podFailurePolicy", s.pod_failure_policy);
  io.field("successPolicy", s.success_policy);
  io.field("template", s.pod_template);
}

// Counters that are 0 are left out, like the API server leaves them out; `ready` and `terminating`
// distinguish 0 from "not said".
template <typename Io>
void visit(Io& io, Like<BatchJobStatus> auto& s) {
  io.nonzero("active", s.active);
  io.nonzero("succeeded", s.succeeded);
  io.nonzero("failed", s.failed);
  io.field("ready", s.ready);
  io.field("terminating", s.terminating);
  io.time("startTime", s.start_time);
  io.time("completionTime", s.completion_time);
  io.field("completedIndexes", s.completed_indexes);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<BatchJob> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

template <>
base::Result<BatchJob> decode<BatchJob>(const JsonView& object) {
  return codec::decode_object<BatchJob>(object);
}
template <>
const KnownFields& known_fields<BatchJob>() {
  return codec::fields_of<BatchJob>();
}
nlohmann::json encode(const BatchJob& job) {
  return codec::encode_object(job);
}

}  // namespace kube
