#include "kube/testing/api_server/batch_job_rules.h"

#include <string>

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using nlohmann::json;

// Conditions that are absent count as false, also for value "False".
bool has(const json& status, const char* type, const char* value = "True") {
  for (const json& condition : status.value("conditions", json::array())) {
    if (condition.value("type", "") == type) return condition.value("status", "") == value;
  }
  return false;
}

json status_of(const json& job) {
  return job.value("status", json::object());
}

// The rules of a status write by a controller other than the built-in one, with a real server's
// sentences. SOURCE: pkg/registry/batch/job/strategy.go and pkg/apis/batch/validation.
class StatusCheck {
 public:
  StatusCheck(const json& job, const json& before)
      : spec_(job.value("spec", json::object())), now_(status_of(job)), before_(before) {}

  std::vector<Cause> run() {
    check_counters();
    check_start_time();
    check_end();
    return std::move(causes_);
  }

 private:
  // Notes one error under the field's path below the status.
  void refuse(bool wrong, const char* field, const char* sentence) {
    if (!wrong) return;
    causes_.push_back({"FieldValueInvalid", std::string{"status."} + field,
                       std::string{"Invalid value: "} + sentence});
  }
  std::int64_t count(const json& status, const char* name) const {
    return status.value(name, std::int64_t{0});
  }

  void check_counters() {
    refuse(count(now_, "ready") > count(now_, "active"), "ready",
           "cannot set more ready pods than active");
    refuse(count(now_, "failed") < count(before_, "failed"), "failed",
           "cannot decrease the failed counter");
    // An elastic Indexed Job may be scaled down, and then counts fewer successes.
    const bool may_shrink = spec_.value("completionMode", "") == "Indexed" &&
                            spec_.value("completions", 1) == spec_.value("parallelism", 1);
    refuse(!may_shrink && count(now_, "succeeded") < count(before_, "succeeded"), "succeeded",
           "cannot decrease the succeeded counter");
  }

  // startTime may only be set again by a Job that is suspended, or is resumed by this very write.
  void check_start_time() {
    const bool resumes = has(before_, "Suspended") && has(now_, "Suspended", "False");
    const bool changed =
        before_.contains("startTime") && before_["startTime"] != now_.value("startTime", json());
    refuse(changed && !spec_.value("suspend", false) && !resumes, "startTime",
           "startTime cannot be removed for unsuspended job");
  }

  // A Job's end is announced by one condition (SuccessCriteriaMet, FailureTarget) and stated by
  // another when no pod is left (Complete, Failed). The rules below refuse an end without its
  // announcement and an end with pods left.
  void check_end() {
    const bool complete = has(now_, "Complete");
    const bool failed = has(now_, "Failed");
    for (const char* type : {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"}) {
      refuse(has(before_, type) && !has(now_, type), "conditions",
             "cannot disable the terminal condition");
    }
    refuse(complete && failed, "conditions", "cannot set Complete=True and Failed=true conditions");
    refuse(complete && !has(now_, "SuccessCriteriaMet"), "conditions",
           "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    refuse(failed && !has(now_, "FailureTarget"), "conditions",
           "cannot set Failed=True condition without the FailureTarget=true condition");
    refuse(now_.contains("completionTime") && !complete, "completionTime",
           "cannot set completionTime when there is no Complete=True condition");
    refuse(complete && !now_.contains("completionTime"), "completionTime",
           "completionTime is required for Complete jobs");
    if (!complete && !failed) return;
    refuse(count(now_, "active") > 0, "active", "active>0 is invalid for finished job");
    refuse(count(now_, "terminating") > 0, "terminating",
           "terminating>0 is invalid for finished job");
    refuse(!now_.contains("startTime"), "startTime", "startTime is required for finished job");
    refuse(complete && now_.value("completionTime", "") < now_.value("startTime", ""),
           "completionTime", "must be equal to or after `startTime`");
  }

  const json spec_;
  const json now_;
  const json before_;
  std::vector<Cause> causes_;
};

}  // namespace

// SOURCE: pkg/apis/batch/v1/defaults.go. A Job without completions and parallelism runs one pod;
// with parallelism alone it is a work queue, whose completions stay absent.
void default_batch_job(json& job) {
  json& spec = job["spec"];
  if (!spec.is_object()) spec = json::object();
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec["completions"] = 1;
  const json defaults{{"parallelism", 1},
                      {"backoffLimit", 6},
                      {"completionMode", "NonIndexed"},
                      {"suspend", false},
                      {"podReplacementPolicy", "TerminatingOrFailed"}};
  for (const auto& [key, value] : defaults.items()) {
    if (!spec.contains(key)) spec[key] = value;
  }
  // The label is written by the strategy of a real server, not by its defaults; the selector, which
  // no reader here needs, is left out.
  const json& metadata = job["metadata"];
  json& labels = spec["template"]["metadata"]["labels"];
  labels["batch.kubernetes.io/job-name"] = metadata.value("name", "");
  json& pod = spec["template"]["spec"];
  const json pod_defaults{{"schedulerName", "default-scheduler"},
                          {"terminationGracePeriodSeconds", 30},
                          {"dnsPolicy", "ClusterFirst"}};
  for (const auto& [key, value] : pod_defaults.items()) {
    if (!pod.contains(key)) pod[key] = value;
  }
  if (!job.contains("status")) job["status"] = json::object();
}

// A create is checked for its restart policy (a Job's pods cannot be "Always"), a write for the
// immutable field and for its status.
std::vector<Cause> check_batch_job(const json& job, const json* previous) {
  std::vector<Cause> causes;
  if (previous == nullptr) {
    const json pod = job["spec"]["template"].value("spec", json::object());
    const std::string policy = pod.value("restartPolicy", "");
    if (policy != "Never" && policy != "OnFailure") {
      causes.push_back({"FieldValueRequired", "spec.template.spec.restartPolicy",
                        "Required value: valid values: \"OnFailure\", \"Never\""});
    }
    return causes;
  }
  const auto managed_by = [](const json& each) {
    return each["spec"].value("managedBy", std::string{});
  };
  if (managed_by(job) != managed_by(*previous)) {
    causes.push_back({"FieldValueInvalid", "spec.managedBy", "Invalid value: field is immutable"});
  }
  const std::vector<Cause> more = StatusCheck{job, status_of(*previous)}.run();
  causes.insert(causes.end(), more.begin(), more.end());
  return causes;
}

}  // namespace devcluster
