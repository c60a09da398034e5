#include "timetable/timetable.h"

#include <algorithm>

#include "base/check.h"

// How the functions stay exact and cheap however far apart two instants are: a timetable is a
// finite plan followed by a cycle of slots, and slot numbers are floor(t / slice), so the position
// in the cycle at any t is one division and one remainder. Everything below is either a walk along
// the plan, which has at most kPlanEntriesMax entries, or arithmetic on slot numbers:
//
// * run(t): binary search in the plan, else one position in the cycle
// * next_change(t): the rest of the plan, then at most one round of the cycle
// * run_time(from, to): the plan entry by entry, then whole rounds times the slots that run the
//   pod, with the two ends put right
// * when_has_run(): the same the other way round
// Instants before the epoch have negative slot numbers; floor and a non-negative remainder make the
// grid go through the epoch without a seam.
namespace timetable {
namespace {

using base::Duration;
using base::Error;
using base::Instant;
using base::Status;

bool in_range(Instant t) {
  return t >= kInstantMin && t <= kInstantMax;
}

// Ascending and without repetition, since the functions below search by halves and merge.
Status validate_set(const PodSet& set, std::size_t pods_count, const std::string& where) {
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set[i] >= pods_count) {
      return base::invalid_argument(where + ": pod index " + std::to_string(set[i]) +
                                    " out of range, there are " + std::to_string(pods_count) +
                                    " pods");
    }
    if (i > 0 && set[i] <= set[i - 1]) {
      return base::invalid_argument(where +
                                    ": pod indexes do not ascend: " + std::to_string(set[i - 1]) +
                                    " before " + std::to_string(set[i]));
    }
  }
  return {};
}

// A timetable comes from an object that anyone may have written, so it is refused with the entry
// and the value that are wrong, and never CHECKed.
Status validate_plan(const Timetable& timetable) {
  if (timetable.plan.size() > kPlanEntriesMax) {
    return base::invalid_argument("plan: " + std::to_string(timetable.plan.size()) +
                                  " entries, at most " + std::to_string(kPlanEntriesMax));
  }
  if (timetable.pods_count == 0 && !timetable.plan.empty()) {
    return base::invalid_argument("plan: not empty though there are no pods");
  }
  for (std::size_t i = 0; i < timetable.plan.size(); ++i) {
    const std::string where = "plan[" + std::to_string(i) + "]";
    const Instant until = timetable.plan[i].until;
    if (!in_range(until)) return base::invalid_argument(where + ": until is out of range");
    if (i > 0 && until <= timetable.plan[i - 1].until) {
      return base::invalid_argument(where + ": until is not after the entry before it");
    }
    Status status = validate_set(timetable.plan[i].run, timetable.pods_count, where);
    if (!status) return status;
  }
  return {};
}

// Index of the slot of the cycle that t is in; also for t before the epoch.
template <typename Pod>
std::size_t cycle_index(const BasicTimetable<Pod>& timetable, Instant t) {
  return cycle_position(base::slot_of(t, timetable.slice), timetable.cycle.size());
}

// Returns the plan entry in force at t, or plan.end() when the cycle is.
template <typename Pod>
auto plan_at(const BasicTimetable<Pod>& timetable, Instant t) {
  return std::upper_bound(
      timetable.plan.begin(), timetable.plan.end(), t,
      [](Instant at, const BasicPlanEntry<Pod>& entry) { return at < entry.until; });
}

// run(t): the plan's entry that is in force, or else the slot of the cycle. Entries end
// exclusively, so at `until` the next one holds already.
template <typename Pod>
const std::vector<Pod>& set_at(const BasicTimetable<Pod>& timetable, Instant t) {
  const auto entry = plan_at(timetable, t);
  return entry != timetable.plan.end() ? entry->run : timetable.cycle[cycle_index(timetable, t)];
}

