// For tests of crash safety only: ends the process, as SIGKILL would, when it comes to a named
// write. Set by the environment variable KUBEGANG_CRASH_AT:
//
//   before:start        before the write "start" is sent for the first time
//   after:pod-create:3  after the answer to the third "pod-create" arrived, before it is used
//
// The names are those of WritePoint; any other name is an error.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "operator/write/write_point.h"

namespace control {

class CrashPoints {
 public:
  enum class When { kBefore, kAfter };

  CrashPoints() = default;  // never crashes
  // kInvalidArgument when the text is not of the form above; "" is never.
  static base::Result<CrashPoints> parse(std::string_view text);
  CrashPoints(CrashPoints&& other) noexcept;
  CrashPoints& operator=(CrashPoints&& other) noexcept;

  // Does not return when this is the place. Thread-safe.
  void reach(When when, WritePoint point);

 private:
  When when_ = When::kBefore;
  WritePoint point_ = WritePoint::kStart;
  std::atomic<int> left_{0};  // 0: never
};

}  // namespace control
