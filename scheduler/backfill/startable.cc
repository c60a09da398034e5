#include "scheduler/backfill/startable.h"

#include <algorithm>
#include <tuple>

namespace sched {
namespace {

// Returns the part of a request that decides if a job can start now: all but who asks, when and for
// how long. A field that is missing here would give a job the answer of another one.
auto size_part(const JobRequest& request) {
  return std::tie(request.min_nodes, request.tasks, request.max_nodes);
}
auto shape_part(const JobRequest& request) {
  return std::tie(request.nodes_given, request.tasks_per_node, request.tasks_per_socket,
                  request.tasks_per_core, request.cpus_per_task, request.min_cpus_per_node,
                  request.sockets_per_node, request.cores_per_socket, request.threads_per_core,
                  request.overcommit, request.use_min_nodes, request.memory, request.tmp_disk,
                  request.devices, request.devices_of_job, request.devices_per_task,
                  request.devices_per_socket, request.per_gpu, request.sharing,
                  request.required_nodes, request.excluded_nodes, request.unusable_nodes,
                  request.contiguous, request.constraint, request.qos, request.pod_per_task);
}

bool start_alike(const JobRequest& a, const JobRequest& b) {
  return size_part(a) == size_part(b) && shape_part(a) == shape_part(b);
}

// True if the numbers of nodes and tasks alone say how large the job is: a place for 4 nodes with 2
// tasks on each has one for 2 nodes with 2 tasks on each in it. Nodes that must be neighbors, that
// are named, or of which some must have a feature are not like that.
bool has_size(const JobRequest& request) {
  return request.tasks && request.max_nodes == request.min_nodes && !request.tasks_per_node &&
         !request.overcommit && !request.contiguous && !request.pod_per_task &&
         request.devices_of_job.empty() && request.devices_per_task.empty() &&
         request.devices_per_socket.empty() && request.required_nodes.empty() &&
         request.constraint.empty();
}

}  // namespace

bool start_alike_but_for_size(const JobRequest& a, const JobRequest& b) {
  return has_size(a) && has_size(b) ? shape_part(a) == shape_part(b) : start_alike(a, b);
}

// Records are added from the last one to the first, so the limit that is noted with each is the
// least of it and of those behind it, which is what a question about the rest of the queue needs:
// if the shortest of them would delay a promise, the others would too.
void Startable::add(std::size_t index, Kind kind, base::Duration limit) {
  const auto known = std::ranges::find_if(kinds_, [&](const Kind& other) {
    return !kind.special && !other.special && other.partition == kind.partition &&
           start_alike(*other.job->request, *kind.job->request);
  });
  if (known == kinds_.end()) {
    kind.records.emplace_back(index, limit);
    kinds_.push_back(std::move(kind));
    return;
  }
  known->job = kind.job;
  known->records.emplace_back(index, std::min(limit, known->limit_min()));
}

}  // namespace sched