template <typename Pod>
bool contains(const std::vector<Pod>& set, Pod pod) {
  return std::binary_search(set.begin(), set.end(), pod);
}

// Time that `pod` runs by the cycle alone in [from, to): whole slots in closed form, less what lies
// before `from` in the first, plus what lies before `to` in the last.
template <typename Pod>
Duration cycle_time(const BasicTimetable<Pod>& timetable, Pod pod, Instant from, Instant to) {
  const auto length = static_cast<std::int64_t>(timetable.cycle.size());
  const std::int64_t first = base::slot_of(from, timetable.slice);
  const std::int64_t last = base::slot_of(to, timetable.slice);
  // The slots first … last − 1 as a whole, then without what lies before `from`, and with what lies
  // in the last one before `to`.
  const std::int64_t rounds = (last - first) / length;
  const std::int64_t rest = (last - first) % length;
  // Each slot of the cycle counts once for every whole round; the first `rest` slots from `begin`
  // on count once more.
  const std::size_t begin = cycle_index(timetable, from);
  std::int64_t slots = 0;
  for (std::int64_t i = 0; i < (rounds > 0 ? length : rest); ++i) {
    const std::size_t index = (begin + static_cast<std::size_t>(i)) % timetable.cycle.size();
    if (contains(timetable.cycle[index], pod)) slots += i < rest ? rounds + 1 : rounds;
  }
  Duration total = timetable.slice * slots;
  if (contains(timetable.cycle[begin], pod))
    total -= from - base::slot_begin(first, timetable.slice);
  if (contains(timetable.cycle[cycle_index(timetable, to)], pod)) {
    total += to - base::slot_begin(last, timetable.slice);
  }
  return total;
}

}  // namespace

// Beside the CRD's own checks: an agent obeys what it reads, whatever wrote it, and all functions
// below divide by the slice and index into the cycle without looking again.
Status validate(const Timetable& timetable) {
  if (timetable.slice < kSliceMin || timetable.slice > kSliceMax) {
    return base::invalid_argument("slice: " + std::to_string(timetable.slice.count()) +
                                  " us is not between 100 ms and 65533 s");
  }
  if (timetable.pods_count > kPodsMax) {
    return base::invalid_argument("pods: " + std::to_string(timetable.pods_count) +
                                  " listed, at most " + std::to_string(kPodsMax));
  }
  if (timetable.cycle.empty()) return base::invalid_argument("cycle: empty, at least one slot");
  if (timetable.cycle.size() > kCycleSlotsMax) {
    return base::invalid_argument("cycle: " + std::to_string(timetable.cycle.size()) +
                                  " slots, at most " + std::to_string(kCycleSlotsMax));
  }
  for (std::size_t i = 0; i < timetable.cycle.size(); ++i) {
    Status status =
        validate_set(timetable.cycle[i], timetable.pods_count, "cycle[" + std::to_string(i) + "]");
    if (!status) return status;
  }
  return validate_plan(timetable);
}

template <typename Pod>
std::span<const Pod> run_at(const BasicTimetable<Pod>& timetable, Instant t) {
  return set_at(timetable, t);
}

template <typename Pod>
bool runs_at(const BasicTimetable<Pod>& timetable, std::type_identity_t<Pod> pod, Instant t) {
  return contains(set_at(timetable, t), pod);
}

// Two different entries may run the same pods, so sets are compared and not positions: an agent
// that wakes at the answer has something to switch.
std::optional<Instant> next_change(const Timetable& timetable, Instant t) {
  CHECK(in_range(t));
  const PodSet* current = &set_at(timetable, t);
  Instant at = t;
  // 1. The rest of the plan: run(t) changes at an `until` when what follows it differs.
  for (auto entry = plan_at(timetable, t); entry != timetable.plan.end(); ++entry) {
    at = entry->until;
    const PodSet& next = set_at(timetable, at);
    if (next != *current) return at;
    current = &next;
  }
  // 2. One whole round of the cycle: if nothing differs in it, nothing ever will.
  const std::int64_t slot = base::slot_of(at, timetable.slice);
  const std::size_t index = cycle_index(timetable, at);
  for (std::size_t step = 1; step <= timetable.cycle.size(); ++step) {
    const PodSet& next = timetable.cycle[(index + step) % timetable.cycle.size()];
    if (next != *current) {
      return base::slot_begin(slot + static_cast<std::int64_t>(step), timetable.slice);
    }
  }
  return std::nullopt;
}

