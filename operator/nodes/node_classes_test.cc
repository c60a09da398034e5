#include "operator/nodes/node_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "translation/job_translation.h"

namespace control {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NodeClassesTest : public testing::Test {
 protected:
  // A node with this label, and with this taint unless that is empty.
  void see(const std::string& name, const std::string& zone, const std::string& taint = "") {
    kube::Node node;
    node.metadata.name = name;
    node.metadata.labels = {{"zone", zone}};
    if (!taint.empty()) node.spec.taints.push_back({.key = taint, .effect = "NoSchedule"});
    nodes_[name] = std::make_shared<const kube::Node>(std::move(node));
    classes_.observe(name, nodes_[name]);
  }
  void lose(const std::string& name) {
    nodes_.erase(name);
    classes_.observe(name, nullptr);
  }
  static TemplateFacts selects(const std::string& zone, const std::string& tolerates = "") {
    TemplateFacts facts;
    if (!zone.empty()) facts.node_selector = {{"zone", zone}};
    if (!tolerates.empty()) facts.tolerations = {{.key = tolerates, .op = "Exists"}};
    return facts;
  }

  std::map<std::string, std::shared_ptr<const kube::Node>> nodes_;
  NodeClasses classes_;
};

TEST_F(NodeClassesTest, TemplatesThatSelectAlikeShareAList) {
  see("n1", "a");
  see("n2", "b");
  see("n3", "b", "gpu");
  const auto names = classes_.unusable_for(selects("b"));
  TemplateFacts other = selects("b");
  other.problems = {"something else"};
  EXPECT_EQ(names, classes_.unusable_for(other)) << "the same pointer";
  EXPECT_THAT(*names, ElementsAre("n1", "n3"));
  EXPECT_THAT(*classes_.unusable_for(selects("", "gpu")), IsEmpty());
}

TEST_F(NodeClassesTest, OnlyClassesInWhichANodeChangesSidesAreOutdated) {
  see("n1", "a");
  see("n2", "b");
  const auto a = classes_.unusable_for(selects("a"));
  const auto any = classes_.unusable_for(selects(""));
  see("n1", "a", "");
  EXPECT_THAT(classes_.take_outdated(), IsEmpty());
  see("n2", "a");
  EXPECT_THAT(classes_.take_outdated(), ElementsAre(a));
  EXPECT_THAT(classes_.take_outdated(), IsEmpty());
  EXPECT_THAT(*a, ElementsAre("n2")) << "the request that holds it stays as it is";
  EXPECT_THAT(*classes_.unusable_for(selects("a")), IsEmpty());
  EXPECT_EQ(classes_.unusable_for(selects("")), any);
}

// It may be in lists, in which only names of existing nodes count.
TEST_F(NodeClassesTest, ANodeThatIsGoneOutdatesNothingUntilItComesBackAsAnother) {
  see("n1", "a");
  see("n2", "b");
  const auto a = classes_.unusable_for(selects("a"));
  lose("n1");
  lose("n2");
  see("n2", "b");
  EXPECT_THAT(classes_.take_outdated(), IsEmpty());
  see("n1", "b");
  EXPECT_THAT(classes_.take_outdated(), ElementsAre(a));
}

// Goal: a job that is judged again only when its list is outdated has the right one.
// Method: jobs that do exactly that, against the rule itself, which is asked about each node.
TEST_F(NodeClassesTest, AJobThatHeedsOutdatedListsHasTheRightOne) {
  base::Prng prng{7};
  const std::vector<std::string> zones = {"a", "b"};
  const std::vector<TemplateFacts> templates = {selects(""), selects("a"), selects("b", "gpu"),
                                                selects("", "gpu")};
  std::vector<NodeClasses::Names> held(templates.size());
  int changes = 0;
  for (int i = 0; i < 2'000; ++i) {
    for (std::uint64_t more = prng.below(3); more > 0; --more) {
      const std::string name = "n" + std::to_string(prng.below(10));
      if (prng.below(5) == 0) {
        lose(name);
      } else {
        see(name, zones[prng.below(2)], prng.below(3) == 0 ? "gpu" : "");
      }
    }
    const auto outdated = classes_.take_outdated();
    for (std::size_t k = 0; k < templates.size(); ++k) {
      if (prng.below(9) == 0) held[k] = nullptr;  // the last job of the class ends
      if (held[k] == nullptr || outdated.contains(held[k])) {
        held[k] = classes_.unusable_for(templates[k]);
        ++changes;
      }
      for (const auto& [name, node] : nodes_) {
        ASSERT_NE(can_use(templates[k].node_selector, templates[k].tolerations, *node),
                  std::ranges::binary_search(*held[k], name))
            << name << " in step " << i;
      }
    }
  }
  EXPECT_GT(changes, 1'000);
}

}  // namespace
}  // namespace control
