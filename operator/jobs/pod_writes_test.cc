#include "operator/jobs/pod_writes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

using std::chrono::seconds;

struct CollectingWriter final : Writer {
  void submit(Effect effect) override { effects.push_back(std::move(effect)); }
  int at_once() const override { return 16; }
  std::vector<Effect> effects;
};

// A job that has n1 and n2, of which n2 is gone.
struct PodWritesTest : testing::Test {
  PodWritesTest() {
    kube::Node node;
    node.metadata.name = "n1";
    (void)nodes.observe("n1", std::make_shared<const kube::Node>(node));
    kube::Job object;
    object.metadata.name = "train";
    object.metadata.ns = "team-a";
    object.metadata.uid = "uid";
    object.metadata.resource_version = "1";
    object.spec.network = kube::JobNetwork::kNone;
    object.status.starts = 1;
    object.status.allocation.emplace();
    Changes<kube::Job> changes;
    changes[{"team-a", "train"}] = std::make_shared<const kube::Job>(object);
    (void)jobs.observe(changes);
    job = jobs.find("uid");
    job->take_slots({{.name = "train-x-0", .node = "n1", .index = 0},
                     {.name = "train-x-1", .node = "n2", .index = 1}});
    (void)jobs.take_touched();
  }
  // The names of the writes since the last call.
  std::string asked() {
    std::string text;
    for (const Effect& effect : std::exchange(writer.effects, {})) {
      text += (text.empty() ? "" : " ") + std::string{to_string(point_of(effect))};
    }
    return text;
  }
  void read_template() {
    kube::Job answer = *job->object;
    answer.spec.pod_template = kube::RawJson{nlohmann::json{{"spec", {{"containers", {}}}}}};
    pods.answered(TemplateRead{"uid", answer});
  }
  PodCreated refused(int index, base::Code code) {
    return {.job_uid = "uid",
            .starts = 1,
            .slot = job->start.slots[static_cast<std::size_t>(index)],
            .result = base::Error{code, "no"}};
  }
  kube::Pod pod(const std::string& node) {
    kube::Pod pod;
    pod.metadata.uid = "pod-on-" + node;
    pod.spec.node_name = node;
    return pod;
  }

  base::Instant now{seconds{1'000}};
  const Report report{{}};
  LoopCounters counters;
  TemplateBook templates;
  PodIndex places;
  JobBook jobs{now, templates, places};
  const AgentPods agents;
  NodeBook nodes{agents, report};
  PolicyBook policy;
  bool is_stored = true;
  const CommitGate gate{{.is_stored = [this](const std::string&) { return is_stored; },
                         .is_published = [](const std::string&) { return true; }}};
  CollectingWriter writer;
  CountedWriter counted{writer, counters};
  PodWrites pods{{now, jobs, nodes, policy, report}, gate, counted, counters};
  JobRecord* job = nullptr;
};

TEST_F(PodWritesTest, PodsAreMadeAfterTheCommitAndOnce) {
  is_stored = false;
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "");
  is_stored = true;
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "template-read");
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "it is being read";
  read_template();
  EXPECT_EQ(jobs.take_touched().size(), 1U);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "pod-create pod-create");
  EXPECT_EQ(counters.pod_creates, 2);
  pods.launch(*job, {0, 1});
  EXPECT_EQ(asked(), "") << "they are under way";
}

TEST_F(PodWritesTest, ARefusalUndoesTheStartAndAFailureIsTriedAgain) {
  job->start.creating = {0, 1};
  EXPECT_FALSE(pods.answered(refused(0, base::Code::kUnavailable)));
  EXPECT_EQ(job->start.creating, std::set<int>{1});
  const base::Instant again = job->start.pod_tries.due();
  EXPECT_GT(again, now);
  pods.launch(*job, {0});
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(jobs.next_due(), again);

  const auto undo = pods.answered(refused(1, base::Code::kPermissionDenied));
  ASSERT_TRUE(undo);
  EXPECT_TRUE(undo->api_refused);
  EXPECT_EQ(undo->message, "no");
  job->wanted().starts = 2;
  EXPECT_FALSE(pods.answered(refused(1, base::Code::kPermissionDenied))) << "of another start";
}

TEST_F(PodWritesTest, APodIsEndedOnceAndAtOnceWhereItsNodeIsLost) {
  pods.end_pod(*job, pod("n1"), now + seconds{5});
  pods.end_pod(*job, pod("n1"), now + seconds{5});
  ASSERT_EQ(writer.effects.size(), 1U);
  EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, seconds{5});
  EXPECT_EQ(asked(), "pod-delete");
  pods.end_pod(*job, pod("n2"), now + seconds{5});
  ASSERT_EQ(writer.effects.size(), 1U);
  EXPECT_EQ(std::get<DeletePod>(writer.effects[0]).grace_period, seconds{0});
  EXPECT_EQ(asked(), "pod-delete");
  pods.answered(PodDeleted{"pod-on-n1", "uid", base::Error{base::Code::kUnavailable, "away"}});
  EXPECT_GT(jobs.next_due(), now);
  pods.end_pod(*job, pod("n1"), std::nullopt);
  EXPECT_EQ(asked(), "pod-delete") << "it failed, so it is tried again";
}

}  // namespace
}  // namespace control
