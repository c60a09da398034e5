#include "operator/write/write_point.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace control {
namespace {

// A renamed point would make a crash test pass without a crash, so names only change together with
// those tests.
// The names are an interface: KUBEGANG_CRASH_AT and the crash tests use them. to_string() checks
// that no enumerator was forgotten.
constexpr std::array<std::pair<WritePoint, std::string_view>, 33> kNames{{
    {WritePoint::kStart, "start"},
    {WritePoint::kReady, "ready"},
    {WritePoint::kClaim, "claim"},
    {WritePoint::kEnding, "ending"},
    {WritePoint::kRequeued, "requeued"},
    {WritePoint::kFinal, "final"},
    {WritePoint::kStatus, "status"},
    {WritePoint::kTimetable, "timetable"},
    {WritePoint::kTimetableDelete, "timetable-delete"},
    {WritePoint::kUsage, "usage"},
    {WritePoint::kTemplateRead, "template-read"},
    {WritePoint::kPodCreate, "pod-create"},
    {WritePoint::kPodDelete, "pod-delete"},
    {WritePoint::kPodRead, "pod-read"},
    {WritePoint::kPodPin, "pod-pin"},
    {WritePoint::kPodStop, "pod-stop"},
    {WritePoint::kPodTry, "pod-try"},
    {WritePoint::kServiceCreate, "service-create"},
    {WritePoint::kStepSecretCreate, "step-secret-create"},
    {WritePoint::kStepDelete, "step-delete"},
    {WritePoint::kJobIds, "job-ids"},
    {WritePoint::kJobCreate, "job-create"},
    {WritePoint::kJobDelete, "job-delete"},
    {WritePoint::kRecordedRead, "recorded-read"},
    {WritePoint::kOrphanDelete, "orphan-delete"},
    {WritePoint::kForecast, "forecast"},
    {WritePoint::kTaint, "taint"},
    {WritePoint::kPodNote, "pod-note"},
    {WritePoint::kPartitionStatus, "partition-status"},
    {WritePoint::kQosStatus, "qos-status"},
    {WritePoint::kAccountStatus, "account-status"},
    {WritePoint::kConfigStatus, "config-status"},
    {WritePoint::kManagedStatus, "managed-status"},
}};

}  // namespace

// Searches linearly in both directions: it runs for log lines and tests.
std::string_view to_string(WritePoint point) {
  for (const auto& [each, name] : kNames) {
    if (each == point) return name;
  }
  CHECK(false, "a write without a name");
  return {};
}

std::optional<WritePoint> parse_write_point(std::string_view name) {
  for (const auto& [point, each] : kNames) {
    if (each == name) return point;
  }
  return std::nullopt;
}

// For the sentence about a wrong name.
std::string write_point_names() {
  std::string names;
  for (const auto& [point, name] : kNames) {
    names += (names.empty() ? "" : ", ") + std::string{name};
  }
  return names;
}

}  // namespace control
