// ResourceLimits: what the limits of QOS, accounts and users allow, given what the jobs hold
// together (1.4; limit_scope.h says which limits count). It keeps those sums as a listener of
// JobBooks: a job that is submitted counts against GrpSubmitJobs and MaxSubmitJobs until it is
// over, a job with an allocation against all others. Nodes count once, however many jobs of the
// group are on them. Licenses come first among them: `licenses()`.
//
// Cost: a job that comes or goes O(depth of the tree × its nodes); a question O(depth), and O(its
// nodes × depth) where nodes are limited. Nothing at all while no limit is configured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/jobs/job_books.h"
#include "scheduler/limits/license_counts.h"
#include "scheduler/limits/limit_scope.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/tres.h"
#include "scheduler/priority/usage.h"

namespace sched {

class ResourceLimits {
 public:
  // `usage`: what GrpWall is compared with.
  ResourceLimits(const Cluster& cluster, JobBooks& books, const UsageLedger& usage);

  // Counts all jobs again: the configuration changed, or the request of a pending job.
  void recount();

  // Returns why a new job is turned away: too many are submitted already, or a QOS has DenyOnLimit
  // and the job asks for what its limits never allow; nullopt = it is accepted.
  std::optional<std::string> refused_at_submit(const JobRequest& request) const;
  // The job is among those that are submitted, an array with each task that waits: by = 1; not any
  // longer, because its request is about to change: −1.
  void submitted(const Job& job, int by);

  // Returns the limit that forbids the job to start in the partition, before its nodes are looked
  // for: too few licenses are free, or one on jobs and on wall time; …
  std::optional<LimitHit> over_before(const Job& job, PartitionIndex partition) const;
  // … the same without licenses; …
  std::optional<LimitHit> over_before_but_licenses(const Job& job, PartitionIndex partition) const;
  // … when none are free for it: on the resources that it asks for, so that it does not block
  // others though it may not start either; …
  std::optional<LimitHit> over_as_asked(const Job& job, PartitionIndex partition) const;
  // … and with that allocation: on resources.
  std::optional<LimitHit> over(const Job& job, PartitionIndex partition,
                               const Allocation& allocation) const;

  const LicenseCounts& licenses() const { return licenses_; }

 private:
  struct Held {
    TresCounts tres;                 // nodes are in `nodes`
    std::map<NodeIndex, int> nodes;  // and how many jobs there
    int jobs = 0;
    int submitted = 0;
  };
  struct OfQos {
    Held all;
    std::map<std::string, Held, std::less<>> by_user;
    std::map<std::string, Held, std::less<>> by_account;
  };
  // The resources that a job would add.
  struct Wanted {
    TresCounts counts;
    const std::vector<NodeAllocation>* nodes = nullptr;  // null = not known yet
    bool alone = false;                                  // what others hold does not count
  };
  enum class What { kSubmitted, kAllocated };
  void count(const Job& job, PartitionIndex partition, What what, int by);
  void count_in(Held& held, const Job& job, PartitionIndex partition, What what, int by) const;
  LimitScope scope_of(const Job& job, PartitionIndex partition) const;
  std::size_t index_of(const QosConfig& qos) const;
  std::string account_of(const LimitScope& scope) const;

  TresCounts asked_by(const JobRequest& request, PartitionIndex partition) const;
  // Returns how much of `kind` the group would hold with the job.
  static std::int64_t with(const Held& used, const Wanted& wanted, const TresKind& kind);

  const Held& held(const LimitHolder& holder) const;
  const Held& held_by_user(const LimitHolder& holder, const LimitScope& scope,
                           const std::string& user) const;
  const Held& held_by_account(const LimitHolder& holder, const LimitScope& scope) const;
  std::optional<LimitHit> over_jobs(const LimitScope& scope, const std::string& user) const;
  std::optional<LimitHit> over_wall(const LimitScope& scope) const;
  std::optional<LimitHit> over_tres(const LimitScope& scope, const std::string& user,
                                    const Wanted& wanted) const;
  std::optional<std::string> over_submit(const LimitScope& scope, const JobRequest& request) const;

  const Cluster& cluster_;
  JobBooks& books_;
  const UsageLedger& usage_;
  LicenseCounts licenses_;
  bool any_ = false;                // some limit is configured
  bool any_nodes_ = false;          // one on nodes
  std::vector<Held> associations_;  // by AssociationIndex
  std::vector<OfQos> qos_;          // by QosIndex
};

}  // namespace sched
