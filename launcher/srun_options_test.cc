#include "launcher/srun_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "launcher/gpu_binding.h"
#include "slurm/exit_code.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Variable of(std::map<std::string, std::string> all) {
  return [all = std::move(all)](const std::string& name) -> std::optional<std::string> {
    const auto found = all.find(name);
    return found == all.end() ? std::nullopt : std::optional{found->second};
  };
}

const Variable kNone = of({});

SrunOptions read(std::vector<std::string> words, const Variable& variable = kNone) {
  const auto options = read_srun_options(words, variable);
  EXPECT_TRUE(options.ok()) << options.error().message;
  return options.ok() ? *options : SrunOptions{};
}

std::string refusal(std::vector<std::string> words) {
  const auto options = read_srun_options(words, kNone);
  return options.ok() ? "" : options.error().message;
}

TEST(SrunOptions, AreReadAsGetoptReadsThem) {
  const SrunOptions options = read({"-n4", "-lu", "-c", "2", "--output=%t.txt", "--error", "e",
                                    "-K", "--exclusive", "-i", "1", "cmd", "-n", "9"});
  EXPECT_EQ(options.tasks, 4);
  EXPECT_EQ(options.cpus_per_task, 2);
  EXPECT_TRUE(options.has_labels && options.is_unbuffered && options.is_exact);
  EXPECT_TRUE(options.kills_on_bad_exit);
  EXPECT_EQ(options.output, "%t.txt");
  EXPECT_EQ(options.error, "e");
  EXPECT_EQ(options.input, "1");
  EXPECT_THAT(options.command, ElementsAre("cmd", "-n", "9"));
}

// SOURCE: srun.1, --no-kill[=off] and SLURM_NO_KILL.
TEST(SrunOptions, AStepMaySurviveTheLossOfANode) {
  EXPECT_FALSE(read({"a"}).survives_nodes);
  EXPECT_TRUE(read({"-k", "a"}).survives_nodes);
  EXPECT_TRUE(read({"a"}, of({{"SLURM_NO_KILL", "1"}})).survives_nodes);
  EXPECT_FALSE(read({"--no-kill=off", "a"}, of({{"SLURM_NO_KILL", "1"}})).survives_nodes);
}

TEST(SrunOptions, DashesEndThem) {
  EXPECT_THAT(read({"-n1", "--", "-x"}).command, ElementsAre("-x"));
}

TEST(SrunOptions, VariablesAreBeatenByTheCommandLine) {
  const Variable variable = of({{"SLURM_KILL_BAD_EXIT", "1"}, {"SRUN_CPUS_PER_TASK", "3"}});
  EXPECT_TRUE(read({"a"}, variable).kills_on_bad_exit);
  EXPECT_FALSE(read({"--kill-on-bad-exit=0", "a"}, variable).kills_on_bad_exit);
  EXPECT_EQ(read({"a"}, variable).cpus_per_task, 3);
}

TEST(SrunOptions, KindsOfMpi) {
  EXPECT_EQ(read({"a"}).mpi, Mpi::kNone);
  EXPECT_EQ(read({"--mpi=pmi2", "a"}).mpi, Mpi::kPmi2);
  EXPECT_EQ(read({"--mpi=pmix", "a"}).mpi, Mpi::kPmix);
  EXPECT_EQ(read({"--mpi=pmix_v4", "a"}).mpi, Mpi::kPmix);
  const Variable variable = of({{"SLURM_MPI_TYPE", "pmix"}});
  EXPECT_EQ(read({"a"}, variable).mpi, Mpi::kPmix);
  EXPECT_EQ(read({"--mpi=none", "a"}, variable).mpi, Mpi::kNone);
}

