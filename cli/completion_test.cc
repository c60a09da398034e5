// The answers to kubectl's completion, and the manual pages: both come from the table of commands.
#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <string>

#include "cli/testing/program_fixture.h"
#include "slurm/sbatch.h"

namespace cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Completion : public ProgramTest {
 protected:
  // As kubectl asks its plugins: the last word is the one that is being typed. ":4" says that no
  // file names are wanted, ":0" that they are.
  std::string complete(std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kExitOk);
    EXPECT_EQ(ran.err, "");
    return ran.out;
  }
};

// A line per word, a tab before its explanation, and the number of the shell's behavior at the end:
// the protocol of cobra, which kubectl hands on to the shell as it is.
TEST_F(Completion, OffersCommandsThatBeginSo) {
  EXPECT_EQ(complete({"re"}),
            "release\tLet held jobs start again.\n"
            "requeue\tEnd running jobs and queue them again.\n"
            "resume\tLet suspended jobs run again.\n"
            ":4\n");
  EXPECT_THAT(complete({""}), AllOf(HasSubstr("queue\t"), HasSubstr("simulate\t")));
}

// Values are offered where they are known: fixed ones, and the namespaces of the cluster. An
// unknown command is not an error, since a user is still typing.
TEST_F(Completion, OffersOptionsAndTheirValues) {
  EXPECT_EQ(complete({"queue", "--all"}), "--all-namespaces\tjobs of all namespaces\n:4\n");
  EXPECT_EQ(complete({"queue", "-o", ""}), "json\nwide\nyaml\n:4\n");
  EXPECT_EQ(complete({"queue", "--namespace", "team"}), "team-a\nteam-b\n:4\n");
  EXPECT_THAT(complete({"submit", "--ntasks"}),
              AllOf(HasSubstr("--ntasks\n"), HasSubstr("--ntasks-per-node\n")));
  EXPECT_EQ(complete({"queue", "--kubeconfig", ""}), ":0\n") << "file names";
  EXPECT_EQ(complete({"submit", ""}), ":0\n") << "a script";
  EXPECT_EQ(complete({"nonsense", ""}), ":4\n");
  // submit reads its options itself.
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n1";
  ASSERT_TRUE(client_.create(partition).ok());
  EXPECT_EQ(complete({"submit", "-p", ""}), "batch\n:4\n");
  EXPECT_EQ(complete({"submit", "-q", ""}), ":4\n");
  EXPECT_EQ(complete({"submit", "--namespace", "team-b"}), "team-b\n:4\n");
}

// The help of submit is written by hand, and sbatch's comes from the table of its options. Each
// option that has an effect stands in both; those below have none, or are another spelling of one.
TEST_F(Completion, OffersEachOptionOfSbatchThatHasAnEffect) {
  const std::set<std::string> others{"acctg-freq",   "cluster-constraint",
                                     "clusters",     "container",
                                     "container-id", "core-spec",
                                     "cpu-freq",     "delay-boot",
                                     "export-file",  "extra",
                                     "get-user-env", "gid",
                                     "gpu-bind",     "gres-flags",
                                     "help",         "ignore-pbs",
                                     "mail-type",    "mail-user",
                                     "mem-bind",     "no-kill",
                                     "nodefile",     "oom-kill-step",
                                     "power",        "profile",
                                     "propagate",    "quiet",
                                     "share",        "stepmgr",
                                     "switches",     "tasks-per-node",
                                     "thread-spec",  "uid",
                                     "usage",        "verbose",
                                     "version",      "wait-all-nodes",
                                     "wckey"};
  const std::string offered = complete({"submit", "--"});
  std::istringstream help{slurm::sbatch_help()};
  int count = 0;
  for (std::string line; std::getline(help, line);) {
    const std::size_t at = line.find("--");
    if (at == std::string::npos) continue;
    const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
    const std::string option = line.substr(at, end - at);
    if (others.contains(option.substr(2))) continue;
    EXPECT_THAT(offered, HasSubstr(option + "\n"));
    ++count;
  }
  EXPECT_GE(count, 50);
}

// Each command would refuse the finished one.
TEST_F(Completion, OffersTheUnfinishedJobsOfTheNamespace) {
  add_job("team-a", "running", {}, {.state = kube::JobState::kRunning, .job_id = 1});
  add_job("team-a", "ready", {}, {.state = kube::JobState::kCompleted, .job_id = 2});
  add_job("team-b", "rest", {}, {.state = kube::JobState::kPending, .job_id = 3});
  EXPECT_EQ(complete({"cancel", "-n", "team-a", "r"}), "running\tRunning\n:4\n");
  EXPECT_EQ(complete({"explain", "-n", "team-b", ""}), "rest\tPending\n:4\n");
  EXPECT_EQ(complete({"queue", "-n", "team-b", ""}), "rest\tPending\n:4\n");
  EXPECT_EQ(complete({"info", "-n", "team-b", ""}), ":4\n") << "it takes no argument";
}

// "job/" is kubectl's notation for a Job of the batch group; a user knows that one, and not the
// name of its present attempt.
TEST_F(Completion, OffersJobsOfTheBatchGroupAsKubectlWritesThem) {
  const kube::BatchJob batch = add_batch_job("team-a", "train", "kubegang.io/job");
  add_job("team-a", "train-r1", {}, {.state = kube::JobState::kRunning, .job_id = 1},
          attempt_at(batch, "1"));
  EXPECT_EQ(complete({"cancel", "-n", "team-a", "job/"}), "job/train\tRunning\n:4\n");
  EXPECT_EQ(complete({"queue", "-n", "team-a", "t"}), "train-r1\tRunning\n:4\n");
}

// A hyphen is "\-" in a manual page, or it could not be copied into a shell. A page refers to the
// other pages and not to itself.
TEST_F(Completion, ManualPagesHaveEveryCommandAndOption) {
  const Ran overview = run({"__man"});
  EXPECT_THAT(overview.out, AllOf(StartsWith(".TH KUBECTL\\-GANG 1 "), HasSubstr(".SH COMMANDS"),
                                  HasSubstr("\\fBrequeue\\fR"), HasSubstr(".SH EXIT STATUS")));
  const Ran queue = run({"__man", "queue"});
  EXPECT_THAT(queue.out,
              AllOf(HasSubstr("\\fB\\-A,\\-\\-all\\-namespaces\\fR\njobs of all namespaces"),
                    HasSubstr(".BR kubectl\\-gang\\-submit (1)"),
                    Not(HasSubstr(".BR kubectl\\-gang\\-queue (1)"))));
  EXPECT_THAT(run({"__man", "submit"}).out, HasSubstr("\\-\\-ntasks\\-per\\-node"));
  EXPECT_THAT(run({"__man", "cancel"}).out, HasSubstr("\\fIJOB\\fR"));
  EXPECT_EQ(run({"__man", "nonsense"}).code, kExitUsage);
}

}  // namespace
}  // namespace cli
