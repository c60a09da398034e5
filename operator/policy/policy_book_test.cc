// Tests of which policies are in force, and of their statuses: the verdict in Accepted, and the
// preempt mode that follows.
#include "operator/policy/policy_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "kube/testing/manual_clock.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three ready nodes, and no scheduler: what is looked at is the configuration that it would get.
class PolicyBookTest : public testing::Test {
 protected:
  PolicyBookTest() {
    for (const char* name : {"n1", "n2", "n3"}) nodes_.push_back(ready_node(name));
  }
  // A watch shows the object as its writer has it; the status is left as the book wants it.
  template <typename T>
  void see(const std::string& name, const decltype(T::spec)& spec) {
    T object;
    object.metadata.name = name;
    object.metadata.uid = "uid-" + name;
    object.metadata.generation = ++generation_;
    object.metadata.resource_version = std::to_string(generation_);
    object.metadata.creation_timestamp = created_;
    created_ += std::chrono::seconds{1};
    object.spec = spec;
    show(object);
  }
  template <typename T>
  void show(const T& object) {
    Changes<T> changes;
    changes[{"", object.metadata.name}] = std::make_shared<const T>(object);
    book_.observe(changes);
  }
  // The watch shows that the object was deleted.
  template <typename T>
  void gone(const std::string& name) {
    Changes<T> changes;
    changes[{"", name}] = nullptr;
    book_.observe(changes);
  }
  // Decides about all objects as they were last seen, with the nodes that there are.
  PolicyBook::Decided decide() {
    std::vector<const kube::Node*> nodes;
    for (const auto& node : nodes_) nodes.push_back(node.get());
    return book_.decide(nodes, kube::ManualClock::kStart);
  }
  // Returns a partition of these nodes that is legal as it is.
  static kube::PartitionSpec on(const std::string& hostlist) {
    kube::PartitionSpec spec;
    spec.nodes.hostlist = hostlist;
    // Victims are suspended unless something else is said: OverSubscribe=NO would be a warning.
    spec.over_subscribe =
        kube::OverSubscribe{.policy = kube::OverSubscribePolicy::kForce, .max_share = 1};
    return spec;
  }
  // Returns "batch: n1 n2" for each partition that is in force.
  std::vector<std::string> partitions() const {
    std::vector<std::string> names;
    for (const auto& each : book_.configuration().partitions) {
      std::string text = each.name + ":";
      for (const std::string& node : each.nodes) text += " " + node;
      names.push_back(text);
    }
    return names;
  }
  // Returns "True InForce", of the wanted status.
  template <typename T>
  std::string says(const std::string& name) {
    const auto* status = book_.find_status<T>(name);
    if (status == nullptr) return "none";
    const auto* accepted = kube::find_condition(status->wanted().conditions, kube::kAccepted);
    if (accepted == nullptr) return "nothing";
    return std::string{kube::to_string(accepted->status)} + " " + accepted->reason;
  }

  PolicyBook book_;
  std::vector<std::shared_ptr<const kube::Node>> nodes_;
  std::int64_t generation_ = 0;
  base::Instant created_ = kube::ManualClock::kStart;
};

// The verdict is urgent, because a person waits for it; a second decision without news must neither
// change the configuration nor write.
TEST_F(PolicyBookTest, WhatIsLegalIsInForceAndIsSaidOnce) {
  see<kube::Partition>("batch", on("n[1-2]"));
  EXPECT_TRUE(book_.is_dirty());
  EXPECT_TRUE(decide().configuration_changed);
  EXPECT_FALSE(book_.is_dirty());
  EXPECT_THAT(partitions(), ElementsAre("batch: n1 n2"));
  EXPECT_EQ(says<kube::Partition>("batch"), "True InForce");
  auto& status = *book_.find_status<kube::Partition>("batch");
  EXPECT_EQ(status.urgency(), WriteUrgency::kUrgent);
  status.unmark();  // stored
  const auto again = decide();
  EXPECT_FALSE(again.configuration_changed);
  EXPECT_THAT(again.refused, IsEmpty());
  EXPECT_EQ(status.urgency(), WriteUrgency::kClean) << "that was said";
}

