// Keeper: the status of one object that the operator writes: what is stored, what should be, and
// how urgent the difference is. Data only; operator_status.cc does the writing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/time.h"
#include "kube/api/meta.h"

namespace control {

// How urgent an unwritten difference is; the higher one wins.
enum class Dirt {
  kClean,
  kInforms,  // shares the budget of writes that only inform (architecture.md 3)
  kUrgent,   // a base state: written at once, nothing waits for it
  kCommit,   // a commit point: timetables and pods wait for it
};

template <kube::ApiObject T>
struct Keeper {
  using Status = decltype(T::status);

  kube::ObjectMeta metadata;  // name, namespace, uid, resourceVersion
  Status stored;              // as last known
  Status wanted;              // as it should be
  Dirt dirt = Dirt::kClean;
  Dirt flying = Dirt::kClean;  // of the write under way
  base::Instant retry_at{};
  int failures = 0;
  base::Instant informed_at{};  // last write that only informed
  bool gone = false;            // the object does not exist any more: nothing to write

  void mark(Dirt how) { dirt = std::max(dirt, how); }
  bool is_flying() const { return flying != Dirt::kClean; }
  // A commit point has not reached the API server yet.
  bool is_uncommitted() const {
    return !gone && (dirt == Dirt::kCommit || flying == Dirt::kCommit);
  }
};

// Whether resourceVersion a is newer than b. API servers count up; where that does not hold, any
// other version counts as newer and a conflict will tell.
bool is_newer_version(const std::string& a, const std::string& b);

// First 50 ms, doubled for each failure in a row, at most 10 s.
base::Duration retry_delay(int failures);

}  // namespace control
