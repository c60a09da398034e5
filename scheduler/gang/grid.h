// The grid of slots that the gang turns on: slot numbers since the epoch (architecture.md 2), and
// the one change of the slice length that may be under way.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace sched::gang {

// A lead longer than this many slices is cut (architecture.md 2).
inline constexpr int kLeadSlicesMax = 32;

struct Grid {
  base::Duration slice = std::chrono::seconds{30};  // from change_at on
  base::Duration old_slice = std::chrono::seconds{30};
  base::Instant change_at = base::Instant::min();  // a boundary of both
  // Until the change slots of the old length are written out one by one, which a timetable has no
  // room for if the change is many of them away. So after this instant the old grid has no
  // boundary: the slot that has begun by then lasts until the change.
  base::Instant old_until = base::Instant::min();
  base::Duration lead{0};

  // Returns the first boundary after t.
  base::Instant next_boundary(base::Instant t) const {
    if (t >= change_at) return base::slot_begin(base::slot_of(t, slice) + 1, slice);
    return old_boundary(base::slot_begin(base::slot_of(t, old_slice) + 1, old_slice));
  }
  // Returns the first boundary at or after t: c for a change that may wait until t.
  base::Instant boundary_at_or_after(base::Instant t) const {
    if (t >= change_at) return base::boundary_at_or_after(t, slice);
    return old_boundary(base::boundary_at_or_after(t, old_slice));
  }
  base::Duration lead_now() const { return std::min(lead, kLeadSlicesMax * slice); }
  void change_slice(base::Duration to, base::Instant now) {
    if (to == slice) return;
    old_slice = now >= change_at ? slice : old_slice;
    slice = to;
    const base::Duration ahead = std::min(lead_now(), kLeadSlicesMax * old_slice);
    change_at = base::boundary_at_or_after(now + ahead, to);
    old_until = now + kLeadSlicesMax * old_slice;
  }
  friend bool operator==(const Grid&, const Grid&) = default;

 private:
  // `boundary` is one of the old grid.
  base::Instant old_boundary(base::Instant boundary) const {
    return boundary > old_until ? change_at : std::min(change_at, boundary);
  }
};

}  // namespace sched::gang
