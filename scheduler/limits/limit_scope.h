// The limits that count for a job (1.4): those of the partition's QOS and of its own QOS, in the
// order of qos_order.h; and what they leave open, those of its user in its account, of the account
// and of the accounts above it. The first that sets a limit on each job, or on the jobs of a user,
// decides. A limit on a group counts for every account on the way up, unless a QOS sets one of its
// kind.
#pragma once

#include <optional>
#include <string>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/model/limits.h"
#include "scheduler/model/qos_order.h"

namespace sched {

// One of those that have limits.
struct LimitHolder {
  const QosConfig* qos = nullptr;  // or else
  std::optional<AssociationIndex> association{};
  const Limits& limits(const Cluster& cluster) const {
    return qos != nullptr ? qos->limits : cluster.accounts()[*association].limits;
  }
  // Returns "QOS gold", "account b".
  std::string name(const Cluster& cluster) const {
    return qos != nullptr ? "QOS " + qos->name : cluster.accounts().describe(*association);
  }
};

struct LimitScope {
  const Cluster& cluster;
  QosOrder qos;
  std::optional<AssociationIndex> association;

  // Returns true if no QOS and no association has limits that could count.
  bool is_empty() const { return qos[0] == nullptr && qos[1] == nullptr && !association; }

  // Calls visit(holder, limit) for the first holder for which get(limits) is set; QOS alone if not
  // `also_associations`. Returns what visit returns, or nullopt.
  template <typename Get, typename Visit>
  auto first(const Get& get, bool also_associations, const Visit& visit) const
      -> decltype(visit(LimitHolder{}, *get(Limits{}))) {
    for (const QosConfig* const each : qos) {
      if (each == nullptr) continue;
      if (const auto& limit = get(each->limits)) return visit(LimitHolder{each, {}}, *limit);
    }
    if (!also_associations) return std::nullopt;
    for (auto at = association; at; at = cluster.accounts()[*at].parent) {
      if (const auto& limit = get(cluster.accounts()[*at].limits)) {
        return visit(LimitHolder{nullptr, at}, *limit);
      }
    }
    return std::nullopt;
  }
  // Visits limits on groups: the first QOS that has one, or else each association that has one,
  // until visit() returns something.
  template <typename Get, typename Visit>
  auto groups(const Get& get, const Visit& visit) const
      -> decltype(visit(LimitHolder{}, *get(Limits{}))) {
    for (const QosConfig* const each : qos) {
      if (each == nullptr) continue;
      if (const auto& limit = get(each->limits)) return visit(LimitHolder{each, {}}, *limit);
    }
    for (auto at = association; at; at = cluster.accounts()[*at].parent) {
      const auto& limit = get(cluster.accounts()[*at].limits);
      if (!limit) continue;
      if (auto hit = visit(LimitHolder{nullptr, at}, *limit)) return hit;
    }
    return std::nullopt;
  }
};

inline LimitScope limit_scope(const Cluster& cluster, const JobRequest& request,
                              PartitionIndex partition) {
  return {.cluster = cluster,
          .qos = qos_order(cluster, request.qos, partition),
          .association = cluster.accounts().find_user(request.user, request.account)};
}

// A limit that a job exceeds, or would.
struct LimitHit {
  Reason reason = Reason::kNone;
  std::string message;  // one sentence for users
};

}  // namespace sched
