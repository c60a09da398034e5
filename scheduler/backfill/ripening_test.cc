// When nodes have what a job needs. Nodes a to d of 4 cores.
#include "scheduler/backfill/ripening.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Returns "a1 c30 " for two nodes, ripe at 1 and at 30 s.
std::string order_of(Ripening& ripening, const EndsWorld& world) {
  std::string order;
  for (std::size_t i = 0; const Ripening::Node* node = ripening.node(i); ++i) {
    order += world.cluster.spec_at(node->rank).name +
             std::to_string(base::micros_since_epoch(node->at) / 1'000'000) + " ";
  }
  return order;
}

// Free ones first, by rank, then by the ends.
TEST(Ripening, NodesRipenInTheOrderOfTheEnds) {
  EndsWorld world{EndsWorld::of_cores()};
  world.running(8, "a", 60);
  world.running(9, "c", 30);
  Ripening ripening{world.cluster, world.ends_at(1), {.cores = 4}};
  EXPECT_EQ(order_of(ripening, world), "b1 d1 c30 a60 ");
}

// Node a has a free core and gets two more at 30 and one at 60.
TEST(Ripening, ANodeRipensWhenEnoughJobsHaveLeftIt) {
  EndsWorld world{EndsWorld::of_cores()};
  world.running_on_some(8, "a", 2, 30);
  world.running_on_some(9, "a", 1, 60);
  world.running(7, "bcd", 90);
  Ends& ends = world.ends_at(1);
  Ripening one{world.cluster, ends, {.cores = 1}}, three{world.cluster, ends, {.cores = 3}},
      four{world.cluster, ends, {.cores = 0}}, five{world.cluster, ends, {.cores = 5}};
  EXPECT_EQ(order_of(one, world), "a1 b90 c90 d90 ");
  EXPECT_EQ(order_of(three, world), "a30 b90 c90 d90 ");
  EXPECT_EQ(order_of(four, world), "a60 b90 c90 d90 ") << "all of its cores";
  EXPECT_EQ(order_of(five, world), "");
}

// There are 8,000 MiB on each node.
TEST(Ripening, ANodeRipensWhenItsMemoryIsFree) {
  EndsWorld world{EndsWorld::of_cores()};
  Job& holder = world.running_on_some(8, "a", 1, 30);
  holder.allocation.nodes.front().memory = MemoryMiB{5000};
  Ripening ripening{
      world.cluster, world.ends_at(1), {.cores = 1, .memory = {CountedPer::kNode, 3001}}};
  EXPECT_EQ(order_of(ripening, world), "b1 c1 d1 a30 ");
}

class FirstEnoughTest : public ::testing::Test {
 protected:
  // Node a has one free core at once, three more at 40; b comes free at 60; c and d at 90.
  FirstEnoughTest() {
    world_.running_on_some(8, "a", 3, 40);
    world_.running(7, "b", 60);
    world_.running(9, "cd", 90);
    world_.ends_at(1);
  }
  double first_enough(const std::string& letters, const Needs& needs) {
    Ripening ripening{world_.cluster, world_.ends, needs.each};
    const Ripening::Enough enough = ripening.first_enough(world_.set_of(letters), needs);
    nodes_count_ = enough.count;
    if (enough.at == base::kNever) return -1;
    return static_cast<double>(base::micros_since_epoch(enough.at)) / 1e6;
  }

  EndsWorld world_{EndsWorld::of_cores()};
  std::size_t nodes_count_ = 0;  // of the last answer
};

TEST_F(FirstEnoughTest, SoManyOfTheNodesInQuestionMustBeRipe) {
  EXPECT_EQ(first_enough("abcd", {}), 1);
  EXPECT_EQ(first_enough("bcd", {}), 60);
  EXPECT_EQ(first_enough("abcd", {.nodes_min = 2}), 60);
  EXPECT_EQ(first_enough("acd", {.nodes_min = 3}), 90);
  EXPECT_EQ(first_enough("ab", {.nodes_min = 3}), -1);
}

// In the order in which they ripen, a first; those that are not in question count too.
TEST_F(FirstEnoughTest, SoManyNodesAreRipeThen) {
  first_enough("bcd", {});
  EXPECT_EQ(nodes_count_, 2);
  first_enough("acd", {.nodes_min = 3});
  EXPECT_EQ(nodes_count_, 4);
  first_enough("abcd", {.cores = 5, .each_is_enough = false});
  EXPECT_EQ(nodes_count_, 2) << "a and b have five";
  first_enough("ab", {.nodes_min = 3});
  EXPECT_EQ(nodes_count_, 0);
}

// Nodes that are ripe go on to gain what other jobs leave there.
TEST_F(FirstEnoughTest, TogetherTheyMustHaveWhatTheJobNeedsInAll) {
  const auto in_all = [](std::int64_t cores) {
    return Needs{.cores = cores, .each_is_enough = false};
  };
  EXPECT_EQ(first_enough("abcd", in_all(4)), 40);
  EXPECT_EQ(first_enough("abcd", in_all(5)), 60);
  EXPECT_EQ(first_enough("abcd", in_all(16)), 90);
  EXPECT_EQ(first_enough("abcd", in_all(17)), -1);
  EXPECT_EQ(first_enough("bcd", in_all(4)), 60);
  // 8,000 MiB on a at once, and on b at 60.
  const Needs memory{.each = {.memory = {.per = CountedPer::kCpu, .amount = 1}},
                     .memory = 8001,
                     .each_is_enough = false};
  EXPECT_EQ(first_enough("abcd", memory), 60);
}

}  // namespace
}  // namespace sched::testing
