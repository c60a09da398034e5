// Cluster: names, indexes and ranks of nodes; partitions and QOS by name; and the sets of ranks.
#include "scheduler/model/cluster.h"
#include "base/natural_order.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sched {
namespace {

NodeSpec node(const std::string& name) {
  NodeSpec spec;
  spec.name = name;
  spec.cores_per_socket = spec.cpus = 4;
  return spec;
}

PartitionConfig partition(const std::string& name, std::vector<std::string> nodes) {
  PartitionConfig config;
  config.name = name;
  config.nodes = std::move(nodes);
  return config;
}

// Ranks follow this order (n2 before n10), so runs of neighbors do, too (4.4.4). It must be total:
// exactly one of any two names is less.
TEST(NaturalLess, ComparesRunsOfDigitsAsNumbers) {
  const std::vector<std::string> sorted = {"",    "a",   "a1b2", "a1b10", "a2",
                                           "a10", "n09", "n9",   "n10",   "na"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j) {
      EXPECT_EQ(base::natural_less(sorted[i], sorted[j]), i < j)
          << sorted[i] << " and " << sorted[j];
    }
  }
}

// Indexes are kept by jobs for as long as they run; ranks are the order of names, and are those of
// one topology version. n99 is named by the partition and never comes.
TEST(Cluster, KeepsIndexesAndRenumbersRanksWhenANodeComes) {
  Cluster cluster;
  Configuration configuration;
  configuration.partitions = {partition("p", {"n1", "n2", "n10", "n99"})};
  cluster.configure(configuration);
  ASSERT_TRUE(cluster.upsert_node(node("n10")).ok());
  ASSERT_TRUE(cluster.upsert_node(node("n1")).ok());
  cluster.settle();
  const NodeIndex n10 = *cluster.find_node("n10");
  // n1, n10: in natural order n2 comes between them.
  EXPECT_EQ(cluster.rank(n10), 1);
  const std::uint64_t before = cluster.topology_version();

  ASSERT_TRUE(cluster.upsert_node(node("n2")).ok());
  cluster.settle();

  EXPECT_EQ(cluster.find_node("n10"), n10);
  EXPECT_EQ(cluster.rank(n10), 2);
  EXPECT_NE(cluster.topology_version(), before);
  const Partition& p = cluster.partition(*cluster.find_partition("p"));
  EXPECT_EQ(p.nodes.count(), 3);
  EXPECT_EQ(cluster.node(p.nodes_ranked[1]).name, "n2");
}

// Nodes that come and go for months must not make the tables grow.
TEST(Cluster, ReusesTheIndexOfARemovedNode) {
  Cluster cluster;
  ASSERT_TRUE(cluster.upsert_node(node("a")).ok());
  ASSERT_TRUE(cluster.upsert_node(node("b")).ok());
  const NodeIndex a = *cluster.find_node("a");
  EXPECT_TRUE(cluster.remove_node("a"));
  EXPECT_FALSE(cluster.remove_node("a"));
  EXPECT_FALSE(cluster.exists(a));
  ASSERT_TRUE(cluster.upsert_node(node("c")).ok());
  cluster.settle();
  // c has taken the place of a, and comes behind b by its name.
  EXPECT_EQ(cluster.find_node("c"), a);
  EXPECT_EQ(cluster.node_count(), 2);
}

// Slurm's encoding (1.2.2): how many jobs share a unit, and whether they do unasked. YES:1 is NO,
// and FORCE:1 keeps the bit by which preemption may stack over it.
TEST(Cluster, EncodesOverSubscribe) {
  Cluster cluster;
  Configuration configuration;
  configuration.partitions = {partition("no", {}), partition("yes1", {}), partition("force1", {}),
                              partition("exclusive", {})};
  configuration.partitions[1].over_subscribe = OverSubscribe::kYes;
  configuration.partitions[1].max_share = 1;
  configuration.partitions[2].over_subscribe = OverSubscribe::kForce;
  configuration.partitions[2].max_share = 1;
  configuration.partitions[3].over_subscribe = OverSubscribe::kExclusive;
  cluster.configure(configuration);
  const auto sharing = [&](const char* name) {
    const Partition& p = cluster.partition(*cluster.find_partition(name));
    return std::pair{p.max_share, p.force};
  };
  EXPECT_EQ(sharing("no"), std::pair(1, false));
  EXPECT_EQ(sharing("yes1"), std::pair(1, false));
  EXPECT_EQ(sharing("force1"), std::pair(1, true));
  EXPECT_EQ(sharing("exclusive"), std::pair(0, false));
}

// Jobs and partitions say by an empty name that they have none.
TEST(Cluster, FindsNoQosForAnEmptyName) {
  Cluster cluster;
  Configuration configuration;
  configuration.qos.resize(2);
  configuration.qos[1].name = "gold";
  cluster.configure(configuration);
  EXPECT_EQ(cluster.find_qos(""), std::nullopt);
  EXPECT_EQ(cluster.find_qos("gold"), QosIndex{1});
  EXPECT_EQ(cluster.find_qos("lead"), std::nullopt);
}

// Refused on arrival, with a sentence: beyond its fixed size a CoreSet would forget cores.
TEST(Cluster, RefusesANodeWithTooManyCores) {
  Cluster cluster;
  NodeSpec spec = node("big");
  spec.sockets = 2;
  // 2 × 300 cores are more than the 512 bits of a CoreSet.
  spec.cores_per_socket = 300;
  EXPECT_FALSE(cluster.upsert_node(spec).ok());
  EXPECT_FALSE(cluster.find_node("big"));
}

// Members at both ends of words of 64.
TEST(NodeSet, WalksMembersAndGaps) {
  NodeSet set{130};
  for (const int rank : {0, 63, 64, 65, 129}) set.set(rank);
  std::vector<int> seen;
  for (int r = set.next(0); r >= 0; r = set.next(r + 1)) seen.push_back(r);
  EXPECT_EQ(seen, (std::vector{0, 63, 64, 65, 129}));
  EXPECT_EQ(set.next_absent(63), 66);
  EXPECT_EQ(set.next_absent(129), 130);
  EXPECT_EQ(NodeSet::all(130).count(), 130);
  EXPECT_EQ(NodeSet::all(130).next_absent(0), 130);
}

// Sizes around the ends of words and of strides of words.
TEST(NodeSet, SetsOfEverySizeEndWhereTheyShould) {
  for (const int size : {0, 1, 63, 64, 65, 255, 256, 257, 1000}) {
    const NodeSet all = NodeSet::all(size);
    EXPECT_EQ(all.count(), size);
    EXPECT_EQ(all.next(0), size == 0 ? -1 : 0);
    EXPECT_EQ(all.next(size), -1);
    EXPECT_EQ(all.next_absent(0), size);
    const NodeSet none{size};
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(all - all, none);
    EXPECT_EQ(none | all, all);
    EXPECT_TRUE(all.contains(none));
    EXPECT_EQ(none.contains(all), size == 0);
    if (size == 0) continue;
    NodeSet last{size};
    last.set(size - 1);
    EXPECT_EQ((all & last).count(), 1);
    EXPECT_EQ((all - last).next_absent(0), size - 1);
    EXPECT_EQ(all.count_and(last), 1);
    EXPECT_FALSE((all - last).contains(last));
  }
}

}  // namespace
}  // namespace sched
