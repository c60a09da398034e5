// Best fit over neighbors (4.4.4). Nodes are drawn by rank: "x" = eligible, "X" = eligible and
// required, "." = not; the answer marks what was taken with "#".
#include "scheduler/select/linear/best_fit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sched::linear {
namespace {

struct Wish {
  int min = 1, req = 1, max = 1000;
  int cpus = 1;
  bool contiguous = false;
};
Wish exactly(int nodes) {
  return {.min = nodes, .req = nodes, .max = nodes};
}

// Four CPUs for each node unless `cpus` says otherwise.
std::string fit(const std::string& drawn, const Wish& wish, std::vector<int> cpus = {}) {
  const int size = static_cast<int>(drawn.size());
  NodeSet eligible{size}, required{size};
  for (int rank = 0; rank < size; ++rank) {
    const char here = drawn[static_cast<std::size_t>(rank)];
    eligible.assign(rank, here != '.');
    required.assign(rank, here == 'X');
  }
  cpus.resize(drawn.size(), 4);
  const auto found = best_fit(CpuSums{cpus}, {.eligible = eligible,
                                              .required = required,
                                              .min_nodes = wish.min,
                                              .req_nodes = wish.req,
                                              .max_nodes = wish.max,
                                              .min_cpus = wish.cpus,
                                              .contiguous = wish.contiguous});
  if (!found) return "nothing";
  std::string text(drawn.size(), '.');
  for (const int rank : *found) text[static_cast<std::size_t>(rank)] = '#';
  return text;
}

// Step 4: among the runs that hold the job the one with the fewest CPUs; among equals the first.
TEST(LinearBestFit, TakesTheTightestRunThatSuffices) {
  EXPECT_EQ(fit("xxxx.xx.xxx", exactly(2)), ".....##....");
  EXPECT_EQ(fit("xx.xx", exactly(2)), "##...");
  EXPECT_EQ(fit("xxxx.x.xxx", exactly(2)), ".......##.");
}

// Where no run holds it: the largest, then what of the others holds the rest.
TEST(LinearBestFit, TakesTheLargestRunsWhenNoneSuffices) {
  EXPECT_EQ(fit("xx.xxx.x", exactly(5)), "##.###..");
  EXPECT_EQ(fit("xx.xxx.x", exactly(4)), "...###.#");
  EXPECT_EQ(fit("xx.x", exactly(4)), "nothing");
}

// Step 5: --contiguous takes one run or nothing, and around the required nodes.
TEST(LinearBestFit, TakesOneBlockWhenContiguous) {
  const Wish three{.min = 3, .req = 3, .max = 3, .contiguous = true};
  EXPECT_EQ(fit("xx.xxxx.x", three), "...###...");
  EXPECT_EQ(fit("xx.xx", three), "nothing");
  EXPECT_EQ(fit("xxxxX.xx", three), "..###...");
  EXPECT_EQ(fit("xX.xxxx", three), "nothing");
}

// Step 2: required nodes come first, and their run before all others; from the first of them the
// neighbors above are taken, then those below.
TEST(LinearBestFit, GrowsAroundTheRequiredNodes) {
  EXPECT_EQ(fit("xx.xxXxx", exactly(2)), ".....##.");
  EXPECT_EQ(fit("xx.xxXx", exactly(4)), "...####");
  EXPECT_EQ(fit("X.xx.xX", exactly(3)), "#....##");
}

// 4.4.4 step 3: if the job needs more CPUs than that number of smallest nodes has, the biggest
// nodes are taken, among equals those of higher rank.
TEST(LinearBestFit, PrefersBigNodesWhenSmallOnesWouldNotDo) {
  EXPECT_EQ(fit("xxxx", {.min = 2, .req = 2, .max = 2, .cpus = 10}, {4, 8, 4, 8}), ".#.#");
  EXPECT_EQ(fit("xxxx", {.min = 1, .req = 1, .max = 1, .cpus = 8}, {4, 8, 4, 8}), "...#");
  EXPECT_EQ(fit("xxxx", {.min = 2, .req = 2, .max = 2, .cpus = 8}, {4, 8, 4, 8}), "##..");
}

// Step 6: as many nodes of a range as wished for where they are, the minimum otherwise.
TEST(LinearBestFit, TakesFewerNodesOfARangeWhenThereAreNoMore) {
  const Wish range{.min = 2, .req = 4, .max = 4};
  EXPECT_EQ(fit("xxxxx", range), "####.");
  EXPECT_EQ(fit("x.xx", range), "#.##");
  EXPECT_EQ(fit("x", range), "nothing");
}

// CPUs count as well as nodes: a node more is taken where they are missing, up to the maximum.
TEST(LinearBestFit, TakesMoreNodesForTheirCpus) {
  EXPECT_EQ(fit("xxxx", {.min = 1, .req = 1, .max = 4, .cpus = 9}), "###.");
  EXPECT_EQ(fit("xxxx", {.min = 1, .req = 1, .max = 2, .cpus = 9}), "nothing");
}

}  // namespace
}  // namespace sched::linear
