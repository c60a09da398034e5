// Tests of what the selector has refused, and which jobs that concerns. Sets of four nodes.
#include "scheduler/backfill/refusals.h"

#include <gtest/gtest.h>

namespace sched {
namespace {

class RefusalsTest : public ::testing::Test {
 protected:
  static NodeSet first(int count) {
    NodeSet nodes{4};
    for (int rank = 0; rank < count; ++rank) nodes.set(rank);
    return nodes;
  }
  void add(const JobKind& kind, int nodes, std::size_t gone, bool may_stack = false) {
    refusals_.add({kind, may_stack, first(nodes)}, gone);
  }
  // -1 = nothing is known.
  int up_to(const JobKind& kind, int nodes, bool may_stack = false) const {
    const auto known = refusals_.up_to({kind, may_stack, first(nodes)});
    return known ? static_cast<int>(*known) : -1;
  }

  Refusals refusals_;
};

TEST_F(RefusalsTest, TellOfJobsThatNeedNoLess) {
  add({.number = 1, .nodes = 2, .tasks = 4}, 3, 7);
  EXPECT_EQ(up_to({.number = 1, .nodes = 2, .tasks = 4}, 3), 7);
  EXPECT_EQ(up_to({.number = 1, .nodes = 3, .tasks = 6}, 3), 7) << "as many tasks on each";
  EXPECT_EQ(up_to({.number = 1, .nodes = 2, .tasks = 4}, 2), 7) << "fewer nodes to choose from";
  EXPECT_EQ(up_to({.number = 1, .nodes = 2, .tasks = 4}, 4), -1) << "one node more";
  EXPECT_EQ(up_to({.number = 1, .nodes = 1, .tasks = 4}, 3), -1) << "on fewer nodes";
  EXPECT_EQ(up_to({.number = 1, .nodes = 3, .tasks = 5}, 3), -1) << "fewer tasks on each";
  EXPECT_EQ(up_to({.number = 2, .nodes = 2, .tasks = 4}, 3), -1) << "of another kind";
  EXPECT_EQ(up_to({.number = 1, .nodes = 2, .tasks = 4}, 3, true), -1) << "shared otherwise";
  refusals_.forget();
  EXPECT_EQ(up_to({.number = 1, .nodes = 2, .tasks = 4}, 3), -1);
}

TEST_F(RefusalsTest, TheOneThatReachesFurthestCounts) {
  const JobKind small{.nodes = 1, .tasks = 1}, large{.nodes = 2, .tasks = 2};
  add(small, 4, 3);
  add(large, 4, 9);
  EXPECT_EQ(up_to(large, 4), 9);
  EXPECT_EQ(up_to(small, 4), 3);
  add(small, 4, 5);
  EXPECT_EQ(up_to(small, 4), 5);
  EXPECT_EQ(up_to(large, 2), 9) << "it says more than the small one";
}

// 64 are kept, and one that says no more than a new one makes room.
TEST_F(RefusalsTest, TheOldestGoesWhenThereAreTooMany) {
  for (int number = 0; number < 64; ++number) {
    add({.number = number, .nodes = 1, .tasks = 1}, 4, 1);
  }
  add({.number = 63, .nodes = 1, .tasks = 1}, 4, 2);
  EXPECT_EQ(up_to({.number = 0, .nodes = 1, .tasks = 1}, 4), 1) << "it replaced its like";
  add({.number = 64, .nodes = 1, .tasks = 1}, 4, 1);
  EXPECT_EQ(up_to({.number = 0, .nodes = 1, .tasks = 1}, 4), -1);
  EXPECT_EQ(up_to({.number = 1, .nodes = 1, .tasks = 1}, 4), 1);
}

}  // namespace
}  // namespace sched
