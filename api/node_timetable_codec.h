// The fields of NodeTimetable and what it consists of, for both directions (kube/api/codec.h).
// Internal to api: only .cc files may include it.
#pragma once

#include "api/node_timetable.h"
#include "kube/api/meta_codec.h"

namespace timetable {

template <typename Io>
void visit(Io& io, kube::Like<PlanEntry> auto& s) {
  io.micro_time("until", s.until);
  io.always("run", s.run);
}

}  // namespace timetable

namespace kube {

template <typename Io>
void visit(Io& io, Like<TimetablePod> auto& s) {
  io.field("namespace", s.ns);
  io.field("name", s.name);
  io.field("jobUID", s.job_uid);
  io.field("task", s.task);
  io.field("row", s.row);
  io.field("ran", s.ran);
}

template <typename Io>
void visit(Io& io, Like<NodeTimetableSpec> auto& s) {
  io.field("term", s.term);
  io.field("revision", s.revision);
  io.field("slice", s.timetable.slice);
  io.micro_time("asOf", s.as_of);
  io.always("pods", s.pods);
  io.always("plan", s.timetable.plan);
  io.always("cycle", s.timetable.cycle);
  if constexpr (Io::kDecoding) s.timetable.pods_count = s.pods.size();
}

template <typename Io>
void visit(Io& io, Like<NodeTopology> auto& s) {
  io.field("sockets", s.sockets);
  io.field("coresPerSocket", s.cores_per_socket);
  io.field("threadsPerCore", s.threads_per_core);
  io.field("cpuIDs", s.cpu_ids);
}

template <typename Io>
void visit(Io& io, Like<PodReference> auto& s) {
  io.field("namespace", s.ns);
  io.field("name", s.name);
}

template <typename Io>
void visit(Io& io, Like<NodeTimetableStatus> auto& s) {
  io.field("observedGeneration", s.observed_generation);
  io.field("observedTerm", s.observed_term);
  io.field("observedRevision", s.observed_revision);
  io.field("topology", s.topology);
  io.field("stuck", s.stuck);
  io.field("exempt", s.exempt);
  io.field("foreign", s.foreign);
  io.field("clockErrorMicros", s.clock_error_micros);
  io.field("agentVersion", s.agent_version);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<NodeTimetable> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

}  // namespace kube