// As the session srun_sockets has it.
TEST(SrunOptions, SocketsCoresAndThreadsAreVariablesOfTheTasks) {
  using Variables = std::map<std::string, std::string>;
  const Variables one_thread{{"SLURM_THREADS_PER_CORE", "1"}};
  for (const char* word : {"--threads-per-core=1", "-B1:2:1", "--hint=memory_bound",
                           "--hint=compute_bound", "--hint=nomultithread"}) {
    EXPECT_EQ(read({word, "a"}).variables, one_thread) << word;
  }
  EXPECT_EQ(read({"--ntasks-per-socket=2", "--ntasks-per-core=1", "a"}).variables,
            (Variables{{"SLURM_NTASKS_PER_SOCKET", "2"}, {"SLURM_NTASKS_PER_CORE", "1"}}));
  for (const char* word :
       {"--cores-per-socket=8", "--sockets-per-node=9", "-B9", "-B1:*", "--hint=multithread", "-S1",
        "--thread-spec=1", "--switches=1", "--gres-flags=enforce-binding"}) {
    EXPECT_EQ(read({word, "a"}).variables, Variables{}) << word;
  }
  for (const char* word :
       {"--cores-per-socket=x", "--sockets-per-node=0", "-Bx", "--ntasks-per-socket=x"}) {
    EXPECT_THAT(refusal({word, "a"}), HasSubstr("invalid value")) << word;
  }
}

TEST(SrunOptions, WhatIsNotThereIsRefusedByName) {
  EXPECT_THAT(refusal({"--bcast", "a"}), HasSubstr("--bcast"));
  EXPECT_THAT(refusal({"--mpi=pmix_v3", "a"}), HasSubstr("Invalid MPI type 'pmix_v3'"));
  EXPECT_THAT(refusal({"--nosuch", "a"}), HasSubstr("'--nosuch'"));
  EXPECT_THAT(refusal({"-n", "0", "a"}), HasSubstr("--ntasks: invalid value \"0\""));
  EXPECT_THAT(refusal({"-n"}), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal({"--foo", "a"}), HasSubstr("'--foo'\nTry \"srun --help\""));
  EXPECT_THAT(refusal({"--container-image=x", "a"}), HasSubstr("leave it out\nTry \"srun"))
      << "of pyxis, which srun alone does not know";
  EXPECT_THAT(refusal({"-n2"}), HasSubstr("No command"));
  EXPECT_THAT(refusal({"--mem=1G", "--mem-per-cpu=1G", "a"}), HasSubstr("exclude each other"));
}

