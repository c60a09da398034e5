// The journal names whatever may be frozen, and the next agent takes over from it, also when it is
// damaged.
#include "node-agent/policy/node_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "node-agent/testing/node_policy_fixture.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two revisions come while the switcher is busy: until it obeys the second one, the boundary of the
// assignment before both may freeze what neither lists.
TEST_F(NodePolicyTest, TheJournalNamesWhateverAnAssignmentThatIsStillInForceMayFreeze) {
  two_gangs();
  node_.step();
  ASSERT_TRUE(node_.runs("a"));
  node_.hold_switcher(true);
  for (int revision = 0; revision < 2; ++revision) {
    node_.publish(node_.timetable({"b"}, {{0}}));
    node_.step();
  }
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
  node_.run_for(seconds{1});
  EXPECT_FALSE(node_.runs("a"));
  node_.restart_agent();
  node_.run_for(milliseconds{200});
  EXPECT_TRUE(node_.runs("a"));
  EXPECT_THAT(journaled(), ElementsAre("uid-b"));
}

// The journal has the timetable and the pods, which is all that turns need; b's turn comes although
// no pod was ever read from the API server.
TEST_F(NodePolicyTest, TakesOverFromACrashedAgentWithoutTheApiServer) {
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

// For example, no descriptor is free for a moment. Forgotten, b would stay frozen forever; taken
// for foreign, it would, too.
TEST_F(NodePolicyTest, APodThatCannotBeOpenedAfterARestartIsNeitherForgottenNorTakenForForeign) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.cgroup("b").unreadable = true;
  node_.restart_agent();
  node_.run_for(milliseconds{300});
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
  EXPECT_THAT(node_.view("b").note, HasSubstr("cannot be opened"));
  node_.inputs().stopping = true;
  node_.run_for(milliseconds{100});
  // b is frozen and cannot be reached, so the agent must not claim that it left nothing frozen.
  EXPECT_FALSE(node_.policy().all_thawed());
  node_.inputs().stopping = false;
  node_.cgroup("b").unreadable = false;
  node_.run_for(milliseconds{1000});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_FALSE(node_.runs("a"));
}

