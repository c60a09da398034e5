#include "launcher/srun_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

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

TEST(SrunOptions, DashesEndThem) {
  EXPECT_THAT(read({"-n1", "--", "-x"}).command, ElementsAre("-x"));
}

TEST(SrunOptions, VariablesAreBeatenByTheCommandLine) {
  const Variable variable = of({{"SLURM_KILL_BAD_EXIT", "1"}, {"SRUN_CPUS_PER_TASK", "3"}});
  EXPECT_TRUE(read({"a"}, variable).kills_on_bad_exit);
  EXPECT_FALSE(read({"--kill-on-bad-exit=0", "a"}, variable).kills_on_bad_exit);
  EXPECT_EQ(read({"a"}, variable).cpus_per_task, 3);
}

TEST(SrunOptions, WhatIsNotThereIsRefusedByName) {
  EXPECT_THAT(refusal({"--pty", "bash"}), HasSubstr("--pty"));
  EXPECT_THAT(refusal({"--mpi=pmix", "a"}), HasSubstr("--mpi=pmix"));
  EXPECT_THAT(refusal({"--nosuch", "a"}), HasSubstr("'--nosuch'"));
  EXPECT_THAT(refusal({"-n", "0", "a"}), HasSubstr("--ntasks: invalid value \"0\""));
  EXPECT_THAT(refusal({"-n"}), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal({"-n2"}), HasSubstr("No command"));
}

// A job of two nodes with 4 CPUs on each, whose script is on n1.
std::map<std::string, std::string> job() {
  return {{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURMD_NODENAME", "n1"}, {"SLURM_CPUS_ON_NODE", "4"}};
}

TEST(StepPlan, OneNodeOfTheJob) {
  const auto plan = plan_step(read({"-N1", "-n3", "a"}), of(job()));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, 3U);
  EXPECT_EQ(plan->cpus, 4U) << "without --exact a step has all CPUs of its nodes";
  EXPECT_EQ(plan_step(read({"-N1", "-n3", "--exact", "a"}), of(job()))->cpus, 3U);
  EXPECT_EQ(plan_step(read({"-N1", "-n3", "--overlap", "a"}), of(job()))->cpus, 0U);
}

TEST(StepPlan, FewerTasksThanNodesLowerTheNodes) {
  const auto plan = plan_step(read({"-n1", "a"}), of(job()));
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->warnings, ElementsAre("can't run 1 processes on 2 nodes, setting nnodes to 1"));
}

TEST(StepPlan, OtherPodsAreRefusedByName) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"a"}, {"-N2", "-n2", "a"}, {"-n1", "-N1", "-w", "n2", "a"}, {"-n1", "-r1", "a"}}) {
    const auto plan = plan_step(read(words), of(job()));
    ASSERT_FALSE(plan.ok());
    EXPECT_THAT(plan.error().message, HasSubstr("n2"));
  }
  EXPECT_FALSE(plan_step(read({"-w", "n9", "a"}), of(job())).ok());
}

TEST(StepPlan, TasksOfTheJobAreTheDefault) {
  auto variables = job();
  variables["SLURM_JOB_NODELIST"] = "n1";
  EXPECT_EQ(plan_step(read({"a"}), of(variables))->tasks, 1U);
  variables["SLURM_NTASKS"] = "4";
  EXPECT_EQ(plan_step(read({"a"}), of(variables))->tasks, 4U);
  variables["SLURM_NTASKS"] = "5";
  EXPECT_THAT(plan_step(read({"a"}), of(variables)).error().message,
              HasSubstr("More processors requested than permitted"));
}

TEST(MultiProg, GivesEachRankItsProgram) {
  const auto programs = read_multi_prog(
      "# comment\n0 echo zero of %t offset %o\n1-2 printenv 'A B'\n* echo rest %t %o\n", 5, {});
  ASSERT_TRUE(programs.ok()) << programs.error().message;
  EXPECT_THAT((*programs)[0], ElementsAre("echo", "zero", "of", "0", "offset", "0"));
  EXPECT_THAT((*programs)[2], ElementsAre("printenv", "A B"));
  EXPECT_THAT((*programs)[4], ElementsAre("echo", "rest", "4", "1"));
}

TEST(MultiProg, ARankWithoutAProgramIsNamed) {
  EXPECT_THAT(read_multi_prog("0 a\n", 2, {}).error().message, HasSubstr("task 1"));
  EXPECT_THAT(read_multi_prog("0 a\nx b\n", 2, {}).error().message, HasSubstr("line 2"));
}

}  // namespace
}  // namespace launcher
