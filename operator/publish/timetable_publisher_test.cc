#include "operator/publish/timetable_publisher.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kAt{seconds{1'000}};
constexpr base::Duration kSlice = seconds{30};
constexpr std::size_t kTablesRoom = 100;

// Returns a Node with a name and a UID, which is all that its timetable needs of it.
std::shared_ptr<const kube::Node> bare_node(const std::string& name) {
  kube::Node node;
  node.metadata.name = name;
  node.metadata.uid = "uid-of-" + name;
  return std::make_shared<const kube::Node>(std::move(node));
}

// Returns the object that the API server has after this write, under that version.
kube::NodeTimetable stored(const PutTimetable& effect, const std::string& version) {
  kube::NodeTimetable object = *effect.object;
  object.metadata.uid = "table";
  object.metadata.resource_version = version;
  return object;
}

// Makes a write's outcome. Only a lost race reads the object afresh, so `fresh` is an error here.
TimetablePut answer(const PutTimetable& effect, base::Result<kube::NodeTimetable> result) {
  return {.node = effect.object->metadata.name,
          .spec = effect.object->spec,
          .result = std::move(result),
          .fresh = base::Error{base::Code::kInternal, ""}};
}

// One partition of n1 and n2, of which n1 exists. The configuration needs timetables on its nodes.
struct TimetablePublisherTest : testing::Test {
  TimetablePublisherTest() {
    sched::Configuration configuration;
    configuration.partitions = {{.name = "all", .nodes = {"n1", "n2"}}};
    (void)nodes.observe("n1", bare_node("n1"));
    (void)nodes.take_news(configuration, {});
    (void)nodes.count(configuration);
  }
  // n1's first timetable is stored as version 1.
  void publish() {
    tables.ensure_all(kSlice, kAt);
    auto first = tables.due(kAt, 1, kTablesRoom);
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(tables.answered(answer(first[0], stored(first[0], "1")), kAt), WriteEnd::kStored);
  }

  const Report report{{}};
  const AgentPods agents;
  NodeBook nodes{agents, report};
  bool is_stored = true;
  const CommitGate gate{{.is_stored = [this](const std::string&) { return is_stored; },
                         .is_published = [](const std::string&) { return true; }}};
  TimetablePublisher tables{nodes, gate, report};
};

// n2 is in the partition too, but its Node does not exist. The Node owns its timetable, so
// Kubernetes collects it with the node. Until the first one is stored no pod may start there, since
// the agent would not know of it.
TEST_F(TimetablePublisherTest, MakesOneForEachNodeOfAPartition) {
  EXPECT_TRUE(tables.is_published("n1")) << "nothing is planned for it";
  tables.ensure_all(kSlice, kAt);
  EXPECT_FALSE(tables.is_published("n1"));
  auto effects = tables.due(kAt, 7, kTablesRoom);
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_FALSE(effects[0].exists);
  EXPECT_EQ(effects[0].object->metadata.owner_references[0].uid, "uid-of-n1");
  EXPECT_EQ(effects[0].object->spec.term, 7);
  EXPECT_EQ(effects[0].object->spec.revision, 1);
  EXPECT_EQ(effects[0].object->spec.timetable.slice, kSlice);
  EXPECT_TRUE(tables.due(kAt, 7, kTablesRoom).empty()) << "it is under way";
  EXPECT_FALSE(tables.is_published("n1"));
  EXPECT_EQ(tables.answered(answer(effects[0], stored(effects[0], "1")), kAt), WriteEnd::kStored);
  EXPECT_TRUE(tables.is_published("n1"));
  EXPECT_EQ(tables.next_due(kAt), base::kNever);
}

