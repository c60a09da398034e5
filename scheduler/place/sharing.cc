#include "scheduler/place/sharing.h"

namespace sched {

// The table of 4.3. Three answers: if the job takes whole nodes, if its units may be shared with
// others now (`may_stack`), and if other running jobs may be on its nodes at all (`shares_nodes`,
// the shareable map of R4.4).
SharingStatus resolve_sharing(SelectType select, const Partition& partition, Sharing requested) {
  const bool linear = select == SelectType::kLinear;
  const int share = partition.max_share;
  // The columns of 4.3: EXCLUSIVE, then FORCE:n>1, then NO, YES and FORCE:1 together.
  SharingStatus status;
  status.whole_nodes = linear || requested == Sharing::kNode;
  if (share == 0) {  // EXCLUSIVE
    status.whole_nodes = true;
    status.shares_nodes = false;
    return status;
  }
  if (partition.force && share > 1) {  // R4.1: also over --exclusive
    status.may_stack = true;
    status.max_share = share;
    return status;
  }
  const bool wants = requested == Sharing::kOverSubscribe;
  // --oversubscribe in a FORCE:1 partition of select/linear: allowed, with a share of one.
  status.may_stack = wants && (share > 1 || (linear && partition.force));
  status.max_share = status.may_stack ? share : 1;
  status.shares_nodes = linear ? status.may_stack : !status.whole_nodes;
  return status;
}

}  // namespace sched
