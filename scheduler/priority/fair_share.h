// FairShare: the fair-share factor of every user (R9.3, 9.2): 1 for those who used nothing, less
// the more they used of their share.
//
//   fair tree  accounts and users are ranked: among siblings those come first that used least of
//              their shares, and all users of an account come before those of the next account. The
//              factor is the rank divided by the number of users.
//   classic    2^(-usage / shares): the effective usage of a user, and its share of the whole.
//
// Factors are worked out once a period, after which jobs that begin and end do not change them,
// with one exception: in the classic rule the usage of a user itself is looked at when its factor
// is first asked for in a period. (Both as Slurm does; recordings rnd_fairshare_106 and _112.)
//
// Cost: a period O(associations × log associations); a factor O(depth of the tree) or less.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/priority/usage.h"

namespace sched {

class FairShare {
 public:
  FairShare(const Cluster& cluster, const UsageLedger& usage) : cluster_{cluster}, usage_{usage} {}

  // Works shares out again: the tree of accounts changed.
  void configure();
  // A period ended: usage has decayed; what running jobs used in it has not been charged yet …
  void before_charging();
  // … and has been charged now.
  void after_charging();

  // Returns billionths. REQUIRES: a user.
  std::int64_t factor_ppb(AssociationIndex user);
  // Returns the part of the whole cluster that is due to it, in billionths.
  std::int64_t shares_ppb(AssociationIndex index) const { return shares_ppb_[index.index()]; }
  // Returns the part of all usage, in billionths; the effective one counts under the classic rule.
  std::int64_t usage_ppb(AssociationIndex index) const;
  std::int64_t effective_usage_ppb(AssociationIndex index);

 private:
  struct Rank {                // of the users that are still to be ranked
    std::int64_t next = 0;     // without ties
    std::int64_t current = 0;  // of the user before
  };
  const Association& at(AssociationIndex index) const { return cluster_.accounts()[index]; }
  // How well it is served: its part of its siblings' shares divided by its part of their usage.
  double level(AssociationIndex index) const;
  void rank(std::vector<AssociationIndex> siblings, bool tied, Rank& rank);

  const Cluster& cluster_;
  const UsageLedger& usage_;
  std::vector<std::vector<AssociationIndex>> children_;  // that share under it
  std::vector<std::int64_t> children_shares_;
  std::vector<std::int64_t> children_billed_;  // fair tree; as of the end of the period
  std::vector<std::int64_t> shares_ppb_;
  std::int64_t users_count_ = 0;
  std::vector<std::int64_t> tree_factor_ppb_;
  std::vector<std::optional<std::int64_t>> effective_ppb_;  // classic; nothing = not asked for yet
};

}  // namespace sched
