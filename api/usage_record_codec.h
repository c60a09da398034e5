// The fields of UsageRecord and what it consists of, for both directions (kube/api/codec.h).
// Internal to api: only .cc files may include it.
#pragma once

#include "api/usage_record.h"
#include "kube/api/meta_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<NamespaceUsage> auto& s) {
  io.field("account", s.account);
  io.field("namespace", s.ns);
  io.field("billed", s.billed);
  io.field("runTimeMillis", s.run_time_millis);
}

template <typename Io>
void visit(Io& io, Like<QosUsage> auto& s) {
  io.field("name", s.name);
  io.field("billed", s.billed);
  io.field("runTimeMillis", s.run_time_millis);
}

template <typename Io>
void visit(Io& io, Like<UsageRecordSpec> auto& s) {
  io.micro_time("asOf", s.as_of);
  io.micro_time("takenAt", s.taken_at);
  io.always("namespaces", s.namespaces);
  io.always("qos", s.qos);
  io.always("jobs", s.jobs);
}

template <typename Io>
void visit(Io& io, Like<UsageRecord> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
}

}  // namespace kube
