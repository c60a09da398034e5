// The history of each job in a simulation. Run states between the entries follow from timetables in
// closed form, so a history is small however many slices passed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/decision.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/job.h"
#include "scheduler/simulate/run_span.h"
#include "scheduler/simulate/scenario.h"

namespace simulate {

// One incarnation of a job on its nodes.
struct Placement {
  base::Instant from{};
  base::Instant to = base::kNever;
  std::string partition;
  struct Part {
    std::size_t node = 0;  // index into Scenario::nodes
    sched::CoreSet cores;
    std::int32_t cpus = 0;
  };
  std::vector<Part> parts;     // in node order
  std::vector<RunSpan> spans;  // ascending, without overlaps; in between it does not run
};

// Adds what the job ran next; what is simple is kept simple. `to` may be kNever.
void add_span(Placement& placement, RunSpan span);

// Why the job waits, or is suspended, from an instant on.
struct WaitNote {
  base::Instant at{};
  sched::Reason reason = sched::Reason::kNone;
  std::string message;
};

struct JobHistory {
  std::optional<base::Instant> submitted;
  std::optional<std::string> refusal;  // why its submission was refused; it was never in the queue
  std::optional<base::Instant> ended;
  sched::JobState state = sched::JobState::kPending;  // at the end of the simulation
  int restarts = 0;
  std::vector<Placement> placements;
  std::vector<WaitNote> waits;
  // Why a task's array waits, for as long as the task has no notes of its own.
  std::shared_ptr<std::vector<WaitNote>> with_array;
  bool was_preempted = false;  // suspended, requeued or ended for a preemptor
};

// Returns the last note by t, or null.
const WaitNote* wait_note(const JobHistory& job, base::Instant t);
// Returns the placement that the job has at t, or null.
const Placement* placement_at(const JobHistory& job, base::Instant t);
// Run time of one placement in [from, to).
base::Duration run_time(const Placement& placement, base::Instant from, base::Instant to);
// Returns true if it runs at t. REQUIRES: placement.from <= t < placement.to.
bool runs_at(const Placement& placement, base::Instant t);

// The job as squeue would show it at t; nullopt before its submission and after its end.
struct QueueRow {
  sched::JobState state = sched::JobState::kPending;
  base::Duration run_time{};  // of the present incarnation
  const Placement* placement = nullptr;
  sched::Reason reason = sched::Reason::kNone;  // of a job that waits or is suspended
  std::string message;
};
std::optional<QueueRow> queue_row(const JobHistory& job, base::Instant t);

}  // namespace simulate
