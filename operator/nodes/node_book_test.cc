#include "operator/nodes/node_book.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "base/prng.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

sched::Configuration partitions(std::vector<sched::PartitionConfig> partitions) {
  sched::Configuration configuration;
  configuration.cluster.gang = false;  // nodes need no agent
  configuration.partitions = std::move(partitions);
  return configuration;
}

// Returns "+n1 -n2": updates and removals, in the order in which the scheduler gets them.
std::string text(const std::vector<sched::Event>& events) {
  std::string text;
  for (const sched::Event& event : events) {
    if (!text.empty()) text += " ";
    if (const auto* update = std::get_if<sched::NodeUpdate>(&event))
      text += "+" + update->node.name;
    if (const auto* remove = std::get_if<sched::NodeRemove>(&event)) text += "-" + remove->name;
  }
  return text;
}

// Two nodes of one partition, and no agents: events follow from the watches of nodes and pods
// alone.
struct NodeBookTest : testing::Test {
  const Report report{{}};
  const AgentPods agents{};
  NodeBook book{agents, report};
  sched::Configuration configuration = partitions({{.name = "all", .nodes = {"n1", "n2"}}});

  std::string told() { return text(book.take_news(configuration, {}).events); }
};

// Each news costs a pass of the scheduler. Other pods take memory, pods left behind by a job keep
// the node from new ones.
TEST_F(NodeBookTest, TellsOfEachNodeOnceAndOnlyWhatChanged) {
  (void)book.observe("n1", ready_node("n1"));
  (void)book.observe("n2", ready_node("n2"));
  EXPECT_EQ(told(), "+n1 +n2");
  EXPECT_EQ(told(), "");
  (void)book.observe("n1", ready_node("n1"));  // the same once more
  EXPECT_EQ(told(), "");
  book.put_foreign("n2", {"team", "pod"}, kube::Bytes{1 << 30});
  EXPECT_EQ(told(), "+n2");
  book.erase_pod("n2", {"team", "pod"});
  EXPECT_EQ(told(), "+n2");
  book.put_orphan("n2", {"team", "left-behind"});
  EXPECT_EQ(told(), "+n2");
  // A pod of a Job that is gone may still run: the node takes no new job until it is deleted.
  EXPECT_EQ(book.told("n2")->state, sched::NodeState::kDrain);
}

// selectable: pods that wait may now fit elsewhere (labels, taints). lost: its pods will never
// report again.
TEST_F(NodeBookTest, SaysWhatAChangeMakesOthersDo) {
  EXPECT_TRUE(book.observe("n1", ready_node("n1")).selectable);
  EXPECT_FALSE(book.observe("n1", ready_node("n1")).selectable);
  EXPECT_TRUE(book.observe("n1", ready_node("n1", {{"pool", "batch"}})).selectable);
  kube::Node away = *ready_node("n1", {{"pool", "batch"}});
  away.spec.taints.push_back({.key = "node.kubernetes.io/unreachable", .effect = "NoExecute"});
  EXPECT_FALSE(book.observe("n1", std::make_shared<const kube::Node>(away)).selectable)
      << "that is its state";
  away.spec.taints.push_back({.key = "team", .effect = "NoSchedule"});
  EXPECT_TRUE(book.observe("n1", std::make_shared<const kube::Node>(away)).selectable);
  kube::Node out = *ready_node("n1", {{"pool", "batch"}});
  out.spec.taints.push_back({.key = "node.kubernetes.io/out-of-service", .effect = "NoExecute"});
  EXPECT_TRUE(book.observe("n1", std::make_shared<const kube::Node>(out)).lost);
  EXPECT_TRUE(book.is_lost("n1"));
  const NodeBook::Change gone = book.observe("n1", nullptr);
  EXPECT_TRUE(gone.selectable);
  EXPECT_FALSE(gone.lost) << "it was lost before";
}

// The scheduler may not lose a node on which it believes a job to run.
TEST_F(NodeBookTest, RemovesALostNodeOnlyAfterItsJobs) {
  (void)book.observe("n1", ready_node("n1"));
  EXPECT_EQ(told(), "+n1");
  book.enter("n1", "job");
  (void)book.observe("n1", nullptr);
  EXPECT_EQ(told(), "");
  EXPECT_TRUE(book.is_lost("n1"));
  book.leave("n1", "job");
  EXPECT_EQ(told(), "-n1");
  EXPECT_EQ(book.told("n1"), nullptr);
  EXPECT_EQ(book.size(), 0);
}

// Node, pods and timetable are three watches, which end in any order.
TEST_F(NodeBookTest, RemembersANodeUntilNothingOfItIsLeft) {
  (void)book.observe("n1", ready_node("n1"));
  book.put_foreign("n1", {"kube-system", "agent"}, kube::Bytes{0});
  book.observe_agent("n1", std::make_shared<const kube::NodeTimetable>());
  EXPECT_EQ(told(), "+n1");
  (void)book.observe("n1", nullptr);
  EXPECT_EQ(told(), "-n1");
  EXPECT_EQ(book.size(), 1);
  book.erase_pod("n1", {"kube-system", "agent"});
  EXPECT_TRUE(book.take_news(configuration, {}).forgotten.empty());
  book.observe_agent("n1", nullptr);
  EXPECT_EQ(book.take_news(configuration, {}).forgotten, std::vector<std::string>{"n1"});
  EXPECT_EQ(book.size(), 0);
  // The watch of timetables may report the end of one whose node was never seen.
  book.observe_agent("never-seen", nullptr);
  (void)told();
  EXPECT_EQ(book.size(), 0);
}