// The watch repeats objects, and statuses change all the time. A decision looks at all objects
// together and rebuilds the configuration, so it must not follow from the operator's own writes.
TEST_F(PolicyBookTest, OnlyAChangedSpecHasToBeDecided) {
  see<kube::Partition>("batch", on("n1"));
  (void)decide();
  kube::Partition same = *book_.entries<kube::Partition>().at("batch").object;
  same.metadata.resource_version = "99";
  same.status.cpus = 8;
  show(same);
  EXPECT_FALSE(book_.is_dirty());
  book_.observe_nodes();
  EXPECT_TRUE(book_.is_dirty());
}

// The jobs of a partition must not lose it because of a slip in an edit.
TEST_F(PolicyBookTest, AnIllegalSpecLeavesTheLastAcceptedOneInForce) {
  see<kube::Partition>("batch", on("n[1-2]"));
  (void)decide();
  kube::PartitionSpec wrong = on("n[1-3]");
  wrong.limits = kube::PartitionLimits{.min_nodes = 5, .max_nodes = 2};
  see<kube::Partition>("batch", wrong);
  const auto decided = decide();
  EXPECT_FALSE(decided.configuration_changed);
  EXPECT_THAT(partitions(), ElementsAre("batch: n1 n2"));
  EXPECT_EQ(says<kube::Partition>("batch"), "False Invalid");
  ASSERT_EQ(decided.refused.size(), 1U);
  EXPECT_THAT(base::to_text(decided.refused.front()),
              HasSubstr("kind=Partition name=batch message="));
  const auto& status = book_.find_status<kube::Partition>("batch")->wanted();
  EXPECT_THAT(kube::find_condition(status.conditions, kube::kAccepted)->message,
              HasSubstr("; the last accepted spec stays in force"));
  EXPECT_EQ(status.accepted->nodes.hostlist, "n[1-2]");
  EXPECT_THAT(decide().refused, IsEmpty()) << "a log line once, not at each decision";
}

// There is nothing to fall back to: jobs that name it are refused, as if it did not exist.
TEST_F(PolicyBookTest, AnIllegalSpecThatWasNeverAcceptedIsNotInForce) {
  kube::PartitionSpec wrong = on("n1");
  wrong.limits = kube::PartitionLimits{.min_nodes = 5, .max_nodes = 2};
  see<kube::Partition>("batch", wrong);
  (void)decide();
  EXPECT_THAT(partitions(), IsEmpty());
  EXPECT_FALSE(book_.find_status<kube::Partition>("batch")->wanted().accepted.has_value());
}

// A deletion is a change like an edit. Seen twice, it is not decided twice.
TEST_F(PolicyBookTest, ADeletedPolicyIsOutOfForce) {
  see<kube::Partition>("batch", on("n1"));
  (void)decide();
  gone<kube::Partition>("batch");
  EXPECT_TRUE(book_.is_dirty());
  EXPECT_TRUE(decide().configuration_changed);
  EXPECT_THAT(partitions(), IsEmpty());
  EXPECT_EQ(book_.find_status<kube::Partition>("batch"), nullptr);
  gone<kube::Partition>("batch");
  EXPECT_FALSE(book_.is_dirty()) << "it was gone before";
}

// Another object of that name, made before the watch showed that the first one is gone: nothing
// was accepted of it, and what was stored of the other is not its status.
TEST_F(PolicyBookTest, AnObjectOfTheSameNameBeginsAnew) {
  see<kube::Partition>("batch", on("n[1-2]"));
  (void)decide();
  kube::Partition other;
  other.metadata.name = "batch";
  other.metadata.uid = "another";
  other.spec = on("n1");
  other.spec.limits = kube::PartitionLimits{.min_nodes = 5, .max_nodes = 2};
  show(other);
  (void)decide();
  EXPECT_THAT(partitions(), IsEmpty());
  EXPECT_EQ(book_.find_status<kube::Partition>("batch")->uid(), "another");
}

