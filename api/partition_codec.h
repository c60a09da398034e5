// The fields that Partition and SchedulerConfig share. Internal to kube/api, as codec.h is.
#pragma once

#include "api/partition.h"
#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<MemoryLimits> auto& s) {
  io.field("defaultPerCPU", s.default_per_cpu);
  io.field("maxPerCPU", s.max_per_cpu);
  io.field("defaultPerNode", s.default_per_node);
  io.field("maxPerNode", s.max_per_node);
}

}  // namespace kube
