// The pods of one start of a job: names, nodes and shares. A pure function of the job's UID, its
// number of starts and its committed allocation, so it is the same after a crash.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/result.h"

namespace control {

struct PodSlot {
  std::string name;  // of its pod; "": it has none (Members)
  std::string node;
  int index = 0;       // of the slot in its start, from 0
  int pod_index = 0;   // of the pod in its job; the same but for Members
  int node_index = 0;  // SLURM_NODEID
  int first_task = 0;  // SLURM_PROCID of its first task
  int tasks = 1;       // that it stands for
  int cpus = 0;        // 0: not limited
  std::string cores;   // core numbers on its node; "" = all
  std::optional<kube::Bytes> memory;
  std::vector<kube::JobDevice> devices{};

  bool has_pod() const { return !name.empty(); }
  friend bool operator==(const PodSlot&, const PodSlot&) = default;
};

struct JobIdentity {
  std::string_view name;
  std::string_view uid;  // of the object
  std::int64_t starts = 0;
  std::optional<int> task{};  // of an array
};

// <job>-<5 characters of hash(uid, starts)>-<index>, of a task of an array
// <job>-<task>-<5 characters>-<index>: incarnations, tasks, and jobs that are made again under the
// same name never collide.
std::string pod_name(const JobIdentity& job, int index);
std::string pod_name(std::string_view job, std::string_view uid, std::int64_t starts, int index);

// Returns one pod per node, or one per task with PerTask (CPUs and memory of a node shared out
// evenly). kInvalidArgument when the allocation is not what encode_allocation writes.
base::Result<std::vector<PodSlot>> pod_slots(const JobIdentity& job,
                                             const kube::Allocation& allocation,
                                             kube::PodPolicy policy);

// Returns the index at the end of a pod's name; nullopt if there is none.
std::optional<int> index_in_name(std::string_view name);
// Returns the slot of the pod of that name, or null. The index is in the name, so none is searched
// for. REQUIRES: the index of each slot's pod is the slot's.
const PodSlot* find_slot(std::span<const PodSlot> slots, std::string_view name);

}  // namespace control
