// Where jobs go on idle and partly used nodes: 4.6 to 4.8 and 4.11. Most expectations are recorded
// placements of Slurm.
#include <gtest/gtest.h>

#include "scheduler/select/cons_tres/testing/world.h"

namespace sched::cons_tres::testing {
namespace {

// With a default for each CPU the expectations show how many CPUs a node is charged for: @600 is
// six.
ClusterParameters with_memory(SelectUnit unit, int default_per_cpu) {
  ClusterParameters parameters = gang();
  parameters.unit = unit;
  parameters.memory = true;
  parameters.default_memory.per_cpu = MemoryMiB{default_per_cpu};
  return parameters;
}

// 4.8: as many CPUs as possible on the first node, one kept for each that follows; cyclic cores.
TEST(Placement, FirstNodesTakeMostWhenTasksAreLeftOpen) {
  World w{{{.first = 12, .last = 16, .sockets = 2, .memory = 16000}},
          {force("p")},
          with_memory(SelectUnit::kCore, 100)};
  const Ask job{.nodes = 5, .tasks = 10};
  EXPECT_EQ(w.start("J44", job), "n12:0-2,4-6@600 n13:0@100 n14:0@100 n15:0@100 n16:0@100");
  EXPECT_EQ(w.start("J45", job), "n12:3,7@200 n13:1-5@500 n14:1@100 n15:1@100 n16:1@100");
  // Stacked: row 1, the same cores again.
  EXPECT_EQ(w.start("J46", job), "n12:0-2,4-6@600 n13:0@100 n14:0@100 n15:0@100 n16:0@100");
  EXPECT_EQ(w.start("J47", job), "n12:3,7@200 n13:1-5@500 n14:1@100 n15:1@100 n16:1@100");
}

// The example of CR_Core_Memory in Slurm's guide (14.4). Two tasks of each node go to one core of
// each of its two sockets: 0 and 4, 1 and 5, and so on. Four jobs fill the first row; the next ones
// get the same cores again, in the second row, so that two jobs that take turns overlap exactly.
TEST(Placement, CoresOfEqualJobsAlignOverRows) {
  World w{{{.first = 12, .last = 16, .sockets = 2, .memory = 16000}},
          {force("p")},
          with_memory(SelectUnit::kCore, 100)};
  const Ask job{.nodes = 5, .tasks = 10, .per_node = 2};
  const auto all = [](const std::string& cores) {
    std::string text;
    for (int i = 12; i <= 16; ++i) {
      text += (i > 12 ? " n" : "n") + std::to_string(i) + ":" + cores + "@200";
    }
    return text;
  };
  EXPECT_EQ(w.start("44", job), all("0,4"));
  EXPECT_EQ(w.start("45", job), all("1,5"));
  EXPECT_EQ(w.start("46", job), all("2,6"));
  EXPECT_EQ(w.start("47", job), all("3,7"));
  EXPECT_EQ(w.start("48", job), all("0,4"));
  EXPECT_EQ(w.start("49", job), all("1,5"));
}

// CR_CPU, as in the guide's second example (14.5). One task goes to each node first, the others
// fill the first node.
TEST(Placement, CpuUnitTakesCoresInBlocks) {
  World w{{{.first = 12, .last = 13, .sockets = 2, .memory = 16000}},
          {force("p")},
          with_memory(SelectUnit::kCpu, 100)};
  EXPECT_EQ(w.start("51", {.nodes = 2, .tasks = 7}), "n12:0-5@600 n13:0@100");
  // The tightest socket first where one suffices, the fullest first where one does not.
  EXPECT_EQ(w.start("52", {.nodes = 2, .tasks = 7}), "n12:6-7@200 n13:1,4-7@500");
}

// Free cores of n1 to n4 before each job: 8 8 8 8 (A: n1), 7 8 8 8 (B: n2), 7 2 8 8 (C: n3), 7 2 6
// 8 (D: all of n4 and four of n1), 3 2 6 0 (E: n3), 3 2 3 0 (F: n1, the first of equals).
TEST(Placement, LeastLoadedTakesTheEmptiestNode) {
  PartitionConfig partition = no("p");
  partition.least_loaded = true;
  World w{{{.last = 4, .sockets = 2}}, {partition}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 1}), "n1:0");
  EXPECT_EQ(w.start("B", {.tasks = 6}), "n2:0-2,4-6");
  EXPECT_EQ(w.start("C", {.tasks = 2}), "n3:0,4");
  EXPECT_EQ(w.start("D", {.tasks = 12}), "n1:1-2,4-5 n4:0-7");
  EXPECT_EQ(w.start("E", {.tasks = 3}), "n3:1-2,5");
  EXPECT_EQ(w.start("F", {.tasks = 1}), "n1:3");
}

