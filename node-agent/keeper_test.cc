#include "node-agent/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "node-agent/testing/fake_node.h"

namespace agent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeNode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeeperTest : public ::testing::Test {
 protected:
  // Jobs a and b take turns every second; a runs in even seconds, such as now.
  void two_gangs() {
    node_.add_pod("a", "a");
    node_.add_pod("b", "b");
    node_.publish(node_.timetable({"a", "b"}, {{0}, {1}}));
  }
  std::vector<std::string> journaled() {
    std::vector<std::string> uids;
    for (const PodIdentity& pod : node_.journal().pods) uids.push_back(pod.uid);
    std::sort(uids.begin(), uids.end());
    return uids;
  }
  void damage_journal(const std::string& text) {
    std::ofstream{node_.directory() + "/journal"} << text;
  }
  FakeNode node_;
};

TEST_F(KeeperTest, ObeysTheTimetableAndJournalsBeforeItFreezes) {
  two_gangs();
  node_.step();
  EXPECT_THAT(node_.log(), ElementsAre("freeze uid-b"));
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
  node_.run_for(milliseconds{1500});
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_EQ(node_.view("a").standing, PodStanding::kControlled);
  EXPECT_EQ(node_.view("a").state, FreezeState::kFrozen);
}

TEST_F(KeeperTest, DoesNotTouchAPodThatIsNotListed) {
  node_.add_pod("a", "a");
  node_.publish(node_.timetable({}, {{}}));
  node_.run_for(seconds{3});
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_THAT(journaled(), IsEmpty());
}

TEST_F(KeeperTest, WaitsUntilEveryContainerHasSettled) {
  node_.add_pod("a", "a");
  kube::Pod& pod = node_.pod("a");
  pod.spec.init_containers = {{.name = "init"}};
  pod.status.container_statuses.clear();
  node_.publish(node_.timetable({"a"}, {{}}));
  node_.run_for(seconds{10});  // still in its init container
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_EQ(node_.view("a").standing, PodStanding::kSettling);

  kube::ContainerStatus init{.name = "init"};
  init.state.terminated = kube::ContainerTerminated{};
  pod.status.init_container_statuses = {init};
  kube::ContainerStatus main{.name = "main"};
  const base::Instant started = node_.clock().wall();
  main.state.running = kube::ContainerRunning{.started_at = started};
  pod.status.container_statuses = {main};
  // 2 s and the whole second of startedAt.
  node_.run_for(milliseconds{2900});
  EXPECT_THAT(node_.log(), IsEmpty());
  node_.run_for(milliseconds{200});
  EXPECT_FALSE(node_.runs("a"));
}

TEST_F(KeeperTest, RefusesAPodOfAnotherJobOrNode) {
  two_gangs();
  node_.pod("a").metadata.owner_references[0].uid = "job-recreated";
  node_.pod("b").spec.node_name = "n2";
  node_.run_for(seconds{3});
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_EQ(node_.view("a").standing, PodStanding::kRefused);
  EXPECT_THAT(node_.view("a").note, HasSubstr("job-recreated"));
  EXPECT_THAT(node_.view("b").note, HasSubstr("n2"));
  node_.pod("a").metadata.owner_references[0].kind = "ReplicaSet";
  node_.step();
  EXPECT_THAT(node_.view("a").note, HasSubstr("not controlled by a kubegang Job"));
}

TEST_F(KeeperTest, IgnoresALowerTermOrRevisionAndTheNewOneStaysInForce) {
  node_.add_pod("a", "a");
  const kube::NodeTimetable old = node_.timetable({"a"}, {{}});
  kube::NodeTimetable newer = node_.timetable({"a"}, {{0}});
  newer.spec.term = 2;
  node_.publish(newer);
  node_.step();
  kube::NodeTimetable stale = old;
  stale.spec.revision = 99;
  node_.publish(stale);  // term 1 < 2
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  stale = newer;
  stale.spec.revision = 1;
  stale.spec.timetable.cycle = {{}};
  node_.publish(stale);
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_EQ(node_.keeper().offers_ignored(GateVerdict::kStaleTerm), 1U);
  EXPECT_EQ(node_.keeper().offers_ignored(GateVerdict::kStaleRevision), 1U);
  stale.metadata.uid = "recreated";  // another object may begin at revision 1
  node_.publish(stale);
  node_.step();
  EXPECT_FALSE(node_.runs("a"));
}

TEST_F(KeeperTest, KeepsTheLastValidTimetableInForceAndSaysWhy) {
  two_gangs();
  node_.step();
  kube::NodeTimetable bad = node_.timetable({"a", "b"}, {{7}});
  node_.publish(bad);
  node_.run_for(milliseconds{1500});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_THAT(node_.keeper().timetable_complaint(), HasSubstr("pod index 7 out of range"));
  EXPECT_EQ(node_.keeper().timetable()->spec.revision, 1);
}