// The timetable has changed while no agent was there.
TEST_F(NodePolicyTest, ThawsAfterARestartWhatIsNotListedAnyMore) {
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

// With a damaged journal, or without the one that an agent had, the pods of kubegang Jobs count as
// the agent's, others as foreign.
class NodePolicyWithoutJournalTest : public NodePolicyTest,
                                     public ::testing::WithParamInterface<bool> {};
TEST_P(NodePolicyWithoutJournalTest, TakesOverWhatAKubegangJobControls) {
  two_gangs();
  node_.add_pod("c", "c");
  node_.add_pod("alien", "alien").metadata.owner_references[0].kind = "ReplicaSet";
  node_.publish(node_.timetable({"a", "b", "c", "alien"}, {{0}, {1}}));
  node_.step();
  node_.cgroup("alien").request = FreezeRequest::kFrozen;  // by another program
  ASSERT_FALSE(node_.runs("b") || node_.runs("c"));
  damage_journal("");
  if (GetParam()) std::filesystem::remove(node_.directory() + "/journal");
  node_.restart_agent();
  node_.publish(node_.timetable({"a", "b", "alien"}, {{0}, {1}}));  // c is no longer listed
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
}

INSTANTIATE_TEST_SUITE_P(Journal, NodePolicyWithoutJournalTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Removed" : "Damaged"; });

// For example, no descriptor is free while an agent starts without a journal. Neither it nor the
// next one may take b for foreign; its own turns go on meanwhile.
TEST_F(NodePolicyTest, APodThatCannotBeLookedAtWithoutAJournalIsLookedAtUntilItCan) {
  two_gangs();
  node_.add_pod("c", "c");
  node_.publish(node_.timetable({"a", "b", "c"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b") || node_.runs("c"));
  node_.cgroup("b").unreadable = true;
  node_.cgroup("c").mute = true;
  std::filesystem::remove(node_.directory() + "/journal");
  node_.restart_agent();
  node_.run_for(milliseconds{300});
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
  EXPECT_THAT(node_.journal().unread, ElementsAre("uid-b", "uid-c"));
  EXPECT_TRUE(node_.view("b").denied);
  node_.inputs().stopping = true;
  node_.run_for(milliseconds{100});
  EXPECT_FALSE(node_.policy().all_thawed());
  node_.inputs().stopping = false;
  // The next agent finds a whole journal, and cannot look at the two either at first.
  node_.restart_agent();
  node_.run_for(milliseconds{300});
  node_.cgroup("b").unreadable = false;
  node_.cgroup("c").mute = false;
  node_.publish(node_.timetable({"a", "b"}, {{1}}));
  node_.run_for(milliseconds{300});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_TRUE(node_.runs("c"));  // it is no longer listed
  EXPECT_FALSE(node_.runs("a"));
  EXPECT_THAT(node_.journal().unread, ElementsAre());
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
}

// CRI-O's monitor is in b's cgroup, an agent that did not know it has frozen it, and the journal is
// lost.
TEST_F(NodePolicyTest, ThawsForGoodWhatMustNotBeFrozenAlsoWithoutAJournal) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.cgroup("b").never_freeze = "the runtime is in it";
  std::filesystem::remove(node_.directory() + "/journal");
  node_.restart_agent();
  node_.run_for(milliseconds{500});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kRefused);
}

// It is there, and who starts without it would take b for foreign and leave it frozen.
TEST_F(NodePolicyTest, AJournalThatCannotBeReadIsADamagedOne) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  const std::string journal = node_.directory() + "/journal";
  std::filesystem::remove(journal);
  // A directory in its place can neither be read nor replaced by a rename: as unreadable as a file
  // gets for root.
  std::filesystem::create_directory(journal);
  node_.restart_agent();
  node_.publish(node_.timetable({"a"}, {{0}}));  // b is no longer listed
  node_.step();
  EXPECT_TRUE(node_.runs("b"));  // though the journal cannot be replaced either
  EXPECT_THAT(node_.policy().journal_error(), HasSubstr("journal"));
  std::filesystem::remove(journal);
  node_.run_for(seconds{2});
  EXPECT_EQ(node_.policy().journal_error(), "");
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
}

// Nothing shows which pods the agent froze, so nothing is written until the pods are known.
TEST_F(NodePolicyTest, WithADamagedJournalWaitsForTheApiServerToNameThePods) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  // One line in the middle is lost.
  std::string text = format_journal(node_.journal());
  text[text.find("boot ")] = 'X';
  damage_journal(text);
  node_.log();
  node_.restart_agent(/*pods_known=*/false);
  node_.run_for(seconds{5});
  EXPECT_THAT(node_.log(), ElementsAre());
  EXPECT_TRUE(node_.runs("a") && !node_.runs("b"));
  // The pods come before the timetable: nothing says whose turn it is (rule 8).
  node_.inputs().pods_known = true;
  node_.run_for(milliseconds{200});
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  node_.inputs().timetable_known = true;
  node_.run_for(milliseconds{200});
  EXPECT_NE(node_.runs("a"), node_.runs("b"));
}

// An agent that replaced the journal by an empty one would hide the damage from the next, which
// would then take b for foreign.
TEST_F(NodePolicyTest, AnAgentThatDiesBeforeThePodsAreKnownLeavesADamagedJournalToTheNext) {
  two_gangs();
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  damage_journal("");
  node_.restart_agent(/*pods_known=*/false);
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.restart_agent();
  node_.run_for(milliseconds{1500});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_FALSE(node_.runs("a"));
}

// The rule on top: a pod is frozen only after the journal names it, also a formerly foreign one.
TEST_F(NodePolicyTest, FreezesAPodWhoseForeignFreezeEndedOnlyOnceTheJournalNamesIt) {
  two_gangs();
  node_.publish(node_.timetable({"a"}, {{0}}));
  node_.step();
  node_.cgroup("b").request = FreezeRequest::kFrozen;
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(seconds{1});
  ASSERT_EQ(node_.view("b").state, FreezeState::kForeign);
  ASSERT_THAT(journaled(), ElementsAre("uid-a"));
  node_.cgroup("b").request = FreezeRequest::kThawed;
  ASSERT_TRUE(node_.runs("b"));
  // In steps of a millisecond, so that the journal is looked at right after the freeze.
  for (int i = 0; i < 3000 && node_.runs("b"); ++i) {
    node_.run_for(milliseconds{1});
  }
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_THAT(journaled(), ElementsAre("uid-a", "uid-b"));
  // And the other way round: what is foreign now is named no more.
  node_.publish(node_.timetable({"a", "b"}, {{0, 1}}));
  node_.run_for(milliseconds{100});
  node_.cgroup("b").request = FreezeRequest::kFrozen;
  node_.run_for(seconds{3});
  EXPECT_EQ(node_.view("b").state, FreezeState::kForeign);
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
}

// For example, the run directory is full. Gangs overlap then, which is slow; a frozen pod that
// nothing can thaw would be an outage.
TEST_F(NodePolicyTest, FreezesNothingThatTheJournalCannotName) {
  std::filesystem::create_directory(node_.directory() + "/journal.next");  // the write fails
  two_gangs();
  node_.run_for(seconds{3});
  EXPECT_TRUE(node_.runs("a") && node_.runs("b"));
  EXPECT_THAT(node_.policy().journal_error(), HasSubstr("journal"));
  std::filesystem::remove(node_.directory() + "/journal.next");
  node_.run_for(seconds{2});
  EXPECT_NE(node_.runs("a"), node_.runs("b"));
  EXPECT_EQ(node_.policy().journal_error(), "");
}

}  // namespace
}  // namespace agent
