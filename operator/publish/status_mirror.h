// StatusMirror: the status of one object that the operator writes: what is stored, what should be,
// and how urgent the difference is. Data only; status_publisher.cc does the writing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/time.h"
#include "kube/api/meta.h"

namespace control {

// How urgent an unwritten difference is; the higher one wins.
enum class WriteUrgency {
  kClean,
  kInforms,  // shares the budget of writes that only inform (architecture.md 3)
  kUrgent,   // a base state: written at once, nothing waits for it
  kCommit,   // a commit point: timetables and pods wait for it
};

template <kube::ApiObject T>
struct StatusMirror {
  using Status = decltype(T::status);

  kube::ObjectMeta metadata;  // name, namespace, uid, resourceVersion
  Status stored;              // as last known
  Status wanted;              // as it should be
  WriteUrgency urgency = WriteUrgency::kClean;
  WriteUrgency flying = WriteUrgency::kClean;  // of the write under way
  base::Instant retry_at{};
  int failures = 0;
  base::Instant informed_at{};  // last write that only informed
  bool gone = false;            // the object does not exist any more: nothing to write

  void mark(WriteUrgency how) { urgency = std::max(urgency, how); }
  bool is_flying() const { return flying != WriteUrgency::kClean; }
  // A commit point has not reached the API server yet.
  bool is_uncommitted() const {
    return !gone && (urgency == WriteUrgency::kCommit || flying == WriteUrgency::kCommit);
  }
};

// Whether resourceVersion a is newer than b. API servers count up; where that does not hold, any
// other version counts as newer and a conflict will tell.
bool is_newer_version(const std::string& a, const std::string& b);

// First 50 ms, doubled for each failure in a row, at most 10 s.
base::Duration retry_delay(int failures);

}  // namespace control
