#include "operator/nodes/orphan_pods.h"

#include <algorithm>

namespace control {
namespace {

constexpr base::Duration kOrphanRetry = std::chrono::seconds{5};

}  // namespace

std::vector<DeleteOrphan> OrphanPods::due(base::Instant now) {
  std::vector<DeleteOrphan> effects;
  for (auto& [pod, next_try] : next_try_) {
    if (next_try > now) continue;
    // The pod leaves the list when its watch shows that it is gone, or when its Job is known; what
    // became of a try is not told.
    next_try = now + kOrphanRetry;
    effects.push_back({pod});
  }
  return effects;
}

base::Instant OrphanPods::next_due() const {
  base::Instant due = base::kNever;
  for (const auto& [pod, next_try] : next_try_) due = std::min(due, next_try);
  return due;
}

}  // namespace control
