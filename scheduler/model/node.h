// A node as the scheduler sees it (1.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/devices.h"
#include "scheduler/model/ids.h"

namespace sched {

enum class NodeState {
  kUp,
  kDrain,  // no new jobs; what runs goes on
  kDown,   // no new jobs; other events say what happens to its jobs
};

struct NodeSpec {
  std::string name;
  int sockets = 1;
  int cores_per_socket = 1;
  int threads_per_core = 1;
  int cpus = 1;           // sockets * cores_per_socket * threads_per_core, or the cores alone
  MemoryMiB memory{1};    // for jobs: RealMemory − MemSpecLimit
  MemoryMiB tmp_disk{0};  // TmpDisk; a filter, never charged (4.2.2)
  // The number of pods of jobs that it takes (kubelet's limit less other pods); nullopt = any
  // number. Slurm has no such limit.
  std::optional<int> pods_max;
  std::uint32_t weight = 1;  // lower is used first
  std::vector<std::string> features;
  Devices devices;  // in the order in which jobs that name no type get them
  NodeState state = NodeState::kUp;

  int cores() const { return sockets * cores_per_socket; }
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

// The hardware decides ranks, groups and the selectors' books. Memory, devices, labels and states
// are not part of it: they change all the time.
inline bool same_hardware(const NodeSpec& a, const NodeSpec& b) {
  return a.sockets == b.sockets && a.cores_per_socket == b.cores_per_socket &&
         a.threads_per_core == b.threads_per_core && a.cpus == b.cpus && a.weight == b.weight;
}

}  // namespace sched