// X leaves two cores on n1, n3, n5 and n7. A aims at the upper end of its range, four nodes, and
// its six tasks go around them in rounds. Then n1 and n3 have none or one left: B begins at n2. One
// core of n2 stays, a run by itself that is too small for C and D.
TEST(Placement, NodeRangesAndTightRuns) {
  World w{{{.last = 8}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("X", {.nodes = 4, .per_node = 2, .on = {"n1", "n3", "n5", "n7"}}),
            "n1:0-1 n3:0-1 n5:0-1 n7:0-1");
  EXPECT_EQ(w.start("A", {.range = {1, 4}, .tasks = 6}), "n1:2-3 n2:0-1 n3:2 n4:0");
  EXPECT_EQ(w.start("B", {.nodes = 2, .tasks = 2}), "n2:2 n3:3");
  EXPECT_EQ(w.start("C", {.nodes = 3, .tasks = 9}), "n4:1-3 n5:2-3 n6:0-3");
  EXPECT_EQ(w.start("D", {.tasks = 5}), "n7:2-3 n8:0-2");
}

// Weights: n3 1, n4 and n5 5, n1 and n2 10. Each job fills the lightest nodes before it goes on to
// heavier ones.
TEST(Placement, LighterNodesFirst) {
  World w{{{.first = 1, .last = 2, .weight = 10},
           {.first = 3, .last = 3},
           {.first = 4, .last = 5, .weight = 5}},
          {no("p")},
          plain()};
  EXPECT_EQ(w.start("A", {.tasks = 2}), "n3:0-1");
  EXPECT_EQ(w.start("B", {.nodes = 2, .tasks = 2}), "n3:2 n4:0");
  EXPECT_EQ(w.start("C", {.tasks = 6}), "n3:3 n4:1-3 n5:0-1");
  EXPECT_EQ(w.start("D", {.tasks = 8}), "n1:0-3 n2:0-1 n5:2-3");
}

// 4.8: if one node is left to be chosen, it is the one with the fewest CPUs among those that
// suffice. Only if none does, nodes are taken from the begin of the run.
TEST(Placement, OneNodeThatHoldsTheRestAloneIsPreferredToTheFirst) {
  World w{{{.last = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.ask({.tasks = 4}).where, "n2:0-3");
  EXPECT_EQ(w.ask({.tasks = 2}).where, "n1:2-3");  // the tightest
  EXPECT_EQ(w.ask({.tasks = 5}).where, "n1:2-3 n2:0-2");
}

// A first choice that got stuck on small nodes is repeated without them.
TEST(Placement, SmallNodesAreLeftOutWhenTheyAreInTheWay) {
  World w{{{.last = 3}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 3, .on = {"n1"}}), "n1:0-2");
  // n1 offers one CPU; with it as the first of two nodes the job gets 5 CPUs of 8.
  EXPECT_EQ(w.ask({.nodes = 2, .tasks = 8}).where, "n2:0-3 n3:0-3");
}

// Runs are cut where the weight changes (4.8), but for --contiguous nodes are neighbors whatever
// they weigh. A fills n3: behind the hole there are three neighbors and not four. Without
// --contiguous the job is spread over the hole, the light nodes first.
TEST(Placement, ContiguousNodesMayCrossWeightsButNotHoles) {
  World w{{{.last = 2}, {.first = 3, .last = 6, .weight = 5}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.nodes = 3, .contiguous = true}).where, "n1:0 n2:0 n3:0");
  EXPECT_EQ(w.start("A", {.tasks = 4, .on = {"n3"}}), "n3:0-3");
  EXPECT_EQ(w.ask({.nodes = 3, .contiguous = true}).where, "n4:0 n5:0 n6:0");
  EXPECT_EQ(w.ask({.nodes = 4, .contiguous = true}).where, "");
  EXPECT_EQ(w.ask({.nodes = 4}).where, "n1:0 n2:0 n4:0 n5:0");
}

// 4.8: required nodes are taken before any run is weighed; the others come from beside them, upward
// first.
TEST(Placement, RequiredNodesComeFirst) {
  World w{{{.last = 4}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.nodes = 2, .tasks = 2, .on = {"n3"}}).where, "n3:0 n4:0");
  EXPECT_EQ(w.ask({.nodes = 4, .on = {"n3"}}).where, "n1:0 n2:0 n3:0 n4:0");
}

