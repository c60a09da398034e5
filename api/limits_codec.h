// The fields of limits, for both directions (kube/api/codec.h). Internal to api: only .cc files may
// include it.
#pragma once

#include "api/limits.h"
#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<ResourceAmounts> auto& s) {
  io.field("cpus", s.cpus);
  io.field("memory", s.memory);
  io.field("nodes", s.nodes);
  io.field("billing", s.billing);
  io.field("gpus", s.gpus);
  io.field("gpusOfType", s.gpus_of_type);
}

template <typename Io>
void visit(Io& io, Like<GroupLimits> auto& s) {
  io.field("resources", s.resources);
  io.field("jobs", s.jobs);
  io.field("submittedJobs", s.submitted_jobs);
  io.field("runTime", s.run_time);
}

template <typename Io>
void visit(Io& io, Like<JobLimits> auto& s) {
  io.field("resources", s.resources);
  io.field("resourcesPerNode", s.resources_per_node);
  io.field("time", s.time);
}

template <typename Io>
void visit(Io& io, Like<HolderLimits> auto& s) {
  io.field("resources", s.resources);
  io.field("jobs", s.jobs);
  io.field("submittedJobs", s.submitted_jobs);
}

template <typename Io>
void visit(Io& io, Like<JobCountLimits> auto& s) {
  io.field("jobs", s.jobs);
  io.field("submittedJobs", s.submitted_jobs);
}

}  // namespace kube
