#include "scheduler/simulate/run_span.h"

#include <algorithm>

namespace simulate {
namespace {

bool contains(const timetable::PodSet& pods, std::uint16_t pod) {
  return std::binary_search(pods.begin(), pods.end(), pod);
}

}  // namespace

bool runs_at(const RunSpan& span, base::Instant t) {
  if (t < span.from || t >= span.to) return false;
  return span.timetable == nullptr || timetable::runs_at(*span.timetable, span.pod, t);
}

base::Duration run_time(const RunSpan& span, base::Instant from, base::Instant to) {
  from = std::max(from, span.from);
  to = std::min(to, span.to);
  if (from >= to) return base::Duration{0};
  if (span.timetable == nullptr) return to - from;
  return timetable::run_time(*span.timetable, span.pod, from, to);
}

std::optional<base::Instant> when_has_run(const RunSpan& span, base::Instant from,
                                          base::Duration work) {
  if (work == base::Duration{0} || span.timetable == nullptr) return from + work;
  const timetable::Timetable& table = *span.timetable;
  base::Instant t = from;
  for (const timetable::PlanEntry& entry : table.plan) {
    if (entry.until <= t) continue;
    if (contains(entry.run, span.pod)) {
      if (work <= entry.until - t) return t + work;
      work -= entry.until - t;
    }
    t = entry.until;
  }
  const auto slots = static_cast<std::int64_t>(table.cycle.size());
  const auto running = std::count_if(table.cycle.begin(), table.cycle.end(),
                                     [&](const auto& slot) { return contains(slot, span.pod); });
  if (running == 0) return std::nullopt;
  // Whole cycles at once; the last one is walked, for the work may end in any slot of it.
  const base::Duration per_cycle = table.slice * running;
  const std::int64_t cycles = (work.count() - 1) / per_cycle.count();
  t += table.slice * slots * cycles;
  work -= per_cycle * cycles;
  for (std::int64_t i = 0; i <= slots; ++i) {
    const std::int64_t slot = base::slot_of(t, table.slice);
    const base::Instant slot_end = base::slot_begin(slot + 1, table.slice);
    const auto index = static_cast<std::size_t>(((slot % slots) + slots) % slots);
    if (contains(table.cycle[index], span.pod)) {
      if (work <= slot_end - t) return t + work;
      work -= slot_end - t;
    }
    t = slot_end;
  }
  return t;  // not reached: a cycle from t on has per_cycle >= work
}

}  // namespace simulate