// R4.21: a node of which one core is in use is out of the question for X, which gets all cores of
// n2 for its one task (4.11 step 5). The rest of n1 is for jobs that share the node.
TEST(Placement, WholeNodesNeedEveryCoreAndGetIt) {
  World w{{{.last = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 1}), "n1:0");
  EXPECT_EQ(w.start("X", {.tasks = 1, .exclusive = true}), "n2:0-3");
  EXPECT_EQ(w.ask({.tasks = 1, .exclusive = true}).where, "");
  EXPECT_EQ(w.ask({.tasks = 3}).where, "n1:1-3");
}

// 4.8 goes for one node as well: the tightest, in the run of nodes that fits best (recorded; 4.7 is
// not what Slurm 22.05 does).
TEST(Placement, OneNodeIsNotTheFirst) {
  World w{{{.last = 5}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 1, .on = {"n1"}}), "n1:0");
  EXPECT_EQ(w.start("B", {.tasks = 2, .on = {"n2"}}), "n2:0-1");
  EXPECT_EQ(w.start("C", {.tasks = 3, .on = {"n4"}}), "n4:0-2");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 1}).where, "n4:3");
  // n4 cannot hold it and ends the run n1 to n3; n5 alone is tighter.
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 2}).where, "n5:0-1");
  EXPECT_EQ(w.ask({.tasks = 2}).where, "n2:2-3");
}

// The last node that a job may have must hold the rest (recorded).
TEST(Placement, TheLastNodeHoldsTheRest) {
  World w{{{.last = 3, .cores = 2}, {.first = 4, .last = 4, .cores = 6}, {.first = 5, .last = 6}},
          {no("p")},
          plain()};
  EXPECT_EQ(w.ask({.nodes = 2, .tasks = 7}).where, "n1:0-1 n4:0-4");
  EXPECT_EQ(w.ask({.nodes = 3, .tasks = 9}).where, "n1:0-1 n2:0-1 n4:0-4");
  EXPECT_EQ(w.ask({.nodes = 2, .tasks = 10}).where, "n4:0-5 n5:0-3");
}

// 4.8 goes over the runs once, in order: a later one with more CPUs wins though it has too few
// nodes, an earlier one does not (recorded).
TEST(Placement, ALaterRunOfTooFewNodesWinsWithMoreCpus) {
  World w{{{.last = 6}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 2, .on = {"n1"}}), "n1:0-1");
  EXPECT_EQ(w.start("B", {.tasks = 3, .on = {"n2"}}), "n2:0-2");
  EXPECT_EQ(w.start("C", {.tasks = 4, .on = {"n3"}}), "n3:0-3");
  EXPECT_EQ(w.start("D", {.tasks = 4, .on = {"n5"}}), "n5:0-3");
  EXPECT_EQ(w.start("E", {.tasks = 4, .on = {"n6"}}), "n6:0-3");
  EXPECT_EQ(w.ask({.nodes = 2}).where, "n2:3 n4:0");
  w.end("D");  // n4 and n5 suffice, less tightly than n1 and n2
  EXPECT_EQ(w.ask({.nodes = 2}).where, "n1:2 n2:3");
}

