#include "scheduler/backfill/license_plan.h"

#include <algorithm>
#include <iterator>

namespace sched {

void LicensePlan::take(const Licenses& asked, base::Instant begin, base::Instant end) {
  if (begin >= end) return;
  for (const auto& [name, count] : asked) {
    changes_[name][begin] += count;
    changes_[name][end] -= count;
  }
}

// An instant that is too early for one of them is too early for all.
std::optional<base::Instant> LicensePlan::first_free(const Licenses& asked, base::Instant from,
                                                     base::Duration length) const {
  for (base::Instant start = from;;) {
    const base::Instant before = start;
    for (const auto& [name, count] : asked) {
      const auto free = first_free(name, count, start, length);
      if (!free) return std::nullopt;
      start = *free;
    }
    if (start == before) return start;
  }
}

// Walks over the changes; wherever too few are free while the job would run, it starts at the next
// change or later. Behind the last change all are free.
std::optional<base::Instant> LicensePlan::first_free(const std::string& name, int count,
                                                     base::Instant from,
                                                     base::Duration length) const {
  const int total = licenses_of(total_, name);
  if (count > total) return std::nullopt;
  const auto found = changes_.find(name);
  if (found == changes_.end()) return from;
  const std::map<base::Instant, int>& changes = found->second;
  base::Instant start = from;
  int used = 0;
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    if (change->first >= start + length) break;
    used += change->second;
    const auto next = std::next(change);
    const bool counts = next != changes.end() && next->first > start;
    if (counts && used + count > total) start = next->first;
  }
  return start;
}

}  // namespace sched