TEST_F(KeeperTest, ThawsEverythingWhenTheTimetableIsGone) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.world().timetable.reset();
  node_.run_for(milliseconds{200});
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_THAT(journaled(), IsEmpty());
}

TEST_F(KeeperTest, ThawsADeletedPodForItsGracePeriodThenTheTimetableAppliesAgain) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + seconds{5};
  node_.pod("b").metadata.deletion_grace_period_seconds = 5;
  node_.log();
  node_.run_for(milliseconds{300});
  EXPECT_THAT(node_.log(), ElementsAre("thaw uid-b", "thaw uid-b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kExempt);
  node_.run_for(milliseconds{4500});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(milliseconds{300});
  EXPECT_FALSE(node_.runs("b"));
}

TEST_F(KeeperTest, KeepsADeletedPodOfCgroupV1ThawedUntilItIsGone) {
  two_gangs();
  node_.cgroup("b").kill_works_while_frozen = false;
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + seconds{5};
  node_.pod("b").metadata.deletion_grace_period_seconds = 5;
  node_.run_for(minutes{2});
  EXPECT_TRUE(node_.runs("b"));
}

TEST_F(KeeperTest, ThawsADisruptedPodAndGivesTheDeletionAGracePeriodOfItsOwn) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.pod("b").status.conditions = {
      {.type = "DisruptionTarget", .status = kube::ConditionStatus::kTrue}};
  node_.run_for(seconds{20});
  EXPECT_TRUE(node_.runs("b"));
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall();
  node_.pod("b").metadata.deletion_grace_period_seconds = 30;
  node_.run_for(seconds{29});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));
}

TEST_F(KeeperTest, DoesNotFreezeAPodThatIsDeletedWhileItStarts) {
  two_gangs();
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall();
  node_.run_for(minutes{1});
  EXPECT_TRUE(node_.runs("b"));
}

TEST_F(KeeperTest, ThawsWhatIsLeftOfAFinishedOrVanishedPod) {
  two_gangs();
  node_.add_pod("c", "c");
  node_.publish(node_.timetable({"a", "b", "c"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.pod("b").status.phase = kube::PodPhase::kFailed;
  node_.remove_pod("c");
  node_.run_for(milliseconds{200});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_TRUE(node_.runs("c"));
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
}

TEST_F(KeeperTest, RunsEverythingWhileFailedOpenOrKilled) {
  two_gangs();
  node_.step();
  node_.world().failed_open = true;
  node_.step();
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  node_.world().failed_open = false;
  node_.step();
  EXPECT_FALSE(node_.runs("b"));
  node_.world().kill_switch = true;
  node_.step();
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
}

TEST_F(KeeperTest, AFreezeOfDaysIsNoFault) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.clock().advance(hours{72});
  node_.run_for(milliseconds{100});
  EXPECT_FALSE(node_.runs("b"));
}

TEST_F(KeeperTest, TakesOverFromACrashedAgentWithoutTheApiServer) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.restart_agent(/*pods_known=*/false);
  node_.run_for(milliseconds{500});
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_TRUE(node_.runs("a"));
  node_.run_for(milliseconds{1000});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_FALSE(node_.runs("a"));
}

TEST_F(KeeperTest, ThawsAfterARestartWhatIsNotListedAnyMore) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  const kube::NodeTimetable without = node_.timetable({"a"}, {{0}});
  node_.restart_agent();
  node_.publish(without);
  node_.step();
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(milliseconds{200});
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
}

// A damaged journal: what is ours must not look foreign, and what is foreign must stay so.
TEST_F(KeeperTest, MendsADamagedJournalFromThePodsThatAKubegangJobControls) {
  two_gangs();
  node_.add_pod("c", "c");
  node_.add_pod("alien", "alien").metadata.owner_references[0].kind = "ReplicaSet";
  node_.publish(node_.timetable({"a", "b", "c", "alien"}, {{0}, {1}}));
  node_.step();
  node_.cgroup("alien").wish = Wish::kFrozen;  // by somebody else
  ASSERT_FALSE(node_.runs("b") || node_.runs("c"));
  damage_journal("");
  node_.restart_agent();
  node_.publish(node_.timetable({"a", "b", "alien"}, {{0}, {1}}));  // c is not listed any more
  node_.step();
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_TRUE(node_.runs("c"));
  EXPECT_EQ(node_.view("b").state, FreezeState::kFrozen);
  node_.run_for(milliseconds{1500});
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_TRUE(node_.runs("c"));
  EXPECT_EQ(node_.cgroup("alien").writes, 0U);
  EXPECT_FALSE(node_.journal().incomplete);
}

