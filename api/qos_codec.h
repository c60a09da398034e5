// The fields of Qos and what it consists of, for both directions (kube/api/codec.h). Internal to
// api: only .cc files may include it.
#pragma once

#include "api/limits_codec.h"
#include "api/qos.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<QosLimits> auto& s) {
  io.field("group", s.group);
  io.field("perJob", s.per_job);
  io.field("minPerJob", s.min_per_job);
  io.field("perNamespace", s.per_namespace);
  io.field("perAccount", s.per_account);
}

template <typename Io>
void visit(Io& io, Like<QosSpec> auto& s) {
  io.field("priority", s.priority);
  io.field("preempt", s.preempt);
  io.field("preemptMode", s.preempt_mode);
  io.field("preemptWithin", s.preempt_within);
  io.field("preemptPriority", s.preempt_priority);
  io.field("preemptExemptTime", s.preempt_exempt_time);
  io.field("graceTime", s.grace_time);
  io.field("flags", s.flags);
  io.field("limits", s.limits);
  io.field("usageFactorPercent", s.usage_factor_percent);
}

template <typename Io>
void visit(Io& io, Like<QosStatus> auto& s) {
  io.field("observedGeneration", s.observed_generation);
  io.field("accepted", s.accepted);
  io.field("preemptMode", s.preempt_mode);
  io.field("running", s.running);
  io.field("pending", s.pending);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<Qos> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

}  // namespace kube
