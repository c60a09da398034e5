// Which timetable is in force: the newest valid one that was seen, never an older one out of a
// stale cache. (architecture.md 2; 5 "invalid timetable")
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/node_timetable.h"
#include "base/result.h"

namespace agent {

enum class GateVerdict : std::uint8_t {
  kObeyed,         // it is in force from now on
  kUnchanged,      // it is in force already
  kStaleTerm,      // of an operator that has lost its leadership
  kStaleRevision,  // older than the one in force, of the same object
  kInvalid,        // the one in force stays
};
std::string_view to_string(GateVerdict verdict);

// Everything about a timetable object that timetable::validate does not see: names, repetitions.
base::Status validate(const kube::NodeTimetable& timetable);

class TimetableGate {
 public:
  // What may become the one in force. Cost: O(size).
  GateVerdict offer(const kube::NodeTimetable& timetable);
  // The object does not exist (any more): nothing is in force.
  void withdraw();

  // Null when there is none. Shared, since the journal and assignments are made from it.
  std::shared_ptr<const kube::NodeTimetable> in_force() const { return in_force_; }
  // Why the newest one that was offered is not in force; empty when it is.
  const std::string& complaint() const { return complaint_; }

 private:
  std::shared_ptr<const kube::NodeTimetable> in_force_;
  std::string complaint_;
};

}  // namespace agent
