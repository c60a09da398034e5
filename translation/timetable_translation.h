// The scheduler's plan for a node <-> NodeTimetable.spec. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "scheduler/scheduler.h"
#include "translation/pod_slots.h"

namespace control {

// A job as a timetable names it.
struct ListedJob {
  std::string ns;
  std::string uid;                 // of the object
  std::span<const PodSlot> slots;  // of its present start, on all its nodes
  std::optional<int> task{};       // of an array
};
using ListedJobs = std::function<std::optional<ListedJob>(sched::JobId)>;

// Term and revision are the writer's. An entry of a job with several pods on the node (PerTask)
// becomes several entries with the same turns. Jobs that `find` does not know are left out.
kube::NodeTimetableSpec encode_plan(const sched::NodePlan& plan, const std::string& node_name,
                                    const ListedJobs& find);

// Does the same without the pods of that job (task_key.h), which the agent then does not touch.
kube::NodeTimetableSpec without_job(const kube::NodeTimetableSpec& spec,
                                    const std::string& job_key);

// The job whose pod this is, in its present start.
using JobsOfPods = std::function<std::optional<sched::JobId>(const kube::TimetablePod& pod)>;

// Returns the plan as it was published; pods that `find` does not know are left out of it. nullopt
// if the spec is not a valid timetable (then the node counts as having none).
std::optional<sched::NodePlan> decode_plan(const kube::NodeTimetableSpec& spec,
                                           sched::NodeIndex node, const JobsOfPods& find);

// Compares all but term and revision.
bool same_plan(const kube::NodeTimetableSpec& a, const kube::NodeTimetableSpec& b);

}  // namespace control
