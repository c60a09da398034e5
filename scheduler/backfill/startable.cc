#include "scheduler/backfill/startable.h"

#include <algorithm>
#include <tuple>

namespace sched {
namespace {

// Returns the part of a request that decides if a job can start now: all but who asks, when and for
// how long. A field that is missing here would give a job the answer of another one.
auto all_but_time(const JobRequest& request) {
  return std::tie(request.min_nodes, request.tasks, request.max_nodes, request.nodes_given,
                  request.tasks_per_node, request.tasks_per_socket, request.tasks_per_core,
                  request.cpus_per_task, request.min_cpus_per_node, request.sockets_per_node,
                  request.cores_per_socket, request.threads_per_core, request.overcommit,
                  request.use_min_nodes, request.memory, request.tmp_disk, request.devices,
                  request.devices_of_job, request.devices_per_task, request.devices_per_socket,
                  request.per_gpu, request.sharing, request.required_nodes,
                  request.excluded_nodes, request.unusable_nodes, request.contiguous,
                  request.constraint, request.qos, request.pod_per_task);
}

}  // namespace

// Records are added from the last one to the first, so the limit that is noted with each is the
// least of it and of those behind it, which is what a question about the rest of the queue needs:
// if the shortest of them would delay a promise, the others would too.
void Startable::add(std::size_t index, Kind kind, base::Duration limit) {
  const auto known = std::ranges::find_if(kinds_, [&](const Kind& other) {
    return !kind.special && !other.special && other.partition == kind.partition &&
           all_but_time(*other.job->request) == all_but_time(*kind.job->request);
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