// Required nodes where the weight changes draw no job to their neighbors (recorded).
TEST(Placement, LighterNodesBeatNeighboursOfRequiredOnes) {
  World w{
      {{.last = 2, .weight = 10}, {.first = 3, .last = 4}, {.first = 5, .last = 8, .weight = 5}},
      {no("p")},
      plain()};
  EXPECT_EQ(w.ask({.nodes = 2, .on = {"n5"}}).where, "n3:0 n5:0");
  EXPECT_EQ(w.ask({.nodes = 2, .on = {"n6"}}).where, "n6:0 n7:0");
}

// A block that suffices is taken first, the lightest such; a range goes on elsewhere (recorded).
TEST(Placement, ContiguousRangesGoOnBehindHoles) {
  World w{{{.last = 2}, {.first = 3, .last = 6, .weight = 5}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 4, .on = {"n3"}}), "n3:0-3");
  EXPECT_EQ(w.ask({.nodes = 2, .contiguous = true}).where, "n1:0 n2:0");
  EXPECT_EQ(w.ask({.range = {2, 3}, .tasks = 3, .contiguous = true}).where, "n1:0 n2:0 n4:0");
}

// 4.8: the least loaded node is the one with the most free cores, not the one that offers most
// (recorded).
TEST(Placement, LeastLoadedCountsFreeCores) {
  PartitionConfig partition = no("p");
  partition.least_loaded = true;
  World w{{{.last = 3, .sockets = 2}}, {partition}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 3, .on = {"n1"}}), "n1:0-1,4");
  EXPECT_EQ(w.start("B", {.tasks = 1, .on = {"n2"}}), "n2:0");
  EXPECT_EQ(w.ask({.nodes = 2, .tasks = 4, .per_node = 2}).where, "n2:1,4 n3:0,4");
  EXPECT_EQ(w.ask({.tasks = 2, .cpus_per_task = 3}).where, "n3:0-2,4-6");
}

// --- units and threads (4.6) ---

// CR_Core on cores of two threads: three tasks need two cores and are charged for four CPUs (4.11
// step 4). With --threads-per-core=1 a core is good for one task, so two tasks do not fit on the
// last core.
TEST(Placement, ACoreIsTakenWithAllItsThreads) {
  World w{{{.last = 1, .threads = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 1}), "n1:0");
  EXPECT_EQ(w.start("B", {.tasks = 3}), "n1:1-2");  // three threads are two cores
  EXPECT_EQ(w.allocation("B").nodes[0].cpus, 4);
  EXPECT_EQ(w.ask({.tasks = 2, .threads_per_core = 1}).where, "");
  w.end("A");
  EXPECT_EQ(w.ask({.tasks = 2, .threads_per_core = 1}).where, "n1:0,3");
}

// CR_ONE_TASK_PER_CORE: each task has a core to itself, so C does not fit on the one core that is
// left of n1. A request for two tasks per core overrides the default.
TEST(Placement, OneTaskPerCoreByDefault) {
  ClusterParameters parameters = plain();
  parameters.one_task_per_core = true;
  World w{{{.last = 2, .threads = 2}}, {no("p")}, parameters};
  EXPECT_EQ(w.start("A", {.tasks = 1}), "n1:0");
  EXPECT_EQ(w.start("B", {.tasks = 2}), "n1:1-2");
  EXPECT_EQ(w.start("C", {.tasks = 3}), "n2:0-2");
  EXPECT_EQ(w.ask({.tasks = 2, .per_core = 2}).where, "n1:3");
}

