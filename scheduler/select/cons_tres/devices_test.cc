// Devices for the whole job, for each task and with CPUs of their own (R11.9). Nodes of two sockets
// of 4 cores.
#include <gtest/gtest.h>

#include "scheduler/select/cons_tres/testing/world.h"

namespace sched::cons_tres::testing {
namespace {

Devices gpus(int count) {
  return {{.kind = {.name = "gpu", .type = {}}, .count = count}};
}

World nodes_with(int nodes, int count) {
  return World{{{.last = nodes, .sockets = 2, .devices = gpus(count)}}, {no("p")}, plain()};
}

// a (recorded, rnd_gres_316): one task with a device is offered one CPU by each node, however many
// are idle, so the first node is taken and not the fullest.
TEST(Devices, TheFirstNodeIsAsGoodAsTheFullest) {
  World w = nodes_with(3, 4);
  EXPECT_EQ(w.start("A", {.tasks = 2, .on = {"n2"}}), "n2:0,4");
  EXPECT_EQ(w.ask({.tasks = 1}).where, "n2:1");
  EXPECT_EQ(w.ask({.tasks = 1, .gres = gpus(1)}).where, "n1:4+gpu:1");
}

// R11.3b: cores beyond those of the tasks are given up where their number is known.
TEST(Devices, CoresAreEvenedOutWhereTheNumberOfTasksIsKnown) {
  World w = nodes_with(1, 4);
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 3, .gres = gpus(1)}).where, "n1:0,4-5+gpu:1");
  EXPECT_EQ(w.ask({.tasks = 3, .gres = gpus(1)}).where, "n1:0-1,4+gpu:1");
  EXPECT_EQ(w.ask({.tasks = 3, .gpus = gpus(2)}).where, "n1:0-1,4+gpu:2");
}

// c, d: a number for the job comes from as many nodes as it takes; the first gives what it has but
// for one on each that follows.
TEST(Devices, AJobsNumberIsSharedByNodes) {
  World w = nodes_with(3, 2);
  EXPECT_EQ(w.ask({.tasks = 3, .gpus = gpus(2)}).where, "n1:0-1,4+gpu:2");
  EXPECT_EQ(w.ask({.tasks = 3, .gpus = gpus(3)}).where, "n1:0,4+gpu:2 n2:0+gpu:1");
  EXPECT_EQ(w.ask({.tasks = 1, .gpus = gpus(3)}).where, "");  // no node beyond the tasks
  EXPECT_EQ(w.ask({.nodes = 3, .tasks = 3, .gpus = gpus(4)}).where,
            "n1:4+gpu:2 n2:4+gpu:1 n3:4+gpu:1");
  EXPECT_EQ(w.ask({.tasks = 9, .gpus = gpus(7)}).where, "");
}

// b: a node with more of the GPUs that the job wants goes first.
TEST(Devices, NodesWithMoreGpusGoFirst) {
  World w = nodes_with(2, 2);
  EXPECT_EQ(w.start("A", {.tasks = 1, .gres = gpus(1)}), "n1:4+gpu:1");
  EXPECT_EQ(w.ask({.tasks = 2, .gpus = gpus(2)}).where, "n2:0,4+gpu:2");
  EXPECT_EQ(w.ask({.tasks = 2, .gpus = gpus(1)}).where, "n1:0,5+gpu:1");
}

// d: no more tasks on a node than find their devices there.
TEST(Devices, TasksGoWhereTheirDevicesAre) {
  World w = nodes_with(3, 2);
  EXPECT_EQ(w.start("A", {.tasks = 3, .gpus_per_task = gpus(1)}), "n1:0,4+gpu:2 n2:0+gpu:1");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 3, .gpus_per_task = gpus(1)}).where, "");
  EXPECT_EQ(w.start("B", {.tasks = 3, .gpus_per_task = gpus(1)}), "n2:4+gpu:1 n3:0,4+gpu:2");
  EXPECT_EQ(w.ask({.tasks = 1, .gpus_per_task = gpus(1)}).where, "");
}

// R11.12 (recorded, gpus_of_sockets): for each socket on which the job has cores, and for as many
// as it asks for.
TEST(Devices, SocketsThatAreAskedForBringDevices) {
  World w = nodes_with(2, 4);
  const auto where = [&w](const Ask& ask) { return w.ask(ask).where; };
  const Devices each = gpus(1);
  EXPECT_EQ(where({.tasks = 1, .sockets_per_node = 2, .gpus_per_socket = each}), "n1:4+gpu:2");
  EXPECT_EQ(where({.tasks = 8, .sockets_per_node = 1, .gpus_per_socket = each}), "n1:0-7+gpu:2");
  EXPECT_EQ(where({.nodes = 2, .tasks = 4, .sockets_per_node = 2, .gpus_per_socket = each}),
            "n1:0-1,4+gpu:2 n2:0+gpu:2");
  EXPECT_EQ(where({.tasks = 1, .sockets_per_node = 2, .gpus_per_socket = gpus(3)}), "");
}

// Recorded, gres_structure: a node's structure says which nodes will do, and not what the job gets.
TEST(Devices, OneTaskOnANodeOfTwoSocketsHasOneCore) {
  World w = nodes_with(1, 4);
  EXPECT_EQ(w.ask({.tasks = 1, .sockets_per_node = 2, .gres = gpus(1)}).where, "n1:4+gpu:1");
  EXPECT_EQ(w.ask({.tasks = 1, .sockets_per_node = 2}).where, "n1:0");
  EXPECT_EQ(w.ask({.nodes = 1, .sockets_per_node = 2}).where, "n1:0");
}

// R11.12: for each socket on which the job has cores.
TEST(Devices, SocketsWithCoresBringDevices) {
  World w = nodes_with(1, 4);
  const Ask two{.nodes = 1, .tasks = 2, .sockets_per_node = 2, .gpus_per_socket = gpus(1)};
  const Ask one{.nodes = 1, .tasks = 1, .sockets_per_node = 1, .gpus_per_socket = gpus(2)};
  EXPECT_EQ(w.ask(two).where, "n1:0,4+gpu:2");
  EXPECT_EQ(w.start("A", one), "n1:4+gpu:2");
  EXPECT_EQ(w.start("B", {.nodes = 1, .tasks = 1, .gres = gpus(1)}), "n1:5+gpu:1");
  EXPECT_EQ(w.ask(two).where, "");
  EXPECT_EQ(w.ask(one).where, "");
}

// e: CPUs and memory that GPUs bring with them.
TEST(Devices, GpusBringCpusAndMemory) {
  ClusterParameters parameters = plain();
  parameters.memory = true;
  parameters.default_memory.per_cpu = MemoryMiB{100};
  World w{{{.last = 1, .sockets = 2, .devices = gpus(4)}}, {no("p")}, parameters};
  EXPECT_EQ(w.ask({.tasks = 1, .gpus = gpus(2), .per_gpu = {.memory = MemoryMiB{500}}}).where,
            "n1:4@1000+gpu:2");
  EXPECT_EQ(w.ask({.tasks = 1, .gpus = gpus(2), .per_gpu = {.memory = MemoryMiB{5000}}}).where, "");
  EXPECT_EQ(w.ask({.nodes = 1, .tasks = 1, .gres = gpus(3), .per_gpu = {.cpus = 3}}).where, "");
}

}  // namespace
}  // namespace sched::cons_tres::testing
