// The parts of a Job of the batch group that an external controller needs (spec.managedBy). Named
// after the group, since kube::Job is the kind of kubegang.io. SOURCE: k8s.io/api batch/v1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/meta.h"
#include "kube/api/raw_json.h"

namespace kube {

// Conditions of a batch Job that mean something to the API server, and to who waits for it.
inline constexpr std::string_view kBatchComplete = "Complete";
inline constexpr std::string_view kBatchFailed = "Failed";
inline constexpr std::string_view kBatchSuccessCriteriaMet = "SuccessCriteriaMet";
inline constexpr std::string_view kBatchFailureTarget = "FailureTarget";
inline constexpr std::string_view kBatchSuspended = "Suspended";

// Labels of the pods of a batch Job; the API server writes the first two into the Job's template.
inline constexpr std::string_view kBatchJobName = "batch.kubernetes.io/job-name";
inline constexpr std::string_view kBatchControllerUid = "batch.kubernetes.io/controller-uid";
inline constexpr std::string_view kBatchCompletionIndex =
    "batch.kubernetes.io/job-completion-index";

// The field's values are those of the API server, which checks them.
struct BatchExitCodes {
  std::optional<std::string> container_name{};  // absent: any
  std::string op{};                             // "operator": In | NotIn
  std::vector<std::int32_t> values{};

  friend bool operator==(const BatchExitCodes&, const BatchExitCodes&) = default;
};

struct BatchPodCondition {
  std::string type{};

  friend bool operator==(const BatchPodCondition&, const BatchPodCondition&) = default;
};

// It has exit codes or conditions.
struct BatchFailureRule {
  std::string action{};  // FailJob | FailIndex | Ignore | Count
  std::optional<BatchExitCodes> on_exit_codes{};
  std::vector<BatchPodCondition> on_pod_conditions{};

  friend bool operator==(const BatchFailureRule&, const BatchFailureRule&) = default;
};

struct BatchFailurePolicy {
  std::vector<BatchFailureRule> rules{};

  friend bool operator==(const BatchFailurePolicy&, const BatchFailurePolicy&) = default;
};

struct BatchSuccessRule {
  std::string succeeded_indexes{};  // "0,2-3"; empty: any
  std::optional<std::int32_t> succeeded_count{};

  friend bool operator==(const BatchSuccessRule&, const BatchSuccessRule&) = default;
};

struct BatchSuccessPolicy {
  std::vector<BatchSuccessRule> rules{};

  friend bool operator==(const BatchSuccessPolicy&, const BatchSuccessPolicy&) = default;
};

struct BatchJobSpec {
  std::optional<std::int32_t> parallelism{};
  std::optional<std::int32_t> completions{};
  std::optional<std::int32_t> backoff_limit{};
  std::optional<std::int32_t> backoff_limit_per_index{};
  std::optional<std::int32_t> max_failed_indexes{};
  std::optional<std::int64_t> active_deadline_seconds{};
  std::optional<std::string> completion_mode{};  // NonIndexed (absent) | Indexed
  std::optional<std::string> managed_by{};       // cannot change
  bool suspend = false;
  std::optional<BatchFailurePolicy> pod_failure_policy{};
  std::optional<BatchSuccessPolicy> success_policy{};
  RawJson pod_template{};  // "template": a PodTemplateSpec; an informer may have dropped it

  friend bool operator==(const BatchJobSpec&, const BatchJobSpec&) = default;
};

// Instants are whole seconds.
struct BatchJobStatus {
  std::int32_t active = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::optional<std::int32_t> ready{};
  std::optional<std::int32_t> terminating{};
  std::optional<base::Instant> start_time{};
  std::optional<base::Instant> completion_time{};
  std::string completed_indexes{};  // "0-3,5"
  Conditions conditions{};

  friend bool operator==(const BatchJobStatus&, const BatchJobStatus&) = default;
};

struct BatchJob {
  static constexpr ResourceInfo kResource{"batch", "v1", "jobs", "Job", true};

  ObjectMeta metadata{};
  BatchJobSpec spec{};
  BatchJobStatus status{};

  friend bool operator==(const BatchJob&, const BatchJob&) = default;
};

// Complete or Failed: it never runs again.
inline bool is_finished(const BatchJobStatus& status) {
  return is_true(status.conditions, kBatchComplete) || is_true(status.conditions, kBatchFailed);
}

template <>
base::Result<BatchJob> decode<BatchJob>(const JsonView& object);
template <>
const KnownFields& known_fields<BatchJob>();
nlohmann::json encode(const BatchJob& job);

}  // namespace kube