// FORCE:2, so there are two rows of two sockets. A and B fill the first row and C half of the
// second: no row has both sockets for D. Without A and B, D gets both sockets of one row, and E the
// socket beside C's.
TEST(Placement, SocketUnitTakesWholeSockets) {
  ClusterParameters parameters = gang();
  parameters.unit = SelectUnit::kSocket;
  World w{{{.last = 1, .sockets = 2}}, {force("p", 2)}, parameters};
  EXPECT_EQ(w.start("A", {.tasks = 1}), "n1:0-3");
  EXPECT_EQ(w.start("B", {.tasks = 1}), "n1:4-7");
  EXPECT_EQ(w.start("C", {.tasks = 1}), "n1:0-3");
  EXPECT_EQ(w.ask({.tasks = 5}).where, "");
  w.end("B");
  w.end("A");
  EXPECT_EQ(w.start("D", {.tasks = 5}), "n1:0-7");
  EXPECT_EQ(w.start("E", {.tasks = 1}), "n1:4-7");
}

// One task on each socket: the third task needs a second node, although n1 has six idle cores.
TEST(Placement, TasksPerSocketSpreadOverSockets) {
  World w{{{.last = 2, .sockets = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.tasks = 2, .per_socket = 1}).where, "n1:0,4");
  EXPECT_EQ(w.ask({.tasks = 4, .per_socket = 1}).where, "n1:0,4 n2:0,4");
}

// The last sockets that suffice (recorded).
TEST(Placement, TasksPerSocketLeaveTheFirstSocketsAlone) {
  World w{{{.last = 1, .sockets = 3}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 1, .per_socket = 2}).where, "n1:8");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 3, .per_socket = 2}).where, "n1:4-5,8");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 5, .per_socket = 2}).where, "n1:0-1,4-5,8");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 7, .per_socket = 2}).where, "");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 1, .per_socket = 1, .cpus_per_task = 5}).where,
            "n1:4-6,8-9");
}

// The CPUs of a socket's tasks are rounded up to cores (recorded).
TEST(Placement, TasksPerSocketWithThreadsTakeWholeCores) {
  World w{{{.last = 1, .sockets = 2, .cores = 3, .threads = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 2, .per_socket = 1}).where, "n1:0");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 4, .per_socket = 1}).where, "n1:0,3");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 5, .per_socket = 1}).where, "");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 7, .per_socket = 3}).where, "n1:0-1,3-4");
}

// Block distribution fills a socket before it begins the next one, up to the tasks that are allowed
// there: cores 0 and 1, not 0 to 2.
TEST(Placement, BlocksRespectTasksPerSocket) {
  ClusterParameters parameters = plain();
  parameters.core_default_dist_block = true;
  World w{{{.last = 1, .sockets = 2}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 3, .per_socket = 2}).where, "n1:0-1,4");
}

// 15 CPUs on nodes of 8. A node's offer is not rounded to whole tasks (4.6 step 4, recorded): 8
// of n1 hold two tasks and a part of a third. Where memory is charged per CPU, it is: 6 + 6 + 3.
TEST(Placement, TasksMayEndInAPartOfTheirCpus) {
  for (const bool memory : {false, true}) {
    ClusterParameters parameters = plain();
    parameters.memory = memory;
    parameters.default_memory.per_cpu = MemoryMiB{100};
    World w{{{.last = 4, .sockets = 2}}, {no("p")}, parameters};
    EXPECT_EQ(w.ask({.tasks = 5, .cpus_per_task = 3}).where,
              memory ? "n1:0-2,4-6@600 n2:0-2,4-6@600 n3:0-2@300" : "n1:0-7 n2:0-2,4-6");
  }
}