// Jobs that no node of their partition could ever hold are refused by these counts, and looked at
// again when the counts change. A change that is missed would leave a job refused that fits by now.
TEST_F(NodeBookTest, CountsWhatPartitionsCanHold) {
  (void)book.observe("n1", ready_node("n1"));
  (void)book.observe("other", ready_node("other"));
  EXPECT_EQ(told(), "+n1 +other");
  // "other" is in no partition, so it counts in none.
  EXPECT_TRUE(book.is_uncounted());
  EXPECT_TRUE(book.count(configuration));
  EXPECT_FALSE(book.is_uncounted());
  EXPECT_EQ(book.capacity().at("all"), (PartitionCapacity{.nodes = 1, .cpus_per_node_max = 8}));
  EXPECT_EQ(book.cpus_of("all"), 8);
  EXPECT_TRUE(book.in_partition("n1"));
  EXPECT_FALSE(book.in_partition("other"));
  EXPECT_FALSE(book.count(configuration)) << "nothing changed for jobs that wait";

  // A label: the partition holds as much as before, but some pods can use other nodes.
  TemplateFacts ssd;
  ssd.node_selector = {{"disk", "ssd"}};
  const auto names = book.unusable_for(ssd, {}, {});
  (void)book.observe("n1", ready_node("n1", {{"disk", "ssd"}}));
  (void)told();
  EXPECT_TRUE(book.is_uncounted()) << "a partition may select it";
  EXPECT_FALSE(book.count(configuration));
  EXPECT_EQ(book.take_outdated(), std::set{names});
  book.observe_policy();
  EXPECT_TRUE(book.count(configuration)) << "limits may be others";
}

// A count looks at all nodes, and on a large cluster other pods come and go a hundred times a
// second.
TEST_F(NodeBookTest, CountsAnewForCpusAndNotForMemory) {
  (void)book.observe("n1", ready_node("n1"));
  EXPECT_EQ(told(), "+n1");
  (void)book.count(configuration);
  book.put_foreign("n1", {"team", "pod"}, kube::Bytes{1 << 30});
  EXPECT_EQ(told(), "+n1");
  EXPECT_FALSE(book.is_uncounted());

  kube::Node larger = *ready_node("n1");
  larger.status.allocatable["cpu"] = *kube::parse_quantity("16");
  (void)book.observe("n1", std::make_shared<const kube::Node>(larger));
  EXPECT_EQ(told(), "+n1");
  EXPECT_TRUE(book.is_uncounted());
  EXPECT_TRUE(book.count(configuration));
  EXPECT_EQ(book.cpus_of("all"), 16);

  kube::Node cordoned = larger;
  cordoned.spec.unschedulable = true;
  (void)book.observe("n1", std::make_shared<const kube::Node>(cordoned));
  EXPECT_EQ(told(), "+n1");
  EXPECT_FALSE(book.is_uncounted()) << "a partition may wait for its cordoned nodes";
  EXPECT_TRUE(book.count_unusable(configuration));
  ASSERT_EQ(book.unusable_in("all").size(), 1u);
  EXPECT_EQ(book.cpus_of("all"), 16);
}

// Goal: what is brought up to date by differences is what a count of all nodes finds.
// Method: nodes in two partitions that are cordoned, get orphans and recover in a random order.
TEST_F(NodeBookTest, CountsUnusableNodesByDifferences) {
  constexpr int kNodes = 12;
  configuration = partitions({{.name = "all"}, {.name = "odd"}});
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    configuration.partitions[0].nodes.push_back(name);
    if (i % 2 == 1) configuration.partitions[1].nodes.push_back(name);
    (void)book.observe(name, ready_node(name));
  }
  (void)told();
  (void)book.count(configuration);
  EXPECT_FALSE(book.count_unusable(configuration)) << "nothing has changed";
  base::Prng prng{7};
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t changes = prng.below(3); changes > 0; --changes) {
      const std::string name = "n" + std::to_string(prng.below(kNodes));
      kube::Node node = *ready_node(name);
      node.spec.unschedulable = prng.below(2) == 0;
      (void)book.observe(name, std::make_shared<const kube::Node>(node));
      if (prng.below(3) == 0) book.put_orphan(name, {"team", "left-behind"});
      if (prng.below(3) == 0) book.erase_pod(name, {"team", "left-behind"});
      (void)told();
    }
    ASSERT_FALSE(book.is_uncounted());
    (void)book.count_unusable(configuration);
    const auto all = book.unusable_in("all");
    const auto odd = book.unusable_in("odd");
    EXPECT_FALSE(book.count(configuration));
    ASSERT_EQ(book.unusable_in("all"), all);
    ASSERT_EQ(book.unusable_in("odd"), odd);
  }
}

}  // namespace
}  // namespace control
