// The kinds of numbers that the scheduler uses. Indexes are dense and stable for the life of what
// they name; they are never shown to a user (names are).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "base/strong_int.h"

namespace sched {

// Index into Cluster's node table. Stable while the node exists. The *order* of nodes in Slurm's
// sense (consecutive nodes, 4.4.4) is the natural sort of their names, not this index.
using NodeIndex = base::StrongInt<struct NodeIndexTag, std::int32_t>;
using PartitionIndex = base::StrongInt<struct PartitionIndexTag, std::int32_t>;
using QosIndex = base::StrongInt<struct QosIndexTag, std::int32_t>;
using AssociationIndex = base::StrongInt<struct AssociationIndexTag, std::int32_t>;

// Names a job, an array as a whole (like a job), or a task of an array. The order is that of the
// numbers, an array before its tasks; in a queue it is behind them.
//
// It is one number inside: that of the job times 2^22, plus the number of the task plus 1.
class JobId {
 public:
  static constexpr int kTasksMax = (1 << 22) - 1;  // numbers of tasks are below
  static constexpr std::int64_t kNumberMax = std::int64_t{1} << 40;

  constexpr JobId() = default;
  // Dense, given by the caller, never reused: SLURM_JOB_ID, of a task SLURM_ARRAY_JOB_ID.
  constexpr explicit JobId(std::int64_t number) : packed_{number * kNumber} {}
  // REQUIRES: 0 <= task < kTasksMax.
  static constexpr JobId of_task(JobId array, int task) {
    JobId id = array.array();
    id.packed_ += task + 1;
    return id;
  }

  constexpr std::int64_t number() const { return packed_ >> kTaskBits; }
  // Absent for a job that is not an array, and for the array as a whole.
  constexpr std::optional<int> task() const {
    if (!is_task()) return std::nullopt;
    return static_cast<int>(packed_ % kNumber) - 1;
  }
  constexpr bool is_task() const { return packed_ % kNumber != 0; }
  // Returns the array of a task; the job itself if it is none.
  constexpr JobId array() const { return JobId{number()}; }
  // Equal ids alone have equal ones: for tables.
  constexpr std::int64_t packed() const { return packed_; }

  friend constexpr auto operator<=>(JobId, JobId) = default;

 private:
  static constexpr int kTaskBits = 22;
  static constexpr std::int64_t kNumber = std::int64_t{1} << kTaskBits;

  std::int64_t packed_ = 0;
};

// Returns "12", a task "12_3", as squeue writes them.
inline std::string to_string(JobId id) {
  const std::optional<int> task = id.task();
  return std::to_string(id.number()) + (task ? "_" + std::to_string(*task) : "");
}

// Slurm's 32-bit scheduling priority; 0 = held (R9.1).
using Priority = base::StrongInt<struct PriorityTag, std::uint32_t>;

// Slurm's unit of memory. Kubernetes quantities are rounded up to it at the edge.
using MemoryMiB = base::StrongInt<struct MemoryMiBTag, std::int64_t>;

}  // namespace sched
