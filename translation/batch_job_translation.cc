#include "translation/batch_job_translation.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "api/wellknown.h"
#include "base/number_list.h"
#include "kube/api/json_text.h"
#include "kube/api/pod.h"
#include "translation/judged_spec.h"
#include "translation/members.h"
#include "translation/pod_failure_policy.h"
#include "translation/pod_shape.h"
#include "translation/pod_slots.h"
#include "translation/template_check.h"
#include "translation/units.h"

namespace control {
namespace {

using Json = nlohmann::json;
using kube::ConditionStatus;

constexpr std::size_t kNameMax = 52;  // of a kubegang Job
constexpr std::size_t kHashedPrefixMax = 40;
constexpr int kIndexMax = 99'999;                  // of a pod in its Job
constexpr std::int64_t kDefaultGraceSeconds = 30;  // written into each template that has none

// Indexed Jobs give each pod a number that its program can read; NonIndexed is the default of
// batch/v1.
bool is_indexed(const kube::BatchJobSpec& spec) {
  return spec.completion_mode == "Indexed";
}

// Returns "" if it is absent.
std::string annotation(const kube::BatchJob& batch, std::string_view name) {
  const auto found = batch.metadata.annotations.find(std::string{name});
  return found == batch.metadata.annotations.end() ? "" : found->second;
}

// --- what cannot be run ---

// A gang starts and ends as a whole, so that of batch/v1 which treats failures of pods one by one
// (limits per index) is refused rather than approximated.
void check_spec(const kube::BatchJobSpec& spec, std::vector<std::string>& problems) {
  if (spec.parallelism.value_or(1) < 1) {
    problems.emplace_back("spec.parallelism: a gang has at least 1 pod; use spec.suspend to wait");
  } else if (completions_of(spec) < 1) {
    problems.emplace_back("spec.completions: a gang has at least 1 pod; use at least 1");
  } else if (has_followers(spec) && completions_of(spec) > kCompletionsMax) {
    problems.push_back("spec.completions: " + std::to_string(completions_of(spec)) +
                       " is more than kubegang counts; use at most " +
                       std::to_string(kCompletionsMax));
  }
  for (std::string& problem : failure_policy_problems(spec)) {
    problems.push_back(std::move(problem));
  }
  if (spec.backoff_limit_per_index || spec.max_failed_indexes) {
    problems.emplace_back(
        "spec.backoffLimitPerIndex: is not supported, a gang is restarted as a whole; use "
        "spec.backoffLimit");
  }
}

// Returns how many of its pods run at once when `succeeded` have succeeded; at least 1.
std::int32_t gang_size(const kube::BatchJobSpec& spec, std::size_t succeeded) {
  const auto left = std::int64_t{completions_of(spec)} - static_cast<std::int64_t>(succeeded);
  const std::int64_t parallelism = spec.parallelism.value_or(1);
  return static_cast<std::int32_t>(std::max<std::int64_t>(std::min(parallelism, left), 1));
}

// --- names ---

// Returns true for a name that a kubegang Job may have (the CRD's rule), and that has no dot.
bool is_job_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && name[0] >= 'a' && name[0] <= 'z' &&
         name.find('.') == std::string_view::npos;
}

// Returns the batch Job's own for the first attempt, so that users find it. Other names cannot be
// those of a Job that another client has made.
std::string job_name(const kube::BatchJob& batch, const Attempt& attempt) {
  const std::string& name = batch.metadata.name;
  if (attempt.number == 0 && attempt.plain_name && is_job_name(name)) return name;
  std::string prefix = name.substr(0, kHashedPrefixMax);
  std::replace(prefix.begin(), prefix.end(), '.', '-');
  if (prefix[0] < 'a' || prefix[0] > 'z') prefix.insert(0, "j-");
  return pod_name(prefix, batch.metadata.uid, attempt.number, attempt.number);
}

// --- what its pods need ---

// A range of nodes from the annotation, "2" or "2-4". A gang of n pods can never use more than n
// nodes, so a larger minimum is a mistake.
//
// A later attempt has fewer pods left. If they ask for devices, they stay even (job_translation.cc)
// and no more of them share a node than before.
void set_nodes(const kube::BatchJob& batch, bool has_devices, kube::JobSpec& spec,
               std::vector<std::string>& problems) {
  const std::string text = annotation(batch, kube::kAnnotationNodes);
  if (text.empty()) return;  // as few as hold its pods
  const std::int32_t pods = gang_size(batch.spec, 0);
  const char* const end = text.data() + text.size();
  std::int32_t min = 0;
  auto parsed = std::from_chars(text.data(), end, min);
  std::int32_t max = min;
  if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '-') {
    parsed = std::from_chars(parsed.ptr + 1, end, max);
  }
  if (parsed.ec == std::errc{} && parsed.ptr == end && min >= 1 && max >= min && min <= pods) {
    const std::int32_t tasks = *spec.resources.tasks;
    if (min > tasks) min = max = tasks;
    if (has_devices && min == max && tasks < pods) {
      const std::int32_t per_node = pods / min;
      while (tasks % min != 0 || tasks / min > per_node) ++min;
      max = min;
    }
    spec.resources.nodes = kube::JobNodes{.min = min, .max = max};
    return;
  }
  problems.push_back("metadata.annotations: " + std::string{kube::kAnnotationNodes} +
                     ": invalid number of nodes \"" + text + "\"; it must be from 1 to " +
                     std::to_string(pods) + " (examples: 2, 2-4)");
}

