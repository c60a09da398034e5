// The fields of Account and what it consists of, for both directions (kube/api/codec.h). Internal
// to api: only .cc files may include it.
#pragma once

#include "api/account.h"
#include "api/limits_codec.h"

namespace kube {

template <typename Io>
void visit(Io& io, Like<AccountLimits> auto& s) {
  io.field("group", s.group);
  io.field("perJob", s.per_job);
  io.field("perNamespace", s.per_namespace);
}

template <typename Io>
void visit(Io& io, Like<PodIdentity> auto& s) {
  io.field("user", s.user);
  io.always("uid", s.uid);
  io.always("gid", s.gid);
  io.field("groups", s.groups);
  io.field("home", s.home);
}

template <typename Io>
void visit(Io& io, Like<AccountNamespace> auto& s) {
  io.field("name", s.name);
  io.field("default", s.is_default);
  io.field("shares", s.shares);
  io.field("sharesOfAccount", s.shares_of_account);
  io.field("priority", s.priority);
  io.field("limits", s.limits);
  io.field("identity", s.identity);
}

template <typename Io>
void visit(Io& io, Like<AccountSpec> auto& s) {
  io.field("parent", s.parent);
  io.field("shares", s.shares);
  io.field("sharesOfParent", s.shares_of_parent);
  io.field("priority", s.priority);
  io.field("limits", s.limits);
  io.field("namespaces", s.namespaces);
}

template <typename Io>
void visit(Io& io, Like<AccountStatus> auto& s) {
  io.field("observedGeneration", s.observed_generation);
  io.field("accepted", s.accepted);
  io.field("conditions", s.conditions);
}

template <typename Io>
void visit(Io& io, Like<Account> auto& s) {
  io.field("metadata", s.metadata);
  io.field("spec", s.spec);
  io.field("status", s.status);
}

}  // namespace kube