// The plan is walked, entry by entry; behind it the cycle is counted (cycle_time).
template <typename Pod>
Duration run_time(const BasicTimetable<Pod>& timetable, std::type_identity_t<Pod> pod, Instant from,
                  Instant to) {
  CHECK(from <= to && in_range(from) && in_range(to));
  Duration total{0};
  Instant at = from;
  for (auto entry = plan_at(timetable, from); entry != timetable.plan.end() && at < to; ++entry) {
    const Instant end = std::min(entry->until, to);
    if (contains(entry->run, pod)) total += end - at;
    at = end;
  }
  if (at < to) total += cycle_time(timetable, pod, at, to);
  return total;
}

// 1. Walk the plan, entry by entry.
// 2. Skip as many whole cycles as leave some of the work undone.
// 3. Walk the cycle in which the work is done.
template <typename Pod>
std::optional<Instant> when_has_run(const BasicTimetable<Pod>& timetable,
                                    std::type_identity_t<Pod> pod, Instant from, Duration work) {
  if (work == Duration{0}) return from;
  Instant t = from;
  for (const auto& entry : timetable.plan) {  // 1
    if (entry.until <= t) continue;
    if (contains(entry.run, pod)) {
      if (work <= entry.until - t) return t + work;
      work -= entry.until - t;
    }
    t = entry.until;
  }
  const auto slots = static_cast<std::int64_t>(timetable.cycle.size());
  const auto running = std::count_if(timetable.cycle.begin(), timetable.cycle.end(),
                                     [&](const auto& set) { return contains(set, pod); });
  if (running == 0) return std::nullopt;
  // One less than the work, so that a whole number of cycles leaves the last one to be walked: the
  // answer is the first instant at which the work is done, and not the end of the cycle in which it
  // is.
  const Duration per_cycle = timetable.slice * running;  // 2
  const std::int64_t cycles = (work.count() - 1) / per_cycle.count();
  t += timetable.slice * slots * cycles;
  work -= per_cycle * cycles;
  for (std::int64_t i = 0; i <= slots; ++i) {  // 3. t may be inside a slot, hence one more
    const std::int64_t slot = base::slot_of(t, timetable.slice);
    const Instant slot_end = base::slot_begin(slot + 1, timetable.slice);
    if (contains(timetable.cycle[cycle_index(timetable, t)], pod)) {
      if (work <= slot_end - t) return t + work;
      work -= slot_end - t;
    }
    t = slot_end;
  }
  return t;  // not reached: from t on a cycle has per_cycle >= work
}

