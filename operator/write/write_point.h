// The names of the writes to the API server in logs, in tests and in crash points.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace control {

// The statuses of a job, in the order of its life, then everything else.
enum class WritePoint {
  kStart,     // commit point: an allocation
  kReady,     // commit point: all its pods run
  kClaim,     // commit point: what a job that preempts is going to get
  kEnding,    // commit point: its pods are torn down
  kRequeued,  // commit point: it waits again
  kFinal,     // commit point: it has ended
  kStatus,    // anything that no other write waits for
  kTimetable,
  kTimetableDelete,
  kUsage,
  kTemplateRead,
  kPodCreate,
  kPodDelete,
  kPodRead,
  kPodPin,   // a pod of an adopted gang gets its node and loses its gate
  kPodStop,  // of an adopted gang
  kPodTry,
  kServiceCreate,
  kStepSecretCreate,
  kStepDelete,  // the Secret of an ended start, and its Service
  kJobIds,
  kJobCreate,
  kJobDelete,
  kRecordedRead,  // no write
  kOrphanDelete,
  kForecast,  // no write
  kTaint,
  kPodNote,
  kPartitionStatus,
  kQosStatus,
  kAccountStatus,
  kConfigStatus,
  kManagedStatus,
};

// Returns "start", "pod-create", …
std::string_view to_string(WritePoint point);
// Returns nullopt when no write has that name.
std::optional<WritePoint> parse_write_point(std::string_view name);
// Returns "start, ready, …, config-status": all names.
std::string write_point_names();

}  // namespace control
