// Components: which jobs must take turns, when a newcomer or a hole changes that, and run(t) as
// it follows. Drawings: one line for each job, one character for each slot, "#" = it runs.
#include "scheduler/gang/components.h"

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"
#include "scheduler/testing/tracked_gang.h"

namespace sched::gang {
namespace {

using testing::at;
using testing::TrackedGang;

// A job that shares cores with no other job is in no component: it runs always and costs nothing.
TEST(Components, KeepJobsWithoutConflictsOut) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "a01");
  gang.start(2, 2, 'A', "a23");
  EXPECT_EQ(gang.groups(), "");
  EXPECT_EQ(gang.draw(0, 4),
            "1 ####\n"
            "2 ####\n");
}

// 14.1: the second job waits for the second tick; from there on they take turns.
TEST(Components, PutTheJobsOfAConflictIntoOneAndPlayThemAhead) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "ab");
  gang.start(2, 2, 'A', "bc");
  EXPECT_EQ(gang.groups(), "1 2");
  EXPECT_EQ(gang.draw(0, 6),
            "1 ##.#.#\n"
            "2 ..#.#.\n");
}

// On the node of a component, but on other cores: in no job's way.
TEST(Components, LeaveAJobBesideAComponentOut) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "a01");
  gang.start(2, 2, 'A', "a1");
  gang.start(3, 3, 'A', "a23");
  EXPECT_EQ(gang.groups(), "1 2");
  EXPECT_EQ(gang.draw(0, 4),
            "1 ##.#\n"
            "2 ..#.\n"
            "3 ####\n");
}

// A job in conflict with members of two components makes them one; when it leaves they part again.
// While they are one its list is turned as one: 5 gets a slot of its own, as 1 to 4 never fit
// beside it.
TEST(Components, MergeWhenAJobConnectsThemAndSplitWhenItLeaves) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'A', "a");
  gang.start(3, 3, 'A', "c");
  gang.start(4, 4, 'A', "c");
  EXPECT_EQ(gang.groups(), "1 2 | 3 4");
  gang.start(5, 5, 'A', "ac");
  EXPECT_EQ(gang.groups(), "1 2 3 4 5");
  EXPECT_EQ(gang.draw(0, 8),
            "1 ##..#..#\n"
            "2 ..#..#..\n"
            "3 ##..#..#\n"
            "4 ..#..#..\n"
            "5 ...#..#.\n");
  gang.leave(6, 5);
  EXPECT_EQ(gang.groups(), "1 2 | 3 4");
  EXPECT_EQ(gang.draw(0, 6),
            "1 ##.#.#\n"
            "2 ..#.#.\n"
            "3 ##.#.#\n"
            "4 ..#.#.\n");
}

// The last job of a conflict no longer needs a component.
TEST(Components, EndWithTheConflict) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'A', "ab");
  gang.leave(3, 1);
  EXPECT_EQ(gang.groups(), "");
  EXPECT_TRUE(gang.runs(2, 3));
}

// A higher tier's job stops those below it for as long as it lives: no turns between tiers.
TEST(Components, LetAHigherTierRunUntilItLeaves) {
  TrackedGang gang{"H2 A1"};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'H', "a");
  EXPECT_EQ(gang.draw(0, 4),
            "1 ....\n"
            "2 ####\n");
  gang.leave(95, 2);
  EXPECT_EQ(gang.draw(3, 3), "1 ###\n");
}

// With a lead, timetables are published that long before they take effect. A newcomer that does not
// run at once joins at the first boundary after the lead: 102 + 20 = 122, so at 150 (slot 5), one
// slot later than without.
TEST(Components, LetANewcomerJoinAtTheFirstBoundaryAfterTheLead) {
  TrackedGang soon{"A1"};
  // Boundaries at 120, 150 and 180. Job 2 is in the list from 102 on: the tick of 120 makes job 1
  // ACTIVE, that of 150 (slot 5) turns the list.
  soon.start(101, 1, 'A', "a");
  soon.start(102, 2, 'A', "a");
  EXPECT_EQ(soon.draw(3, 5),
            "1 ##.#.\n"
            "2 ..#.#\n");
  TrackedGang late{"A1", /*lead=*/20};
  // Job 2 enters the list at 150 and takes part in that boundary's rotation. Until then job 1 stays
  // FILLER, because a list in which every job runs is not turned (6.7). So it becomes ACTIVE at
  // 150, and the list turns at 180 (slot 6).
  late.start(101, 1, 'A', "a");
  late.start(102, 2, 'A', "a");
  EXPECT_EQ(late.draw(3, 5),
            "1 ###.#\n"
            "2 ...#.\n");
}

// A job that fits runs at once, whatever the lead is; and what waits to join comes with it, as the
// timetable is written now anyway.
TEST(Components, RunANewcomerThatFitsAtOnce) {
  TrackedGang gang{"A1", /*lead=*/20};
  gang.start(101, 1, 'A', "a");
  gang.start(102, 2, 'A', "ab");  // waits until 150
  // Job 3 fits beside job 1, so the timetables are written at 103. Job 2 comes along: the list is 1
  // 2 3, and at 150 it turns as if there were no lead.
  gang.start(103, 3, 'A', "b");
  EXPECT_EQ(gang.draw(3, 5),
            "1 ##.#.\n"
            "2 ..#.#\n"
            "3 ##.#.\n");
}