// The API server has checked the rules; only Indexed Jobs have them.
void set_success_policy(const kube::BatchJobSpec& batch, kube::JobSpec& spec) {
  if (!batch.success_policy) return;
  kube::SuccessPolicy policy;
  for (const kube::BatchSuccessRule& rule : batch.success_policy->rules) {
    policy.rules.push_back({rule.succeeded_indexes, rule.succeeded_count});
  }
  spec.lifecycle.success_policy = std::move(policy);
}

// Empty entries are left out.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// --- its template ---

// Adds what the batch group's controller adds for an Indexed Job. An author's own variable of that
// name wins.
void add_completion_index(Json& spec) {
  const Json variable{
      {"name", "JOB_COMPLETION_INDEX"},
      {"valueFrom",
       {{"fieldRef",
         {{"fieldPath", "metadata.labels['" + std::string{kube::kBatchCompletionIndex} + "']"}}}}}};
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list)) continue;
    for (Json& container : spec[list]) {
      Json& env = container["env"];
      if (!env.is_array()) env = Json::array();
      const bool has = std::any_of(env.begin(), env.end(), [&](const Json& each) {
        return kube::text_at(each, "name") == "JOB_COMPLETION_INDEX";
      });
      if (!has) env.push_back(variable);
    }
  }
}

// `decoded` is batch.spec.pod_template, whose known fields therefore have the types that they
// should; the result is made of the JSON, which keeps the others. The operator's pods are made of
// it, so each difference from the author's template has its reason here.
Json our_template_of(const kube::BatchJob& batch, const kube::PodTemplateSpec& decoded) {
  const Json from = batch.spec.pod_template.json();
  Json made{{"metadata", Json::object()}, {"spec", kube::object_at(from, "spec")}};
  const Json metadata = kube::object_at(from, "metadata");
  for (const char* field : {"labels", "annotations"}) {
    if (metadata.contains(field)) made["metadata"][field] = metadata[field];
  }
  // The labels are those that the API server gives a Job without a selector of its own.
  Json& labels = made["metadata"]["labels"];
  labels[std::string{kube::kBatchJobName}] = batch.metadata.name;
  labels[std::string{kube::kBatchControllerUid}] = batch.metadata.uid;
  Json& spec = made["spec"];
  // The API server writes these defaults into every template, so they are not the author's wish.
  if (decoded.spec.scheduler_name == "default-scheduler") spec.erase("schedulerName");
  if (decoded.spec.termination_grace_period_seconds == kDefaultGraceSeconds) {
    spec.erase("terminationGracePeriodSeconds");
  }
  // The gang is tried again as a whole, which is what backoffLimit counts (run_otherwise).
  if (decoded.spec.restart_policy == "OnFailure") spec["restartPolicy"] = "Never";
  if (is_indexed(batch.spec)) {
    // The value is each pod's own (build_pod).
    made["metadata"]["annotations"][std::string{kube::kBatchCompletionIndex}] = "";
    add_completion_index(spec);
  }
  return made;
}

