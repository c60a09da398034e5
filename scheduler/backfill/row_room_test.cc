// Tests of the most that nodes have for one more job if jobs are stacked. Nodes a and b of 4 cores,
// two rows (FORCE:2) in partition p, one in partition q.
#include "scheduler/backfill/row_room.h"

#include <gtest/gtest.h>

#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

Configuration shared_nodes() {
  Configuration configuration = PassWorld::one_partition();
  configuration.cluster.select = SelectType::kConsTres;
  configuration.cluster.gang = true;
  configuration.partitions = {
      partition("p", PassWorld::nodes_named("ab"), OverSubscribe::kForce, 2),
      partition("q", PassWorld::nodes_named("ab"), OverSubscribe::kNo, 1)};
  configuration.partitions.front().is_default = true;
  return configuration;
}

class RowRoomTest : public ::testing::Test {
 protected:
  RowRoomTest() : nodes_{world_.cluster.no_nodes()} {
    nodes_.set(0);
    nodes_.set(1);
  }
  // Adds a job on node a, on these of its cores.
  Job& running(std::int64_t id, const std::string& in, std::initializer_list<int> cores) {
    Job& job = world_.run(id, "a", in);
    CoreSet& held = job.allocation.nodes.front().cores;
    held = CoreSet{};
    for (const int core : cores) held.set(core);
    return job;
  }

  PassWorld world_{shared_nodes()};
  NodeSet nodes_;
};

TEST_F(RowRoomTest, ACoreThatAJobHoldsInEachRowIsNotOpen) {
  RowRoom room{world_.cluster, world_.in("p")};
  room.enter(running(1, "p", {0, 1, 2}));
  EXPECT_EQ(room.open_cores(0, 0), 4) << "the second row is free";
  Job& second = running(2, "p", {1, 2, 3});
  room.enter(second);
  EXPECT_EQ(room.open_cores(0, 0), 2) << "1 and 2 are held in both rows";
  EXPECT_EQ(room.open_cores(1, 0), 4);
  room.enter(running(3, "q", {0, 3}));
  EXPECT_EQ(room.open_cores(0, 0), 2) << "another partition's rows are others";
  room.leave(second);
  EXPECT_EQ(room.open_cores(0, 1), 4);
  EXPECT_EQ(room.open_cores(0, 0), 2) << "as it was before";
}

// Without a second row no other job of the partition may be there.
TEST_F(RowRoomTest, WithOneRowCoresThatAreHeldAreNotOpen) {
  RowRoom room{world_.cluster, world_.in("q")};
  room.enter(running(1, "q", {0}));
  EXPECT_EQ(room.open_cores(0, 0), 3);
}

TEST_F(RowRoomTest, AUserSuspendedJobHoldsNoCores) {
  RowRoom room{world_.cluster, world_.in("q")};
  Job& stopped = running(1, "q", {0});
  stopped.user_suspended = true;
  room.enter(stopped);
  EXPECT_EQ(room.open_cores(0, 0), 4);
}

// Node a has two open cores and b four.
TEST_F(RowRoomTest, AJobMayFitOnTheNodesThatHaveMost) {
  RowRoom room{world_.cluster, world_.in("q")};
  room.enter(running(1, "q", {0, 1}));
  const auto may_fit = [&](const Needs& needs) {
    return room.may_fit(nodes_, needs, 0);
  };
  EXPECT_TRUE(may_fit({.nodes_min = 2, .nodes_max = 2, .each = {.cores = 2}, .cores = 6}));
  EXPECT_FALSE(may_fit({.nodes_min = 2, .nodes_max = 2, .each = {.cores = 3}, .cores = 6}));
  EXPECT_FALSE(may_fit({.nodes_min = 2, .nodes_max = 2, .each = {.cores = 1}, .cores = 7}));
  EXPECT_TRUE(may_fit({.nodes_min = 1, .nodes_max = 1, .cores = 4}));
  EXPECT_FALSE(may_fit({.nodes_min = 1, .nodes_max = 1, .cores = 5})) << "one node alone";
  EXPECT_TRUE(may_fit({.nodes_min = 1, .nodes_max = 1, .each = {.cores = 0}}));
  EXPECT_FALSE(may_fit({.nodes_min = 2, .nodes_max = 2, .each = {.cores = 0}}));
}

// There are 8,000 MiB on each node; memory is shared by all rows and partitions.
TEST_F(RowRoomTest, AJobMayFitWhereItsMemoryIsFree) {
  RowRoom room{world_.cluster, world_.in("p")};
  Job& holder = running(1, "q", {0});
  holder.allocation.nodes.front().memory = MemoryMiB{5000};
  Job& stopped = running(2, "p", {1});
  stopped.user_suspended = true;
  stopped.allocation.nodes.front().memory = MemoryMiB{1000};
  for (const Job* job : {&holder, &stopped}) room.enter(*job);
  const auto may_fit = [&](int count, const CountedDemand& memory, std::size_t gone) {
    const Needs needs{
        .nodes_min = count, .nodes_max = count, .each = {.cpus = 2, .memory = memory}};
    return room.may_fit(nodes_, needs, gone);
  };
  EXPECT_TRUE(may_fit(2, {CountedPer::kNode, 2000}, 0));
  EXPECT_FALSE(may_fit(2, {CountedPer::kNode, 2001}, 0)) << "b alone has more";
  EXPECT_TRUE(may_fit(1, {CountedPer::kNode, 8000}, 0));
  EXPECT_FALSE(may_fit(2, {CountedPer::kCpu, 1001}, 0)) << "for each of two CPUs";
  room.leave(holder);
  EXPECT_TRUE(may_fit(2, {CountedPer::kNode, 7000}, 1));
  EXPECT_FALSE(may_fit(2, {CountedPer::kWholeNode, 0}, 1));
  room.leave(stopped);
  EXPECT_TRUE(may_fit(2, {CountedPer::kWholeNode, 0}, 2));
}

// The room as jobs leave is known about each number of them, in whatever order it is asked for.
TEST_F(RowRoomTest, AnyNumberOfJobsGoneCanBeAskedAbout) {
  RowRoom room{world_.cluster, world_.in("q")};
  Job& holder = running(1, "q", {0, 1});
  Job& of_others = running(2, "p", {2, 3});
  Job& last = running(3, "q", {2});
  for (const Job* job : {&holder, &of_others, &last}) room.enter(*job);
  for (const Job* job : {&of_others, &holder, &last}) room.leave(*job);
  EXPECT_EQ(room.gone_count(), 3);
  EXPECT_EQ(room.open_cores(0, 0), 1);
  EXPECT_EQ(room.open_cores(0, 3), 4);
  EXPECT_EQ(room.open_cores(0, 1), 1) << "a job of another partition";
  EXPECT_EQ(room.open_cores(0, 2), 3);
  const Needs needs{.nodes_min = 2, .nodes_max = 2, .each = {.cores = 2}, .cores = 4};
  EXPECT_FALSE(room.may_fit(nodes_, needs, 1));
  EXPECT_TRUE(room.may_fit(nodes_, needs, 2));
}

}  // namespace
}  // namespace sched::testing
