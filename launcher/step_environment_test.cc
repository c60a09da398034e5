#include "launcher/step_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TEST(JobNodes, OfTheVariablesOfTheJob) {
  const JobNodes nodes = job_nodes({"SLURM_JOB_NODELIST=n[1-3]", "SLURM_JOB_CPUS_PER_NODE=4(x2),1",
                                    "SLURM_NODEID=2", "SLURMD_NODENAME=n3"});
  EXPECT_THAT(nodes.names, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(nodes.cpus, ElementsAre(4, 4, 1));
  EXPECT_EQ(nodes.own, 2U);
}

TEST(JobNodes, VariablesThatDoNotGoTogetherMeanOneNode) {
  for (const char* cpus : {"4", "4(x3", "4(x)", "x", "4(x99999999999)", ""}) {
    const JobNodes nodes =
        job_nodes({"SLURM_JOB_NODELIST=n[1-2]", std::string{"SLURM_JOB_CPUS_PER_NODE="} + cpus,
                   "SLURMD_NODENAME=n2", "SLURM_CPUS_ON_NODE=3"});
    EXPECT_THAT(nodes.names, ElementsAre("n2")) << cpus;
    EXPECT_THAT(nodes.cpus, ElementsAre(3)) << cpus;
  }
}

TEST(TaskSet, HasTheRanksProgramsAndVariablesOfItsNode) {
  const JobNodes nodes{.names = {"n1", "n2", "n3"}, .cpus = {4, 2, 1}};
  const StepRequest request{.tasks = 3,
                            .nodes = 2,
                            .distribution = Distribution::kCyclic,
                            .distribution_within = ":block",
                            .programs = {{"a"}, {"b"}, {"c"}},
                            .environment = {"HOSTNAME=n1", "KUBEGANG_STEPS=s:t"}};
  const StepPlacement placement{
      .layout = {.nodes = {0, 2}, .places = {0, 1, 0}}, .cpus = {4, 1}, .tasks = {2, 1}};
  const TaskSet first = task_set(request, placement, 0, 7, nodes);
  EXPECT_THAT(first.ranks, ElementsAre(0, 2));
  EXPECT_THAT(first.programs, ElementsAre(ElementsAre("a"), ElementsAre("c")));
  EXPECT_THAT(first.environment, Contains("KUBEGANG_STEPS=:t"));
  const TaskSet second = task_set(request, placement, 1, 7, nodes);
  for (const char* entry :
       {"SLURM_STEP_ID=7", "SLURM_NODEID=1", "SLURMD_NODENAME=n3", "SLURM_STEP_NODELIST=n[1,3]",
        "SLURM_NNODES=2", "SLURM_STEP_TASKS_PER_NODE=2,1", "SLURM_GTIDS=1", "SLURM_CPUS_ON_NODE=1",
        "SLURM_DISTRIBUTION=cyclic:block", "SLURM_TOPOLOGY_ADDR=n3", "HOSTNAME=n3",
        "KUBEGANG_STEPS=:t"}) {
    EXPECT_THAT(second.environment, Contains(entry));
  }
  EXPECT_THAT(second.environment, Not(Contains("HOSTNAME=n1")));
  EXPECT_THAT(first.environment, Contains("SLURM_CPUS_ON_NODE=4")) << "the node is the step's";
  const StepRequest packed{.tasks = 2, .nodes = 2, .packing = Packing::kPack, .programs = {{"a"}}};
  const StepPlacement two{
      .layout = {.nodes = {0, 1}, .places = {0, 1}}, .cpus = {4, 2}, .tasks = {1, 1}};
  EXPECT_THAT(task_set(packed, two, 0, 7, nodes).environment,
              Contains("SLURM_DISTRIBUTION=block,pack"));
  StepRequest exact = request;
  exact.is_exact = true;
  EXPECT_THAT(task_set(exact, placement, 0, 7, nodes).environment,
              Contains("SLURM_CPUS_ON_NODE=2"));
}

// Nodes of a job may have different GPUs. Variables that a script has set itself go everywhere.
TEST(TaskSet, LeavesTheDevicesOfAnotherNodeToItsLauncher) {
  const Environment of_pod{"SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_CPUS_PER_NODE=1(x2)",
                           "SLURM_GPUS_ON_NODE=4", "CUDA_VISIBLE_DEVICES=0,1,2,3",
                           "SLURM_JOB_GPUS=0,1,2,3"};
  const JobNodes nodes = job_nodes(of_pod);
  StepRequest request{.tasks = 2, .nodes = 2, .programs = {{"a"}}, .environment = of_pod};
  set(request.environment, "SLURM_JOB_GPUS", "7");
  const StepPlacement placement{
      .layout = {.nodes = {0, 1}, .places = {0, 1}}, .cpus = {1, 1}, .tasks = {1, 1}};
  EXPECT_THAT(task_set(request, placement, 0, 7, nodes).environment,
              Contains("CUDA_VISIBLE_DEVICES=0,1,2,3"));
  Environment there = task_set(request, placement, 1, 7, nodes).environment;
  EXPECT_FALSE(value_of(there, "CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(value_of(there, "SLURM_GPUS_ON_NODE"));
  add_devices(there, {"SLURM_GPUS_ON_NODE=1", "CUDA_VISIBLE_DEVICES=0"});
  EXPECT_EQ(value_of(there, "SLURM_GPUS_ON_NODE"), "1");
  EXPECT_EQ(value_of(there, "CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(value_of(there, "SLURM_JOB_GPUS"), "7");
}

}  // namespace
}  // namespace launcher
