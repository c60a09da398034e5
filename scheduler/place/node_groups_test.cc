// Tests of which nodes are equal, of the order of the groups, and of the effect of a change of one
// node (4.2).
#include "scheduler/place/node_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class NodeGroupsTest : public ::testing::Test {
 protected:
  void add(NodeSpec spec) { ASSERT_TRUE(cluster_.upsert_node(std::move(spec)).ok()); }
  static NodeSpec of(const std::string& name, int cpus, std::uint32_t weight = 1,
                     std::int64_t memory = 1000) {
    NodeSpec spec = node(name, cpus);
    spec.weight = weight;
    spec.memory = MemoryMiB{memory};
    return spec;
  }
  // As at a start: all nodes are reported, and then the groups are made once.
  void build() {
    cluster_.configure(gang_linear({}));
    cluster_.settle();
    (void)cluster_.take_changed_nodes();
    groups_.rebuild();
  }
  // Reports a change as JobBooks and the engine get it.
  void change(const NodeSpec& spec) {
    add(spec);
    cluster_.settle();
    for (const NodeIndex changed : cluster_.take_changed_nodes()) {
      groups_.node_changed(cluster_.rank(changed));
    }
  }
  std::string letters(const NodeSet& nodes) const {
    std::string text;
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      text += cluster_.spec_at(rank).name;
    }
    return text;
  }
  std::string text() const {
    std::string text;
    for (const NodeGroup& group : groups_.all()) {
      text += (text.empty() ? "" : " | ") + letters(group.nodes);
    }
    return text;
  }

  Cluster cluster_;
  NodeGroups groups_{cluster_};
};

// Memory, labels and states are different on nearly every node and divide nothing.
TEST_F(NodeGroupsTest, NodesOfOneHardwareAndWeightAreAGroup) {
  add(of("a", 4));
  add(of("b", 8));
  add(of("c", 4, 1, 2000));
  NodeSpec down = of("d", 4);
  down.state = NodeState::kDown;
  down.features = {"gpu"};
  add(down);
  build();
  EXPECT_EQ(text(), "acd | b");
}

// 4.2.8: ascending weight; groups of one weight keep the order of their first nodes.
TEST_F(NodeGroupsTest, LightGroupsComeFirst) {
  add(of("a", 4, 5));
  add(of("b", 8, 1));
  add(of("c", 2, 5));
  add(of("d", 4, 1));
  build();
  EXPECT_EQ(text(), "b | d | a | c");
}

// Readers keep sets of nodes and mend them by the log; the version would make them start over, and
// nodes report other memory all the time. A feature's set is made when it is first asked for, so
// gpu is asked for before the change.
TEST_F(NodeGroupsTest, AChangeOfOneNodeIsLoggedAndCounts) {
  add(of("a", 4));
  add(of("b", 4));
  build();
  const auto version = groups_.version();
  const auto seen = groups_.log().end();
  EXPECT_EQ(letters(groups_.up()), "ab");
  EXPECT_EQ(letters(groups_.nodes_with("gpu")), "");
  NodeSpec changed = of("b", 4, 1, 500);
  changed.state = NodeState::kDown;
  changed.features = {"gpu"};
  change(changed);
  EXPECT_EQ(letters(groups_.up()), "a");
  EXPECT_EQ(letters(groups_.nodes_with("gpu")), "b") << "a feature that was asked for before";
  EXPECT_EQ(groups_.memory_floor(), 500);
  EXPECT_EQ(groups_.version(), version) << "nothing was made anew";
  ASSERT_EQ(groups_.log().end(), seen + 1);
  EXPECT_EQ(groups_.log().at(seen), 1);
}

// The floor only sinks until the next rebuild: too low costs time, too high would be wrong.
TEST_F(NodeGroupsTest, TheFloorIsNeverAboveANode) {
  add(of("a", 4, 1, 1000));
  add(of("b", 4, 1, 3000));
  build();
  EXPECT_EQ(groups_.memory_floor(), 1000);
  change(of("a", 4, 1, 2000));
  EXPECT_LE(groups_.memory_floor(), 2000);
  groups_.rebuild();
  EXPECT_EQ(groups_.memory_floor(), 2000);
}

// A reader that is too far behind must notice that it must start over.
TEST_F(NodeGroupsTest, ALogThatGrewTooLongIsForgotten) {
  add(of("a", 4));
  build();
  const auto seen = groups_.log().end();
  constexpr int kMoreThanTheLogHolds = 70'000;
  for (int i = 0; i < kMoreThanTheLogHolds; ++i) groups_.node_changed(0);
  EXPECT_GT(groups_.log().begin(), seen);
  EXPECT_GT(groups_.log().end(), groups_.log().begin());
  EXPECT_EQ(groups_.log().at(groups_.log().end() - 1), 0);
}

// 4.2 step 2, on a node of 2 sockets × 4 cores: CPUs of the tasks (9 of 8, unless overcommitted),
// sockets, tasks per core, and CPUs that stand for memory (1.8 step 6).
TEST(HardwareFits, LooksAtTheShapeOfANodeAndNotAtItsMemory) {
  NodeSpec eight = node("a", 8);
  eight.sockets = 2;
  eight.cores_per_socket = 4;
  eight.threads_per_core = 1;
  const MemoryDemand none;
  JobRequest request = job(1, 1);
  EXPECT_TRUE(hardware_fits(eight, request, none));
  request.cpus_per_task = 3;
  request.tasks_per_node = 3;
  EXPECT_FALSE(hardware_fits(eight, request, none)) << "9 CPUs";
  request.overcommit = true;
  EXPECT_TRUE(hardware_fits(eight, request, none));
  request = job(1, 1);
  request.sockets_per_node = 3;
  EXPECT_FALSE(hardware_fits(eight, request, none));
  request = job(1, 1);
  request.tasks_per_core = 1;  // 8 cores, one task of 1 CPU on each
  request.tasks_per_node = 8;
  EXPECT_TRUE(hardware_fits(eight, request, none));
  MemoryDemand more;
  more.node_cpus = 9;  // memory that takes more CPUs than there are
  EXPECT_FALSE(hardware_fits(eight, request, more));
}

}  // namespace
}  // namespace sched::testing
