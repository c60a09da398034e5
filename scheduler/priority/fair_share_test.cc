// Fair share (9.2): what users get of what is due to them, by both rules.
#include "scheduler/priority/fair_share.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/priority/fixed_point.h"

namespace sched {
namespace {

struct Account {
  std::string name;
  std::int64_t shares = 1;
  std::string parent = {};
};
struct User {
  std::string name;
  std::string account;
  std::int64_t shares = 1;
  std::int64_t used = 0;
};

// Returns the factors of the users in thousandths, in their order.
std::vector<int> factors(const std::vector<Account>& accounts, const std::vector<User>& users,
                         bool fair_tree, int dampening = 1, bool as_recorded = false) {
  Configuration configuration;
  configuration.cluster.quirks.tied_accounts_rank_apart = as_recorded;
  configuration.cluster.priority.type = PriorityType::kMultifactor;
  configuration.cluster.priority.fair_tree = fair_tree;
  configuration.cluster.priority.dampening = dampening;
  UsageState state;
  for (const Account& each : accounts) {
    configuration.accounts.push_back(
        {.name = each.name, .parent = each.parent, .shares = {.count = each.shares}});
  }
  for (const User& each : users) {
    configuration.users.push_back(
        {.name = each.name, .account = each.account, .shares = {.count = each.shares}});
    // Usage is kept in thousandths.
    state.users.push_back({each.account, each.name, Used{.billed = each.used * 1000}});
  }
  Cluster cluster;
  cluster.configure(configuration);
  UsageLedger usage{cluster};
  usage.configure();
  usage.restore(state);
  FairShare fair_share{cluster, usage};
  fair_share.configure();
  std::vector<int> result;
  for (const User& each : users) {
    const auto index = cluster.accounts().find_user(each.name, each.account);
    result.push_back(static_cast<int>(fair_share.factor_ppb(*index) / 1'000'000));
  }
  return result;
}

using Factors = std::vector<int>;

TEST(FairTree, UsersThatUsedNothingAreFirst) {
  // Equal levels (both infinite): one rank, that of the first of two.
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a"}, {"u2", "b"}}, true), (Factors{1000, 1000}));
}

// a used nothing: infinite level, so u1 has rank 3 of 3. In b u2 has a sixth of the shares and a
// third of the usage, level 1/2; u3 five sixths and two thirds, level 5/4. u3 has rank 2, u2 rank
// 1.
TEST(FairTree, RanksAccountsFirstAndThenTheirUsers) {
  EXPECT_EQ(factors({{"a", 50}, {"b", 50}}, {{"u1", "a"}, {"u2", "b", 1, 120}, {"u3", "b", 5, 240}},
                    true),
            (Factors{1000, 333, 666}));
}

// The account decides first: a used 100 and b 901 of equal shares, so u1 is before all of b, also
// before u3, which used 1.
TEST(FairTree, AUserThatUsedLittleIsBehindWhenItsAccountUsedMuch) {
  EXPECT_EQ(
      factors({{"a"}, {"b"}}, {{"u1", "a", 1, 100}, {"u2", "b", 1, 900}, {"u3", "b", 1, 1}}, true),
      (Factors{1000, 333, 666}));
}

// Both accounts used 100 of equal shares, so their users are ranked as siblings. Levels: u2 (1/2) /
// (10/100) = 5, u3 1, u1 (1/2) / (90/100) = 5/9. In the second case all three are 1.
TEST(FairTree, TiesAreRankedTogether) {
  EXPECT_EQ(
      factors({{"a"}, {"b"}}, {{"u1", "a", 1, 90}, {"u2", "a", 1, 10}, {"u3", "b", 1, 100}}, true),
      (Factors{333, 1000, 666}));
  EXPECT_EQ(
      factors({{"a"}, {"b"}}, {{"u1", "a", 1, 50}, {"u2", "a", 1, 50}, {"u3", "b", 1, 100}}, true),
      (Factors{1000, 1000, 1000}));
}

// Both accounts used 100 of equal shares. Slurm 22.05 ranks b's users, then a's: u2 has rank 3 of
// 3, u3, the first of a, the same rank, and u1 rank 1.
TEST(FairTree, AsRecordedTheFirstUserOfATiedAccountGetsTheLastRank) {
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a", 10, 100}, {"u2", "b", 1, 100}, {"u3", "a", 5}},
                    true, 1, true),
            (Factors{333, 1000, 1000}));
}