// A job on the node has a status that is not stored yet. A timetable from before that could name a
// start that a new leader would never hear of.
TEST_F(TimetablePublisherTest, WaitsForTheCommitsOfJobsOnTheNode) {
  publish();
  nodes.enter("n1", "job");
  is_stored = false;
  kube::NodeTimetable foreign = stored(PutTimetable{kube::NodeTimetable{}, true, ""}, "2");
  foreign.metadata.name = "n1";
  foreign.spec.timetable.slice = seconds{5};
  tables.observe("n1", &foreign);  // another writer's is written over
  EXPECT_TRUE(tables.due(kAt, 1, kTablesRoom).empty());
  EXPECT_FALSE(tables.is_published("n1"));
  is_stored = true;
  const auto effects = tables.due(kAt, 1, kTablesRoom);
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_TRUE(effects[0].exists);
  EXPECT_EQ(effects[0].version, "2");
  EXPECT_EQ(effects[0].object->spec.timetable.slice, kSlice);
}

// With room for one at a time n1, which lost a race, must not be tried again before n2 and n3 have
// had their turn.
TEST_F(TimetablePublisherTest, GoesOnWhereThereWasNoRoom) {
  sched::Configuration configuration;
  configuration.partitions = {{.name = "all", .nodes = {"n1", "n2", "n3"}}};
  for (const char* name : {"n2", "n3"}) (void)nodes.observe(name, bare_node(name));
  (void)nodes.take_news(configuration, {});
  (void)nodes.count(configuration);
  tables.ensure_all(kSlice, kAt);
  const auto next = [this] {
    const auto effects = tables.due(kAt, 1, 1);
    EXPECT_LE(effects.size(), 1U);
    return effects.empty() ? "" : effects[0].object->metadata.name;
  };
  EXPECT_TRUE(tables.due(kAt, 1, 0).empty());
  EXPECT_EQ(next(), "n1");
  // It must be written again, and waits for its turn.
  kube::NodeTimetable foreign;
  foreign.metadata.name = "n1";
  foreign.metadata.uid = "table";
  foreign.metadata.resource_version = "2";
  EXPECT_EQ(tables.answered({.node = "n1",
                             .spec = {},
                             .result = base::Error{base::Code::kConflict, ""},
                             .fresh = foreign},
                            kAt),
            WriteEnd::kLostRace);
  EXPECT_EQ(next(), "n2");
  EXPECT_EQ(next(), "n3");
  EXPECT_EQ(next(), "n1");
  EXPECT_EQ(next(), "");
}

// It was deleted by hand; the node needs one, so it is created again and not patched. Without one
// the agent would leave all its pods running at once.
TEST_F(TimetablePublisherTest, MakesADeletedOneAgainAndTriesAFailedOneLater) {
  publish();
  tables.observe("n1", nullptr);
  EXPECT_TRUE(tables.due(kAt, 1, kTablesRoom).empty());
  tables.ensure_deleted(kSlice, kAt);
  auto effects = tables.due(kAt, 1, kTablesRoom);
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_FALSE(effects[0].exists);
  EXPECT_EQ(tables.answered(answer(effects[0], base::Error{base::Code::kUnavailable, "away"}), kAt),
            WriteEnd::kFailed);
  const base::Instant again = tables.next_due(kAt);
  EXPECT_GT(again, kAt);
  EXPECT_TRUE(tables.due(kAt, 1, kTablesRoom).empty());
  EXPECT_EQ(tables.due(again, 1, kTablesRoom).size(), 1U);
}

