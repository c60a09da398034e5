// The fields of kube/api/meta.h. Internal to kube/api, as codec.h is.
#pragma once

#include "kube/api/codec.h"
#include "kube/api/meta.h"

namespace kube {

using codec::Like;

template <typename Io>
void visit(Io& io, Like<OwnerReference> auto& s) {
  io.field("apiVersion", s.api_version);
  io.field("kind", s.kind);
  io.field("name", s.name);
  io.field("uid", s.uid);
  io.nonzero("controller", s.controller);
  io.nonzero("blockOwnerDeletion", s.block_owner_deletion);
}

template <typename Io>
void visit(Io& io, Like<ObjectMeta> auto& s) {
  io.field("name", s.name);
  io.field("generateName", s.generate_name);
  io.field("namespace", s.ns);
  io.field("uid", s.uid);
  io.field("resourceVersion", s.resource_version);
  io.nonzero("generation", s.generation);
  io.field("labels", s.labels);
  io.field("annotations", s.annotations);
  io.field("ownerReferences", s.owner_references);
  io.time("creationTimestamp", s.creation_timestamp);
  io.time("deletionTimestamp", s.deletion_timestamp);
  io.field("deletionGracePeriodSeconds", s.deletion_grace_period_seconds);
}

template <typename Io>
void visit(Io& io, Like<Condition> auto& s) {
  io.field("type", s.type);
  io.field("status", s.status);
  io.field("observedGeneration", s.observed_generation);
  io.time("lastHeartbeatTime", s.last_heartbeat_time);
  io.time("lastTransitionTime", s.last_transition_time);
  io.always("reason", s.reason);
  io.always("message", s.message);
}

template <typename Io>
void visit(Io& io, Like<LabelSelectorRequirement> auto& s) {
  io.field("key", s.key);
  io.field("operator", s.op);
  io.field("values", s.values);
}

template <typename Io>
void visit(Io& io, Like<LabelSelector> auto& s) {
  io.field("matchLabels", s.match_labels);
  io.field("matchExpressions", s.match_expressions);
}

}  // namespace kube