// Cores of two threads, 100 MiB for each CPU charged; a task of 3 CPUs takes two cores whole.
TEST(Placement, OneTaskPerCoreTakesItsCoresWhole) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  parameters.default_memory.per_cpu = MemoryMiB{100};
  World w{{{.last = 2, .sockets = 2, .cores = 2, .threads = 2}}, {no("p")}, parameters};
  // Charged for both threads, unlike with --threads-per-core.
  EXPECT_EQ(w.ask({.tasks = 2, .per_core = 1}).where, "n1:0,2@400");
  EXPECT_EQ(w.ask({.tasks = 2, .threads_per_core = 1}).where, "n1:0,2@200");
  EXPECT_EQ(w.ask({.tasks = 2, .per_core = 1, .mem_per_cpu = 3000}).where, "n1:0@6000 n2:0@6000");
  EXPECT_EQ(w.ask({.tasks = 2, .per_core = 1, .cpus_per_task = 3}).where, "n1:0-3@800");
}

// 4.11 step 3: a socket is filled with whole tasks. The last task finds three cores, but no socket
// with three, and is split.
TEST(Placement, CpusOfATaskStayInOneSocket) {
  World w{{{.last = 1, .sockets = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 1, .cpus_per_task = 3}), "n1:0-2");
  EXPECT_EQ(w.start("B", {.tasks = 1, .cpus_per_task = 2}), "n1:4-5");
  EXPECT_EQ(w.ask({.tasks = 1, .cpus_per_task = 3}).where, "n1:3,6-7");
}

// 4.6 step 2: sockets with fewer free cores than asked for do not count, and the node must have
// enough of the others. A has taken one core of each socket of n1.
TEST(Placement, SocketsAndCoresPerSocketFilterNodes) {
  World w{{{.last = 2, .sockets = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 2, .on = {"n1"}}), "n1:0,4");
  EXPECT_EQ(w.ask({.tasks = 2, .cores_per_socket = 4}).where, "n2:0,4");
  EXPECT_EQ(w.ask({.tasks = 2, .sockets_per_node = 2, .cores_per_socket = 3}).where, "n1:1,5");
}

// 4.6 step 5: n1 has two CPUs left, so it does not count for a job that needs three on each node,
// be it by --mincpus or because all tasks are for one node.
TEST(Placement, MinimumOfCpusPerNode) {
  World w{{{.last = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.tasks = 2}), "n1:0-1");
  EXPECT_EQ(w.ask({.tasks = 1, .mincpus = 3}).where, "n2:0-2");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 3}).where, "n2:0-2");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 2, .per_node = 2, .mincpus = 3}).where, "n2:0-2");
}

// MaxCPUsPerNode=3: B's two CPUs count, A's of the other partition do not. So one CPU more is
// allowed, not two.
TEST(Placement, PartitionsLimitOfCpusPerNodeCountsItsOwnJobsOnly) {
  PartitionConfig limited = no("limited");
  limited.max_cpus_per_node = 3;
  World w{{{.last = 1}}, {limited, no("p")}, plain()};
  EXPECT_EQ(w.start("A", {.in = "p", .tasks = 1}), "n1:0");
  EXPECT_EQ(w.start("B", {.in = "limited", .tasks = 2}), "n1:1-2");
  EXPECT_EQ(w.ask({.in = "limited", .tasks = 2}).where, "");
  EXPECT_EQ(w.ask({.in = "limited", .tasks = 1}).where, "n1:3");
}

// 16 tasks on four cores: with --overcommit a CPU for each node is enough, without it the node is
// too small.
TEST(Placement, OvercommitNeedsOneCpuPerNode) {
  World w{{{.last = 1}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 16, .overcommit = true}).where, "n1:0");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 16}).where, "");
}

