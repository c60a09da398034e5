// The scheduler's plan for a node <-> NodeTimetable.spec. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "operator/gang/pod_slots.h"
#include "scheduler/scheduler.h"

namespace control {

// A job as a timetable names it.
struct ListedJob {
  std::string ns;
  std::string uid;
  std::span<const PodSlot> slots;  // of its present start, on all its nodes
  bool bind_cores = false;         // its CPU set is to be applied
};
using ListedJobs = std::function<std::optional<ListedJob>(sched::JobId)>;

// CPU numbers of these cores on a node of that topology ("" = nothing to bind: no topology). The
// topology's cpuIDs name the threads of core 0, then those of core 1, and so on.
std::string cpuset_of(const std::string& cores, const std::optional<kube::NodeTopology>& topology);

// Term and revision are the writer's. An entry of a job with several pods on the node (PerTask)
// becomes several entries with the same turns. Jobs that `find` does not know are left out.
kube::NodeTimetableSpec encode_plan(const sched::NodePlan& plan, const std::string& node_name,
                                    const ListedJobs& find,
                                    const std::optional<kube::NodeTopology>& topology);

// The same without the pods of that job, which the agent then does not touch.
kube::NodeTimetableSpec without_job(const kube::NodeTimetableSpec& spec,
                                    const std::string& job_uid);

// The job whose pod this is, in its present start.
using JobsOfPods = std::function<std::optional<sched::JobId>(const kube::TimetablePod& pod)>;

// The plan as it was published; pods that `find` does not know are left out of it. nullopt if the
// spec is not a valid timetable (then the node counts as having none).
std::optional<sched::NodePlan> decode_plan(const kube::NodeTimetableSpec& spec,
                                           sched::NodeIndex node, const JobsOfPods& find);

// The same but for term and revision.
bool same_plan(const kube::NodeTimetableSpec& a, const kube::NodeTimetableSpec& b);

}  // namespace control
