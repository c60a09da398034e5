// A job's exact state and run time at an instant. Slices write nothing to the API: both follow from
// the job's status and the timetables of its nodes (architecture.md 2 and 3).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "base/time.h"

namespace view {

// The timetable of a node; null when it has none.
using TimetableOf = std::function<const kube::NodeTimetable*(const std::string& node)>;

struct JobMoment {
  // squeue's code: PD, R, S, CF (allocated, not all pods run yet), CG (ended, pods not gone yet),
  // CD, F, CA, TO, PR, NF, OOM, DL.
  std::string code;
  base::Duration run_time{};  // without suspended time
  friend bool operator==(const JobMoment&, const JobMoment&) = default;
};

// Without a timetable a job whose status is Suspended stands still since its run time was written.
JobMoment job_moment(const kube::Job& job, const TimetableOf& timetable_of, base::Instant now);

// Returns when a job that waits is expected to start: as planned, or when it may start at the
// earliest if that is still to come. nullopt if neither is known, or if it does not wait.
std::optional<base::Instant> expected_start(const kube::Job& job, base::Instant now);

// How a job that runs takes turns with others.
struct SharedTurns {
  struct Other {
    std::string ns;
    std::vector<std::string> nodes;  // that both have
  };
  base::Duration slice{};
  std::size_t own = 0;  // turns of a cycle in which the job runs
  std::size_t all = 0;
  std::optional<base::Instant> next_change{};  // when it stands still, or goes on
  std::map<std::string, Other> with{};         // jobs that run while it stands still, by UID
};

// Reads the timetables of the job's nodes, only one if that lists no other job. nullopt if the job
// takes turns with none.
std::optional<SharedTurns> shared_turns(const kube::Job& job, const TimetableOf& timetable_of,
                                        base::Instant now);

// Returns the nodes that the job has; of a job that waits the fewest that it asks for.
int node_count(const kube::Job& job);

// Returns "PD" for kPending and so on.
std::string state_code(kube::JobState state);

}  // namespace view
