// A node's timetable as a complete function run(t): which of the listed pods run at instant t, for
// all t from the moment it is read. architecture.md chapter 2 is the rule; this is its one
// implementation, shared by the operator (which writes it), the agent (which obeys it) and the
// command line (which computes exact states and run times from it). No I/O, no clock, no JSON.
//
// Shape: first a `plan` (entries in force `until` an instant), then a `cycle` that repeats forever
// on the grid of slot numbers floor(t / slice) since the Unix epoch, the same on every node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace timetable {

inline constexpr std::size_t kPodsMax = 1024;
inline constexpr std::size_t kPlanEntriesMax = 128;
inline constexpr std::size_t kCycleSlotsMax = 64;
inline constexpr base::Duration kSliceMin = std::chrono::milliseconds{100};
inline constexpr base::Duration kSliceMax = std::chrono::seconds{65533};
// About 73,000 years each side of the epoch: far beyond any API timestamp, and safe from overflow.
inline constexpr base::Instant kInstantMin{base::Duration{-(std::int64_t{1} << 61U)}};
inline constexpr base::Instant kInstantMax{base::Duration{std::int64_t{1} << 61U}};

// `Pod`: an index into the list of pods.
template <typename Pod>
struct BasicPlanEntry {
  base::Instant until{};   // exclusive
  std::vector<Pod> run{};  // ascending, without repetition
  friend bool operator==(const BasicPlanEntry&, const BasicPlanEntry&) = default;
};

template <typename Pod>
struct BasicTimetable {
  using PodSet = std::vector<Pod>;
  using PlanEntry = BasicPlanEntry<Pod>;

  base::Duration slice = std::chrono::seconds{30};
  std::size_t pods_count = 0;
  std::vector<PlanEntry> plan{};  // ascending `until`
  std::vector<PodSet> cycle{};    // at least one slot; {{}} = all frozen

  friend bool operator==(const BasicTimetable&, const BasicTimetable&) = default;
};

// The timetable of a node: its pods are kPodsMax at most.
using Timetable = BasicTimetable<std::uint16_t>;
using PodSet = Timetable::PodSet;
using PlanEntry = Timetable::PlanEntry;
// A timetable of any number of jobs on any number of nodes; a "pod" is a job. The nodes' timetables
// are cut out of it. The functions below are defined for these two.
using Timeline = BasicTimetable<std::uint32_t>;

// kInvalidArgument with the reason (an index out of range, an empty cycle, a slice out of range,
// `until`s that do not ascend or lie outside kInstantMin … kInstantMax, a list over its maximum). A
// timetable with no pods must have an empty plan and may have any valid cycle. The functions below
// REQUIRE a valid timetable and instants between kInstantMin and kInstantMax.
base::Status validate(const Timetable& timetable);

// Returns the pods that run at t. Cost: O(log plan). The span is valid as long as the timetable is
// not changed.
template <typename Pod>
std::span<const Pod> run_at(const BasicTimetable<Pod>& timetable, base::Instant t);

// Returns true if the pod runs at t. Cost: O(log plan + log pods).
template <typename Pod>
bool runs_at(const BasicTimetable<Pod>& timetable, std::type_identity_t<Pod> pod, base::Instant t);

// Returns the position in a cycle of `length` slots at which slot number `slot` stands, also for
// slots before the epoch. REQUIRES: length > 0.
constexpr std::size_t cycle_position(std::int64_t slot, std::size_t length) {
  const auto size = static_cast<std::int64_t>(length);
  return static_cast<std::size_t>((slot % size + size) % size);
}

// Returns the first instant > t at which run(t) becomes a different set; nullopt if it never
// changes. Equal neighbors are skipped: a boundary at which no pod is switched does not count.
// Cost: O(plan + cycle).
std::optional<base::Instant> next_change(const Timetable& timetable, base::Instant t);

// Returns how long `pod` runs in [from, to), in closed form over the cycle: O(plan + cycle) however
// far apart the two are. REQUIRES: from <= to.
template <typename Pod>
base::Duration run_time(const BasicTimetable<Pod>& timetable, std::type_identity_t<Pod> pod,
                        base::Instant from, base::Instant to);

// Returns the earliest t >= from by which `pod` has run for `work` since `from`: the inverse of
// run_time(). nullopt if it never has. Cost: O(plan + cycle). REQUIRES: work >= 0.
template <typename Pod>
std::optional<base::Instant> when_has_run(const BasicTimetable<Pod>& timetable,
                                          std::type_identity_t<Pod> pod, base::Instant from,
                                          base::Duration work);

// --- two timetables of the same jobs ---

// No pod: the job is not in the other timetable.
inline constexpr std::uint32_t kNoPod = 0xffffffff;

// Returns true if two timetables run the same jobs at every t >= from. `pods` says for each pod of
// `b` which pod of `a` is the same job. Tables of different slices count as different. Cost:
// O((plans + cycles) × pods), less if they differ early. REQUIRES: as many pods in both, and `pods`
// names each of them once.
bool same_from(const Timetable& a, const Timetable& b, std::span<const std::uint16_t> pods,
               base::Instant from);

// Returns for each pod of `now` whether it runs at other times t >= from than it did in `before`.
// `pods` says for each pod of `before` which pod of `now` is the same job, or kNoPod. A pod without
// a counterpart has changed, and so has every pod if the slices differ. Cost: O((plans + cycles) ×
// pods). REQUIRES: `pods` ascends where it is not kNoPod.
std::vector<bool> changed_pods(const Timeline& before, const Timeline& now,
                               std::span<const std::uint32_t> pods, base::Instant from);

}  // namespace timetable
