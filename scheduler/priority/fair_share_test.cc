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

// The factors of the users in thousandths, in their order.
std::vector<int> factors(const std::vector<Account>& accounts, const std::vector<User>& users,
                         bool fair_tree, int dampening = 1) {
  Configuration configuration;
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
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a"}, {"u2", "b"}}, true), (Factors{1000, 1000}));
}

// u1 used nothing of a's; in b u3 used less of its five sixths than u2 of its one.
TEST(FairTree, RanksAccountsFirstAndThenTheirUsers) {
  EXPECT_EQ(factors({{"a", 50}, {"b", 50}}, {{"u1", "a"}, {"u2", "b", 1, 120}, {"u3", "b", 5, 240}},
                    true),
            (Factors{1000, 333, 666}));
}

// All users of the account that is served worse come before those of the other.
TEST(FairTree, AUserThatUsedLittleIsBehindWhenItsAccountUsedMuch) {
  EXPECT_EQ(
      factors({{"a"}, {"b"}}, {{"u1", "a", 1, 100}, {"u2", "b", 1, 900}, {"u3", "b", 1, 1}}, true),
      (Factors{1000, 333, 666}));
}

// Accounts with equal levels are ranked as one, and equal users share a rank.
TEST(FairTree, TiesAreRankedTogether) {
  EXPECT_EQ(
      factors({{"a"}, {"b"}}, {{"u1", "a", 1, 90}, {"u2", "a", 1, 10}, {"u3", "b", 1, 100}}, true),
      (Factors{333, 1000, 666}));
  EXPECT_EQ(
      factors({{"a"}, {"b"}}, {{"u1", "a", 1, 50}, {"u2", "a", 1, 50}, {"u3", "b", 1, 100}}, true),
      (Factors{1000, 1000, 1000}));
}

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

// u2 is in the account that used everything: U = 0 + (1 − 0) × 1/2, S = 1/4: 2^-2.
TEST(ClassicFairShare, APartOfWhatSiblingsUsedCountsToo) {
  EXPECT_EQ(factors({{"a"}, {"b"}}, {{"u1", "a", 1, 100}, {"u2", "a"}, {"u3", "b"}}, false),
            (Factors{62, 250, 1000}));
}

TEST(ClassicFairShare, NoSharesGiveNothing) {
  EXPECT_EQ(factors({{"a"}, {"b", 0}}, {{"u1", "a"}, {"u2", "b"}}, false), (Factors{1000, 0}));
}

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

TEST(HalfToThe, IsExactAtWholeNumbersAndCloseBetween) {
  EXPECT_EQ(half_to_the(0), 1);
  EXPECT_EQ(half_to_the(3), 0.125);
  EXPECT_NEAR(half_to_the(0.5), 0.70710678, 1e-8);
  EXPECT_NEAR(half_to_the(2.3), 0.20306310, 1e-8);
  EXPECT_EQ(half_to_the(1e9), 0);
}

}  // namespace
}  // namespace sched
