// OrphanPods: pods of jobs that do not exist any more, as a new leader may find them. Garbage
// collection deletes them; should it be off, the operator does. Pods that others have made it
// stops and does not delete. Their nodes take nothing new until they are gone.
#pragma once

#include <map>
#include <vector>

#include "base/time.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread.
class OrphanPods {
 public:
  void add(const kube::ObjectKey& pod) { next_try_.try_emplace(pod, base::Instant{}); }
  void remove(const kube::ObjectKey& pod) { next_try_.erase(pod); }

  // Each is tried until the watch says that it is gone: what became of a try does not matter.
  std::vector<DeleteOrphan> due(base::Instant now);
  base::Instant next_due() const;

 private:
  std::map<kube::ObjectKey, base::Instant> next_try_;
};

}  // namespace control
