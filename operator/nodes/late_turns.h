// LateTurns: until a timetable is stored as it is wanted, its node goes on with the stored one. A
// job that is to stand still runs on there, and that counts as run time (architecture.md 3): the
// scheduler's clock follows what is wanted. If its nodes differ, that on which it runs longest
// counts.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/node_timetable.h"
#include "base/time.h"
#include "operator/nodes/unsliced_time.h"

namespace control {

// Belongs to the loop's thread. Cost of begin() and end(): the jobs of the node.
class LateTurns {
 public:
  using Sources = UnslicedTime::Sources;

  bool counts_nobody() const { return jobs_.empty(); }
  // From now on another timetable is wanted there than what is stored; null: nothing is. Without
  // effect on a node that is late already.
  void begin(const std::string& node, const std::shared_ptr<const kube::NodeTimetableSpec>& stored,
             base::Instant now, const Sources& sources);
  // Another timetable is stored there now, or the stored one is wanted.
  void end(const std::string& node, base::Instant now, const Sources& sources);
  // Counts one job up to now: before something that may end it.
  void count_job(const std::string& uid, base::Instant now, const Sources& sources);

 private:
  struct Noted {
    base::Instant at{};
    base::Duration run_time{};  // as of then
    std::shared_ptr<const kube::NodeTimetableSpec> stored;
  };
  static base::Duration ran_since(const Noted& noted, const std::string& uid, base::Instant now);

  std::map<std::string, std::set<std::string>> nodes_;        // that are late: UIDs of jobs
  std::map<std::string, std::map<std::string, Noted>> jobs_;  // by UID and node
};

}  // namespace control