// --- the status ---

// A condition keeps its time as long as its status does not change; kube::set_condition() sees to
// that.
void set_condition(kube::BatchJobStatus& status, std::string_view type, ConditionStatus value,
                   std::string reason, std::string message, base::Instant now) {
  kube::set_condition(status.conditions,
                      {.type = std::string{type},
                       .status = value,
                       .reason = std::move(reason),
                       .message = std::move(message)},
                      now);
}

// One that was never there stays away.
void end_condition(kube::BatchJobStatus& status, std::string_view type, ConditionStatus value,
                   std::string reason, std::string message, base::Instant now) {
  const kube::Condition* found = kube::find_condition(status.conditions, type);
  if (found == nullptr || found->status == value) return;
  set_condition(status, type, value, std::move(reason), std::move(message), now);
}

// Kubernetes' times in statuses have whole seconds: a finer one would differ from what is read
// back, and be written again and again.
base::Instant whole_seconds(base::Instant at) {
  return std::chrono::floor<std::chrono::seconds>(at);
}

void set_started(kube::BatchJobStatus& status, base::Instant at) {
  // startTime may only be set once per start: the API server refuses a change of it while the Job
  // is not suspended.
  if (!status.start_time) status.start_time = whole_seconds(at);
}

// The common part of all ends: no pod is left, and a Job that never started has a start time all
// the same, because the API server refuses an end without one.
void set_ended(kube::BatchJobStatus& status, const BatchView& view, base::Instant now) {
  status.active = 0;
  status.ready = 0;
  status.terminating = 0;
  // A short life is written at its end only. An end before the start cannot be: clocks of two
  // nodes.
  const base::Instant end = view.since.value_or(now);
  set_started(status, std::min(view.start.value_or(end), end));
}

