#include "launcher/own_job.h"

#include <gtest/gtest.h>

#include <vector>

namespace launcher {
namespace {

using Words = std::vector<std::string>;

const Environment kJob{"SLURM_JOB_ID=1003",
                       "SLURM_ARRAY_JOB_ID=1001",
                       "SLURM_ARRAY_TASK_ID=2",
                       "SLURM_JOB_NAME=envjob",
                       "SLURM_JOB_USER=ann",
                       "SLURM_JOB_UID=1000",
                       "SLURM_JOB_QOS=high",
                       "SLURM_RESTART_COUNT=1",
                       "SLURM_JOB_PARTITION=main",
                       "SLURM_JOB_NODELIST=n[1-3]",
                       "SLURM_JOB_CPUS_PER_NODE=4(x2),2",
                       "SLURM_NTASKS=6",
                       "SLURM_CPUS_PER_TASK=2",
                       "SLURM_MEM_PER_CPU=50",
                       "SLURM_NODEID=0"};

TEST(OwnJob, IsShownAsItsVariablesSay) {
  EXPECT_EQ(show_own_job(kJob, Words{"show", "job", "1003"}),
            "JobId=1003 ArrayJobId=1001 ArrayTaskId=2 JobName=envjob\n"
            "   UserId=ann(1000)\n"
            "   QOS=high\n"
            "   JobState=RUNNING Reason=None\n"
            "   Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
            "   Partition=main\n"
            "   NodeList=n[1-3]\n"
            "   BatchHost=n1\n"
            "   NumNodes=3 NumCPUs=10 NumTasks=6 CPUs/Task=2\n"
            "   MinMemoryCPU=50M\n\n");
}

TEST(OwnJob, LeavesOutWhatIsNotKnown) {
  const Environment few{"SLURM_JOB_ID=7", "SLURMD_NODENAME=n9", "SLURM_CPUS_ON_NODE=2"};
  EXPECT_EQ(show_own_job(few, Words{"-o", "show", "job=7"}),
            "JobId=7 JobState=RUNNING Reason=None Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 "
            "BatchHost=n9 NumNodes=1 NumCPUs=2 CPUs/Task=1\n");
}

TEST(OwnJob, OthersAreNotKnownHere) {
  EXPECT_TRUE(show_own_job(kJob, Words{"-d", "show", "jobid", "1001_2"}));
  for (const Words& words : {Words{"show", "job", "1001"}, Words{"show", "job"}, Words{"show"},
                             Words{"show", "node", "1003"}, Words{"show", "job", "1003", "1003"},
                             Words{"show", "job=1003", "1003"}, Words{"--yaml", "show", "job=1003"},
                             Words{"requeue", "1003"}, Words{}}) {
    EXPECT_FALSE(show_own_job(kJob, words)) << testing::PrintToString(words);
  }
  EXPECT_FALSE(is_own_job({}, ""));
  EXPECT_FALSE(is_own_job(kJob, "1001"));
}

}  // namespace
}  // namespace launcher
