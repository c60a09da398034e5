// The jobs that a preemptor takes: 7.6.2 (CANCEL, REQUEUE) and 7.6.3 (QOS and SUSPEND).
#include <gtest/gtest.h>

#include "scheduler/select/cons_tres/testing/world.h"

namespace sched::cons_tres::testing {
namespace {

using Names = std::vector<std::string>;

ClusterParameters cancelling(int reorder_count = 1, bool strict = false) {
  ClusterParameters parameters = preempting(PreemptMode::kCancel, false);
  parameters.preempt.reorder_count = reorder_count;
  parameters.preempt.strict_order = strict;
  return parameters;
}

// Candidates of 8, 4 and 2 nodes on 14, smallest first (7.4). For 8 nodes the first pass removes
// N2, N4 and N8 (2 + 4 are too few), and N8 was decisive: with N8 first the second pass needs it
// alone. For 6 nodes N2 and N4 are just enough, in any order.
Names victims_of(int nodes, const ClusterParameters& parameters) {
  World w{{{.prefix = "n0", .first = 1, .last = 9}, {.first = 10, .last = 14}},
          {no("low", 1), no("hi", 10)},
          parameters};
  for (const int size : {8, 4, 2}) {
    w.start("N" + std::to_string(size), {.in = "low", .nodes = size, .exclusive = true});
  }
  Ask ask{.in = "hi", .nodes = nodes, .exclusive = true, .take = {"N2", "N4", "N8"}};
  Names victims = w.ask(ask).victims;
  std::sort(victims.begin(), victims.end());
  return victims;
}

// The guide's example of reordering (14.10, recorded). For eight nodes N8 alone suffices, and the
// candidates that were removed before it are spared. For six, N2 and N4 suffice together, and come
// first by their order.
TEST(Victims, ReorderFindsTheOneThatSuffices) {
  EXPECT_EQ(victims_of(8, cancelling()), Names{"N8"});
  EXPECT_EQ(victims_of(8, cancelling(3)), Names{"N8"});
  EXPECT_EQ(victims_of(8, cancelling(1, /*strict=*/true)), Names{"N8"});
  EXPECT_EQ(victims_of(6, cancelling()), (Names{"N2", "N4"}));
  EXPECT_EQ(victims_of(6, cancelling(0)), (Names{"N2", "N4"}));
  EXPECT_EQ(victims_of(6, cancelling(3)), (Names{"N2", "N4"}));
  EXPECT_EQ(victims_of(6, cancelling(1, true)), (Names{"N2", "N4"}));
}

// P11: N means N + 1 reorders, exactly: N = 0 still finds the one victim that suffices (14.10,
// R7.24).
TEST(Victims, P11ReorderCountZeroReordersOnce) {
  EXPECT_EQ(victims_of(8, cancelling(0)), Names{"N8"});
}

// M1 has cores 0 and 1, L1 core 2, L2 core 3. Two cores are wanted: both jobs of low, and none of
// mid.
TEST(Victims, AreLowTierFirstAndOnlyAsManyAsNeeded) {
  World w{{{}}, {no("low", 1), no("mid", 2), no("hi", 3)}, cancelling()};
  w.start("M1", {.in = "mid", .tasks = 2});
  w.start("L1", {.in = "low", .tasks = 1});
  w.start("L2", {.in = "low", .tasks = 1});
  const Placed placed = w.ask({.in = "hi", .tasks = 2, .take = {"L1", "L2", "M1"}});
  EXPECT_EQ(placed.where, "n1:2-3");
  EXPECT_EQ(placed.victims.size(), 2U);
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 1, .take = {"M1"}}).where, "n1:0");
}

// L leaves 2 cores of 4; H is not a candidate.
TEST(Victims, NobodyWhenEvenAllTogetherDoNotSuffice) {
  World w{{{}}, {no("low", 1), no("hi", 3)}, cancelling()};
  w.start("L", {.in = "low", .tasks = 2});
  w.start("H", {.in = "hi", .tasks = 2});
  const Placed placed = w.ask({.in = "hi", .tasks = 3, .take = {"L"}});
  EXPECT_EQ(placed.where, "");
  EXPECT_TRUE(placed.victims.empty());
}

// R7.1: victims are looked for only when the job does not fit without. n2 is idle.
TEST(Victims, NobodyWhenItFitsWithout) {
  World w{{{.last = 2}}, {no("low", 1), no("hi", 3)}, cancelling()};
  w.start("L", {.in = "low", .tasks = 4});
  const Placed placed = w.ask({.in = "hi", .tasks = 4, .take = {"L"}});
  EXPECT_EQ(placed.where, "n2:0-3");
  EXPECT_TRUE(placed.victims.empty());
}

// The search takes jobs out of the books and packs rows on the way. Questions before and after it
// must have the same answers, and without D among the candidates it must still fail.
TEST(Victims, TheSearchLeavesNoTrace) {
  World w{{{.last = 2}}, {force("low", 2, 1), no("hi", 3)}, preempting(PreemptMode::kCancel, true)};
  for (const char* name : {"A", "B", "C", "D"}) w.start(name, {.in = "low", .tasks = 3});
  const std::string before = w.ask({.in = "low", .tasks = 1}).where;
  const Placed placed = w.ask({.in = "hi", .tasks = 8, .take = {"A", "B", "C", "D"}});
  EXPECT_EQ(placed.victims.size(), 4U);  // FORCE:2 and NO never meet on a node
  EXPECT_EQ(w.ask({.in = "low", .tasks = 1}).where, before);
  EXPECT_EQ(w.ask({.in = "low", .tasks = 3}).where, "");
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 8, .take = {"A", "B", "C"}}).where, "");
}

