// Slurm's commands. What they print as a whole is compared with recordings (e2e/sessions).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/cluster/batch_variables.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/scontrol_command.h"
#include "cli/slurm/slurm_program.h"
#include "cli/slurm/squeue_command.h"
#include "cli/testing/program_fixture.h"

namespace cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

// A job of two nodes that runs, as the operator has written it.
kube::Job running_job() {
  kube::Job job;
  job.metadata.name = "train-x7k2p";
  job.metadata.ns = "ann";
  job.spec.resources.tasks = 2;
  job.spec.resources.cpus_per_task = 2;
  job.spec.resources.memory_per_cpu = kube::Bytes{30 << 20};
  job.spec.schedule.time_limit = std::chrono::hours{1};
  job.spec.batch = kube::JobBatch{.name = "Train", .comment = "hello"};
  job.status.state = kube::JobState::kRunning;
  job.status.job_id = 1002;
  job.status.priority = 77;
  job.status.partition = "main";
  job.status.allocation = kube::Allocation{.hostlist = "n[1-2]", .nodes = 2, .cpus = 4};
  return job;
}

std::string line(const kube::Job& job, const std::string& format) {
  const auto text = format_line(format, facts_of(job, {}, base::Instant{}));
  return text.ok() ? *text : text.error().message;
}

TEST(Squeue, FormatsAsSlurmDoes) {
  const kube::Job job = running_job();
  EXPECT_EQ(line(job, "%i|%P|%j|%u|%t|%T|%D|%C|%m|%l|%r|%Q|%k"),
            "1002|main|Train|ann|R|RUNNING|2|4|30M|1:00:00|None|77|hello");
  EXPECT_EQ(line(job, "%.18i %.3j %8u!"), "              1002 Tra ann     !");
  EXPECT_EQ(line(job, "%N %R %B"), "n[1-2] n[1-2] n1");
  EXPECT_THAT(line(job, "%z"), HasSubstr("\"%z\" does not exist or is not there yet"));
  EXPECT_EQ(*format_heading("%.18i %.9P %.8j"), "             JOBID PARTITION     NAME");
}

// Slurm's state of a job that has its nodes is R; CF would be a node that boots.
TEST(Squeue, AJobWhosePodsStartRuns) {
  kube::Job job = running_job();
  job.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kFalse}};
  EXPECT_EQ(line(job, "%t %T"), "R RUNNING");
}

TEST(Scontrol, ShowsTheRecordOfAJob) {
  kube::Job job = running_job();
  EXPECT_THAT(job_record(facts_of(job, {}, base::Instant{})),
              testing::AllOf(HasSubstr("JobId=1002 JobName=Train\n"),
                             HasSubstr("JobState=RUNNING Reason=None"),
                             HasSubstr("   NodeList=n[1-2]\n   BatchHost=n1\n   NumNodes=2 "
                                       "NumCPUs=4 NumTasks=2 CPUs/Task=2\n"),
                             HasSubstr("TRES=cpu=4,mem=120M,node=2,billing=4")));
  job.status.state = kube::JobState::kFailed;
  job.status.exit_code = 5;
  EXPECT_THAT(job_record(facts_of(job, {}, base::Instant{})),
              testing::AllOf(HasSubstr("JobState=FAILED Reason=NonZeroExitCode"),
                             HasSubstr("ExitCode=5:0")));
  job.status.exit_code = 137;
  EXPECT_THAT(job_record(facts_of(job, {}, base::Instant{})),
              testing::AllOf(HasSubstr("Reason=JobLaunchFailure"), HasSubstr("ExitCode=0:9")));
}

TEST(ExportedVariables, FollowSbatch) {
  const Words own{"MINE=here", "OTHER=there", "SLURM_JOB_ID=7", "KUBEGANG_STEPS=x", "API_TOKEN=s"};
  Words left_out;
  using Variables = std::vector<kube::BatchVariable>;
  EXPECT_EQ(*exported_variables("ALL", own, left_out),
            (Variables{{"MINE", "here"}, {"OTHER", "there"}}))
      << "the calling job's own stay there";
  EXPECT_THAT(left_out, ElementsAre(HasSubstr("API_TOKEN")));
  EXPECT_EQ(*exported_variables("NONE", own, left_out), Variables{});
  EXPECT_EQ(*exported_variables("MINE,NEW=1", own, left_out),
            (Variables{{"MINE", "here"}, {"NEW", "1"}}));
  left_out.clear();
  EXPECT_EQ(*exported_variables("ALL,API_TOKEN", own, left_out),
            (Variables{{"API_TOKEN", "s"}, {"MINE", "here"}, {"OTHER", "there"}}));
  EXPECT_TRUE(left_out.empty());
  Words large;
  for (const char* name : {"A=", "B=", "C=", "D=", "E="}) {
    large.push_back(name + std::string(16'000, 'x'));
  }
  EXPECT_THAT(exported_variables("ALL", large, left_out).error().message, HasSubstr("65536"));
}

// Against the API server in memory, whose objects have the statuses that a test writes.
class SlurmCommands : public ProgramTest {
 protected:
  Ran slurm(const std::string& name, const Words& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    const WithSession with_session =
        [this](const ConnectOptions&,
               const std::function<int(const Session&)>& use) -> base::Result<int> {
      return use(Session{client_, clock_, sleeper_, "ann"});
    };
    const int code = run_slurm_command(name, arguments, with_session, {.out = out, .err = err});
    return {code, out.str(), err.str()};
  }
};

TEST_F(SlurmCommands, WhatIsNotThereIsRefusedByName) {
  EXPECT_THAT(slurm("scancel", {"-s", "USR1", "1"}).err, HasSubstr("--signal"));
  EXPECT_THAT(slurm("scancel", {"1.0"}).err, HasSubstr("1.0"));
  EXPECT_THAT(slurm("scontrol", {"update", "JobId=1"}).err, HasSubstr("update"));
  EXPECT_THAT(slurm("squeue", {"--nosuch"}).err, HasSubstr("--nosuch"));
  EXPECT_THAT(slurm("squeue", {"-t", "nosuch"}).err, HasSubstr("PENDING,RUNNING"));
  const Ran bad = slurm("sbatch", {"--time=abc", "--wrap", "true"});
  EXPECT_EQ(bad.code, 255);
  EXPECT_THAT(bad.err, HasSubstr("--time"));
}

TEST_F(SlurmCommands, HostlistsNeedNoCluster) {
  EXPECT_EQ(slurm("scontrol", {"show", "hostnames", "n[08-10],x"}).out, "n08\nn09\nn10\nx\n");
  EXPECT_EQ(slurm("scontrol", {"show", "hostlistsorted", "b2,a10,a9"}).out, "a[9-10],b2\n");
}

TEST_F(SlurmCommands, ANumberThatDoesNotExistIsAnError) {
  EXPECT_EQ(slurm("squeue", {"-j", "99"}).code, kExitFailed);
  EXPECT_EQ(slurm("scancel", {"99"}).code, kExitFailed);
  EXPECT_EQ(slurm("scontrol", {"show", "job", "99"}).code, kExitFailed);
}

}  // namespace
}  // namespace cli
