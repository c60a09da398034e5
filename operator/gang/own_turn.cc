#include "operator/gang/own_turn.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "timetable/timetable.h"

namespace control {

// Goes from one change of the timetable to the next. All changes of the plan and twice those of the
// cycle are more than enough: a run of slots may go on from the end of the cycle to its beginning.
std::optional<base::Instant> next_turn_to_settle_in(const kube::NodeTimetableSpec& spec,
                                                    const std::string& job_uid, base::Instant now,
                                                    base::Duration settle) {
  constexpr std::size_t kChangesMax = timetable::kPlanEntriesMax + 2 * timetable::kCycleSlotsMax;
  const timetable::Timetable& table = spec.timetable;
  const auto pod = std::ranges::find(spec.pods, job_uid, &kube::TimetablePod::job_uid);
  // One that is not valid is obeyed by no agent.
  if (pod == spec.pods.end() || !timetable::validate(table).ok()) return std::nullopt;
  const auto index = static_cast<std::uint16_t>(pod - spec.pods.begin());
  const base::Duration long_enough = std::min(settle, table.slice / 2);
  base::Instant at = now;
  for (std::size_t i = 0; i < kChangesMax; ++i) {
    if (timetable::run_time(table, index, at, at + long_enough) == long_enough &&
        timetable::runs_at(table, index, at)) {
      return at;
    }
    const auto change = timetable::next_change(table, at);
    if (!change) break;
    at = *change;
  }
  return base::kNever;
}

}  // namespace control
