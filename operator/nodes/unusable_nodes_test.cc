#include "operator/nodes/unusable_nodes.h"

#include <gtest/gtest.h>

#include "slurm/hostlist.h"

namespace control {
namespace {

TEST(UnusableNodes, AreGroupedByReasonTheLargestFirst) {
  const auto groups = group_unusable(
      {{{"Cordoned", "is cordoned"}, {"n4"}}, {{"NoAgent", "has no agent yet"}, {"n1", "n2"}}});
  EXPECT_EQ(groups, (std::vector<kube::UnusableNodes>{{"NoAgent", "has no agent yet", 2, "n[1-2]"},
                                                      {"Cordoned", "is cordoned", 1, "n4"}}));
  EXPECT_TRUE(group_unusable({}).empty());
}

// Goal: the status of a partition stays small. Method: names that do not compress.
TEST(UnusableNodes, AHostlistNamesAsManyAsFitAndTheCountIsExact) {
  std::vector<std::string> names;
  for (int i = 0; i < 5'000; ++i) {
    names.push_back("ip-10-" + std::string(static_cast<std::size_t>(i % 40), 'x') + "-" +
                    std::to_string(i * 7) + "-compute");
  }
  const auto groups = group_unusable({{{"NotReady", "is not ready"}, names}});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].nodes, 5'000);
  EXPECT_LE(groups[0].hostlist.size(), kUnusableHostlistMax);
  const auto named = slurm::expand_hostlist(groups[0].hostlist);
  ASSERT_TRUE(named.ok());
  // Some are named all the same: a list that was cut to nothing would help as little as one of
  // 5,000.
  EXPECT_GE(named->size(), 10U);
}

// The partition's status would never be stored with a longer one.
TEST(UnusableNodes, AMessageIsAsLongAsItsFieldAtMost) {
  const auto groups =
      group_unusable({{{"AgentNotReady", "says " + std::string(1'024, 'x')}, {"n1"}}});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].message.size(), kUnusableMessageMax);
}

TEST(UnusableNodes, TheSmallestGroupsBecomeOne) {
  std::map<NodeProblem, std::vector<std::string>> nodes;
  for (int i = 10; i < 30; ++i) {
    nodes[{"Tainted", "is tainted t" + std::to_string(i)}] = {"n" + std::to_string(i)};
  }
  const auto groups = group_unusable(nodes);
  ASSERT_EQ(groups.size(), kUnusableGroupsMax);
  EXPECT_EQ(groups.back().reason, "Others");
  // 20 groups, of which 15 are shown; the other 5 nodes share the last place.
  EXPECT_EQ(groups.back().nodes, 5);
  EXPECT_EQ(groups.back().hostlist, "n[25-29]");
}

}  // namespace
}  // namespace control
