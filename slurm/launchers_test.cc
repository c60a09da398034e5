#include "slurm/launchers.h"

#include <gtest/gtest.h>

#include <vector>

namespace slurm {
namespace {

// Scripts: BatchScript.FindsLaunchersWhereTheyAreCommands has more lines.
TEST(Launchers, FindsProgramsThatAskTheApiServer) {
  const auto call = client_in_script("#!/bin/sh\n# sbatch\nid=$(sbatch --parsable x.sh)\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->launcher, "sbatch");
  EXPECT_EQ(call->line, 3U);
  EXPECT_TRUE(client_in_script("while squeue -j 1; do :; done"));
  EXPECT_FALSE(client_in_script("echo scancel"));
}

TEST(Launchers, AWordThatIsNoCallIsNone) {
  EXPECT_EQ(launcher_in_script("# once: mpirun ./old\necho \"no srun here\"\nsleep 5\n"),
            std::nullopt);
  const auto call = launcher_in_script("# srun\ncd /tmp\nOMP_NUM_THREADS=4 /usr/bin/mpirun ./a\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->launcher, "mpirun");
  EXPECT_EQ(call->line, 3U);
}

// A container's command and arguments are one list of words. The first says what the others are.
TEST(Launchers, ACommandCallsOneByItselfOrByAShell) {
  const auto called = [](const std::vector<std::string>& words) {
    const auto call = launcher_in_command(words);
    return call ? std::string{call->launcher} : "";
  };
  EXPECT_EQ(called({"srun", "./a"}), "srun");
  EXPECT_EQ(called({"/opt/openmpi/bin/mpirun", "-np", "4", "./a"}), "mpirun");
  EXPECT_EQ(called({"/usr/bin/env", "-i", "A=1", "mpiexec", "./a"}), "mpiexec");
  EXPECT_EQ(called({"/bin/bash", "-ec", "cd /x\nexec srun ./a", "name"}), "srun");
  EXPECT_EQ(called({"env", "bash", "-o", "pipefail", "-c", "mpirun ./a | tee log"}), "mpirun");
  // The image's entry point is a shell, or passes its arguments on.
  EXPECT_EQ(called({"-c", "srun ./a"}), "srun");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {},
           {"env"},
           {"/bin/sh", "-c"},
           {"/bin/sh", "-c", "# was: mpirun -np 4 ./solver\necho \"runs without mpirun\""},
           {"/bin/sh", "run.sh", "srun"},
           {"python3", "train.py", "--launcher", "mpirun"},
           {"python3", "-c", "print('srun')"},
           {"./mysrun", "srun.log"}}) {
    EXPECT_EQ(called(words), "") << (words.empty() ? "" : words.back());
  }
}

}  // namespace
}  // namespace slurm
