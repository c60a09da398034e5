#include "scheduler/priority/fair_share.h"

#include <algorithm>
#include <limits>

#include "scheduler/priority/fixed_point.h"

namespace sched {

// Works out what follows from the tree alone: children by the account under which they share, sums
// of shares, and each association's part of all shares (S of R9.13, in billionths). Then both rules
// are worked out with the usage of the moment.
void FairShare::configure() {
  const std::vector<Association>& all = cluster_.accounts().all();
  children_.assign(all.size(), {});
  children_shares_.assign(all.size(), 0);
  shares_ppb_.assign(all.size(), kBillion);
  tree_factor_ppb_.assign(all.size(), kBillion);
  effective_ppb_.assign(all.size(), std::nullopt);
  users_count_ = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].is_user) ++users_count_;
    // R9.15: an account with Fairshare=parent has no place among its siblings: its children count
    // as its parent's (shares_under). A user with it stays, and counts as its account.
    if (all[i].shares.of_parent && !all[i].is_user) continue;
    const std::size_t under = all[i].shares_under->index();
    children_[under].push_back(AssociationIndex{static_cast<std::int32_t>(i)});
    if (!all[i].shares.of_parent) children_shares_[under] += all[i].shares.count;
  }
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::size_t under = all[i].shares_under->index();
    const std::int64_t part =
        all[i].shares.of_parent ? kBillion : ppb(all[i].shares.count, children_shares_[under]);
    // The product of the parts on the way down. Parents come before their children, so the parents'
    // products are known.
    shares_ppb_[i] = times_ppb(part, shares_ppb_[under]);
  }
  before_charging();
  after_charging();
}

// The root's usage is the sum of all.
std::int64_t FairShare::usage_ppb(AssociationIndex index) const {
  return ppb(usage_.of(index).billed, usage_.of(AssociationIndex{0}).billed);
}

// U of the classic rule (R9.13): own + (U of the parent − own) × the part of the siblings' shares
// that is its own. A user with little usage in a busy account is thus counted a part of what its
// siblings used; the children of the root are counted their own usage only. Remembered for the
// period, because Slurm too works it out once (R9.14).
std::int64_t FairShare::effective_usage_ppb(AssociationIndex index) {
  std::optional<std::int64_t>& known = effective_ppb_[index.index()];
  if (known) return *known;
  const Association& association = at(index);
  const std::int64_t own = usage_ppb(index);
  // Set before the recursion: the root, and children of the root, stop here.
  known = own;
  if (!association.parent) return *known;
  const AssociationIndex under = *association.shares_under;
  if (association.shares.of_parent) return *(known = effective_usage_ppb(under));
  if (under.value() == 0) return *known;
  const std::int64_t excess = effective_usage_ppb(under) - own;
  const std::int64_t shares_of_all = children_shares_[under.index()];
  if (shares_of_all == 0) return *known;
  // Exact: an only child is counted what its account is, and a billionth more would put its jobs
  // behind those of users who used nothing. Shares are below 2^32, so this fits 64 bits.
  known = own + excess * association.shares.count / shares_of_all;
  return *known;
}

// The classic rule's part of a period's end; nothing for the fair tree.
void FairShare::before_charging() {
  // R9.14: accounts now, before running jobs are charged; users when they are first asked for.
  // (Recorded.)
  if (cluster_.accounts().empty() || cluster_.parameters().priority.fair_tree) return;
  effective_ppb_.assign(effective_ppb_.size(), std::nullopt);
  const std::vector<Association>& all = cluster_.accounts().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_user) effective_usage_ppb(AssociationIndex{static_cast<std::int32_t>(i)});
  }
}

// The fair tree sees what running jobs were just charged for (R9.14).
void FairShare::after_charging() {
  if (cluster_.accounts().empty() || !cluster_.parameters().priority.fair_tree) return;
  children_billed_.assign(children_.size(), 0);
  for (std::size_t i = 0; i < children_.size(); ++i) {
    for (const AssociationIndex child : children_[i])
      children_billed_[i] += usage_.of(child).billed;
  }
  Rank from{.next = users_count_, .current = users_count_};
  rank(children_[0], false, from);
}

// R9.12. A double, but one that is the same on every machine: sums of integers that are divided,
// which IEEE 754 defines to the last bit (fixed_point.h).
double FairShare::level(AssociationIndex index) const {
  const Association& association = at(index);
  const AssociationIndex under = *association.shares_under;
  if (association.shares.of_parent) {  // a user that counts as its account
    return under.value() == 0 ? std::numeric_limits<double>::infinity() : level(under);
  }
  // No shares come last, even if nothing was used; nothing used comes first.
  if (association.shares.count == 0) return 0;
  if (usage_.of(index).billed == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(association.shares.count) /
         static_cast<double>(children_shares_[under.index()]) /
         (static_cast<double>(usage_.of(index).billed) /
          static_cast<double>(children_billed_[under.index()]));
}

// 1. Siblings are ordered by their level, the best served last; users come before accounts of the
//    same level.
// 2. A user gets the next rank, or that of the user before it if their levels are equal.
// 3. An account hands the ranks on to its children. The children of accounts of one level are
//    ranked together, as if they were siblings. Slurm 22.05 goes through such accounts one after
//    the other, the latest first, and the first user of the next gets the rank of the last user
//    before it (recorded).
void FairShare::rank(std::vector<AssociationIndex> siblings, bool tied, Rank& ranks) {
  struct Placed {
    double level;
    bool is_account;
    AssociationIndex index;
  };
  const bool merges = !cluster_.parameters().quirks.tied_accounts_rank_apart;
  std::vector<Placed> order;
  for (const AssociationIndex index : siblings) {
    order.push_back({level(index), !at(index).is_user, index});
  }
  std::sort(order.begin(), order.end(), [&](const Placed& a, const Placed& b) {  // 1
    if (a.level != b.level) return a.level > b.level;
    if (a.is_account != b.is_account) return !a.is_account;
    return merges ? a.index < b.index : b.index < a.index;
  });
  for (std::size_t i = 0; i < order.size();) {
    // `tied`: the first of these is equal to the user ranked just before them, in another account.
    const bool same = i > 0 ? order[i].level == order[i - 1].level : tied;
    if (!order[i].is_account) {  // 2
      if (!same) ranks.current = ranks.next;
      tree_factor_ppb_[order[i].index.index()] = ppb(ranks.current, users_count_);
      // Ranks are used up by ties, too: after two users of rank 5 comes rank 3.
      --ranks.next;
      ++i;
      continue;
    }
    std::vector<AssociationIndex> children;  // 3
    const std::size_t first = i;
    do {
      const std::vector<AssociationIndex>& of = children_[order[i].index.index()];
      children.insert(children.end(), of.begin(), of.end());
      ++i;
    } while (merges && i < order.size() && order[i].level == order[first].level);
    rank(std::move(children), same, ranks);
  }
}

// R9.3: the tree's rank divided by the number of users, or 2^(−U / S / FairShareDampeningFactor).
std::int64_t FairShare::factor_ppb(AssociationIndex user) {
  const PriorityParameters& parameters = cluster_.parameters().priority;
  if (parameters.fair_tree) return tree_factor_ppb_[user.index()];
  const std::int64_t shares = shares_ppb(user);
  if (shares <= 0) return 0;
  const double used = static_cast<double>(effective_usage_ppb(user)) / static_cast<double>(shares) /
                      static_cast<double>(parameters.dampening);
  return static_cast<std::int64_t>(half_to_the(std::max(used, 0.0)) * 1e9);
}

}  // namespace sched
