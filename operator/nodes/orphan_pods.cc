#include "operator/nodes/orphan_pods.h"

namespace control {
namespace {

constexpr base::Duration kOrphanRetry = std::chrono::seconds{5};

}  // namespace

std::vector<DeleteOrphan> OrphanPods::due(base::Instant now, std::chrono::seconds longest,
                                          std::size_t room) {
  std::vector<DeleteOrphan> effects;
  for (const kube::ObjectKey& pod : tries_.take_due(now, room)) {
    // The pod leaves the list when its watch shows that it is gone, or when its Job is known; the
    // outcome of a try is not reported.
    tries_.set(pod, now + kOrphanRetry);
    effects.push_back({pod, longest});
  }
  return effects;
}

base::Instant OrphanPods::next_due(base::Instant now) const {
  return tries_.next_after(now).value_or(base::kNever);
}

}  // namespace control
