// Instants and durations. The scheduler never reads a clock: every event carries its Instant.
#pragma once

#include <chrono>
#include <cstdint>

namespace base {

// Microseconds: the resolution of Kubernetes' MicroTime, and of everything we store.
using Duration = std::chrono::microseconds;

// A point of wall-clock time, microseconds since the Unix epoch (no leap seconds). A simulation
// counts from 0. `sys_time` is used as a type only; its clock is never read in the scheduler.
using Instant = std::chrono::sys_time<Duration>;

// Later than every instant that occurs.
inline constexpr Instant kNever = Instant::max();

constexpr Instant instant_from_micros(std::int64_t micros) {
  return Instant{Duration{micros}};
}
constexpr std::int64_t micros_since_epoch(Instant t) {
  return t.time_since_epoch().count();
}

// Returns the number of the slot that t is in, on the grid of `slice` since the epoch: floor(t /
// slice), also for negative t. REQUIRES: slice > 0.
constexpr std::int64_t slot_of(Instant t, Duration slice) {
  const std::int64_t micros = micros_since_epoch(t);
  const std::int64_t quotient = micros / slice.count();
  return (micros % slice.count() < 0) ? quotient - 1 : quotient;
}

// Returns where slot number `slot` begins.
constexpr Instant slot_begin(std::int64_t slot, Duration slice) {
  return Instant{slice * slot};
}

// Returns the first grid boundary at or after t.
constexpr Instant boundary_at_or_after(Instant t, Duration slice) {
  const Instant begin = slot_begin(slot_of(t, slice), slice);
  return begin == t ? t : begin + slice;
}

}  // namespace base