// Returns a job of three nodes, whose script is on n1.
std::map<std::string, std::string> job() {
  return {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURMD_NODENAME", "n1"}};
}

StepRequest planned(const std::vector<std::string>& words,
                    const std::map<std::string, std::string>& variables = job()) {
  const auto plan = plan_step(read(words), of(variables));
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return plan.ok() ? plan->request : StepRequest{};
}

TEST(StepPlan, IsOnAllNodesOfTheJobUnlessItSaysOtherwise) {
  EXPECT_EQ(planned({"a"}), (StepRequest{.tasks = 3, .nodes = 3}));
  EXPECT_EQ(planned({"-N2", "-n5", "-c2", "a"}),
            (StepRequest{.tasks = 5, .nodes = 2, .cpus_per_task = 2, .is_exact = true}));
  EXPECT_EQ(planned({"-N2", "--ntasks-per-node=2", "a"}),
            (StepRequest{.tasks = 4, .nodes = 2, .tasks_per_node = 2}));
  EXPECT_EQ(planned({"-n1", "-w", "n3,n2", "a"}).required, (std::vector<std::uint32_t>{2, 1}));
  EXPECT_EQ(planned({"-N1", "-n1", "-r1", "a"}).relative, 1U);
}

// As the session srun_c_tasks has it.
TEST(StepPlan, HasAsManyTasksAsTheCpusOfTheJobAreEnoughForIfNobodySaysTheirNumber) {
  auto variables = job();
  variables["SLURM_JOB_CPUS_PER_NODE"] = "3(x2),4";
  EXPECT_EQ(planned({"-c2", "a"}, variables).tasks, 4U) << "on each node as many as fit";
  EXPECT_EQ(planned({"-c1", "-N1", "a"}, variables).tasks, 10U) << "of all nodes of the job";
  EXPECT_EQ(planned({"-c2", "--ntasks-per-node=1", "a"}, variables).tasks, 3U);
  EXPECT_EQ(planned({"-c2", "-n1", "a"}, variables).tasks, 1U);
  EXPECT_EQ(planned({"a"}, variables).tasks, 3U);
  const auto none = plan_step(read({"-c5", "a"}), of(variables));
  EXPECT_EQ(none.error().message, "More processors requested than permitted");
  // SOURCE: recorded (session bare_environment): the job has both, and scripts unset one.
  variables["SLURM_NPROCS"] = "4";
  EXPECT_EQ(planned({"a"}, variables).tasks, 4U);
  variables["SLURM_NTASKS"] = "2";
  EXPECT_EQ(planned({"-c2", "a"}, variables).tasks, 2U);
}

TEST(StepPlan, ExactIsWhatSaysItOrCountsCpusThatAreNotShared) {
  EXPECT_TRUE(planned({"-n3", "-c1", "a"}).is_exact);
  EXPECT_FALSE(planned({"-n3", "-c1", "-O", "a"}).is_exact);
  EXPECT_TRUE(planned({"-n3", "--exact", "-O", "a"}).is_exact);
}

// SOURCE: recorded (session gpu_bind): the job's options count for a step.
TEST(SrunOptions, GpusOfTasksAreForTheirLaunchers) {
  using Variables = std::map<std::string, std::string>;
  const auto gpus = [](std::vector<std::string> words, const Variables& job) {
    words.push_back("a");
    Variables set = read(words, of(job)).variables;
    return Variables{{"each", set[kGpusOfEachTask]}, {"binding", set[kGpuBinding]}};
  };
  const auto says = [](const std::string& each, const std::string& binding) {
    return Variables{{"each", each}, {"binding", binding}};
  };
  EXPECT_EQ(gpus({}, {}), says("", ""));
  EXPECT_EQ(gpus({"--gpus-per-task=2"}, {}), says("2", "per_task:2"));
  EXPECT_EQ(gpus({}, {{"SLURM_GPUS_PER_TASK", "a100:2"}}), says("2", "per_task:2"));
  EXPECT_EQ(gpus({"--gpus-per-task=1"}, {{"SLURM_GPUS_PER_TASK", "2"}}), says("1", "per_task:1"));
  EXPECT_EQ(gpus({"--gpus-per-task=1"}, {{"SLURM_GPUS_PER_NODE", "2"}}), says("", "per_task:1"));
  EXPECT_EQ(gpus({"--gpus-per-task=1", "--gpu-bind=none"}, {}), says("1", "none"));
  EXPECT_EQ(gpus({}, {{"SLURM_GPU_BIND", "single:2"}}), says("", "single:2"));
  EXPECT_EQ(gpus({"--gpu-bind=closest"}, {{"SLURM_GPU_BIND", "none"}}), says("", "closest"));
  EXPECT_EQ(gpus({"--ntasks-per-gpu=2"}, {}), says("", "single:2"));
  EXPECT_EQ(gpus({}, {{"SLURM_NTASKS_PER_GPU", "1"}}), says("", "single:1"));
  EXPECT_EQ(gpus({"--gres=none"}, {{"SLURM_GPUS_PER_TASK", "2"}}), says("0", "per_task:2"));
  EXPECT_EQ(gpus({"--gpus=0"}, {}), says("0", ""));
  EXPECT_EQ(gpus({"--gpus=0"}, {{"SLURM_GPUS_PER_NODE", "2"}}), says("", ""));
  EXPECT_EQ(gpus({"--gpus=0"}, {{"SLURM_GPUS_PER_TASK", "2"}}), says("2", "per_task:2"));
  EXPECT_THAT(refusal({"--gpu-bind=nosuch", "a"}), HasSubstr("--gpu-bind \"nosuch\": must be"));
  EXPECT_THAT(refusal({"--ntasks-per-gpu=0", "a"}), HasSubstr("--ntasks-per-gpu: invalid value"));
  EXPECT_THAT(refusal({"--ntasks-per-gpu=1", "--gpus-per-task=1", "a"}),
              HasSubstr("exclude each other"));
}

// Nothing keeps book of a part of the job's GPUs, so a step has all of them.
TEST(StepPlan, HasAllGpusOfItsJob) {
  std::map<std::string, std::string> variables{{"SLURM_JOB_NODELIST", "n[1-2]"},
                                               {"SLURM_GPUS_ON_NODE", "4"}};
  const auto says = [&](const std::string& option) {
    const auto plan = plan_step(read({option, "a"}), of(variables));
    return plan.ok() ? "" : plan.error().message;
  };
  for (const char* option : {"--gres=gpu:4", "--gres=gpu:a100:4", "--gpus-per-node=4", "-G4", "-G8",
                             "--gpus-per-task=1", "--gres=none", "--gpus=0"}) {
    EXPECT_EQ(says(option), "") << option;
  }
  EXPECT_EQ(says("--gres=gpu:1"),
            "--gres gpu:1: a step has all GPUs of its job, 4 on this node; leave it out, or use "
            "--gpus-per-task");
  EXPECT_THAT(says("--gpus=5"), HasSubstr("--gpus 5: a step has all GPUs"));
  EXPECT_EQ(says("--gres=nic:1"), "--gres nic:1: is not there yet; leave it out");
  EXPECT_EQ(says("--gpus-per-task=5"), "--gpus-per-task 5: the job has 4 on this node");
  variables["SLURM_GPUS"] = "5";  // shared out unevenly
  EXPECT_EQ(says("--gpus=5"), "");
  variables.erase("SLURM_GPUS_ON_NODE");
  EXPECT_THAT(says("--gres=gpu"), HasSubstr("0 on this node"));
}

// SOURCE: recorded: who takes the number of nodes away means with -w those that it names.
TEST(StepPlan, NamedNodesCountWhereNothingElseDoes) {
  SrunOptions options = read({"-w", "n2", "a"});
  EXPECT_EQ(plan_step(options, of(job()))->request.nodes, 3U);
  options.counts_named = true;
  EXPECT_EQ(plan_step(options, of(job()))->request.nodes, 1U);
  options.nodelist.clear();
  EXPECT_EQ(plan_step(options, of(job()))->request.nodes, 3U);
}

// SOURCE: recorded: with -n as many of the names as there are tasks, else all of them; SLURM_NTASKS
// does not count.
TEST(StepPlan, AnArbitraryDistributionIsTheListOfNodes) {
  auto variables = job();
  variables["SLURM_NTASKS"] = "7";
  const StepRequest all = planned({"-m", "arbitrary", "-w", "n3,n1,n1", "a"}, variables);
  EXPECT_EQ(all.arranged, (std::vector<std::uint32_t>{2, 0, 0}));
  EXPECT_EQ(all.required, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(all.tasks, 3U);
  EXPECT_EQ(all.nodes, 2U);
  const StepRequest two = planned({"-m", "arbitrary", "-n2", "-w", "n2,n1,n1,n3", "a"}, variables);
  EXPECT_EQ(two.arranged, (std::vector<std::uint32_t>{0, 1}));
  const auto refused = [&](const std::vector<std::string>& words) {
    return plan_step(read(words), of(variables)).error().message;
  };
  EXPECT_THAT(refused({"-m", "arbitrary", "-n4", "-w", "n1,n2", "a"}),
              HasSubstr("You asked for 4 tasks but hostlist specified 2 nodes"));
  EXPECT_THAT(refused({"-m", "arbitrary", "a"}), HasSubstr("invalid number of tasks (-n 0)"));
  EXPECT_THAT(refused({"-m", "arbitrary", "-w", "n9", "a"}), HasSubstr("n9"));
}

TEST(StepPlan, FewerTasksThanNodesLowerTheNodes) {
  const auto plan = plan_step(read({"-n2", "a"}), of(job()));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->request.nodes, 2U);
  EXPECT_THAT(plan->warnings, ElementsAre("can't run 2 processes on 3 nodes, setting nnodes to 2"));
}

TEST(StepPlan, NodesOutsideOfTheJobAreRefused) {
  EXPECT_THAT(plan_step(read({"-w", "n9", "a"}), of(job())).error().message, HasSubstr("n9"));
  EXPECT_THAT(plan_step(read({"-N4", "a"}), of(job())).error().message,
              HasSubstr("Only allocated 3 nodes asked for 4"));
}

TEST(StepPlan, TasksOfTheJobAreTheDefault) {
  auto variables = job();
  variables["SLURM_NTASKS"] = "7";
  EXPECT_EQ(planned({"a"}, variables).tasks, 7U);
  EXPECT_EQ(planned({"--ntasks-per-node=1", "a"}, variables).tasks, 7U) << "as in Slurm";
}

// The cases are those that Slurm was asked about.
TEST(StepPlan, TasksPerNodeCountOnlyIfTheyGoTogetherWithTheRest) {
  const auto asked = [](const char* tasks, const char* nodes, const char* per_node) {
    const auto options = read({"-n", tasks, "-N", nodes, "--ntasks-per-node", per_node, "a"});
    const auto plan = plan_step(options, of(job()));
    if (plan->request.tasks_per_node > 0) return "honored";
    return plan->warnings.empty() ? "passed over" : "warned of";
  };
  EXPECT_STREQ(asked("8", "3", "4"), "warned of");
  EXPECT_STREQ(asked("3", "2", "2"), "warned of");
  EXPECT_STREQ(asked("3", "3", "2"), "warned of");
  EXPECT_STREQ(asked("7", "3", "2"), "honored");
  EXPECT_STREQ(asked("7", "3", "1"), "warned of");
  EXPECT_STREQ(asked("2", "2", "2"), "passed over");
  EXPECT_STREQ(asked("3", "2", "4"), "passed over");
}

TEST(StepPlan, Distribution) {
  EXPECT_EQ(planned({"-m", "cyclic:block", "a"}).distribution, Distribution::kCyclic);
  const StepRequest plane = planned({"-m", "plane=2", "a"});
  EXPECT_EQ(plane.distribution, Distribution::kPlane);
  EXPECT_EQ(plane.plane, 2U);
  EXPECT_EQ(planned({"-m", "pack", "a"}).packing, Packing::kFewest);
  EXPECT_EQ(planned({"-N1", "-m", "cyclic,pack", "a"}).packing, Packing::kPack);
  EXPECT_EQ(planned({"-m", "block,nopack", "a"}).packing, Packing::kNoPack);
  EXPECT_THAT(refusal({"-m", "plane=0", "a"}), HasSubstr("distribution"));
}

TEST(MultiProg, GivesEachRankItsProgram) {
  const auto programs = read_multi_prog(
      "# comment\n0 echo zero of %t offset %o\n1-2 printenv 'A B'\n* echo rest %t %o\n", 5, {});
  ASSERT_TRUE(programs.ok()) << programs.error().message;
  EXPECT_THAT((*programs)[0], ElementsAre("echo", "zero", "of", "0", "offset", "0"));
  EXPECT_THAT((*programs)[2], ElementsAre("printenv", "A B"));
  EXPECT_THAT((*programs)[4], ElementsAre("echo", "rest", "4", "4"));
}

// The cases are those that Slurm was asked about.
// The cases are those that Slurm was asked about.
TEST(MultiProg, ABackslashKeepsAPercentSign) {
  const auto programs =
      read_multi_prog("0 echo a\\ b\n* echo \\%t %t\n", 2, std::vector<std::string>{"%t"});
  ASSERT_TRUE(programs.ok()) << programs.error().message;
  EXPECT_THAT((*programs)[0], ElementsAre("echo", "a b", "0"));
  EXPECT_THAT((*programs)[1], ElementsAre("echo", "%t", "1", "1"));
}

// The cases are those that Slurm was asked about, in a job of three nodes.
TEST(StepPlan, OfARangeOfNodesAsManyAreTakenAsTheJobHas) {
  EXPECT_EQ(planned({"-N1-2", "-n5", "a"}).nodes, 2U);
  EXPECT_EQ(planned({"-N1-9", "-n5", "a"}).nodes, 3U);
  EXPECT_EQ(planned({"-N1-9", "-n2", "a"}).nodes, 2U) << "never more than tasks";
  EXPECT_EQ(planned({"-N1k", "-n1", "a"}).nodes, 1U);
  EXPECT_EQ(planned({"-N2", "-n5", "a"}).nodes, 2U);
  for (const char* wrong : {"-N4-2", "-N1-", "-Nabc", "-N1x"}) {
    EXPECT_THAT(refusal({wrong, "a"}), HasSubstr("--nodes")) << wrong;
  }
}

// The cases are those that Slurm was asked about.
TEST(SrunOptions, AWrongCountEndsWithOneAllElseWith255) {
  const auto code = [](std::vector<std::string> words) {
    return slurm::exit_code_of(read_srun_options(words, kNone).error());
  };
  for (const char* word : {"-nabc", "-n0", "-cabc", "-Wabc", "-Kabc", "-rabc", "--mpi=nosuch"}) {
    EXPECT_EQ(code({word, "a"}), 1) << word;
  }
  for (const char* word : {"--nosuch", "-Nabc", "-tabc", "-mnosuch", "-mplane=0", "--open-mode=x",
                           "--mem=abc", "-mcyclic:nosuch", "--n=1"}) {
    EXPECT_EQ(code({word, "a"}), 255) << word;
  }
  EXPECT_EQ(code({"-n"}), 255);
  EXPECT_EQ(code({"-n1"}), 1) << "no command";
}

TEST(MultiProg, DoubleQuotesAreNoQuotes) {
  const auto programs = read_multi_prog("0 a 'b c' \"d e\"\n", 1, {});
  ASSERT_TRUE(programs.ok()) << programs.error().message;
  EXPECT_THAT((*programs)[0], ElementsAre("a", "b c", "\"d", "e\""));
}

TEST(MultiProg, ARankOutsideOfTheStepAndOneThatComesTwiceAreRefused) {
  EXPECT_THAT(read_multi_prog("0-2 a\n", 2, {}).error().message, HasSubstr("rank 2"));
  EXPECT_THAT(read_multi_prog("0,0 a\n1 b\n", 2, {}).error().message,
              HasSubstr("Duplicate record for task 0"));
}

TEST(StepPlan, ExcludedNodesAreLeftOut) {
  const StepRequest request = planned({"-x", "n1,n7", "-N2", "-n2", "a"});
  EXPECT_EQ(request.excluded, (std::vector<std::uint32_t>{0}));
  EXPECT_FALSE(plan_step(read({"-x", "n1", "-N3", "a"}), of(job())).ok());
  EXPECT_FALSE(plan_step(read({"-x", "n1", "a"}), of(job())).ok()) << "the job has three nodes";
  EXPECT_EQ(planned({"-x", "n1", "-n2", "a"}).nodes, 2U);
  EXPECT_FALSE(plan_step(read({"-x", "n1", "-n1", "-r1", "a"}), of(job())).ok());
}

TEST(SrunOptions, TimeIsReadAsSlurmReadsIt) {
  const auto seconds_of = [](const std::string& text) {
    return read({"-t", text, "a"}).time_limit.value_or(std::chrono::seconds{0}).count();
  };
  EXPECT_EQ(seconds_of("2"), 120);
  EXPECT_EQ(seconds_of("2:30"), 180) << "whole minutes";
  EXPECT_EQ(seconds_of("1:00:05"), 3660);
  EXPECT_EQ(seconds_of("1-2"), 26 * 3600);
  EXPECT_EQ(seconds_of("1-2:3:4"), 26 * 3600 + 240);
  EXPECT_EQ(seconds_of("UNLIMITED"), 0);
  for (const char* text : {"abc", "", "1:2:3:4", "1-", "1-2:3:4:5", "-5"}) {
    EXPECT_THAT(refusal({"--time=" + std::string{text}, "a"}), HasSubstr("--time")) << text;
  }
}

TEST(SrunOptions, TheVariablesOfExportAndWaitAreRead) {
  const Variable variable = of({{"SLURM_EXPORT_ENV", "NONE"}, {"SLURM_WAIT", "7"}});
  EXPECT_EQ(read({"a"}, variable).exports, "NONE");
  EXPECT_EQ(read({"--export=ALL", "a"}, variable).exports, "ALL");
  EXPECT_EQ(read({"a"}, variable).wait_s, 7);
}

TEST(MultiProg, ARankWithoutAProgramIsNamed) {
  EXPECT_THAT(read_multi_prog("0 a\n", 2, {}).error().message, HasSubstr("task 1"));
  EXPECT_THAT(read_multi_prog("0 a\nx b\n", 2, {}).error().message, HasSubstr("line 2"));
}

}  // namespace
}  // namespace launcher
