// How long the loop rests after a step.
#pragma once

#include <algorithm>

#include "scheduler/base/time.h"

namespace control {

// Four times as long as the step took, 50 ms at most; not at all after a short one. While thousands
// of pods come to life, each step looks at all pods of their job, for which one change is as dear
// as a hundred: what arrives during the rest is one batch, and the loop leaves four fifths of its
// core to others.
inline base::Duration rest_after(base::Duration step) {
  constexpr base::Duration kShort = std::chrono::milliseconds{1};
  constexpr base::Duration kRestMax = std::chrono::milliseconds{50};
  return step < kShort ? base::Duration{0} : std::min(4 * step, kRestMax);
}

}  // namespace control
