// Units at the edge between Kubernetes and the scheduler.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "kube/api/quantity.h"
#include "scheduler/model/ids.h"

namespace control {

inline constexpr std::int64_t kBytesPerMiB = std::int64_t{1} << 20U;

// 8 PiB, the most memory that a job or a pod may ask for. A Quantity holds little more, and that
// may stand for any larger amount.
inline constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 53U;

// Rounded up: a job gets what it asked for at least.
inline sched::MemoryMiB mib_of(kube::Bytes bytes) {
  return sched::MemoryMiB{(bytes.value() + kBytesPerMiB - 1) / kBytesPerMiB};
}
// Rounded down: what a node has at least.
inline sched::MemoryMiB whole_mib_of(kube::Bytes bytes) {
  return sched::MemoryMiB{bytes.value() / kBytesPerMiB};
}
inline kube::Bytes bytes_of(sched::MemoryMiB memory) {
  return kube::Bytes{memory.value() * kBytesPerMiB};
}

// Times are counted in microseconds, of which 64 bits hold 292,000 years; objects may name any
// number of seconds. No job runs for a hundred years, so that is as good as more.
inline constexpr base::Duration kRunMax = std::chrono::hours{24 * 365 * 100};

inline std::int64_t whole_seconds_up(base::Duration d) {
  return std::chrono::ceil<std::chrono::seconds>(d).count();
}
inline std::int64_t whole_seconds_down(base::Duration d) {
  return std::chrono::floor<std::chrono::seconds>(d).count();
}

}  // namespace control