// As recorded (overcommit_mincpus): --mincpus says which nodes will do, and only without
// --overcommit what the job gets there.
TEST(Placement, OvercommitGetsNoMoreForMincpus) {
  World w{{{.last = 2, .cores = 6}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.range = {1, 1}, .mincpus = 4}).where, "n1:0-3");
  EXPECT_EQ(w.ask({.range = {1, 1}, .mincpus = 4, .overcommit = true}).where, "n1:0");
  EXPECT_EQ(w.ask({.range = {1, 1}, .tasks = 3, .mincpus = 5, .overcommit = true}).where, "n1:0");
  EXPECT_EQ(w.ask({.nodes = 2, .mincpus = 2, .overcommit = true}).where, "n1:0 n2:0");
  EXPECT_EQ(w.ask({.range = {1, 1}, .cpus_per_task = 2, .overcommit = true}).where, "n1:0-1");
  EXPECT_EQ(w.start("A", {.range = {1, 1}, .tasks = 3}), "n1:0-2");
  EXPECT_EQ(w.ask({.range = {1, 1}, .mincpus = 4, .overcommit = true}).where, "n2:0");
  EXPECT_EQ(w.ask({.range = {1, 1}, .mincpus = 7, .overcommit = true}).where, "");
}

// As sbatch has it, which asks for no more nodes than tasks: none is without a CPU.
TEST(Placement, OneOvercommittedTaskGetsOneNode) {
  World w{{{.last = 2}}, {no("p")}, plain()};
  EXPECT_EQ(w.ask({.range = {1, 2}, .tasks = 1, .overcommit = true}).where, "n1:0");
  EXPECT_EQ(w.ask({.range = {1, 2}, .tasks = 2, .overcommit = true}).where, "n1:0 n2:0");
}

// --- memory (5, 1.8) ---

// 3 × 3000 MiB are more than the node's 8000 (R5.2). Stacked jobs wait for memory although cores
// could be shared (14.11d).
TEST(Memory, StackedJobsMustAllFit) {
  ClusterParameters parameters = gang();
  parameters.memory = true;
  World w{{{}}, {force("p")}, parameters};
  EXPECT_EQ(w.start("A", {.tasks = 4, .mem = 3000}), "n1:0-3@3000");
  EXPECT_EQ(w.start("B", {.tasks = 4, .mem = 3000}), "n1:0-3@3000");
  const Placed third = w.ask({.tasks = 4, .mem = 3000});
  EXPECT_EQ(third.where, "");
  w.end("A");
  EXPECT_EQ(w.ask({.tasks = 4, .mem = 3000}).where, "n1:0-3@3000");
}

// Without a request and without a default a job is charged all memory of its nodes (R5.3).
TEST(Memory, AJobThatNamesNoneGetsAll) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  World w{{{.last = 2}}, {no("p")}, parameters};
  EXPECT_EQ(w.start("A", {.tasks = 1}), "n1:0@8000");
  EXPECT_EQ(w.start("B", {.tasks = 1, .mem = 100}), "n2:0@100");
  EXPECT_EQ(w.ask({.tasks = 1, .mem = 0}).where, "");
}

// R5.2: 5,000 of 8,000 MiB stay taken, so 4,000 do not fit and 3,000 do. B then has A's cores, and
// A stays suspended until B has gone (T10).
TEST(Memory, UserSuspendedJobsKeepTheirs) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  World w{{{}}, {no("p")}, parameters};
  EXPECT_EQ(w.start("A", {.tasks = 4, .mem = 5000}), "n1:0-3@5000");
  w.suspend("A");
  EXPECT_EQ(w.ask({.tasks = 4, .mem = 4000}).where, "");
  EXPECT_EQ(w.start("B", {.tasks = 4, .mem = 3000}), "n1:0-3@3000");
  EXPECT_FALSE(w.resume("A"));
  w.end("B");
  EXPECT_TRUE(w.resume("A"));
  EXPECT_EQ(w.ask({.tasks = 1, .mem = 100}).where, "");
}

// Two CPUs at 3000 MiB fit into 8000, three do not.
TEST(Memory, PerCpuLimitsTheCpusOfANode) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  World w{{{.last = 2}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.tasks = 4, .mem_per_cpu = 3000}).where, "n1:0-1@6000 n2:0-1@6000");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 4, .mem_per_cpu = 3000}).where, "");
}

