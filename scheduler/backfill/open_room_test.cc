// Tests of the room that nodes have for one more job, and of when it is enough. Nodes a to d of 4
// cores.
#include "scheduler/backfill/open_room.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Returns "a1 c30 " for two nodes, ripe at 1 and at 30 s.
std::string order_of(OpenRoom& room, const EndsWorld& world) {
  std::string order;
  for (std::size_t i = 0; const OpenRoom::Node* node = room.node(i); ++i) {
    order += world.cluster.spec_at(node->rank).name +
             std::to_string(base::micros_since_epoch(room.at(*node)) / 1'000'000) + " ";
  }
  return order;
}

// Free ones first, by rank, then by the ends.
TEST(OpenRoom, NodesRipenInTheOrderOfTheEnds) {
  EndsWorld world{EndsWorld::of_cores()};
  world.running(8, "a", 60);
  world.running(9, "c", 30);
  OpenRoom room{world.cluster, world.books, world.ends_at(1), {.cores = 4}, std::nullopt};
  const auto ripe = [&](std::size_t count, int seconds, std::size_t most) {
    return room.ripe(world.set_of("abc"), count, base::Instant{std::chrono::seconds{seconds}},
                     most);
  };
  EXPECT_EQ(ripe(4, 60, 0), world.set_of("b"));
  EXPECT_EQ(order_of(room, world), "b1 d1 c30 a60 ");
  EXPECT_EQ(ripe(4, 60, 1), world.set_of("bc")) << "a ripens with the second end";
  EXPECT_EQ(ripe(4, 59, 2), world.set_of("bc"));
  EXPECT_EQ(ripe(3, 60, 2), world.set_of("bc")) << "d is one of three";
}

// Node a has a free core and gets two more at 30 and one at 60.
TEST(OpenRoom, ANodeRipensWhenEnoughJobsHaveLeftIt) {
  EndsWorld world{EndsWorld::of_cores()};
  world.running_on_some(8, "a", 2, 30);
  world.running_on_some(9, "a", 1, 60);
  world.running(7, "bcd", 90);
  Ends& ends = world.ends_at(1);
  const auto order = [&](int cores) {
    OpenRoom room{world.cluster, world.books, ends, {.cores = cores}, std::nullopt};
    return order_of(room, world);
  };
  EXPECT_EQ(order(1), "a1 b90 c90 d90 ");
  EXPECT_EQ(order(3), "a30 b90 c90 d90 ");
  EXPECT_EQ(order(0), "a60 b90 c90 d90 ") << "all of its cores";
  EXPECT_EQ(order(5), "");
}