namespace {

// Calls visit(run of a, run of b) for enough instants t >= from: two tables that are equal in all
// of them are equal forever. Stops when it returns false.
//
// 1. `from` itself.
// 2. The ends of plan entries after it.
// 3. The slot boundaries after it, up to where both tables are in their cycles.
// 4. From there on as many slots as the two cycles have together: two periodic sequences that
//    agree over the sum of their periods agree forever.
//
// REQUIRES: equal slices.
template <typename Pod, typename Visit>
void for_each_pair_of_runs(const BasicTimetable<Pod>& a, const BasicTimetable<Pod>& b, Instant from,
                           const Visit& visit) {
  const auto visit_at = [&](Instant t) { return visit(run_at(a, t), run_at(b, t)); };
  if (!visit_at(from)) return;  // 1
  Instant plans_end = from;
  for (const auto* table : {&a, &b}) {  // 2
    for (const auto& entry : table->plan) {
      if (entry.until > from && !visit_at(entry.until)) return;
    }
    if (!table->plan.empty()) plans_end = std::max(plans_end, table->plan.back().until);
  }
  const std::int64_t cycles_from = base::slot_of(plans_end, a.slice) + 1;
  for (std::int64_t slot = base::slot_of(from, a.slice) + 1; slot < cycles_from; ++slot) {  // 3
    if (!visit_at(base::slot_begin(slot, a.slice))) return;
  }
  std::size_t i = cycle_position(cycles_from, a.cycle.size());
  std::size_t j = cycle_position(cycles_from, b.cycle.size());
  for (std::size_t left = a.cycle.size() + b.cycle.size(); left > 0; --left) {  // 4
    const std::span<const Pod> of_a{a.cycle[i]}, of_b{b.cycle[j]};
    if (!visit(of_a, of_b)) return;
    i = i + 1 == a.cycle.size() ? 0 : i + 1;
    j = j + 1 == b.cycle.size() ? 0 : j + 1;
  }
}

}  // namespace

// Sets of equal size are equal if one contains the other.
bool same_from(const Timetable& a, const Timetable& b, std::span<const std::uint16_t> pods,
               Instant from) {
  if (pods.empty()) return true;
  if (a.slice != b.slice) return false;
  bool same = true;
  for_each_pair_of_runs(
      a, b, from, [&](std::span<const std::uint16_t> of_a, std::span<const std::uint16_t> of_b) {
        same = of_a.size() == of_b.size() &&
               std::all_of(of_b.begin(), of_b.end(), [&](std::uint16_t pod) {
                 return std::binary_search(of_a.begin(), of_a.end(), pods[pod]);
               });
        return same;
      });
  return same;
}

// Unlike same_from() it looks at all instants, because each pod may differ at another one.
std::vector<bool> changed_pods(const Timeline& before, const Timeline& now,
                               std::span<const std::uint32_t> pods, Instant from) {
  std::vector<bool> changed(now.pods_count, true);
  if (before.slice != now.slice) return changed;
  std::vector<bool> is_known(now.pods_count, false);
  for (const std::uint32_t pod : pods) {
    if (pod == kNoPod) continue;
    is_known[pod] = true;
    changed[pod] = false;
  }
  for_each_pair_of_runs(
      before, now, from,
      [&](std::span<const std::uint32_t> ran, std::span<const std::uint32_t> runs) {
        // Both ascend as pods of `now`: a merge finds the pods that are in one of them only.
        std::size_t j = 0;
        const auto started_before = [&](std::uint32_t pod) {
          for (; j < runs.size() && runs[j] < pod; ++j) {
            if (is_known[runs[j]]) changed[runs[j]] = true;  // it did not run before
          }
        };
        for (const std::uint32_t i : ran) {
          const std::uint32_t pod = pods[i];
          if (pod == kNoPod) continue;
          started_before(pod);
          if (j < runs.size() && runs[j] == pod) {
            ++j;
          } else {
            changed[pod] = true;  // it ran before
          }
        }
        started_before(kNoPod);
        return true;
      });
  return changed;
}

template std::span<const std::uint16_t> run_at(const Timetable&, Instant);
template std::span<const std::uint32_t> run_at(const Timeline&, Instant);
template bool runs_at(const Timetable&, std::uint16_t, Instant);
template bool runs_at(const Timeline&, std::uint32_t, Instant);
template Duration run_time(const Timetable&, std::uint16_t, Instant, Instant);
template Duration run_time(const Timeline&, std::uint32_t, Instant, Instant);
template std::optional<Instant> when_has_run(const Timetable&, std::uint16_t, Instant, Duration);
template std::optional<Instant> when_has_run(const Timeline&, std::uint32_t, Instant, Duration);

}  // namespace timetable
