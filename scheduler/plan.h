// Plan: which job runs when. A NodePlan is published for a node whose jobs take turns; a JobRun is
// what a simulation gets instead.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"
#include "timetable/timetable.h"

namespace sched {

// One job's entry in a node's timetable, in the order of the job list.
enum class Row { kActive, kFiller, kWaiting };
struct NodeTimetableEntry {
  JobId job;
  Row row;
  base::Duration ran{};  // run time of the job as of `as_of`
  friend bool operator==(const NodeTimetableEntry&, const NodeTimetableEntry&) = default;
};

// Says which job of a node runs when, to be published (architecture.md 2).
struct NodePlan {
  NodeIndex node;
  base::Instant as_of{};  // c: order, rows and run times of `entries` are those of this instant
  std::vector<NodeTimetableEntry> entries;  // empty = every job there runs all the time
  timetable::Timetable timetable;           // its indexes are those of `entries`
  friend bool operator==(const NodePlan&, const NodePlan&) = default;
};

// A stretch of time in which a ready job ran all the time, or as a pod of a timetable that holds in
// all of it.
struct JobRun {
  JobId job;
  base::Instant from{};
  base::Instant to{};
  std::shared_ptr<const timetable::Timeline> timetable;  // null = it ran all the time
  std::uint32_t pod = 0;
};

}  // namespace sched