// A job of a FORCE partition cannot be stacked over one that does not share, so the one below has
// to end (14.7: med over low).
TEST(Victims, ClassesThatDoNotMixArePreempted) {
  ClusterParameters parameters = preempting(PreemptMode::kSuspend, true);
  PartitionConfig low = no("low", 10);
  low.preempt_mode = PreemptMode::kRequeue;
  World w{{{}}, {low, force("med", 1, 20)}, parameters};
  w.modes = {{"L", PreemptMode::kRequeue}};
  w.start("L", {.in = "low", .tasks = 4});
  const Placed placed = w.ask({.in = "med", .tasks = 4, .take = {"L"}});
  EXPECT_EQ(placed.where, "n1:0-3");
  EXPECT_EQ(placed.victims, Names{"L"});
}

// 6,000 and 4,000 MiB are more than the node's 8,000: a suspended victim would keep its memory, one
// that ends does not (R5.4).
TEST(Victims, MemoryIsFreedByEndingNotBySuspending) {
  ClusterParameters parameters = preempting(PreemptMode::kSuspend, true);
  parameters.memory = true;
  World w{{{}}, {force("low", 1, 1), force("hi", 1, 2)}, parameters};
  w.start("L", {.in = "low", .tasks = 1, .mem = 6000});
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 1, .mem = 4000, .take = {"L"}}).where, "");
  w.modes = {{"L", PreemptMode::kCancel}};
  EXPECT_EQ(w.ask({.in = "hi", .tasks = 1, .mem = 4000, .take = {"L"}}).victims, Names{"L"});
}

// --- preempt/qos with SUSPEND ---

ClusterParameters by_qos() {
  return preempting(PreemptMode::kSuspend, true, PreemptType::kQos);
}

// A, B and C fill the one row of FORCE:1. The extra row is empty, and opens to a job with a
// candidate. (Recorded.)
TEST(QosSuspend, TakesTheExtraRowOverTheVictimsCores) {
  World w{{{.cores = 8}}, {force("p", 1)}, by_qos()};
  w.start("A", {.tasks = 4});
  w.start("B", {.tasks = 2});
  w.start("C", {.tasks = 2});
  EXPECT_EQ(w.ask({.tasks = 3}).where, "");
  const Placed placed = w.ask({.tasks = 3, .take = {"A", "B", "C"}});
  EXPECT_EQ(placed.where, "n1:0-2");
  EXPECT_TRUE(placed.victims.empty());  // gang slices them
}

// H1 fills the extra row, so neither H2 nor B fits. After H1 it is H2's. When A has ended, H2 is
// packed into the first row, and B finds no room until H2 ends. A core takes one job more than its
// share, not one for each preemptor (R7.26, 14.8).
TEST(QosSuspend, OneExtraJobPerUnit) {
  World w{{{}}, {force("p", 1)}, by_qos()};
  w.start("A", {.tasks = 4});
  EXPECT_EQ(w.start("H1", {.tasks = 4, .take = {"A"}}), "n1:0-3");
  EXPECT_EQ(w.start("H2", {.tasks = 4, .take = {"A"}}), "");
  EXPECT_EQ(w.start("B", {.tasks = 4}), "");
  w.end("H1");
  EXPECT_EQ(w.start("H2", {.tasks = 4, .take = {"A"}}), "n1:0-3");
  w.end("A");
  EXPECT_EQ(w.start("B", {.tasks = 4}), "");
  w.end("H2");
  EXPECT_EQ(w.start("B", {.tasks = 4}), "n1:0-3");
}

// Test 3 asks for tiers alone, under preempt/qos, too: a job of a higher tier lies over A without
// any candidate, and A waits in its shadow.
TEST(QosSuspend, HigherTierPartitionIsPlacedOverTheLower) {
  World w{{{}}, {force("p1", 1, 1), force("p2", 1, 2)}, by_qos()};
  w.start("A", {.in = "p1", .tasks = 2});
  w.start("B", {.in = "p1", .tasks = 2});
  EXPECT_EQ(w.ask({.in = "p2", .tasks = 2}).where, "n1:0-1");
}

// The node has 8000 MiB, all of it taken. A could only be suspended and would keep its 3000; the
// end of B frees 5000, which is enough for 4000.
TEST(QosSuspend, P12BothKindsOfVictimsAreTried) {
  ClusterParameters parameters = by_qos();
  parameters.memory = true;
  World w{{{}}, {force("p", 1)}, parameters};
  w.modes = {{"A", PreemptMode::kSuspend}, {"B", PreemptMode::kCancel}};
  w.start("A", {.tasks = 2, .mem = 3000});
  w.start("B", {.tasks = 2, .mem = 5000});
  const Placed placed = w.ask({.tasks = 2, .mem = 4000, .take = {"A", "B"}});
  EXPECT_EQ(placed.where, "n1:2-3@4000");
  EXPECT_EQ(placed.victims, Names{"B"});
}

// Slurm 22.05 tries the first candidate's kind alone (recorded).
TEST(QosSuspend, P12AsRecordedOneKindIsTried) {
  ClusterParameters parameters = by_qos();
  parameters.memory = true;
  parameters.quirks.first_candidate_decides = true;
  World w{{{}}, {force("p", 1)}, parameters};
  w.modes = {{"A", PreemptMode::kSuspend}, {"B", PreemptMode::kCancel}};
  w.start("A", {.tasks = 2, .mem = 3000});
  w.start("B", {.tasks = 2, .mem = 5000});
  EXPECT_EQ(w.ask({.tasks = 2, .mem = 4000, .take = {"A", "B"}}).where, "");
}

}  // namespace
}  // namespace sched::cons_tres::testing
