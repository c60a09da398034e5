#include "scheduler/backfill/license_plan.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

TEST(LicensePlan, FindsWhenEnoughAreFreeForAsLong) {
  LicensePlan plan{{{"foo", 2}}};
  const Licenses one{{"foo", 1}}, two{{"foo", 2}};
  plan.take(one, at(0), at(10));
  plan.take(two, at(20), at(30));
  EXPECT_EQ(plan.first_free(one, at(0), seconds(20)), at(0));
  EXPECT_EQ(plan.first_free(one, at(0), seconds(21)), at(30));
  EXPECT_EQ(plan.first_free(two, at(0), seconds(10)), at(10));
  EXPECT_EQ(plan.first_free(two, at(25), seconds(1)), at(30));
  EXPECT_EQ(plan.first_free({{"foo", 3}}, at(0), seconds(1)), std::nullopt);
  EXPECT_EQ(plan.first_free({{"bar", 1}}, at(0), seconds(1)), std::nullopt);
}

// The same by counting at each second.
TEST(LicensePlan, AgreesWithCounting) {
  base::Prng prng{7};
  const auto pick = [&](int below) {
    return static_cast<int>(prng.below(static_cast<std::uint64_t>(below)));
  };
  for (int round = 0; round < 2'000; ++round) {
    const Licenses total{{"a", 3}, {"b", 2}};
    LicensePlan plan{total};
    std::map<std::string, std::vector<int>> used;
    for (const auto& [name, count] : total) used[name].resize(100);
    for (int i = pick(6); i > 0; --i) {
      const std::string name = pick(2) == 0 ? "a" : "b";
      const int begin = pick(20), end = begin + pick(10), count = 1 + pick(2);
      plan.take({{name, count}}, at(begin), at(end));
      for (int t = begin; t < end; ++t) used[name][static_cast<std::size_t>(t)] += count;
    }
    const Licenses asked{{"a", 1 + pick(3)}, {"b", 1 + pick(2)}};
    const int from = pick(20), length = 1 + pick(10);
    int want = from;
    for (int t = from; t < want + length; ++t) {
      for (const auto& [name, count] : asked) {
        if (used[name][static_cast<std::size_t>(t)] + count > total.at(name)) want = t + 1;
      }
    }
    ASSERT_EQ(plan.first_free(asked, at(from), seconds(length)), at(want)) << "round " << round;
  }
}

}  // namespace
}  // namespace sched::testing
