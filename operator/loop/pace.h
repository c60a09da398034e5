// How long the loop rests after a step.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace control {

// Returns four times as long as the step took, 50 ms at most; zero after a short one. While
// thousands of pods come to life, each step looks at all pods of the jobs that changed, for which
// one change is as dear as a hundred: what arrives during the rest is one batch, and the loop
// leaves four fifths of its core to others. 50 ms while the writes under way are so numerous that
// what a step decides would only wait in their line.
inline base::Duration rest_after(base::Duration step, bool writes_wait) {
  constexpr base::Duration kShort = std::chrono::milliseconds{1};
  constexpr base::Duration kRestMax = std::chrono::milliseconds{50};
  if (writes_wait) return kRestMax;
  return step < kShort ? base::Duration{0} : std::min(4 * step, kRestMax);
}

}  // namespace control
