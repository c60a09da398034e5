// The timetable in force: the newest valid one that was seen. (architecture.md 2; 5 "invalid
// timetable")
//
// Timetables are ordered by term, and those of one term and object by revision. A watch may be
// served by a stale cache, so an older one that it brings is not obeyed. But the API server itself
// may have gone back (etcd restored from a backup, a cluster installed again), and then the older
// one is right: a quorum read tells the two cases apart.
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
  kStaleTerm,      // of a lower term than the one in force
  kStaleRevision,  // of the object and term of the one in force, with a lower revision
  kInvalid,        // the one in force stays
};
std::string_view to_string(GateVerdict verdict);

// Older than the one in force.
constexpr bool is_stale(GateVerdict verdict) {
  return verdict == GateVerdict::kStaleTerm || verdict == GateVerdict::kStaleRevision;
}

// Everything about a timetable object that timetable::validate does not see: names, repetitions.
base::Status validate(const kube::NodeTimetable& timetable);

class TimetableGate {
 public:
  enum class Source : std::uint8_t { kWatch, kQuorumRead };
  // Puts it in force if it is valid and, unless it comes from a quorum read, not older than the one
  // that is. Cost: O(size).
  GateVerdict offer(const kube::NodeTimetable& timetable, Source source);
  // The object does not exist (or no longer): nothing is in force.
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