// The batch group writes two in a row as "0,1".
std::string as_batch_writes(const std::vector<int>& indexes) {
  std::string text;
  for (std::size_t first = 0; first < indexes.size();) {
    std::size_t last = first;
    while (last + 1 < indexes.size() && indexes[last + 1] == indexes[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(indexes[first]);
    if (last > first) text += (last == first + 1 ? "," : "-") + std::to_string(indexes[last]);
    first = last + 1;
  }
  return text;
}

// Counts the successes of a batch Job whose pods follow one another. A new leader may know less for
// a moment than is stored.
void count_successes(const kube::BatchJobSpec& spec, kube::BatchJobStatus& status,
                     const BatchView& view) {
  const std::vector<int> succeeded = parse_indexes(view.succeeded_indexes);
  const auto count = static_cast<std::int32_t>(succeeded.size());
  if (count <= status.succeeded) return;
  status.succeeded = count;
  if (is_indexed(spec)) status.completed_indexes = as_batch_writes(succeeded);
}

// Without a list of successes, all completions have succeeded: a gang ends as a whole.
void set_complete(const kube::BatchJobSpec& spec, kube::BatchJobStatus& status,
                  const BatchView& view, base::Instant now) {
  set_ended(status, view, now);
  std::vector<int> succeeded(static_cast<std::size_t>(completions_of(spec)));
  std::iota(succeeded.begin(), succeeded.end(), 0);
  if (!view.succeeded_indexes.empty()) {
    succeeded = base::parse_number_list(view.succeeded_indexes, kIndexMax).value_or(succeeded);
  }
  status.succeeded = static_cast<std::int32_t>(succeeded.size());
  if (is_indexed(spec)) status.completed_indexes = as_batch_writes(succeeded);
  // The API server refuses a completionTime before startTime.
  status.completion_time = std::max(whole_seconds(view.since.value_or(now)), *status.start_time);
  const bool by_policy = spec.success_policy.has_value();
  // Both at once: the API server refuses Complete without SuccessCriteriaMet, and batch/v1 sets the
  // first while pods still run, of which there are none here.
  for (const std::string_view type : {kube::kBatchSuccessCriteriaMet, kube::kBatchComplete}) {
    set_condition(
        status, type, ConditionStatus::kTrue, by_policy ? "SuccessPolicy" : "CompletionsReached",
        by_policy ? "A rule of successPolicy is met" : "Reached expected number of succeeded pods",
        now);
  }
}

// FailureTarget and Failed at once, as with success: the API server refuses the second without the
// first.
void set_failed(kube::BatchJobStatus& status, const BatchView& view, base::Instant now) {
  set_ended(status, view, now);
  for (const std::string_view type : {kube::kBatchFailureTarget, kube::kBatchFailed}) {
    set_condition(status, type, ConditionStatus::kTrue, view.reason, view.message, now);
  }
}

void set_not_waiting(kube::BatchJobStatus& status, const std::string& reason, base::Instant now) {
  end_condition(status, kube::kBatchWaiting, ConditionStatus::kFalse, reason, "", now);
}

}  // namespace

// Returns the defaults of batch/v1: as many as run at once, and one if nothing is said.
std::int32_t completions_of(const kube::BatchJobSpec& spec) {
  return spec.completions.value_or(spec.parallelism.value_or(1));
}

// Returns true if more pods must succeed than run at once, so that pods follow one another.
bool has_followers(const kube::BatchJobSpec& spec) {
  return completions_of(spec) > spec.parallelism.value_or(1);
}

// nullopt if there is none. It counts run time here, across all attempts (Attempt::ran).
std::optional<base::Duration> deadline_of(const kube::BatchJobSpec& spec) {
  if (!spec.active_deadline_seconds) return std::nullopt;
  constexpr std::chrono::seconds kNone{0};
  constexpr auto kMax = std::chrono::duration_cast<std::chrono::seconds>(kRunMax);
  return std::clamp(std::chrono::seconds{*spec.active_deadline_seconds}, kNone, kMax);
}

// Makes the kubegang Job that is one attempt at a batch Job, or says why that cannot be.
// 1. everything of batch/v1 that a gang cannot do
// 2. the template, with the labels and variables that Kubernetes' controller would add
// 3. what one pod needs: its requests, as kube-scheduler would count them
// 4. the Job: name, owner, partition and QOS by annotations, deadline as time limit, one task per
//    pod
BatchVerdict translate_batch_job(const kube::BatchJob& batch, const Attempt& attempt) {
  BatchVerdict verdict;
  check_spec(batch.spec, verdict.problems);
  const auto decoded = kube::decode_template(batch.spec.pod_template);
  if (!decoded.ok()) {
    verdict.problems.push_back(decoded.error().message);
    return verdict;
  }
  const kube::RawJson pod_template{our_template_of(batch, *decoded)};
  const TemplateFacts facts = check_template(pod_template, TemplateOf::kBatchJob);
  verdict.problems.insert(verdict.problems.end(), facts.problems.begin(), facts.problems.end());
  kube::JobSpec& spec = verdict.job.spec;
  spec.resources.tasks = gang_size(batch.spec, attempt.succeeded.size());
  if (spec.resources.tasks != 1) {
    verdict.problems.insert(verdict.problems.end(), facts.launchers.begin(), facts.launchers.end());
  }
  set_nodes(batch, !facts.devices.empty(), spec, verdict.problems);
  PodShape shape;
  if (const auto pod = kube::decode_template(pod_template); pod.ok()) {
    shape = shape_of(pod->spec, PodCpus::kRequestsFirst, verdict.problems);
  }
  if (!verdict.problems.empty()) return verdict;

  kube::ObjectMeta& metadata = verdict.job.metadata;
  metadata.name = job_name(batch, attempt);
  metadata.ns = batch.metadata.ns;
  metadata.labels[std::string{kube::kLabelAttempt}] = std::to_string(attempt.number);
  metadata.labels[std::string{kube::kLabelFailures}] = std::to_string(attempt.failures);
  metadata.owner_references.push_back({.api_version = "batch/v1",
                                       .kind = "Job",
                                       .name = batch.metadata.name,
                                       .uid = batch.metadata.uid,
                                       .controller = true,
                                       .block_owner_deletion = true});
  spec.partitions = split(annotation(batch, kube::kAnnotationPartition));
  if (const std::string qos = annotation(batch, kube::kAnnotationQos); !qos.empty()) {
    spec.schedule.qos = qos;
  }
  if (const auto deadline = deadline_of(batch.spec)) {
    spec.schedule.time_limit =
        std::max<base::Duration>(*deadline - attempt.ran, std::chrono::seconds{1});
  }
  spec.schedule.begin_time = attempt.not_before;
  spec.lifecycle.requeue = true;  // a lost node or a preemption is not a failure
  set_success_policy(batch.spec, spec);
  spec.pod_policy = kube::PodPolicy::kPerTask;
  spec.network = kube::JobNetwork::kNone;  // the author's own Service, as with the batch group
  spec.pod_template = pod_template;
  if (has_followers(batch.spec)) {
    spec.completions = completions_of(batch.spec);
    spec.completed_indexes = base::format_number_list(attempt.succeeded);
  }
  set_shape(shape, spec);
  return verdict;
}

// Most batch Jobs have OnFailure because a tool wrote it (JobSet's webhook, the MPI operator), and
// mean that a failure be tried again. kubelet's restart of one container would lose the gang.
std::string run_otherwise(const kube::BatchJob& batch) {
  const auto decoded = kube::decode_template(batch.spec.pod_template);
  if (!decoded.ok() || decoded->spec.restart_policy != "OnFailure") return "";
  return "spec.template.spec.restartPolicy: OnFailure is run as Never: if a container fails, all "
         "pods end and are made again, at most spec.backoffLimit times";
}

// The operator keeps of a template only what is judged, so the whole one is read again when pods
// are made. kConflict if it is not the one that was judged: its pods would be others than those
// that the scheduler has placed.
base::Result<kube::RawJson> pod_template_of(const kube::BatchJob& batch,
                                            const kube::RawJson& judged) {
  const auto decoded = kube::decode_template(batch.spec.pod_template);
  if (!decoded.ok()) return decoded.error();
  if (judged_template(batch.spec.pod_template) == judged) {
    return kube::RawJson{our_template_of(batch, *decoded)};
  }
  return base::Error{base::Code::kConflict, "its template has changed since it was looked at"};
}

// Returns the status that follows from what the Jobs of the batch Job show. The API server checks
// each change of a status of the batch group as it does those of its own controller (validation of
// batch/v1), so an order matters in several places: startTime only once per start, no Complete
// without SuccessCriteriaMet, no change after the end.
kube::BatchJobStatus batch_status_after(const kube::BatchJobSpec& spec,
                                        const kube::BatchJobStatus& stored, const BatchView& view,
                                        base::Instant now) {
  using Phase = BatchView::Phase;
  kube::BatchJobStatus status = stored;
  // The API server refuses every change of the conditions of a finished Job.
  if (kube::is_finished(stored)) return status;
  const bool is_suspended = view.phase == Phase::kSuspended || view.phase == Phase::kStopping;
  // The counters never go back, also after the Job of an attempt was deleted.
  status.failed = std::max(status.failed, view.failed);
  status.active = view.active;
  status.ready = view.ready;
  status.terminating = view.terminating;
  if (has_followers(spec)) count_successes(spec, status, view);
  if (view.phase == Phase::kRefused) {
    set_condition(status, kube::kBatchAccepted, ConditionStatus::kFalse, view.reason, view.message,
                  now);
    set_not_waiting(status, "NotAccepted", now);
    return status;
  }
  end_condition(status, kube::kBatchAccepted, ConditionStatus::kTrue, "Accepted", "", now);
  if (!is_suspended) {
    end_condition(status, kube::kBatchSuspended, ConditionStatus::kFalse, "JobResumed",
                  "Job resumed", now);
  }
  if (view.phase == Phase::kWaiting) {
    set_condition(status, kube::kBatchWaiting, ConditionStatus::kTrue, view.reason, view.message,
                  now);
    return status;
  }
  set_not_waiting(status, is_suspended ? "Suspended" : "Started", now);
  switch (view.phase) {
    case Phase::kSuspended:
      status.start_time.reset();
      set_condition(status, kube::kBatchSuspended, ConditionStatus::kTrue, "JobSuspended",
                    "Job suspended", now);
      break;
    case Phase::kRunning:
      set_started(status, view.since.value_or(now));
      break;
    case Phase::kComplete:
      set_complete(spec, status, view, now);
      break;
    case Phase::kFailed:
      set_failed(status, view, now);
      break;
    case Phase::kRefused:
    case Phase::kStopping:
    case Phase::kWaiting:
      break;
  }
  return status;
}

}  // namespace control
