// For tests of crash safety only: ends the process, as SIGKILL would, when it comes to a named
// commit point. Set by the environment variable KUBEGANG_CRASH_AT:
//
//   before:start      before the write "start" is sent for the first time
//   after:pod-create:3  after the answer to the third "pod-create" arrived, before it is used
//
// The names are those of Write::point: start, ready, ending, claim, requeued, final, status,
// timetable, template-read, pod-create, pod-delete, service-create, job-ids, job-delete,
// orphan-delete, partition-status, qos-status, config-status.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/result.h"

namespace control {

class CrashPoints {
 public:
  CrashPoints() = default;  // never crashes
  // kInvalidArgument when the text is not of the form above; "" is never.
  static base::Result<CrashPoints> parse(std::string_view text);
  CrashPoints(CrashPoints&& other) noexcept;
  CrashPoints& operator=(CrashPoints&& other) noexcept;

  // Does not return when this is the place. Thread-safe.
  void reach(std::string_view when, std::string_view point);

 private:
  std::string when_, point_;
  std::atomic<int> left_{0};  // 0: never
};

}  // namespace control
