#include "operator/nodes/node_taints.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kTaintsAt{std::chrono::seconds{1'000}};
constexpr std::size_t kTaintsRoom = 100;  // enough

// Returns the taint that keeps other pods off the nodes of a partition with taintNodes.
kube::Taint ours() {
  return {.key = std::string{kube::kTaintManaged},
          .effect = std::string{kube::kTaintManagedEffect}};
}

kube::Node node(const std::string& name, std::vector<kube::Taint> taints) {
  kube::Node node;
  node.metadata.name = name;
  node.metadata.resource_version = "7";
  node.spec.taints = std::move(taints);
  return node;
}

// The nodes as the watch shows them.
struct Nodes {
  std::map<std::string, kube::Node> all;
  NodeTaints::FindNode find() {
    return [this](const std::string& name) {
      const auto found = all.find(name);
      return found == all.end() ? nullptr : &found->second;
    };
  }
};

const kube::Taint kOther{.key = "other", .effect = "NoExecute"};

// Three nodes: to be tainted, tainted already, and no longer in any partition. The resourceVersion
// goes along, since the write replaces the whole list. Without it a taint that another controller
// has set meanwhile would be lost.
TEST(NodeTaints, WritesOnlyWhatDiffersAndKeepsTheTaintsOfOthers) {
  Nodes nodes{{{"bare", node("bare", {kOther})},
               {"done", node("done", {ours()})},
               {"left", node("left", {ours(), kOther})}}};
  NodeTaints taints;
  taints.want({"bare", "done"});
  for (const auto& [name, each] : nodes.all) taints.observe(each);
  const std::vector<SetTaints> want{{"bare", {kOther, ours()}, "7"}, {"left", {kOther}, "7"}};
  EXPECT_EQ(taints.due(kTaintsAt, nodes.find(), kTaintsRoom), want);
  EXPECT_TRUE(taints.due(kTaintsAt, nodes.find(), kTaintsRoom).empty()) << "both are under way";
}

// Ten seconds between tries: a node that cannot be written must not fill the queue of writes.
TEST(NodeTaints, TriesAgainAfterAFailureAndForgetsWhatTheWatchConfirms) {
  Nodes nodes{{{"bare", node("bare", {})}}};
  NodeTaints taints;
  taints.want({"bare"});
  taints.observe(nodes.all["bare"]);
  ASSERT_EQ(taints.due(kTaintsAt, nodes.find(), kTaintsRoom).size(), 1U);
  taints.answered({"bare", base::Error{base::Code::kUnavailable, "503"}}, kTaintsAt);
  EXPECT_EQ(taints.next_due(kTaintsAt), kTaintsAt + seconds{10});
  EXPECT_TRUE(taints.due(kTaintsAt + seconds{9}, nodes.find(), kTaintsRoom).empty());
  ASSERT_EQ(taints.due(kTaintsAt + seconds{10}, nodes.find(), kTaintsRoom).size(), 1U);
  nodes.all["bare"] = node("bare", {ours()});
  taints.answered({"bare", nodes.all["bare"]}, kTaintsAt + seconds{10});
  EXPECT_TRUE(taints.due(kTaintsAt + seconds{20}, nodes.find(), kTaintsRoom).empty());
  EXPECT_EQ(taints.next_due(kTaintsAt + seconds{20}), base::kNever);
}

// A partition of thousands of nodes asks for the taint.
TEST(NodeTaints, WritesAsManyNodesAsThereIsRoomFor) {
  Nodes nodes{{{"a", node("a", {})}, {"b", node("b", {})}, {"c", node("c", {})}}};
  NodeTaints taints;
  taints.want({"a", "b", "c"});
  for (const auto& [name, each] : nodes.all) taints.observe(each);
  EXPECT_TRUE(taints.due(kTaintsAt, nodes.find(), 0).empty());
  EXPECT_EQ(taints.next_due(kTaintsAt), base::kNever) << "no instant brings room";
  EXPECT_EQ(taints.due(kTaintsAt, nodes.find(), 2).size(), 2U);
  EXPECT_EQ(taints.due(kTaintsAt, nodes.find(), 2).size(), 1U);
}

// The Node was deleted before its taint was written. There is nothing to write, and nothing to come
// back to.
TEST(NodeTaints, ForgetsANodeThatIsGone) {
  Nodes nodes{{{"bare", node("bare", {})}}};
  NodeTaints taints;
  taints.want({"bare"});
  taints.observe(nodes.all["bare"]);
  nodes.all.clear();
  EXPECT_TRUE(taints.due(kTaintsAt, nodes.find(), kTaintsRoom).empty());
  EXPECT_EQ(taints.next_due(kTaintsAt), base::kNever);
}

}  // namespace
}  // namespace control