// A plan that says what is stored needs no write; one that differs is written under the next
// revision, and without the pods of a job that must not be frozen.
TEST_F(TimetablePublisherTest, WritesAPlanThatDiffersWithoutTheJobsThatAreLeftOut) {
  publish();
  sched::NodePlan plan;
  plan.as_of = kAt;
  plan.timetable.slice = kSlice;
  plan.timetable.cycle = {{}};
  const std::vector<PodSlot> first{{.name = "first-0", .node = "n1", .index = 0}};
  const std::vector<PodSlot> second{{.name = "second-0", .node = "n1", .index = 0}};
  const ListedJobs list = [&](sched::JobId id) -> std::optional<ListedJob> {
    return ListedJob{.ns = "team-a",
                     .uid = id == sched::JobId{1} ? "uid-1" : "uid-2",
                     .slots = id == sched::JobId{1} ? first : second};
  };
  tables.want(plan, "n1", list);
  EXPECT_TRUE(tables.is_published("n1")) << "it says what is stored";
  EXPECT_TRUE(tables.due(kAt, 1, kTablesRoom).empty());
  plan.entries = {{.job = sched::JobId{1}, .row = sched::Row::kActive},
                  {.job = sched::JobId{2}, .row = sched::Row::kWaiting}};
  plan.timetable.cycle = {{0}, {1}};
  tables.want(plan, "n1", list);
  EXPECT_FALSE(tables.is_published("n1"));
  tables.leave_out("n1", "uid-1");
  const auto effects = tables.due(kAt, 2, kTablesRoom);
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_EQ(effects[0].object->spec.revision, 2);
  EXPECT_EQ(effects[0].version, "1");
  ASSERT_EQ(effects[0].object->spec.pods.size(), 1U);
  EXPECT_EQ(effects[0].object->spec.pods[0].job_uid, "uid-2");
  EXPECT_TRUE(effects[0].object->metadata.owner_references.empty()) << "it exists";
}

// An older state in a watch is not news, and a node that nothing is known about is not published.
TEST_F(TimetablePublisherTest, TakesNoOlderObjectAndKnowsNoUnknownNode) {
  publish();
  kube::NodeTimetable older = stored(PutTimetable{kube::NodeTimetable{}, true, ""}, "1");
  older.metadata.name = "n1";
  older.spec.timetable.slice = seconds{5};
  tables.observe("n1", &older);
  EXPECT_TRUE(tables.is_published("n1"));
  EXPECT_EQ(tables.stored("n1")->timetable.slice, kSlice);
  EXPECT_FALSE(tables.is_published("n7"));
  EXPECT_EQ(tables.stored("n7"), nullptr);
}

// The agent's word about the first revision is there before the answer to its write. Then the node
// no longer needs a timetable. The deletion names the version that the agent's status made, and not
// the one of the operator's write: with that it would be refused.
TEST_F(TimetablePublisherTest, DeletesTheVersionThatTheAgentHasWritten) {
  tables.ensure_all(kSlice, kAt);
  const auto first = tables.due(kAt, 1, kTablesRoom);
  ASSERT_EQ(first.size(), 1U);
  kube::NodeTimetable seen = stored(first[0], "2");
  seen.status.observed_revision = seen.spec.revision;
  seen.status.observed_term = seen.spec.term;
  nodes.observe_agent("n1", std::make_shared<const kube::NodeTimetable>(seen));
  tables.observe("n1", &seen);
  EXPECT_EQ(tables.answered(answer(first[0], stored(first[0], "1")), kAt), WriteEnd::kStored);
  sched::Configuration no_turns;
  no_turns.cluster.select = sched::SelectType::kLinear;
  no_turns.partitions = {{.name = "all", .nodes = {"n1"}}};
  nodes.observe_policy();
  (void)nodes.take_news(no_turns, {});
  (void)nodes.count(no_turns);
  tables.ensure_all(kSlice, kAt);
  EXPECT_TRUE(tables.due_deletions(kAt, 0).empty());
  const auto effects = tables.due_deletions(kAt, kTablesRoom);
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_EQ(effects[0].version, "2");
}

// The node goes while its timetable is being written: the answer must find no trace of it
// afterwards. Nodes of cloud clusters come and go under new names, so each trace that stayed would
// be memory forever.
TEST_F(TimetablePublisherTest, ForgetsANodeWhenTheLastWriteIsAnswered) {
  tables.ensure_all(kSlice, kAt);
  const auto effects = tables.due(kAt, 1, kTablesRoom);
  (void)nodes.observe("n1", nullptr);
  for (const std::string& name : nodes.take_news({}, {}).forgotten) tables.forget(name);
  EXPECT_FALSE(nodes.knows("n1"));
  (void)tables.answered(answer(effects[0], stored(effects[0], "1")), kAt);
  EXPECT_EQ(tables.stored("n1"), nullptr);
  EXPECT_TRUE(tables.due(kAt, 1, kTablesRoom).empty());
}

}  // namespace
}  // namespace control