TEST_F(KeeperTest, MendsADamagedJournalFromItsReadableLinesWithoutTheApiServer) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  // Its last lines are lost, the timetable among them: nothing says whose turn it is (rule 8).
  std::string text = format_journal(node_.journal());
  damage_journal(text.substr(0, text.find("timetable ")));
  node_.restart_agent(/*pods_known=*/false);
  node_.step();
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  EXPECT_TRUE(node_.journal().incomplete);  // so that the next agent mends it too, if this one dies

  // One line in the middle is lost: the rest goes on.
  node_.restart_agent();
  node_.run_for(milliseconds{2100});
  ASSERT_NE(node_.runs("a"), node_.runs("b"));
  text = format_journal(node_.journal());
  text[text.find("lease ") == text.npos ? text.find("boot ") : text.find("lease ")] = 'X';
  damage_journal(text);
  node_.restart_agent(/*pods_known=*/false);
  node_.run_for(milliseconds{1000});
  EXPECT_NE(node_.runs("a"), node_.runs("b"));
}

TEST_F(KeeperTest, MendsADamagedJournalFromWhatTheProcessBeforeShowed) {
  two_gangs();
  node_.cgroup("a").wish = Wish::kFrozen;  // by somebody else, and seen to be
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(milliseconds{100});
  ASSERT_EQ(node_.view("a").state, FreezeState::kForeign);
  ASSERT_FALSE(node_.runs("b"));
  damage_journal("nonsense\n");
  node_.restart_agent(/*pods_known=*/false, /*with_shown=*/true);
  node_.step();
  EXPECT_TRUE(node_.runs("b"));  // nothing says that it has to stand still
  node_.world().pods_known = true;
  node_.world().timetable_known = true;
  node_.run_for(seconds{3});
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_EQ(node_.cgroup("a").writes, 0U);
  EXPECT_EQ(node_.view("a").state, FreezeState::kForeign);
}

TEST_F(KeeperTest, AnAgentThatDiesWhileItMendsLeavesTheRestToTheNext) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  damage_journal("");
  node_.restart_agent(/*pods_known=*/false);
  node_.step();  // writes a journal that knows nothing of b
  ASSERT_FALSE(node_.runs("b"));
  node_.restart_agent();
  node_.run_for(milliseconds{1500});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_FALSE(node_.runs("a"));
}

TEST_F(KeeperTest, LeavesAForeignFreezeAloneAndReportsIt) {
  two_gangs();
  node_.cgroup("b").wish = Wish::kFrozen;
  node_.run_for(seconds{5});
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_EQ(node_.cgroup("b").writes, 0U);
  EXPECT_EQ(node_.view("b").state, FreezeState::kForeign);
  node_.keeper();
  node_.restart_agent();
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));  // and the journal does not make it ours
}

TEST_F(KeeperTest, FreezesNothingThatTheJournalCannotName) {
  std::filesystem::create_directory(node_.directory() + "/journal.next");  // the write fails
  two_gangs();
  node_.run_for(seconds{3});
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  EXPECT_THAT(node_.keeper().journal_error(), HasSubstr("journal"));
  std::filesystem::remove(node_.directory() + "/journal.next");
  node_.run_for(seconds{2});
  EXPECT_NE(node_.runs("a"), node_.runs("b"));
  EXPECT_EQ(node_.keeper().journal_error(), "");
}

TEST_F(KeeperTest, WaitsForACgroupThatIsNotThereYet) {
  two_gangs();
  node_.cgroup("b").removed = true;
  node_.run_for(seconds{1});
  EXPECT_EQ(node_.view("b").standing, PodStanding::kSettling);
  node_.cgroup("b").removed = false;
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(milliseconds{300});
  EXPECT_FALSE(node_.runs("b"));
}

TEST_F(KeeperTest, TreatsARecreatedPodOfTheSameNameAsANewOne) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  kube::Pod& pod = node_.pod("b");
  pod.metadata.uid = "uid-b2";
  pod.status.container_statuses[0].state.running->started_at = node_.clock().wall();
  node_.run_for(milliseconds{500});
  EXPECT_TRUE(node_.runs("b"));  // what is left of the old one
  EXPECT_TRUE(node_.runs("b2"));
  node_.run_for(seconds{3});
  EXPECT_FALSE(node_.runs("b2"));
}

TEST_F(KeeperTest, ThawsAllOfOursWhenItStops) {
  two_gangs();
  node_.step();
  EXPECT_FALSE(node_.keeper().all_thawed());
  node_.world().stopping = true;
  node_.run_for(milliseconds{150});
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  EXPECT_TRUE(node_.keeper().all_thawed());
}

}  // namespace
}  // namespace agent