// There are 8,000 MiB on each node.
TEST(OpenRoom, ANodeRipensWhenItsMemoryIsFree) {
  EndsWorld world{EndsWorld::of_cores()};
  Job& holder = world.running_on_some(8, "a", 1, 30);
  holder.allocation.nodes.front().memory = MemoryMiB{5000};
  const NodeNeeds needs{.cores = 1, .memory = {CountedPer::kNode, 3001}};
  OpenRoom room{world.cluster, world.books, world.ends_at(1), needs, std::nullopt};
  EXPECT_EQ(order_of(room, world), "b1 c1 d1 a30 ");
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
    OpenRoom room{world_.cluster, world_.books, world_.ends, needs.each, std::nullopt};
    const auto enough = room.first_enough(world_.set_of(letters), needs, 3);
    nodes_count_ = enough ? enough->count : 0;
    if (!enough) return -1;
    const base::Instant start = world_.ends.after(enough->gone);
    return static_cast<double>(base::micros_since_epoch(start)) / 1e6;
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

TEST_F(FirstEnoughTest, WithFewerEndsItIsNotKnown) {
  OpenRoom room{world_.cluster, world_.books, world_.ends, {}, std::nullopt};
  EXPECT_FALSE(room.first_enough(world_.set_of("bcd"), {}, 1)) << "b comes free with the second";
  EXPECT_TRUE(room.first_enough(world_.set_of("bcd"), {}, 2));
  EXPECT_FALSE(room.first_enough(world_.set_of("bcd"), {}, 1)) << "what is known by now";
}

// --- stacked jobs: two rows (FORCE:2) in partition p, one in partition q ---

Configuration with_rows() {
  Configuration configuration = EndsWorld::of_cores(2);
  configuration.cluster.gang = true;
  configuration.partitions.push_back(
      partition("q", PassWorld::nodes_named("abcd"), OverSubscribe::kNo, 1));
  return configuration;
}

class OpenRoomOfRowsTest : public ::testing::Test {
 protected:
  // Adds a job that runs on these cores of node a up to `end`.
  Job& running(std::int64_t id, const std::string& in, std::initializer_list<int> cores,
               double end) {
    Job& job = world_.running(id, "a", end, in);
    CoreSet& held = job.allocation.nodes.front().cores;
    held = CoreSet{};
    for (const int core : cores) held.set(core);
    return job;
  }
  // Returns with how many ends these nodes have room for a job of the partition; -1 = with none.
  int first_enough(const std::string& in, const std::string& letters, const Needs& needs) {
    const Ends& ends = world_.ends_at(1);
    OpenRoom room{world_.cluster, world_.books, ends, needs.each, world_.in(in)};
    const auto enough = room.first_enough(world_.set_of(letters), needs, ends.all().size());
    return enough ? static_cast<int>(enough->gone) : -1;
  }
  static Needs cores(int count) { return {.each = {.cores = count}, .cores = count}; }

  EndsWorld world_{with_rows()};
};

TEST_F(OpenRoomOfRowsTest, ACoreThatAJobHoldsInEachRowIsNotOpen) {
  running(1, "p", {0, 1, 2}, 30);
  EXPECT_EQ(first_enough("p", "a", cores(4)), 0) << "the second row is free";
  running(2, "p", {1, 2, 3}, 20);
  EXPECT_EQ(first_enough("p", "a", cores(2)), 0) << "1 and 2 are held in both rows";
  EXPECT_EQ(first_enough("p", "a", cores(3)), 1);
  running(3, "q", {0, 3}, 10);
  EXPECT_EQ(first_enough("p", "a", cores(2)), 0) << "another partition's rows are others";
  EXPECT_EQ(first_enough("p", "a", cores(3)), 2);
  EXPECT_EQ(first_enough("p", "ab", cores(3)), 0) << "b is free";
  EXPECT_EQ(first_enough("p", "a", cores(5)), -1);
}

// Without a second row no other job of the partition may be there.
TEST_F(OpenRoomOfRowsTest, WithOneRowCoresThatAreHeldAreNotOpen) {
  Job& job = running(1, "q", {0}, 30);
  EXPECT_EQ(first_enough("q", "a", cores(3)), 0);
  EXPECT_EQ(first_enough("q", "a", cores(4)), 1);
  job.user_suspended = true;
  EXPECT_EQ(first_enough("q", "a", cores(4)), 0) << "it holds no cores";
}

// Jobs leave node a two cores, then four.
TEST_F(OpenRoomOfRowsTest, TheNodesMustHaveTogetherWhatTheJobNeeds) {
  running(1, "q", {0, 1}, 30);
  const auto in_all = [](int cores) {
    return Needs{.nodes_min = 2, .nodes_max = 2, .cores = cores, .each_is_enough = false};
  };
  EXPECT_EQ(first_enough("q", "ab", in_all(6)), 0);
  EXPECT_EQ(first_enough("q", "ab", in_all(7)), 1);
  EXPECT_EQ(first_enough("q", "ab", in_all(9)), -1);
}

// There are 8,000 MiB on each node; memory is shared by all rows and partitions.
TEST_F(OpenRoomOfRowsTest, MemoryIsSharedByAllRows) {
  Job& holder = running(1, "q", {0}, 10);
  holder.allocation.nodes.front().memory = MemoryMiB{5000};
  Job& stopped = running(2, "p", {1}, 20);
  stopped.user_suspended = true;
  stopped.allocation.nodes.front().memory = MemoryMiB{1000};
  const auto first = [&](const CountedDemand& memory) {
    return first_enough("p", "a", {.each = {.cpus = 2, .memory = memory}});
  };
  EXPECT_EQ(first({CountedPer::kNode, 2000}), 0);
  EXPECT_EQ(first({CountedPer::kNode, 2001}), 1);
  EXPECT_EQ(first({CountedPer::kCpu, 1001}), 1) << "for each of two CPUs";
  EXPECT_EQ(first({CountedPer::kWholeNode, 0}), 2);
}

TEST_F(OpenRoomOfRowsTest, AVictimCountsIfItHasCoresOrMemoryOfTheRoom) {
  Job& job = running(1, "p", {0}, 10);
  const PartitionIndex p = world_.in("p");
  const NodeNeeds cores{}, memory{.memory = {CountedPer::kNode, 100}};
  EXPECT_TRUE(OpenRoom::counts(p, cores, job, false));
  EXPECT_FALSE(OpenRoom::counts(world_.in("q"), cores, job, true));
  job.user_suspended = true;
  EXPECT_FALSE(OpenRoom::counts(p, cores, job, true)) << "its cores are free already";
  EXPECT_TRUE(OpenRoom::counts(p, memory, job, true));
  EXPECT_FALSE(OpenRoom::counts(p, memory, job, false)) << "it keeps its memory";
}

}  // namespace
}  // namespace sched::testing
