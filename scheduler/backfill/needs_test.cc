// The least that a job needs. Nodes a to d of 4 cores and 8,000 MiB.
#include "scheduler/backfill/needs.h"

#include <gtest/gtest.h>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

Configuration of_cores_and_memory() {
  Configuration configuration = EndsWorld::of_cores();
  configuration.cluster.memory = true;
  return configuration;
}

class NeedsTest : public ::testing::Test {
 protected:
  Needs of(const JobRequest& request) {
    return needs_.of(world_.books.add(JobFacts::of(request)), world_.in("p"));
  }
  // On one node or more, up to `nodes_max`.
  static JobRequest of_tasks(std::int64_t id, int tasks, int nodes_max) {
    JobRequest request = job(id, 1);
    request.max_nodes = nodes_max;
    request.tasks = tasks;
    return request;
  }

  PassWorld world_{of_cores_and_memory()};
  JobNeeds needs_{world_.cluster};
};

TEST_F(NeedsTest, AJobNeedsTheCoresOfItsTasks) {
  JobRequest request = of_tasks(1, 5, 4);
  request.cpus_per_task = 2;
  const Needs needs = of(request);
  EXPECT_EQ(needs.nodes_min, 1);
  EXPECT_EQ(needs.nodes_max, 4);
  EXPECT_EQ(needs.cores, 10);
  EXPECT_EQ(needs.each.cores, 2) << "one task at least";
  EXPECT_FALSE(needs.each_is_enough);
}

// 11 CPUs on three nodes: two of them have 8.
TEST_F(NeedsTest, ANodeNeedsWhatTheOthersCannotHave) {
  EXPECT_EQ(of(of_tasks(1, 11, 3)).each.cores, 3);
  EXPECT_EQ(of(of_tasks(2, 11, 4)).each.cores, 1);
  const Needs on_one = of(of_tasks(3, 3, 1));
  EXPECT_EQ(on_one.each.cores, 3);
  EXPECT_TRUE(on_one.each_is_enough);
}

// Node a has two threads for each core now, b to d have one. 5 CPUs can be 3 cores, and what a
// node of 8 CPUs leaves to the other one is nothing.
TEST_F(NeedsTest, CpusBecomeCoresByTheMostThreads) {
  NodeSpec spec = node("a");
  spec.threads_per_core = 2;
  spec.cpus = 8;
  ASSERT_EQ(of(of_tasks(1, 5, 2)).cores, 5);
  ASSERT_TRUE(world_.cluster.upsert_node(spec).ok());
  world_.cluster.settle();
  const Needs needs = of(of_tasks(2, 5, 2));
  EXPECT_EQ(needs.cores, 3) << "the hardware is looked up anew";
  EXPECT_EQ(needs.each.cores, 1);
}

TEST_F(NeedsTest, MemoryForEachCpuIsNeededInAllToo) {
  JobRequest request = of_tasks(1, 6, 4);
  request.memory = MemoryPerCpu{MemoryMiB{700}};
  EXPECT_EQ(of(request).memory, 6 * 700);
  request.id = JobId{2};
  request.memory = MemoryPerNode{MemoryMiB{700}};
  EXPECT_EQ(of(request).memory, 0) << "how much depends on how many nodes it gets";
}

TEST_F(NeedsTest, AJobOfWholeNodesNeedsAllThatTheyHave) {
  JobRequest request = of_tasks(1, 1, 1);
  request.sharing = Sharing::kNode;
  const NodeNeeds each = of(request).each;
  const NodeSpec small = node("s", 2), large = node("l", 16);
  EXPECT_EQ(each.cores_of(small), 2);
  EXPECT_EQ(each.cores_of(large), 16);
  EXPECT_FALSE(each.fit(large, {.cores = 15, .memory = 8000}));
  EXPECT_TRUE(each.fit(large, {.cores = 16, .memory = 8000}));
}

TEST(NodeNeeds, FitWhereCoresAndMemoryAreFree) {
  const NodeNeeds needs{.cores = 2, .cpus = 3, .memory = {CountedPer::kCpu, 1000}};
  EXPECT_TRUE(needs.fit(node("a"), {.cores = 2, .memory = 3000}));
  EXPECT_FALSE(needs.fit(node("a"), {.cores = 1, .memory = 8000}));
  EXPECT_FALSE(needs.fit(node("a"), {.cores = 4, .memory = 2999}));
  const NodeNeeds all{.memory = {CountedPer::kWholeNode, 0}};
  EXPECT_FALSE(all.fit(node("a"), {.cores = 4, .memory = 7999}));
  EXPECT_TRUE(all.fit(node("a"), {.cores = 1, .memory = 8000}));
}

}  // namespace
}  // namespace sched::testing
