// The CPUs, the memory and the ephemeral storage of one pod, as the requests and limits of its
// containers say: what a task of its job gets. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/job.h"
#include "kube/api/pod.h"

namespace control {

inline constexpr std::int64_t kPodCpusMax = 65'535;  // the CRD's, of cpusPerTask

struct PodShape {
  std::int64_t cpus = 1;    // from 1 to kPodCpusMax
  std::int64_t memory = 0;  // bytes; 0 = no container names any
  std::int64_t disk = 0;    // ephemeral storage in bytes; 0 = no container names any
};

enum class PodCpus {
  kRequestsFirst,  // a container without a request counts by its limit
  kLimits,
};

// Init containers run one after the other before the others do, so the largest of them counts
// against the sum of the others, for each resource by itself. CPUs are rounded up; of memory the
// limit comes first, since a job's memory is never over-committed; of ephemeral storage the
// request, as kubelet counts it. Adds a whole sentence to `problems` for each sum that no pod can
// have, whatever the quantities are, and leaves that field of the result at its default.
PodShape shape_of(const kube::PodSpec& pod, PodCpus from, std::vector<std::string>& problems);

// Returns the CPU requests of all its containers, init containers too; at most INT64_MAX.
kube::MilliCpu cpu_requests_of(const kube::PodSpec& pod);

// Sets the CPUs and the memory of each task, and the ephemeral storage that a node must have.
// Memory is rounded up to a MiB per CPU, so that the sum over all CPUs of a pod is never less than
// what it asks for.
void set_shape(const PodShape& shape, kube::JobSpec& spec);

}  // namespace control
