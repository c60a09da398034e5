// Jobs, nodes and partitions for the page (dashboard/): reduced to what it draws, as JSON. Instants
// and durations are whole microseconds, so that the browser finds the slots of a timetable as the
// agents do. Nothing in these texts changes with the turns. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "base/time.h"
#include "cli/cluster/page_stays.h"
#include "kube/api/node.h"

namespace cli {

// A scope of the board is what it takes the right to list: "jobs/NAMESPACE", or "RESOURCE" of a
// kind without namespaces; all of them of the group kubegang.io.
std::string page_scope(const std::string& resource, const std::string& ns = "");

// Returns a job as `queue` shows it, its state without its turns (R for R and S), and where it was.
// An array has how many of its tasks are where, and which of them wait for their first start.
std::string page_job(const std::shared_ptr<const kube::Job>& job,
                     const std::vector<PageStay>& stays);

// Returns the task of an array with this number: what it does not share with its array. `task` is
// the array with the task's status.
std::string page_task(const std::shared_ptr<const kube::Job>& task, int number,
                      const std::vector<PageStay>& stays);

// run(t) of a node: plan and cycle, and whose pods they name; "" if the timetable is invalid.
std::string page_timetable(const kube::NodeTimetable& timetable);
// Returns the same, in force from `from` to `to`.
std::string page_past(const kube::NodeTimetable& timetable, base::Instant from, base::Instant to);

// `nodes`: those that a selector is asked of; its members are unknown without them.
std::string page_partition(const kube::Partition& partition,
                           const std::vector<std::shared_ptr<const kube::Node>>& nodes);

}  // namespace cli