// u2 used nothing, but its account has no shares: level 0, rank 1 of 2.
TEST(FairTree, NoSharesAreServedLast) {
  EXPECT_EQ(factors({{"a"}, {"b", 0}}, {{"u1", "a", 1, 100}, {"u2", "b"}}, true),
            (Factors{1000, 500}));
}

// 2^(-U/S): all was used by u1, whose share is half: 2^-2. u2 has used nothing.
TEST(ClassicFairShare, HalvesForEachShareThatWasUsed) {
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a", 1, 100}, {"u2", "b"}}, false),
            (Factors{250, 1000}));
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a", 1, 100}, {"u2", "b"}}, false, 2),
            (Factors{500, 1000}))
      << "dampened";
}

// Both users of a have S = 1/2 × 1/2 = 1/4. u1 used everything: 2^-4 = 0.0625. u2 used nothing, and
// its account everything: U = 0 + (1 − 0) × 1/2, 2^-2. u3 is in an account that used nothing.
TEST(ClassicFairShare, APartOfWhatSiblingsUsedCountsToo) {
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a", 1, 100}, {"u2", "a"}, {"u3", "b"}}, false),
            (Factors{62, 250, 1000}));
}

// R9.14: a's usage was read before its running jobs were charged: 0. So u1, its only user, is
// counted 0 as well, though it used a third of all by now (recorded: rnd_fairshare_2005).
TEST(ClassicFairShare, AnOnlyUserIsCountedExactlyWhatItsAccountIs) {
  Configuration configuration;
  configuration.cluster.priority = {.type = PriorityType::kMultifactor, .fair_tree = false};
  configuration.accounts = {{.name = "a"}, {.name = "b"}};
  configuration.users = {{.name = "u1", .account = "a"}, {.name = "u2", .account = "b"}};
  Cluster cluster;
  cluster.configure(configuration);
  UsageLedger usage{cluster};
  usage.configure();
  FairShare fair_share{cluster, usage};
  fair_share.configure();
  usage.restore({.users = {{"a", "u1", Used{.billed = 1000}}, {"b", "u2", Used{.billed = 2000}}}});
  EXPECT_EQ(fair_share.factor_ppb(*cluster.accounts().find_user("u1", "a")), kBillion);
}

// Though b has used nothing: a share of zero is used up from the beginning.
TEST(ClassicFairShare, NoSharesGiveNothing) {
  EXPECT_EQ(factors({{"a"}, {"b", 0}}, {{"u1", "a"}, {"u2", "b"}}, false), (Factors{1000, 0}));
}

// u2 is in "inner" and shares with the users of "a". Its rights and limits still go by "inner".
TEST(AccountTree, AnAccountWithSharesOfItsParentHandsItsChildrenUp) {
  Configuration configuration;
  configuration.accounts = {{.name = "a"},
                            {.name = "inner", .parent = "a", .shares = {.of_parent = true}}};
  configuration.users = {{.name = "u1", .account = "a"}, {.name = "u2", .account = "inner"}};
  Cluster cluster;
  cluster.configure(configuration);
  const AccountTree& tree = cluster.accounts();
  EXPECT_EQ(tree[*tree.find_user("u2", "")].shares_under, tree.find_account("a"));
  EXPECT_EQ(tree[*tree.find_user("u2", "")].parent, tree.find_account("inner"));
  EXPECT_EQ(tree.describe(*tree.find_user("u2", "inner")), "user u2 in account inner");
  EXPECT_FALSE(tree.find_user("u3", "").has_value());
}

// b's parent may come later; until then c stays below b.
TEST(AccountTree, AnAccountWithoutItsParentIsAChildOfTheRootAndKeepsThoseBelow) {
  Configuration configuration;
  configuration.accounts = {{.name = "c", .parent = "b"}, {.name = "b", .parent = "gone"}};
  Cluster cluster;
  cluster.configure(configuration);
  const AccountTree& tree = cluster.accounts();
  EXPECT_EQ(tree[*tree.find_account("b")].parent, tree.find_account(kRootAccount));
  EXPECT_EQ(tree[*tree.find_account("c")].parent, tree.find_account("b"));
}

// Own arithmetic, so that priorities are the same on all machines.
TEST(HalfToThe, IsExactAtWholeNumbersAndCloseBetween) {
  EXPECT_EQ(half_to_the(0), 1);
  EXPECT_EQ(half_to_the(3), 0.125);
  EXPECT_NEAR(half_to_the(0.5), 0.70710678, 1e-8);
  EXPECT_NEAR(half_to_the(2.3), 0.20306310, 1e-8);
  EXPECT_EQ(half_to_the(1e9), 0);
}

}  // namespace
}  // namespace sched