// ceil(2500 / 1000) = 3 CPUs for each task, at ceil(2500 / 3) = 834 MiB each: 2502. (1.8 step 6)
TEST(Memory, MoreThanTheLimitPerCpuTakesMoreCpus) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  parameters.max_memory.per_cpu = MemoryMiB{1000};
  World w{{{}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.tasks = 1, .mem_per_cpu = 2500}).where, "n1:0-2@2502");
  EXPECT_EQ(w.ask({.tasks = 1, .mem = 2500}).where, "n1:0-2@2500");
  // Each node needs what its tasks asked for themselves only (recorded).
  World two{{{.last = 2, .sockets = 2, .memory = 20000}}, {no("p")}, parameters};
  EXPECT_EQ(two.ask({.nodes = 2, .tasks = 2, .mem_per_cpu = 2500}).where, "n1:0-2@2502 n2:0@834");
  EXPECT_EQ(two.ask({.nodes = 2, .mem_per_cpu = 2500}).where, "n1:0-2@2502 n2:0-2@2502");
}

// … also where memory is not managed.
TEST(Memory, TheLimitPerCpuHoldsWithoutManagedMemory) {
  ClusterParameters parameters = plain();
  parameters.max_memory.per_cpu = MemoryMiB{1000};
  World w{{{}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.tasks = 1, .mem_per_cpu = 2500}).where, "n1:0-2");
}

// R5.5: sockets are charged as the CPUs that the job can use of them.
TEST(Memory, SocketsOfOneThreadAreChargedSo) {
  ClusterParameters parameters = plain();
  parameters.unit = SelectUnit::kSocket;
  parameters.memory = true;
  World w{{{.sockets = 2, .cores = 2, .threads = 2}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.tasks = 1, .threads_per_core = 1, .mem_per_cpu = 3000}).where, "n1:0-1@6000");
}

// 500 MiB per CPU in own; 1000 per node elsewhere. With two tasks both come to 1000.
TEST(Memory, PartitionsDefaultBeatsTheClusters) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  parameters.default_memory.per_node = MemoryMiB{1000};
  PartitionConfig own = no("own");
  own.default_memory.per_cpu = MemoryMiB{500};
  World w{{{}}, {own, no("p")}, parameters};
  EXPECT_EQ(w.ask({.in = "own", .tasks = 2}).where, "n1:0-1@1000");
  EXPECT_EQ(w.ask({.tasks = 2}).where, "n1:0-1@1000");
  EXPECT_EQ(w.ask({.in = "own", .tasks = 3}).where, "n1:0-2@1500");
}

// Memory per node is charged as asked (R5.6), memory per CPU for all four CPUs.
TEST(Memory, WholeNodesAreChargedForAllTheirCpus) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  World w{{{}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.tasks = 1, .mem = 100, .exclusive = true}).where, "n1:0-3@100");
  EXPECT_EQ(w.ask({.tasks = 1, .mem_per_cpu = 100, .exclusive = true}).where, "n1:0-3@400");
}

// 3.8: TEST_ONLY asks if the job could ever run. A's memory does not count; the size of the node
// does.
TEST(Memory, TestOnlyIgnoresWhatOthersHold) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  World w{{{}}, {no("p")}, parameters};
  EXPECT_EQ(w.start("A", {.tasks = 4, .mem = 8000}), "n1:0-3@8000");
  EXPECT_EQ(w.ask({.tasks = 4, .mem = 8000}).where, "");
  EXPECT_NE(w.ask({.tasks = 4, .mem = 8000, .mode = SelectMode::kTestOnly}).where, "");
  EXPECT_EQ(w.ask({.tasks = 4, .mem = 8001, .mode = SelectMode::kTestOnly}).where, "");
  EXPECT_EQ(w.ask({.tasks = 5, .mode = SelectMode::kTestOnly}).where, "");
}

}  // namespace
}  // namespace sched::cons_tres::testing
