#include "scheduler/simulate/run_span.h"

#include <algorithm>

namespace simulate {
// The span is [from, to), and without a timetable the job runs in all of it.
bool runs_at(const RunSpan& span, base::Instant t) {
  if (t < span.from || t >= span.to) return false;
  return span.timetable == nullptr || timetable::runs_at(*span.timetable, span.pod, t);
}

base::Duration run_time(const RunSpan& span, base::Instant from, base::Instant to) {
  // Only the part of [from, to) that lies in the span; run time in a timetable has a closed form,
  // whatever the number of slices.
  from = std::max(from, span.from);
  to = std::min(to, span.to);
  if (from >= to) return base::Duration{0};
  if (span.timetable == nullptr) return to - from;
  return timetable::run_time(*span.timetable, span.pod, from, to);
}

}  // namespace simulate
