#include "scheduler/limits/resource_limits.h"

#include <algorithm>
#include <chrono>

#include "scheduler/limits/job_limits.h"
#include "scheduler/priority/billing.h"
#include "scheduler/queue/partition_gates.h"

namespace sched {
namespace {

using Hit = std::optional<LimitHit>;

// Returns an empty value to refer to, for holders that hold nothing.
template <typename T>
const T& none() {
  static const T kNone{};
  return kNone;
}

// Every refusal names the holder, its limit and what the sum would be, so that users see where to
// ask and for how much.
std::string would_be(const std::string& holder, std::int64_t limit, const std::string& what,
                     std::int64_t wanted) {
  return holder + " allows " + std::to_string(limit) + " " + what + "; with this job it would be " +
         std::to_string(wanted);
}

// Only these limits need to know which nodes a group holds (R9.10).
bool limits_nodes(const Limits& limits) {
  return limits.group_tres[Tres::kNode] || limits.user_tres[Tres::kNode] ||
         limits.account_tres[Tres::kNode];
}

}  // namespace

// The counts follow the books by listeners: nothing can start or end without being counted,
// whichever part of the scheduler decides it.
ResourceLimits::ResourceLimits(const Cluster& cluster, JobBooks& books, const UsageLedger& usage)
    : cluster_{cluster}, books_{books}, usage_{usage}, licenses_{cluster, books} {
  books_.on_begin([this](Job& job) { count(job, *job.partition, What::kAllocated, 1); });
  books_.on_end([this](Job& job) { count(job, *job.partition, What::kAllocated, -1); });
  books_.on_over([this](Job& job) { submitted(job, -1); });
}

// Without a limit nothing is counted at all, so sums must be made when the first limit is
// configured: from the job table, as the listeners would have made them.
void ResourceLimits::recount() {
  any_ = any_nodes_ = false;
  const auto look_at = [this](const Limits& limits) {
    any_ = any_ || limits != none<Limits>();
    any_nodes_ = any_nodes_ || limits_nodes(limits);
  };
  for (const QosConfig& qos : cluster_.qos()) look_at(qos.limits);
  for (const Association& association : cluster_.accounts().all()) look_at(association.limits);
  associations_.assign(cluster_.accounts().size(), {});
  qos_.assign(cluster_.qos().size(), {});
  if (!any_) return;
  for (const auto& [order, job] : books_.table().all()) {
    if (is_terminal(job->state)) continue;
    submitted(*job, 1);
    if (job->allocated()) count(*job, *job->partition, What::kAllocated, 1);
  }
}

// Counts a job from its submission to its end, whether it runs or waits (GrpSubmitJobs,
// MaxSubmitJobs).
void ResourceLimits::submitted(const Job& job, int by) {
  if (!any_) return;
  const std::vector<PartitionIndex> partitions = partitions_of(cluster_, *job.request);
  // A job waits in several partitions but is one job: it counts under the QOS of the first of them.
  if (!partitions.empty()) count(job, partitions.front(), What::kSubmitted, by * job.count());
}

// `by` is +1 or −1, of what is submitted more. The scope is worked out again when the job leaves,
// so a change of the configuration in between is followed by recount().
//
// For example, when user u of account a, which is below root, starts a job with QOS gold, it is
// added to the sums of gold, of u within gold, of a within gold, of u in a, of a and of root.
void ResourceLimits::count(const Job& job, PartitionIndex partition, What what, int by) {
  if (!any_) return;
  const LimitScope scope = scope_of(job, partition);
  for (const QosConfig* const each : scope.qos) {
    if (each == nullptr) continue;
    // Three sums for each QOS: its group's, and those of each user and each account within it.
    OfQos& of = qos_[index_of(*each)];
    count_in(of.all, job, partition, what, by);
    count_in(of.by_user[job.request->user], job, partition, what, by);
    if (scope.association) count_in(of.by_account[account_of(scope)], job, partition, what, by);
  }
  if (!scope.association) return;
  // The user in the account, the account, and all above it: a limit on a group may be at any of
  // them.
  cluster_.accounts().upwards(*scope.association, [&](AssociationIndex index) {
    count_in(associations_[index.index()], job, partition, what, by);
  });
}

// A job holds the amounts of its allocation, not those of its request.
void ResourceLimits::count_in(Held& held, const Job& job, PartitionIndex partition, What what,
                              int by) const {
  if (what == What::kSubmitted) {
    held.submitted += by;
    return;
  }
  held.jobs += by;
  const TresCounts counts = sched::held_by(cluster_, job.allocation, partition);
  for (const TresKind& kind : cluster_.tres_kinds()) {
    if (kind.tres != Tres::kNode) held.tres[kind] += by * counts[kind];
  }
  // The maps are kept only if some limit is on nodes: they cost as much as the nodes of all jobs.
  if (!any_nodes_) return;
  for (const NodeAllocation& use : job.allocation.nodes) {
    // Counted, not a set: a node is held until the last job of the group has left it (R9.10).
    int& jobs_count = held.nodes[use.node];
    jobs_count += by;
    if (jobs_count == 0) held.nodes.erase(use.node);
  }
}

// Does as limit_scope(), with the association that the job has already.
LimitScope ResourceLimits::scope_of(const Job& job, PartitionIndex partition) const {
  return {.cluster = cluster_,
          .qos = qos_order(cluster_, job.request->qos, partition),
          .association = job.factors.association};
}

// `qos` is a member of the cluster's list.
std::size_t ResourceLimits::index_of(const QosConfig& qos) const {
  return static_cast<std::size_t>(&qos - cluster_.qos().data());
}

// The scope's association is a user; its parent is the account.
std::string ResourceLimits::account_of(const LimitScope& scope) const {
  return cluster_.accounts()[*cluster_.accounts()[*scope.association].parent].name;
}

// Returns the holder's own sums: of all jobs of the QOS, or of everything below the association.
const ResourceLimits::Held& ResourceLimits::held(const LimitHolder& holder) const {
  return holder.qos != nullptr ? qos_[index_of(*holder.qos)].all
                               : associations_[holder.association->index()];
}

// A limit on users that an account has counts for each user in it by itself. A user who holds
// nothing in a QOS has no entry there, and reads of limits make none.
const ResourceLimits::Held& ResourceLimits::held_by_user(const LimitHolder& holder,
                                                         const LimitScope& scope,
                                                         const std::string& user) const {
  if (holder.qos == nullptr) return associations_[scope.association->index()];
  const auto& users = qos_[index_of(*holder.qos)].by_user;
  const auto at = users.find(user);
  return at == users.end() ? none<Held>() : at->second;
}

// Limits per account are limits of QOS, so the holder is one.
const ResourceLimits::Held& ResourceLimits::held_by_account(const LimitHolder& holder,
                                                            const LimitScope& scope) const {
  if (!scope.association) return none<Held>();
  const auto& accounts = qos_[index_of(*holder.qos)].by_account;
  const auto at = accounts.find(account_of(scope));
  return at == accounts.end() ? none<Held>() : at->second;
}

// R9.9, before nodes are looked for. A job that starts adds one, so the limit is reached when as
// many run already. The sums count allocated jobs, running and suspended ones alike: both hold
// their nodes.
Hit ResourceLimits::over_jobs(const LimitScope& scope, const std::string& user) const {
  // The order (group, account, user) decides which reason is shown.
  const auto above = [&](const LimitHolder& holder, const Held& used, int limit, Reason of_qos,
                         Reason of_association, const char* what) -> Hit {
    if (used.jobs < limit) return std::nullopt;
    return LimitHit{holder.qos != nullptr ? of_qos : of_association,
                    would_be(holder.name(cluster_), limit, what, used.jobs + 1)};
  };
  if (auto hit = scope.groups(
          [](const Limits& of) -> const auto& { return of.group_jobs; },
          [&](const LimitHolder& holder, int limit) {
            return above(holder, held(holder), limit, Reason::kQosGrpJobsLimit,
                         Reason::kAssocGrpJobsLimit, "jobs in all");
          })) {
    return hit;
  }
  if (auto hit = scope.first(
          [](const Limits& of) -> const auto& { return of.account_jobs; }, false,
          [&](const LimitHolder& holder, int limit) {
            return above(holder, held_by_account(holder, scope), limit, Reason::kMaxJobsPerAccount,
                         Reason::kNone, "jobs per account");
          })) {
    return hit;
  }
  return scope.first(
      [](const Limits& of) -> const auto& { return of.user_jobs; }, true,
      [&](const LimitHolder& holder, int limit) {
        return above(holder, held_by_user(holder, scope, user), limit,
                     Reason::kQosMaxJobsPerUserLimit, Reason::kAssocMaxJobsLimit, "jobs per user");
      });
}

// GrpWall: the run time that the group has used, which decays like all usage (R9.11).
Hit ResourceLimits::over_wall(const LimitScope& scope) const {
  return scope.groups(
      [](const Limits& of) -> const auto& { return of.group_wall; },
      [&](const LimitHolder& holder, base::Duration limit) -> Hit {
        const Used& used =
            holder.qos != nullptr
                ? usage_.of(QosIndex{static_cast<std::int32_t>(index_of(*holder.qos))})
                : usage_.of(*holder.association);
        // Only the time that was used counts, not the time of this job: it may start while any is
        // left.
        if (std::chrono::milliseconds{used.wall_milli} < limit) return std::nullopt;
        const auto minutes = std::chrono::ceil<std::chrono::minutes>(limit).count();
        return LimitHit{
            holder.qos != nullptr ? Reason::kQosGrpWallLimit : Reason::kAssocGrpWallLimit,
            holder.name(cluster_) + " allows " + std::to_string(minutes) +
                " minutes of run time in all, and they are used up"};
      });
}

// Asked of each record of each pass, so nothing is worked out here that depends on nodes.
std::optional<LimitHit> ResourceLimits::over_before(const Job& job,
                                                    PartitionIndex partition) const {
  if (auto hit = licenses_.over(job)) return hit;
  return over_before_but_licenses(job, partition);
}

std::optional<LimitHit> ResourceLimits::over_before_but_licenses(const Job& job,
                                                                 PartitionIndex partition) const {
  if (!any_) return std::nullopt;
  const LimitScope scope = scope_of(job, partition);
  if (auto hit = over_jobs(scope, job.request->user)) return hit;
  return over_wall(scope);
}

// For a job for which no nodes are free. One that is over a limit must not block the jobs behind
// it, and shows that limit as its reason.
std::optional<LimitHit> ResourceLimits::over_as_asked(const Job& job,
                                                      PartitionIndex partition) const {
  if (!any_) return std::nullopt;
  const LimitScope scope = scope_of(job, partition);
  const TresCounts counts = asked_by(*job.request, partition);
  // No nodes are known yet: all of them count as new to the group.
  if (auto hit = over_tres(scope, job.request->user, {.counts = counts})) return hit;
  return over_limits_with_nodes(scope, counts);
}

// Nodes that the group holds already add nothing to its number of nodes, once the nodes are known
// (R9.10).
std::optional<LimitHit> ResourceLimits::over(const Job& job, PartitionIndex partition,
                                             const Allocation& allocation) const {
  if (!any_) return std::nullopt;
  const LimitScope scope = scope_of(job, partition);
  TresCounts counts = sched::held_by(cluster_, allocation, partition);
  name_gpu_types(cluster_, *job.request, static_cast<int>(allocation.nodes.size()), counts);
  if (auto hit =
          over_tres(scope, job.request->user, {.counts = counts, .nodes = &allocation.nodes})) {
    return hit;
  }
  return over_limits_with_nodes(scope, counts);
}

// Billing follows from what is asked for, as it would from an allocation of just that.
TresCounts ResourceLimits::asked_by(const JobRequest& request, PartitionIndex partition) const {
  TresCounts counts = requested(cluster_, request, partition);
  counts[Tres::kBilling] = billing_milli(cluster_, partition, counts) / 1000;
  return counts;
}

// A job for which no nodes are free counts as if all of its nodes were new to the group (random
// scenario rnd_limits_018). For example, a group holds nodes 1 and 2, and the job would get 2 and
// 3: with it the group has three.
std::int64_t ResourceLimits::with(const Held& used, const Wanted& wanted, const TresKind& kind) {
  // DenyOnLimit asks as if the group held nothing.
  if (wanted.alone) return wanted.counts[kind];
  if (kind.tres != Tres::kNode) return used.tres[kind] + wanted.counts[kind];
  const auto used_count = static_cast<std::int64_t>(used.nodes.size());
  if (wanted.nodes == nullptr) return used_count + wanted.counts[kind];
  // Nodes that the group holds already add nothing.
  return used_count + std::ranges::count_if(*wanted.nodes, [&](const NodeAllocation& use) {
           return !used.nodes.contains(use.node);
         });
}

// For each resource the group, the account and the user, in this order: the first that would be
// exceeded is the reason. The sum with the job may be equal to the limit.
Hit ResourceLimits::over_tres(const LimitScope& scope, const std::string& user,
                              const Wanted& wanted) const {
  const auto above = [&](LimitKind which, const LimitHolder& holder, const Held& used,
                         const TresKind& kind, std::int64_t limit, const char* whose) -> Hit {
    // Up to the limit and not below it: a group of 5 CPUs may hold 5.
    const std::int64_t sum = with(used, wanted, kind);
    if (sum <= limit) return std::nullopt;
    return LimitHit{tres_reason(which, kind.tres, holder.qos != nullptr),
                    would_be(holder.name(cluster_), limit, sched::unit_of(kind) + whose, sum)};
  };
  for (const TresKind& kind : cluster_.tres_kinds()) {
    if (auto hit = scope.groups(
            [&](const Limits& of) -> const auto& { return of.group_tres[kind]; },
            [&](const LimitHolder& holder, std::int64_t limit) {
              return above(LimitKind::kGroup, holder, held(holder), kind, limit, " in all");
            })) {
      return hit;
    }
    if (auto hit = scope.first(
            [&](const Limits& of) -> const auto& { return of.account_tres[kind]; }, false,
            [&](const LimitHolder& holder, std::int64_t limit) {
              return above(LimitKind::kAccount, holder, held_by_account(holder, scope), kind, limit,
                           " per account");
            })) {
      return hit;
    }
    if (auto hit = scope.first(
            [&](const Limits& of) -> const auto& { return of.user_tres[kind]; }, false,
            [&](const LimitHolder& holder, std::int64_t limit) {
              return above(LimitKind::kUser, holder, held_by_user(holder, scope, user), kind, limit,
                           " per user");
            })) {
      return hit;
    }
  }
  return std::nullopt;
}

// R9.8: these alone turn a job away without DenyOnLimit.
std::optional<std::string> ResourceLimits::over_submit(const LimitScope& scope,
                                                       const JobRequest& request) const {
  const std::string& user = request.user;
  const int more = request.array ? request.array->tasks.size() : 1;
  const auto above = [&](const LimitHolder& holder, const Held& used, int limit,
                         const char* what) -> std::optional<std::string> {
    if (used.submitted + more <= limit) return std::nullopt;
    return would_be(holder.name(cluster_), limit, what, used.submitted + more);
  };
  if (auto hit = scope.groups(
          [](const Limits& of) -> const auto& { return of.group_submit; },
          [&](const LimitHolder& holder, int limit) {
            return above(holder, held(holder), limit, "submitted jobs in all");
          })) {
    return hit;
  }
  if (auto hit = scope.first(
          [](const Limits& of) -> const auto& { return of.account_submit; }, false,
          [&](const LimitHolder& holder, int limit) {
            return above(holder, held_by_account(holder, scope), limit,
                         "submitted jobs per account");
          })) {
    return hit;
  }
  return scope.first(
      [](const Limits& of) -> const auto& { return of.user_submit; }, true,
      [&](const LimitHolder& holder, int limit) {
        return above(holder, held_by_user(holder, scope, user), limit, "submitted jobs per user");
      });
}

// One partition that takes the job is enough. The first one that takes it decides, and the message
// is of the first that does not.
std::optional<std::string> ResourceLimits::refused_at_submit(const JobRequest& request) const {
  if (auto refused = licenses_.refused_at_submit(request)) return refused;
  if (!any_) return std::nullopt;
  std::optional<std::string> why;
  // DenyOnLimit asks what the limits never allow: nothing that others hold counts (`alone`), since
  // that can change.
  for (const PartitionIndex partition : partitions_of(cluster_, request)) {
    const LimitScope scope = limit_scope(cluster_, request, partition);
    std::optional<std::string> refused = over_submit(scope, request);
    const bool denies = std::ranges::any_of(
        scope.qos, [](const QosConfig* qos) { return qos != nullptr && qos->deny_on_limit; });
    if (!refused && denies) {
      const TresCounts counts = asked_by(request, partition);
      Hit hit = over_job_limits(scope, counts, request.time_limit);
      if (!hit) hit = over_tres(scope, request.user, {.counts = counts, .alone = true});
      if (hit) refused = hit->message + ", and DenyOnLimit is set: ask for less";
    }
    if (!refused) return std::nullopt;
    if (!why) why = std::move(refused);
  }
  return why;
}

}  // namespace sched