// A partition that follows nodes has a new verdict with each node that comes: that only informs. No
// person has edited anything, and a cluster that starts would bring one write for each node.
TEST_F(PolicyBookTest, AVerdictThatFollowsNodesOnlyInforms) {
  see<kube::Partition>("batch", on("n[1-4]"));
  (void)decide();
  auto& status = *book_.find_status<kube::Partition>("batch");
  const std::string before = says<kube::Partition>("batch");
  status.unmark();
  nodes_.push_back(ready_node("n4"));
  book_.observe_nodes();
  (void)decide();
  EXPECT_EQ(before, "True InForceWithWarning") << "n4 does not exist yet";
  EXPECT_EQ(says<kube::Partition>("batch"), "True InForce");
  EXPECT_EQ(status.urgency(), WriteUrgency::kInforms);
}

// The status of any other object of the kind says that it has no effect. Two configurations at once
// could contradict each other, and silence would let its author believe that it is in force.
TEST_F(PolicyBookTest, OnlyTheSchedulerConfigOfItsNameCounts) {
  kube::SchedulerConfigSpec spec;
  spec.gang = false;
  see<kube::SchedulerConfig>("other", spec);
  (void)decide();
  EXPECT_TRUE(book_.configuration().cluster.gang) << "the default";
  EXPECT_EQ(says<kube::SchedulerConfig>("other"), "False Invalid");
  see<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName}, spec);
  EXPECT_TRUE(decide().configuration_changed);
  EXPECT_FALSE(book_.configuration().cluster.gang);
}

// They do not concern the scheduler, which would otherwise be reconfigured for them.
TEST_F(PolicyBookTest, ParametersOfTheOperatorAreToldApart) {
  (void)decide();
  kube::SchedulerConfigSpec spec;
  spec.timetable = kube::TimetableConfig{.settle = std::chrono::seconds{7}};
  see<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName}, spec);
  EXPECT_TRUE(decide().parameters_changed);
  EXPECT_EQ(book_.parameters().settle, std::chrono::seconds{7});
  EXPECT_FALSE(decide().parameters_changed);
}

// status.preemptMode: what holds, also where a spec leaves it to what it inherits.
TEST_F(PolicyBookTest, TheModeInForceIsShownWhereItIsInherited) {
  kube::SchedulerConfigSpec config;
  config.preempt_mode = kube::PreemptMode::kRequeue;
  config.gang = false;
  see<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName}, config);
  kube::PartitionSpec own = on("n1");
  own.preempt_mode = kube::PreemptMode::kCancel;
  see<kube::Partition>("own", own);
  see<kube::Partition>("inherits", on("n2"));
  (void)decide();
  const auto mode = [&](const std::string& name) {
    return book_.find_status<kube::Partition>(name)->wanted().preempt_mode;
  };
  EXPECT_EQ(mode("own"), kube::PreemptMode::kCancel);
  EXPECT_EQ(mode("inherits"), kube::PreemptMode::kRequeue);
}

TEST_F(PolicyBookTest, PodDefaultsAreThoseOfAcceptedSpecs) {
  kube::PartitionSpec spec = on("n1");
  spec.pod_defaults = kube::PodDefaults{.image = "site:1"};
  see<kube::Partition>("batch", spec);
  kube::AccountSpec account;
  account.namespaces = {{.name = "team-a", .identity = kube::PodIdentity{.uid = 1000, .gid = 100}}};
  see<kube::Account>("physics", account);
  EXPECT_FALSE(book_.pod_defaults("batch", "team-a").defaults) << "not accepted yet";
  (void)decide();
  const DefaultsInForce found = book_.pod_defaults("batch", "team-a");
  EXPECT_EQ(found.defaults->image, "site:1");
  EXPECT_EQ(found.identity->uid, 1000);
  EXPECT_EQ(found.identity->user, "team-a") << "an identity without a name";
  EXPECT_FALSE(book_.pod_defaults("batch", "team-b").identity);
}

// A taint acts on all pods, so it follows only from a spec that is in force.
TEST_F(PolicyBookTest, TaintsFollowTheAcceptedSpec) {
  kube::PartitionSpec spec = on("n1");
  spec.taint_nodes = true;
  see<kube::Partition>("batch", spec);
  EXPECT_FALSE(book_.taints_nodes("batch")) << "not accepted yet";
  (void)decide();
  EXPECT_TRUE(book_.taints_nodes("batch"));
  EXPECT_FALSE(book_.taints_nodes("gone"));
}

}  // namespace
}  // namespace control
