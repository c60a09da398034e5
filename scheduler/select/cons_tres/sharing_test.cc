// Tests of which jobs may be stacked on which: rows (R4.8 to R4.13), node classes (R4.14 to R4.17),
// the tests in turn (4.5.2), and the user's suspension (T10, T11).
#include <gtest/gtest.h>

#include "scheduler/select/cons_tres/testing/world.h"

namespace sched::cons_tres::testing {
namespace {

// Rows of 4 cores on each node: AABB, CCCD, EEEE. All three are full then.
TEST(Rows, FillInOrderAndTakeTheFirstThatFits) {
  World w{{{.last = 2}}, {force("p", 3)}, gang()};
  EXPECT_EQ(w.start("A", {.nodes = 2, .per_node = 2}), "n1:0-1 n2:0-1");
  EXPECT_EQ(w.start("B", {.nodes = 2, .per_node = 2}), "n1:2-3 n2:2-3");
  EXPECT_EQ(w.start("C", {.nodes = 2, .per_node = 3}), "n1:0-2 n2:0-2");
  EXPECT_EQ(w.start("D", {.nodes = 2, .per_node = 1}), "n1:3 n2:3");
  EXPECT_EQ(w.start("E", {.nodes = 2, .per_node = 4}), "n1:0-3 n2:0-3");
  EXPECT_EQ(w.start("F", {.nodes = 2, .per_node = 2}), "");
}

// Rows AABB, CCCD; without A the first row has room for E, and F finds none.
TEST(Rows, ArePackedAgainAfterADeparture) {
  World w{{{}}, {force("p", 2)}, gang()};
  EXPECT_EQ(w.start("A", {.tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.start("B", {.tasks = 2}), "n1:2-3");
  EXPECT_EQ(w.start("C", {.tasks = 3}), "n1:0-2");
  EXPECT_EQ(w.start("D", {.tasks = 1}), "n1:3");
  w.end("A");
  EXPECT_EQ(w.start("E", {.tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.start("F", {.tasks = 1}), "");
}

// B and C share the second row of n1 and n2 below A, D and E the third; F finds room for one task
// on each node in the fourth. Without a number FORCE has four rows.
TEST(Rows, MixedShapes) {
  World w{{{.last = 2}}, {force("p")}, gang()};
  EXPECT_EQ(w.start("A", {.tasks = 8}), "n1:0-3 n2:0-3");
  EXPECT_EQ(w.start("B", {.tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.start("C", {.nodes = 2, .tasks = 6}), "n1:2-3 n2:0-3");
  EXPECT_EQ(w.start("D", {.tasks = 3}), "n1:0-2");
  EXPECT_EQ(w.start("E", {.tasks = 1}), "n1:3");
  EXPECT_EQ(w.start("F", {.nodes = 2, .tasks = 2}), "n1:0 n2:0");
}

// FORCE:2 has two rows; the third job waits in the queue and is not suspended on the node (14.11a).
TEST(Rows, ThirdOfThreeEqualWholeNodeJobsWaits) {
  World w{{{}}, {force("p", 2)}, gang()};
  EXPECT_EQ(w.start("A", {.tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.start("B", {.tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.start("C", {.tasks = 4}), "");
}

// In a FORCE partition --exclusive takes whole nodes, and is stacked all the same (R4.1, 14.11j).
TEST(Rows, ExclusiveJobInAForcePartitionIsStacked) {
  World w{{{.last = 2}}, {force("p", 2)}, gang()};
  EXPECT_EQ(w.start("A", {.tasks = 1, .on = {"n1"}}), "n1:0");
  // A is on core 0, so X, which takes all cores, goes into the second row.
  EXPECT_EQ(w.start("X", {.tasks = 1, .exclusive = true, .on = {"n1"}}), "n1:0-3");
  EXPECT_EQ(w.start("B", {.tasks = 1, .exclusive = true}), "n2:0-3");
  EXPECT_EQ(w.start("C", {.tasks = 1, .on = {"n2"}}), "n2:0");
}

// C14: legal without GANG, too. Then both jobs run at the same time, which the configuration's
// check warns of.
TEST(Rows, StackingNeedsNoGang) {
  World w{{{}}, {force("p", 2)}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.start("B", {.tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.start("C", {.tasks = 4}), "");
}

// Rows are not stored: the jobs are added again in job-table order and come into the same rows.
TEST(Rows, SurviveARestart) {
  World w{{{}}, {force("p", 2)}, gang()};
  for (const char* name : {"A", "B"}) w.start(name, {.tasks = 4});
  w.restart();
  EXPECT_EQ(w.ask({.tasks = 1}).where, "");
  w.end("A");
  EXPECT_EQ(w.ask({.tasks = 1}).where, "n1:0");
}

// --- classes ---

// R4.14: in a YES partition the job decides its class by --oversubscribe. A and B share the first
// row; C, which does not ask, has the class of jobs that share with none.
TEST(Classes, YesPartitionStacksThoseWhoAsk) {
  World w{{{.sockets = 2}}, {yes("p")}, gang()};
  EXPECT_EQ(w.start("A", {.tasks = 4, .share = true}), "n1:0-1,4-5");
  EXPECT_EQ(w.start("B", {.tasks = 4, .share = true}), "n1:2-3,6-7");
  // With gang a job that does not ask is stacked too (R4.20) …
  EXPECT_EQ(w.start("C", {.tasks = 4}), "n1:0-1,4-5");
  // … and then keeps jobs that share away (4.5.1 rule 5).
  EXPECT_EQ(w.start("D", {.tasks = 2, .share = true}), "");
  w.end("B");
  w.end("C");
  EXPECT_EQ(w.start("D", {.tasks = 2, .share = true}), "n1:2,6");
  EXPECT_EQ(w.start("E", {.tasks = 2}), "n1:3,7");
}

// Without a job that does not ask to share, four rows are open again to those that do.
TEST(Classes, SharingJobsWaitForTheOneThatDoesNot) {
  World w{{{}}, {yes("p")}, gang()};
  EXPECT_EQ(w.start("A", {.tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.start("B", {.tasks = 2, .share = true}), "");
  w.end("A");
  EXPECT_EQ(w.start("B", {.tasks = 2, .share = true}), "n1:0-1");
  EXPECT_EQ(w.start("C", {.tasks = 2, .share = true}), "n1:2-3");
  EXPECT_EQ(w.start("D", {.tasks = 3, .share = true}), "n1:0-2");
}

// Jobs that share and jobs that do not never meet on a node, though cores are idle (R4.16).
TEST(Classes, ForceAndNoNeverMeetOnANode) {
  for (const ClusterParameters& parameters : {plain(), gang()}) {
    World w{{{.last = 2}}, {force("p1"), no("p2")}, parameters};
    EXPECT_EQ(w.start("P1a", {.in = "p1", .tasks = 2}), "n1:0-1");
    EXPECT_EQ(w.start("P2a", {.in = "p2", .tasks = 2}), "n2:0-1");
    EXPECT_EQ(w.start("P1b", {.in = "p1", .tasks = 4}), "n1:0-3");
    EXPECT_EQ(w.start("P2b", {.in = "p2", .tasks = 4}), "");
    w.end("P2a");
    EXPECT_EQ(w.start("P2b", {.in = "p2", .tasks = 4}), "n2:0-3");
  }
}

// Cores of one node may belong to both partitions; a core may not.
TEST(Classes, TwoNonSharingPartitionsMeetOnANodeNotOnACore) {
  World w{{{.last = 2}}, {no("p1"), no("p2")}, plain()};
  EXPECT_EQ(w.start("P1a", {.in = "p1", .tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.start("P2a", {.in = "p2", .tasks = 2}), "n1:2-3");
  EXPECT_EQ(w.start("P1b", {.in = "p1", .tasks = 4}), "n2:0-3");
  EXPECT_EQ(w.start("P2b", {.in = "p2", .tasks = 1}), "");
}

// One core: 3 jobs in the rows of p1 and 5 in those of p2. Each partition counts its own rows
// alone, so a core has eight jobs, two of which run at once (R4.19, 14.11b).
TEST(Classes, ForcePartitionsStackEachInItsOwnRows) {
  World w{{{.cores = 1}}, {force("p1", 3), force("p2", 5)}, gang()};
  int started = 0;
  for (const char* in : {"p1", "p2"}) {
    for (int i = 0; i < 6; ++i) {
      started += w.start(in + std::to_string(i), {.in = in, .tasks = 1}).empty() ? 0 : 1;
    }
  }
  EXPECT_EQ(started, 8);
}

// R4.19: jobs of the other partition are avoided as long as there are idle cores. P2b and the third
// jobs find none, and lie over them: with GANG but without preemption both run at once (P9).
TEST(Classes, SameTierForcePartitions) {
  World w{{{.last = 2}}, {force("p1"), force("p2")}, gang()};
  EXPECT_EQ(w.start("P1a", {.in = "p1", .tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.start("P2a", {.in = "p2", .tasks = 2}), "n1:2-3");
  EXPECT_EQ(w.start("P1b", {.in = "p1", .tasks = 4}), "n2:0-3");
  EXPECT_EQ(w.start("P2b", {.in = "p2", .tasks = 4}), "n2:0-3");
  EXPECT_EQ(w.start("P1c", {.in = "p1", .tasks = 3}), "n1:0-2");
  EXPECT_EQ(w.start("P2c", {.in = "p2", .tasks = 3}), "n1:0-2");
}

// X keeps n1 to itself although it uses one core. n2 is not idle: the exclusive partition gets
// nothing, the FORCE one may not meet P there (R4.16), and four cores are more than P leaves.
TEST(Classes, ExclusivePartitionKeepsAndNeedsWholeIdleNodes) {
  World w{{{.last = 2}}, {exclusive("x"), no("p"), force("f")}, gang()};
  EXPECT_EQ(w.start("X", {.in = "x", .tasks = 1}), "n1:0-3");
  EXPECT_EQ(w.start("P", {.tasks = 1}), "n2:0");
  EXPECT_EQ(w.ask({.in = "x", .tasks = 1}).where, "");
  EXPECT_EQ(w.ask({.in = "f", .tasks = 1}).where, "");
  EXPECT_EQ(w.ask({.tasks = 4}).where, "");
}

// --- tiers (Test 2, Test 3, R4.20) ---

// FORCE:1 opens an extra row for a job above, not for one below.
TEST(Tiers, HigherTierIsNeverStackedUpon) {
  World w{{{}}, {force("low", 1, 1), force("hi", 1, 3)}, preempting(PreemptMode::kSuspend, true)};
  EXPECT_EQ(w.start("H", {.in = "hi", .tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.ask({.in = "low", .tasks = 4}).where, "");
}

// As long as idle cores suffice (n2, then n2's cores 2 and 3) no job of the low tier is stopped.
// Three cores are free nowhere.
TEST(Tiers, LowerTierIsStackedUponOnlyWhereNeeded) {
  World w{{{.last = 2}},
          {force("low", 1, 1), force("hi", 1, 3)},
          preempting(PreemptMode::kSuspend, true)};
  EXPECT_EQ(w.start("L1", {.in = "low", .tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 4}).where, "n2:0-3");
  EXPECT_EQ(w.start("L2", {.in = "low", .tasks = 2}), "n2:0-1");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 2}).where, "n2:2-3");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 3}).where, "n1:0-2");
}

// n1 has a job of mid, n2 of low, n3 of the same tier. Test 3 leaves n3 alone, then also mid, and
// stops there because without low too nothing is left. (4.5.2)
TEST(Tiers, LowerPartitionsAreAvoidedFromHighToLow) {
  World w{{{.last = 3}},
          {force("low", 1, 1), force("mid", 1, 2), force("hi", 1, 3)},
          preempting(PreemptMode::kSuspend, true)};
  EXPECT_EQ(w.start("M", {.in = "mid", .tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.start("L", {.in = "low", .tasks = 4}), "n2:0-3");
  EXPECT_EQ(w.start("H", {.in = "hi", .tasks = 4}), "n3:0-3");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 4}).where, "n2:0-3");
}

// Two idle nodes are too few for three. Test 3 avoids the lower partition as a whole or not at all,
// so Slurm takes the first three nodes and suspends three jobs where one would do (14.9). The
// policy Compat copies that; cheapest_test.cc shows the other one.
TEST(Tiers, SubOptimalPlacement) {
  World w{{{.last = 5, .cores = 2}},
          {force("active", 1, 1), force("hipri", 1, 2)},
          preempting(PreemptMode::kSuspend, true)};
  for (const char* name : {"17", "18", "19"})
    w.start(name, {.in = "active", .nodes = 1, .tasks = 2});
  EXPECT_EQ(w.ask({.in = "hipri", .nodes = 3, .tasks = 6}).where, "n1:0-1 n2:0-1 n3:0-1");
}

// R4.20's table: whether the high job may be stacked over the low one.
TEST(Tiers, CompatibilityOfClasses) {
  const auto stacks = [](const PartitionConfig& low, const PartitionConfig& high) {
    World w{{{}}, {low, high}, preempting(PreemptMode::kSuspend, true)};
    w.start("L", {.in = "low", .tasks = 4});
    return !w.ask({.in = "high", .tasks = 4}).where.empty();
  };
  EXPECT_TRUE(stacks(no("low", 1), no("high", 2)));
  EXPECT_FALSE(stacks(no("low", 1), force("high", 1, 2)));
  EXPECT_FALSE(stacks(no("low", 1), force("high", 3, 2)));
  EXPECT_TRUE(stacks(force("low", 1, 1), no("high", 2)));
  EXPECT_TRUE(stacks(force("low", 1, 1), force("high", 1, 2)));
  EXPECT_TRUE(stacks(force("low", 1, 1), force("high", 3, 2)));
  EXPECT_FALSE(stacks(force("low", 3, 1), no("high", 2)));
  EXPECT_TRUE(stacks(force("low", 3, 1), force("high", 1, 2)));
  EXPECT_TRUE(stacks(force("low", 3, 1), force("high", 3, 2)));
}

// C7: a partition with PreemptMode=OFF is never preempted, and to be stacked upon under SUSPEND
// would be that.
TEST(Tiers, APartitionThatIsOffIsLeftAlone) {
  PartitionConfig low = force("low", 1, 1);
  low.preempt_mode = PreemptMode::kOff;
  World w{{{}}, {low, force("hi", 1, 2)}, preempting(PreemptMode::kSuspend, true)};
  EXPECT_EQ(w.start("L", {.in = "low", .tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 1}).where, "");
}

// Without gang nothing stops the lower tier's job, so the higher one is not put over it; it must
// preempt (P20).
TEST(Tiers, P20NothingIsStackedOverALowerTierWithoutGang) {
  World w{{{}}, {force("low", 1, 1), force("hi", 1, 2)}, preempting(PreemptMode::kCancel, false)};
  EXPECT_EQ(w.start("L", {.in = "low", .tasks = 4}), "n1:0-3");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 4}).where, "");
  const Placed placed = w.ask({.in = "hi", .tasks = 4, .take = {"L"}});
  EXPECT_EQ(placed.where, "n1:0-3");
  EXPECT_EQ(placed.victims, (std::vector<std::string>{"L"}));
}

// --- the user's suspension ---

// A's cores are free for another job while its user has suspended it (14.11e), and it comes back
// when a row is free.
TEST(UserSuspend, GivesCoresBackAndTakesThemAgain) {
  World w{{{}}, {force("p", 2)}, gang()};
  for (const char* name : {"A", "B"}) w.start(name, {.tasks = 4});
  w.suspend("A");
  EXPECT_EQ(w.start("C", {.tasks = 4}), "n1:0-3");
  EXPECT_FALSE(w.resume("A"));  // both rows are taken
  EXPECT_EQ(w.ask({.tasks = 1}).where, "");
  w.end("B");
  EXPECT_TRUE(w.resume("A"));
  EXPECT_EQ(w.ask({.tasks = 1}).where, "");
}

// Upstream such a resume adds the job's cores a second time. Here B and C find the room that they
// should: two rows, one of them A's until it ends.
TEST(UserSuspend, P4ResumeOfAJobThatReleasedNothingAddsNothing) {
  World w{{{}}, {force("p", 2)}, gang()};
  w.start("A", {.tasks = 4});
  EXPECT_TRUE(w.resume("A"));
  EXPECT_EQ(w.start("B", {.tasks = 4}), "n1:0-3");
  w.end("A");
  EXPECT_EQ(w.start("C", {.tasks = 4}), "n1:0-3");
}

// A gave three cores back, and B took one of them; p2 shares with no job, so A cannot lie over it.
TEST(UserSuspend, ResumeNeverLandsOnANonSharingJob) {
  World w{{{}}, {no("p1"), no("p2")}, plain()};
  w.start("A", {.in = "p1", .tasks = 3});
  w.suspend("A");
  EXPECT_EQ(w.start("B", {.in = "p2", .tasks = 1}), "n1:0");
  EXPECT_FALSE(w.resume("A"));
  w.end("B");
  EXPECT_TRUE(w.resume("A"));
}

// After a restart a job that its user has suspended holds no cores, as before it (R4.13).
TEST(UserSuspend, ARestartAddsMemoryOnly) {
  World w{{{}}, {no("p")}, plain()};
  w.start("A", {.tasks = 4});
  w.suspend("A");
  w.restart();
  EXPECT_EQ(w.ask({.tasks = 4}).where, "n1:0-3");
}

}  // namespace
}  // namespace sched::cons_tres::testing
