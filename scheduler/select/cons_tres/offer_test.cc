// Offer: sums and searches over blocks and groups of nodes must say what a look at each node says.
#include "scheduler/select/cons_tres/offer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/prng.h"

namespace sched::cons_tres {
namespace {

// A node that offers nothing is not a member; count and total follow every change.
TEST(Offer, CountsTheNodesThatOfferAnything) {
  Offer offer{10};
  EXPECT_TRUE(offer.nodes().empty());
  offer.set(3, 4);
  offer.set(7, 2);
  offer.set(3, 1);
  EXPECT_EQ(offer.count(), 2);
  EXPECT_EQ(offer.total(), 3);
  offer.set(7, 0);
  EXPECT_EQ(offer.count(), 1);
  EXPECT_FALSE(offer.nodes().test(7));
}

// The tightest node is the one that offers least among those that offer enough, the first of
// equals.
TEST(Offer, FindsTheTightestNode) {
  Offer offer{6};
  for (const auto& [rank, cpus] : {std::pair{0, 8}, {1, 2}, {2, 4}, {4, 4}}) offer.set(rank, cpus);
  EXPECT_EQ(offer.tightest(0, 6, 3), 2);
  EXPECT_EQ(offer.tightest(3, 6, 3), 4);
  EXPECT_EQ(offer.tightest(0, 6, 5), 0);
  EXPECT_EQ(offer.tightest(0, 6, 9), -1);
  EXPECT_EQ(offer.tightest(3, 4, 0), -1);  // nothing is not enough for nothing
}

// Makes random changes of nodes, and after each compares a random stretch with a plain sum and a
// plain search.
void compare_with_a_look_at_each(int nodes, int rounds) {
  constexpr std::uint64_t kSeed = 20260301;
  base::Prng prng{kSeed};
  const auto below = [&](int limit) {
    return static_cast<int>(prng.below(static_cast<std::uint64_t>(limit)));
  };
  Offer offer{nodes};
  std::vector<int> plain(static_cast<std::size_t>(nodes), 0);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    const int changed = below(nodes);
    const int cpus = below(9);
    plain[static_cast<std::size_t>(changed)] = cpus;
    offer.set(changed, cpus);
    const int begin = below(nodes);
    const int end = begin + below(nodes - begin) + 1;
    const int need = below(10);
    int tightest = -1;
    for (int rank = begin; rank < end; ++rank) {
      const int here = plain[static_cast<std::size_t>(rank)];
      if (here == 0 || here < need) continue;
      if (tightest < 0 || here < plain[static_cast<std::size_t>(tightest)]) tightest = rank;
    }
    ASSERT_EQ(offer.of_run(begin, end),
              std::accumulate(plain.begin() + begin, plain.begin() + end, std::int64_t{0}));
    ASSERT_EQ(offer.tightest(begin, end, need), tightest);
    ASSERT_EQ(offer.total(), std::accumulate(plain.begin(), plain.end(), std::int64_t{0}));
  }
}

// Goal: sums of whole blocks of 64 nodes are kept up to date.
TEST(Offer, AgreesWithALookAtEachNode) {
  compare_with_a_look_at_each(300, 4'000);
}

// Goal: the same of groups of 4,096 nodes. The last ones make up no group.
TEST(Offer, AgreesWithALookAtEachOfManyNodes) {
  compare_with_a_look_at_each(2 * 4'096 + 100, 4'000);
}

}  // namespace
}  // namespace sched::cons_tres