// A hole closer to a boundary than the lead is filled at that boundary; otherwise at once.
TEST(Components, FillAHoleAtTheBoundaryWhenItIsCloserThanTheLead) {
  // The next boundary is 150. A hole of 125 is 25 s ahead of it, more than the lead of 20 s, and is
  // filled at once; one of 140 is 10 s ahead and waits.
  for (const double left : {125, 140}) {
    TrackedGang gang{"A1", /*lead=*/20};
    gang.start(1, 1, 'A', "a");
    gang.start(2, 2, 'A', "a");  // joins at 60; runs from 90 to 120
    gang.advance(121);
    ASSERT_TRUE(gang.runs(1, 121));
    gang.leave(left, 1);
    EXPECT_EQ(gang.runs(2, left + 1), left == 125);
    EXPECT_TRUE(gang.runs(2, 150));
  }
}

// 6.4, P7: a job that a shadow kills is reported; until it is gone it runs on, and what overlaps it
// does not run.
TEST(Components, ReportAKillAndLetTheVictimRunUntilItIsGone) {
  TrackedGang gang{"H2 A1!"};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'H', "a");
  EXPECT_EQ(gang.components.take_kills(),
            (std::vector<Action>{{JobId{1}, ActionKind::kKill, JobId{2}}}));
  gang.components.set_dying(gang.stage.job(1), at(2));
  EXPECT_EQ(gang.draw(0, 3),
            "1 ###\n"
            "2 ...\n");
  gang.leave(40, 1);
  EXPECT_EQ(gang.draw(2, 3), "2 ###\n");
}

// 13.10: a second victim does not wait for the end of the first, or it would miss its grace time.
// So two dying jobs share their units, which is sound, and no other job runs there.
TEST(Components, TwoVictimsRunAtTheSameTimeUntilTheyAreGone) {
  TrackedGang gang{"H2 A1!"};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'H', "a");
  ASSERT_EQ(gang.components.take_kills().size(), 1U);
  gang.components.set_dying(gang.stage.job(1), at(2));
  gang.start(3, 3, 'A', "a");
  EXPECT_EQ(gang.components.take_kills(),
            (std::vector<Action>{{JobId{3}, ActionKind::kKill, JobId{2}}}));
  gang.components.set_dying(gang.stage.job(3), at(3));
  EXPECT_EQ(gang.components.check_invariants(at(3)), "");
  EXPECT_EQ(gang.draw(0, 3),
            "1 ###\n"
            "2 ...\n"
            "3 ###\n");
}

// A job that waits for its boundary to join comes over the dying one like any other.
TEST(Components, AJobThatJoinsLaterDoesNotRunOverAVictim) {
  TrackedGang gang{"H2 A1!", /*lead=*/20};
  gang.start(101, 1, 'A', "a");
  gang.start(102, 2, 'H', "a");
  ASSERT_EQ(gang.components.take_kills().size(), 1U);
  gang.components.set_dying(gang.stage.job(1), at(102));
  gang.start(103, 3, 'H', "a");  // joins at 150
  EXPECT_EQ(gang.draw(4, 4),
            "1 ####\n"
            "2 ....\n"
            "3 ....\n");
}

// run(t) is worked out once: playing a component on changes nothing of what it said before.
TEST(Components, PlayAsProjected) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "ab");
  gang.start(2, 2, 'A', "bc");
  gang.start(3, 3, 'A', "cd");
  gang.start(4, 4, 'A', "d");
  // A chain: 1 and 2 meet on b, 2 and 3 on c, 3 and 4 on d. 1 and 3 run together, then 2 and 4.
  const std::string before = gang.draw(20, 12);
  EXPECT_EQ(gang.stage.job(1).turn.component->projection.timeline.cycle.size(), 2U);
  for (int slot = 1; slot < 20; ++slot) gang.advance(30 * slot + 1);
  EXPECT_EQ(gang.draw(20, 12), before);
  EXPECT_EQ(gang.groups(), "1 2 3 4");
}

// Three jobs on one node repeat after three slots: that is the cycle.
TEST(Components, LoopTheSlotsThatRepeat) {
  TrackedGang gang{"A1"};
  for (const std::int64_t id : {1, 2, 3}) gang.start(1, id, 'A', "a");
  EXPECT_EQ(gang.draw(0, 8),
            "1 ##..#..#\n"
            "2 ..#..#..\n"
            "3 ...#..#.\n");
  EXPECT_EQ(gang.stage.job(1).turn.component->projection.timeline.cycle.size(), 3U);
}

// Only nodes of jobs that run at other times than before need a new timetable.
TEST(Components, MarkTheNodesOfJobsThatRunAtOtherTimes) {
  TrackedGang gang{"A1"};
  gang.start(1, 1, 'A', "a");
  gang.start(2, 2, 'A', "a");
  gang.start(3, 3, 'A', "b");
  EXPECT_EQ(gang.dirty_nodes(), "ab");
  gang.start(4, 4, 'A', "bc");
  EXPECT_EQ(gang.dirty_nodes(), "bc");  // 1 and 2 are another component
  gang.start(5, 5, 'A', "c");           // beside 3 in the list: 3 and 4 go on as before
  EXPECT_EQ(gang.dirty_nodes(), "c");
}

}  // namespace
}  // namespace sched::gang
