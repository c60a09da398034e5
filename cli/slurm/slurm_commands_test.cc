// Slurm's commands. Recordings compare their whole output (e2e/sessions).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "api/account.h"
#include "api/scheduler_config.h"
#include "api/wellknown.h"
#include "base/number_list.h"
#include "cli/cluster/batch_variables.h"
#include "cli/files.h"
#include "cli/slurm/job_facts.h"
#include "cli/slurm/scontrol_show.h"
#include "cli/slurm/slurm_program.h"
#include "cli/slurm/squeue_command.h"
#include "cli/testing/has_records.h"
#include "cli/testing/program_fixture.h"
#include "kube/api/pod.h"
#include "kube/clock.h"
#include "kube/upgrade.h"
#include "kube/url.h"
#include "kube/web_socket.h"
#include "records/answers.h"
#include "records/job_changes.h"
#include "records/store.h"

namespace cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

// Returns a job of two nodes that runs, as the operator has written it.
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
  return squeue_line(format, facts_of(job, {}, base::Instant{}));
}

TEST(Squeue, FormatsAsSlurmDoes) {
  const kube::Job job = running_job();
  EXPECT_EQ(line(job, "%i|%P|%j|%u|%t|%T|%D|%C|%m|%l|%r|%Q|%k"),
            "1002|main|Train|ann|R|RUNNING|2|4|30M|1:00:00|None|77|hello");
  EXPECT_EQ(line(job, "%.18i %.3j %8u!"), "              1002 Tra ann     !");
  EXPECT_EQ(line(job, "%N %R %B"), "n[1-2] n[1-2] n1");
  EXPECT_EQ(line(job, "%z %H %y %h %K %w"), "*:*:* * 0 OK N/A (null)");
  EXPECT_EQ(line(job, "%! %i"), "%! 1002") << "as Slurm does, an unknown letter stays";
}

// Slurm's state of a job that has its nodes is R; CF would be a node that boots.
TEST(Squeue, AJobWhosePodsStartRuns) {
  kube::Job job = running_job();
  job.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kFalse}};
  EXPECT_EQ(line(job, "%t %T"), "R RUNNING");
}

// Terms that hold are not shown, and of terms of which one is enough none is shown then.
TEST(Squeue, ShowsWhatAJobWaitsFor) {
  using Type = kube::DependencyType;
  using State = kube::DependencyState;
  kube::Job job;
  EXPECT_EQ(dependency_text(job), "(null)");
  job.spec.dependency.emplace();
  job.status.dependency = {{.type = Type::kAfterOk, .job_id = 7, .state = State::kFailed},
                           {.type = Type::kAfter, .job_id = 8, .delay = std::chrono::minutes{5}},
                           {.type = Type::kAfterAny, .job_name = "prepare"},
                           {.type = Type::kSingleton}};
  const std::string all =
      "afterok:7(failed),after:8+5(unfulfilled),afterany:prepare(unfulfilled),"
      "singleton(unfulfilled)";
  EXPECT_EQ(line(job, "%E"), all);
  job.status.dependency.push_back(
      {.type = Type::kAfterAny, .job_id = 9, .state = State::kFulfilled});
  EXPECT_EQ(line(job, "%E"), all);
  job.spec.dependency->match = kube::DependencyMatch::kAny;
  EXPECT_EQ(line(job, "%E"), "(null)");
  job.status.dependency.pop_back();
  EXPECT_THAT(line(job, "%E"), HasSubstr("afterok:7(failed)?after:8+5"));
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
  // bash -e: the code of a task that a signal has ended is that of the script.
  job.status.usage = kube::JobUsage{.steps = {{.id = "batch", .exit_code = 137}}};
  EXPECT_THAT(job_record(facts_of(job, {}, base::Instant{})),
              testing::AllOf(HasSubstr("Reason=NonZeroExitCode"), HasSubstr("ExitCode=137:0")));
  job.status.usage->steps.front() = {.id = "batch", .signal = 9};
  EXPECT_THAT(job_record(facts_of(job, {}, base::Instant{})), HasSubstr("ExitCode=0:9"));
  // There is no signal 127.
  job.status.exit_code = 255;
  EXPECT_THAT(job_record(facts_of(job, {}, base::Instant{})), HasSubstr("ExitCode=255:0"));
}

// The run time of a job that its user has suspended stands still, and jumps nowhere when it goes
// on.
TEST(JobFacts, TimeStandsStillInASuspendedJob) {
  const base::Instant start{std::chrono::hours{1}};
  kube::Job job = running_job();
  job.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
  job.spec.control.suspend = true;
  job.status.state = kube::JobState::kSuspended;
  job.status.start_time = start;
  job.status.run_time = {std::chrono::seconds{3}, start + std::chrono::seconds{3}};
  job.status.suspend_time = {std::chrono::seconds{0}, start + std::chrono::seconds{3}};
  for (const int passed : {3, 60, 600}) {
    const JobFacts facts = facts_of(job, {}, start + std::chrono::seconds{passed});
    EXPECT_EQ(squeue_line("%T %M %L", facts), "SUSPENDED 0:03 59:57");
    EXPECT_EQ(facts.suspend_time, std::chrono::seconds{passed - 3});
    EXPECT_THAT(job_record(facts),
                testing::AllOf(
                    HasSubstr("RunTime=00:00:03 "),
                    HasSubstr("SuspendTime=" + slurm_time(start + std::chrono::seconds{3}) + " "),
                    HasSubstr("SecsPreSuspend=3\n")));
  }
  job.spec.control.suspend = false;
  job.status.state = kube::JobState::kRunning;
  job.status.run_time = {std::chrono::seconds{3}, start + std::chrono::seconds{600}};
  job.status.suspend_time = {std::chrono::seconds{597}, start + std::chrono::seconds{600}};
  const JobFacts facts = facts_of(job, {}, start + std::chrono::seconds{610});
  EXPECT_EQ(squeue_line("%T %M", facts), "RUNNING 0:13");
  EXPECT_EQ(facts.suspend_time, std::chrono::seconds{597});
  EXPECT_THAT(job_record(facts), HasSubstr("SuspendTime=None SecsPreSuspend=0\n"));
}

// It takes no turns while jobs of a higher tier are on its nodes, which may last hours.
TEST(JobFacts, APreemptedJobIsSuspendedAndOneBetweenItsTurnsRuns) {
  kube::Job job = running_job();
  job.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
  job.status.state = kube::JobState::kSuspended;
  EXPECT_EQ(facts_of(job, {}, base::Instant{}).state, "RUNNING");
  job.status.reason = "Preempted";
  EXPECT_EQ(facts_of(job, {}, base::Instant{}).state, "SUSPENDED");
}

TEST(Squeue, AJobThatWaitsForItsBeginTimeStartsThen) {
  const base::Instant now{std::chrono::hours{1}};
  kube::Job job;
  job.status.state = kube::JobState::kPending;
  job.spec.schedule.begin_time = now + std::chrono::seconds{100};
  EXPECT_EQ(squeue_line("%S", facts_of(job, {}, now)), slurm_time(now + std::chrono::seconds{100}));
  job.status.eligible_time = now + std::chrono::seconds{120};  // it was requeued
  EXPECT_EQ(squeue_line("%S", facts_of(job, {}, now)), slurm_time(now + std::chrono::seconds{120}));
  EXPECT_EQ(squeue_line("%S", facts_of(job, {}, now + std::chrono::seconds{120})), "N/A");
  job.status.expected_start_time = now + std::chrono::seconds{300};
  EXPECT_EQ(squeue_line("%S", facts_of(job, {}, now)), slurm_time(now + std::chrono::seconds{300}));
}

// Where the files of a script are: what a program reads from `scontrol show job`.
TEST(Scontrol, FilesAreAbsoluteAndExpanded) {
  kube::Job job = running_job();
  job.spec.batch->working_directory = "/home/ann";
  const auto record = [&](std::optional<ArrayPart> array = {}) {
    JobFacts facts = facts_of(job, {}, base::Instant{});
    facts.array = std::move(array);
    return job_record(facts);
  };
  EXPECT_THAT(record(), HasSubstr("   WorkDir=/home/ann\n"
                                  "   StdErr=/home/ann/slurm-1002.out\n   StdIn=/dev/null\n"
                                  "   StdOut=/home/ann/slurm-1002.out\n"));
  EXPECT_THAT(record(ArrayPart{1001, {3}}), HasSubstr("StdOut=/home/ann/slurm-1001_3.out\n"));
  EXPECT_THAT(record(ArrayPart{1001, {3, 4}}), HasSubstr("StdOut=/home/ann/slurm-1001_%a.out\n"));
  job.spec.batch->output = "o_%A_%a_%x_%u_%N_%6j.txt";
  job.spec.batch->error = "/tmp/%j";
  EXPECT_THAT(record(ArrayPart{1001, {3}}),
              testing::AllOf(HasSubstr("StdErr=/tmp/1002\n"),
                             HasSubstr("StdOut=/home/ann/o_1001_3_Train_ann_n1_001002.txt\n")));
  EXPECT_EQ(script_files(facts_of(job, {}, base::Instant{})).output,
            "/home/ann/o_%A_%a_%x_%u_%N_%6j.txt");
  EXPECT_THAT(record(), testing::AllOf(HasSubstr("   OverSubscribe=OK Contiguous=0 "),
                                       HasSubstr("   AccrueTime=Unknown\n")));
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
  const Words in_bash{"KUBEGANG_STEPS=x", "BASH_ENV=/kubegang/env.sh", "KUBEGANG_BASH_ENV=mine"};
  EXPECT_EQ(*exported_variables("ALL", in_bash, left_out), (Variables{{"BASH_ENV", "mine"}}))
      << "not the launcher's";
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

// Sets a variable for as long as it lives; nullptr: it is not there.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_{name} {
    if (const char* before = std::getenv(name)) before_ = before;
    put(value);
  }
  ~Variable() { put(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void put(const char* value) const {
    if (value != nullptr) {
      ::setenv(name_, value, 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* const name_;
  std::optional<std::string> before_;
};

// Counts the Jobs in the lists that the API server sends.
class CountsJobs final : public kube::Transport {
 public:
  explicit CountsJobs(kube::Transport& inner) : inner_{inner} {}

  base::Result<kube::Response> send(const kube::Request& request) override {
    ++requests;
    auto response = inner_.send(request);
    const bool is_list =
        request.method == kube::Method::kGet && request.path.find("/jobs?") != std::string::npos;
    if (response && is_list) {
      sent += std::ssize(nlohmann::json::parse(response->body).value("items", nlohmann::json{}));
    }
    return response;
  }
  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override {
    return inner_.stream(request, on_line, std::move(stop));
  }

  std::int64_t sent = 0;
  std::int64_t requests = 0;

 private:
  kube::Transport& inner_;
};

// Against the API server in memory, whose objects have the statuses that a test writes.
class SlurmCommands : public ProgramTest {
 protected:
  Ran slurm(const std::string& name, const Words& arguments) {
    out_.str("");
    std::ostringstream err;
    const WithSession with_session =
        [this](const ConnectOptions& connect,
               const std::function<int(const Session&)>& use) -> base::Result<int> {
      context_ = connect.overrides.context;
      return use(
          Session{counted_client_, clock_, *session_sleeper_, "team-b", upgrader_, login_name_});
    };
    const int code = run_slurm_command(name, arguments, with_session, {.out = out_, .err = err});
    return {code, out_.str(), err.str()};
  }

  // A job with its first pod.
  void add_script_job(int number, const kube::JobControl& control = {}) {
    const std::string name = "job-" + std::to_string(number);
    kube::JobSpec spec;
    spec.batch.emplace().script = "#!/bin/sh\n";
    spec.control = control;
    add_job("team-b", name, spec,
            {.state = kube::JobState::kRunning, .job_id = number, .starts = 1});
    add_first_pod(name);
  }
  void add_first_pod(const std::string& name) {
    kube::Pod pod;
    pod.metadata.ns = "team-b";
    pod.metadata.name = name + "-0";
    pod.metadata.labels = {{std::string{kube::kLabelJob}, name},
                           {std::string{kube::kLabelTask}, "0"},
                           {std::string{kube::kLabelStart}, "1"}};
    pod.spec.containers.push_back(
        {.name = "main", .image = "x", .command = {"/kubegang/kubegang-launcher"}});
    const auto created = client_.create(pod);
    ASSERT_TRUE(created.ok()) << created.error().message;
    kube::Pod running = *created;
    running.status.phase = kube::PodPhase::kRunning;
    ASSERT_TRUE(client_.update_status(running).ok());
  }

  std::optional<std::string> login_name_;  // of the user, where a certificate has it
  std::ostringstream out_;                 // of the present command
  std::string context_;                    // of the command that ran last
  kube::Upgrader* upgrader_ = nullptr;
  HasRecords has_records_{transport_};
  CountsJobs counts_{has_records_};
  kube::Client counted_client_{counts_, clock_, sleeper_, {}};
};

TEST_F(SlurmCommands, WhatIsNotThereIsRefusedByName) {
  EXPECT_THAT(slurm("scancel", {"-s", "NOSUCH", "1"}).err, HasSubstr("Unknown job signal: NOSUCH"));
  EXPECT_THAT(slurm("scancel", {"1.0"}).err, HasSubstr("1.0"));
  EXPECT_THAT(slurm("scontrol", {"update", "JobId=1", "NoSuch=1"}).err, HasSubstr("NoSuch=1"));
  EXPECT_THAT(slurm("scontrol", {"top", "1"}).err, HasSubstr("top"));
  EXPECT_THAT(slurm("squeue", {"-R", "x"}).err, HasSubstr("--reservation"));
  EXPECT_THAT(slurm("squeue", {"--nosuch"}).err, HasSubstr("--nosuch"));
  EXPECT_THAT(slurm("squeue", {"-t", "nosuch"}).err, HasSubstr("PENDING,RUNNING"));
  const Ran bad = slurm("sbatch", {"--time=abc", "--wrap", "true"});
  EXPECT_EQ(bad.code, 255);
  EXPECT_THAT(bad.err, HasSubstr("--time"));
}

// Everything goes along from a pod, a script and a login node; from elsewhere what is listed.
TEST_F(SlurmCommands, VariablesGoAlongFromInsideTheCluster) {
  session_sleeper_ = &numbers_jobs_;
  const Variable mine{"SBATCH_TEST_MINE", "here"};
  const Variable outside[] = {{"KUBERNETES_SERVICE_HOST", nullptr},
                              {"KUBEGANG_STEPS", nullptr},
                              {"KUBEGANG_LOGIN_NODE", nullptr}};
  const auto takes = [&](Words words, const std::string& warning) {
    words.insert(words.end(), {"--wrap", "true"});
    const Ran ran = slurm("sbatch", words);
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(warning));
    EXPECT_EQ(ran.err.find("of this machine") == std::string::npos, warning.empty());
    const auto job = client_.list<kube::Job>()->items.at(0);
    EXPECT_TRUE(client_.remove<kube::Job>(kube::key_of(job.metadata)).ok());
    return std::ranges::any_of(job.spec.batch->environment, [](const auto& variable) {
      return variable.name == "SBATCH_TEST_MINE";
    });
  };
  const std::string warning = "sbatch: warning: variables of this machine are not taken along (";
  EXPECT_FALSE(takes({}, warning));
  EXPECT_TRUE(takes({"--export=ALL,SBATCH_TEST_MINE"}, warning));
  EXPECT_TRUE(takes({"--export=SBATCH_TEST_MINE"}, ""));
  EXPECT_FALSE(takes({"--export=NONE"}, ""));
  for (const char* sign : {"KUBERNETES_SERVICE_HOST", "KUBEGANG_STEPS", "KUBEGANG_LOGIN_NODE"}) {
    const Variable inside{sign, "1"};
    EXPECT_TRUE(takes({}, "")) << sign;
  }
}

// A cluster of Slurm is a context of the kubeconfig, for submissions, too.
TEST_F(SlurmCommands, ClustersAreContexts) {
  const std::pair<const char*, Words> lines[] = {{"sbatch", {"-M", "genius", "--wrap", "true"}},
                                                 {"salloc", {"-M", "genius", "true"}},
                                                 {"srun", {"--cluster=genius", "true"}}};
  for (const auto& [command, words] : lines) {
    context_.clear();
    (void)slurm(command, words);
    EXPECT_EQ(context_, "genius") << command;
  }
  context_ = "unused";
  EXPECT_THAT(slurm("sbatch", {"--clusters=genius,wice", "--wrap", "true"}).err,
              HasSubstr("--clusters \"genius,wice\": must name one cluster"));
  EXPECT_EQ(context_, "unused");
  EXPECT_EQ(slurm("sacct", {"--clusters", "all"}).code, kExitOk);
  EXPECT_EQ(context_, "") << "the present one";
}

// Programs in pods that are frozen: nothing is heard of them. A second goes by with each look.
class FrozenPods final : public kube::Upgrader {
 public:
  explicit FrozenPods(kube::ManualClock& clock) : clock_{clock} {}
  base::Status upgrade(
      const kube::Request&, const std::vector<std::pair<std::string, std::string>>& headers,
      const std::function<void(const kube::Response&, kube::Duplex&)>& use) override {
    ++called;
    std::string key;
    for (const auto& [name, value] : headers) {
      if (name == "Sec-WebSocket-Key") key = value;
    }
    Silence silence{clock_};
    use({.status = 101,
         .headers = {{"sec-websocket-accept", kube::web_socket_accept(key)},
                     {"sec-websocket-protocol", "v5.channel.k8s.io"}}},
        silence);
    return {};
  }
  int called = 0;

 private:
  class Silence final : public kube::Duplex {
   public:
    explicit Silence(kube::ManualClock& clock) : clock_{clock} {}
    int descriptor() const override {
      clock_.advance(std::chrono::seconds{1});
      return -1;
    }
    bool has_more() const override { return true; }
    ssize_t read(char*, std::size_t) override { return 0; }
    bool write(std::string_view) override { return true; }

   private:
    kube::ManualClock& clock_;
  };
  kube::ManualClock& clock_;
};

TEST_F(SlurmCommands, ASignalDoesNotWaitForTurnsWithoutEnd) {
  FrozenPods pods{clock_};
  upgrader_ = &pods;
  for (const int number : {41, 42, 43}) add_script_job(number);
  add_script_job(44, {.suspend = true});
  const auto begin = clock_.monotonic();
  const Ran ran = slurm("scancel", {"-s", "USR1", "41", "42", "43", "44"});
  EXPECT_LE(clock_.monotonic() - begin, std::chrono::seconds{70});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(pods.called, 3) << "a job that its user has suspended has no turn";
  const std::string late =
      ": its turn is off: the signal has not been sent, or comes with its turn\n";
  std::string want;
  for (const char* number : {"41", "42", "43"}) {
    want += std::string{"scancel: error: Kill job error on job id "} + number + late;
  }
  want +=
      "scancel: error: Kill job error on job id 44: Job can not be altered now, try again later\n";
  EXPECT_EQ(ran.err, want);
}

// An API server that lets this user enter no pods.
class ClosedPods final : public kube::Upgrader {
 public:
  base::Status upgrade(const kube::Request&,
                       const std::vector<std::pair<std::string, std::string>>&,
                       const std::function<void(const kube::Response&, kube::Duplex&)>&) override {
    return base::Error{base::Code::kPermissionDenied, "pods is forbidden"};
  }
};
constexpr const char* kMissingRight =
    "pods is forbidden (the right to \"create\" and \"get\" pods/exec is needed)";

TEST_F(SlurmCommands, TheRightToEnterPodsIsNamed) {
  ClosedPods pods;
  upgrader_ = &pods;
  add_script_job(41);
  for (const auto& [command, words] :
       {std::pair{"scancel", Words{"-s", "USR1", "41"}},
        std::pair{"scancel", Words{"-b", "-s", "USR1", "41"}}, std::pair{"scancel", Words{"41.0"}},
        std::pair{"srun", Words{"--jobid=41", "true"}}}) {
    const Ran ran = slurm(command, words);
    EXPECT_NE(ran.code, kExitOk) << command;
    EXPECT_THAT(ran.err, HasSubstr(std::string{"pod team-b/job-41-0: "} + kMissingRight));
  }
}

// SOURCE: recorded (session scancel_kill). Pods cannot be entered here: no signal is sent.
TEST_F(SlurmCommands, TheSignalKillEndsAJob) {
  ClosedPods pods;
  upgrader_ = &pods;
  for (const int number : {41, 42, 43}) add_script_job(number);
  add_job("team-b", "waits", {}, {.state = kube::JobState::kPending, .job_id = 44});
  EXPECT_EQ(slurm("scancel", {"-s", "KILL", "41"}).code, kExitOk);
  EXPECT_EQ(slurm("scancel", {"-f", "-s", "9", "42"}).code, kExitOk);
  EXPECT_THAT(slurm("scancel", {"-b", "-s", "KILL", "43"}).err, HasSubstr(kMissingRight));
  EXPECT_EQ(slurm("scancel", {"-b", "-s", "KILL", "44"}).code, kExitOk);
  std::set<std::int64_t> canceled;
  for (const kube::Job& job : client_.list<kube::Job>()->items) {
    if (job.spec.control.cancel.value_or(false)) canceled.insert(*job.status.job_id);
  }
  EXPECT_EQ(canceled, (std::set<std::int64_t>{41, 42, 44}));
}

// While a command sleeps, its job gets the number 51 and a pod.
class SallocInPodsThatAreClosed : public SlurmCommands {
 protected:
  SallocInPodsThatAreClosed() {
    upgrader_ = &pods_;
    session_sleeper_ = &starts_;
  }
  kube::Job job() { return client_.list<kube::Job>()->items.at(0); }

 private:
  struct Starts final : kube::Sleeper {
    explicit Starts(SallocInPodsThatAreClosed& test) : test_{test} {}
    base::Status sleep(base::Duration, std::stop_token) override {
      test_.start();
      return {};
    }
    SallocInPodsThatAreClosed& test_;
  };
  void start() {
    kube::Job job = this->job();
    if (job.status.job_id) return;
    job.status.state = kube::JobState::kRunning;
    job.status.job_id = 51;
    job.status.starts = 1;
    EXPECT_TRUE(client_.update_status(job).ok());
    add_first_pod(job.metadata.name);
  }

  ClosedPods pods_;
  Starts starts_{*this};
};

TEST_F(SallocInPodsThatAreClosed, WithoutAShellTheJobIsKept) {
  const Ran ran = slurm("salloc", {"--no-shell", "-N1", "false"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.err, "salloc: Granted job allocation 51\n");
  EXPECT_FALSE(job().spec.control.cancel);
}

// salloc has its job and runs its command; only the end of the job needs the right.
TEST_F(SallocInPodsThatAreClosed, TheRightIsNamed) {
  const Ran ran = slurm("salloc", {"-N1", "true"});
  EXPECT_EQ(ran.code, kExitOk) << "the command's";
  EXPECT_THAT(ran.err, HasSubstr("salloc: error: the job is canceled: pod team-b/"));
  EXPECT_THAT(ran.err, HasSubstr(kMissingRight));
  EXPECT_EQ(job().spec.control.cancel, true);
}

TEST_F(SlurmCommands, UpdateDevicesOfAJobThatWaits) {
  add_job("team-b", "first", {}, {.state = kube::JobState::kPending, .job_id = 1});
  add_job("team-b", "second", {}, {.state = kube::JobState::kRunning, .job_id = 2});
  const auto update = [this](const char* job, const char* change) {
    return slurm("scontrol", {"update", job, change});
  };
  EXPECT_EQ(update("JobId=1", "Gres=gpu:a100:2").code, kExitOk);
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "1", "-o", "%b"}).out, "gres:gpu:a100:2\n");
  EXPECT_EQ(update("JobId=1", "Gres=gpu").code, kExitOk);
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "1", "-o", "%b"}).out, "gres:gpu:1\n");
  for (const char* wrong : {"Gres=nosuch:1", "Gres=gpu:-1"}) {
    EXPECT_THAT(update("JobId=1", wrong).err, HasSubstr("Invalid generic resource")) << wrong;
  }
  EXPECT_EQ(update("JobId=2", "Gres=gpu:1").code, kExitFailed);
}

TEST_F(SlurmCommands, ShowLicenses) {
  EXPECT_EQ(slurm("scontrol", {"show", "lic"}).out, "No licenses configured in Slurm.\n");
  kube::SchedulerConfig config;
  config.metadata.name = "default";
  config.spec.licenses["foo"] = 2;
  ASSERT_TRUE(client_.create(config).ok());
  kube::JobSpec spec;
  spec.resources.licenses["foo"] = 1;
  add_job("team-b", "first", spec, {.state = kube::JobState::kRunning, .job_id = 1});
  add_job("team-b", "second", {}, {.state = kube::JobState::kRunning, .job_id = 2});
  EXPECT_EQ(slurm("scontrol", {"show", "licenses"}).out,
            "LicenseName=foo\n    Total=2 Used=1 Free=1 Reserved=0 Remote=no\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-o", "%i %W"}).out, "1 foo:1\n2 (null)\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-L", "foo", "-o", "%i"}).out, "1\n");
  EXPECT_THAT(slurm("scontrol", {"show", "job", "1"}).out, HasSubstr("Licenses=foo:1 "));
  add_job("team-b", "third", spec, {.state = kube::JobState::kPending, .job_id = 3});
  const auto update = [this](const std::string& licenses) {
    return slurm("scontrol", {"update", "JobId=3", "Licenses=" + licenses});
  };
  EXPECT_THAT(update("foo:3").err, HasSubstr("Invalid license specification"));
  EXPECT_THAT(update("nosuch").err, HasSubstr("Invalid license specification"));
  EXPECT_EQ(update("foo:2").code, kExitOk);
  EXPECT_EQ(update("").code, kExitOk);
}

TEST_F(SlurmCommands, ShowDevices) {
  kube::JobSpec spec;
  spec.resources.devices = {{"gpu", "a100", 2}, {"gpu", "", 1}};
  add_job("team-b", "first", spec, {.state = kube::JobState::kRunning, .job_id = 1});
  add_job("team-b", "second", {}, {.state = kube::JobState::kRunning, .job_id = 2});
  EXPECT_EQ(slurm("squeue", {"-h", "-o", "%i %b"}).out, "1 gres:gpu:a100:2,gres:gpu:1\n2 N/A\n");
  EXPECT_THAT(slurm("scontrol", {"show", "job", "1"}).out,
              HasSubstr("TresPerNode=gres:gpu:a100:2,gres:gpu:1\n"));
}

// SOURCE: recorded. Memory of GPUs is none of a node or of a CPU; a default has no "gres:".
TEST_F(SlurmCommands, ShowGpusOfJobsAndTasks) {
  kube::JobSpec of_job;
  of_job.resources.devices_of_job = {{"gpu", "", 2}};
  of_job.resources.cpus_per_gpu = 2;
  of_job.resources.memory_per_gpu = kube::Bytes{std::int64_t{200} << 20};
  of_job.resources.tasks = 2;
  of_job.resources.tasks_per_gpu = 1;
  kube::JobStatus runs{.state = kube::JobState::kRunning, .job_id = 1};
  runs.allocation = kube::Allocation{
      .hostlist = "n[1-2]",
      .nodes = 2,
      .cpus = 4,
      .shares = {{.hostlist = "n[1-2]", .cpus = 2, .memory = kube::Bytes{200 << 20}}}};
  add_job("team-b", "first", of_job, runs);
  kube::JobSpec of_tasks;
  of_tasks.resources.devices_per_task = {{"gpu", "a100", 1}};
  add_job("team-b", "second", of_tasks, {.state = kube::JobState::kRunning, .job_id = 2});
  EXPECT_EQ(slurm("squeue", {"-h", "-O",
                             "jobid:2,tres-per-job:12,tres-per-task:16,cpus-per-tres:12,"
                             "mem-per-tres:13,minmemory:4"})
                .out,
            "1 gres:gpu:2  N/A             gres:gpu:2  gres:gpu:200 0   \n"
            "2 N/A         gres:gpu:a100:1 N/A         N/A          0   \n");
  EXPECT_EQ(slurm("squeue", {"-h", "-o", "%i %b"}).out, "1 N/A\n2 N/A\n");
  const std::string shown = slurm("scontrol", {"show", "job", "1"}).out;
  EXPECT_THAT(shown, HasSubstr("   TRES=cpu=4,mem=400M,node=2,billing=4\n"));
  EXPECT_THAT(shown, HasSubstr("MinMemoryNode=0"));
  EXPECT_THAT(shown, HasSubstr("   CpusPerTres=gres:gpu:2\n   MemPerTres=gres:gpu:200\n"
                               "   TresPerJob=gres:gpu:2\n   NtasksPerTRES=1\n"));
  EXPECT_THAT(slurm("scontrol", {"show", "job", "2"}).out,
              HasSubstr("   TresPerTask=gres:gpu:a100:1\n"));
}

TEST_F(SlurmCommands, HostlistsNeedNoCluster) {
  EXPECT_EQ(slurm("scontrol", {"show", "hostname", "n[1-2]"}).out, "n1\nn2\n");
  EXPECT_EQ(slurm("scontrol", {"show", "hostnames", "n1", "n2"}).code, kExitFailed);
  EXPECT_EQ(slurm("scontrol", {"show", "hostnames", "n[08-10],x"}).out, "n08\nn09\nn10\nx\n");
  EXPECT_EQ(slurm("scontrol", {"show", "hostlistsorted", "b2,a10,a9"}).out, "a[9-10],b2\n");
}

// Tools ask once in a few seconds, each of many users. A namespace's list is a part of what the
// server looks through, so a number is looked for there first.
TEST_F(SlurmCommands, AQuestionThatIsAskedAgainAndAgainCostsFewRequests) {
  const auto pending = [](int number) {
    return kube::JobStatus{
        .state = kube::JobState::kPending, .job_id = number, .user = "ann", .partition = "main"};
  };
  const kube::ObjectMeta of_ann{.annotations = {{"kubegang.io/user", "ann"}}};
  add_job("team-b", "a", {}, pending(42), of_ann);
  add_job("team-a", "b", {}, pending(43), of_ann);
  kube::JobSpec wide;
  wide.resources.tasks = 8;
  add_job("team-b", "c", wide, pending(44), of_ann);
  kube::JobStatus runs = pending(45);
  runs.state = kube::JobState::kRunning;
  runs.allocation = kube::Allocation{.hostlist = "n1", .nodes = 1, .cpus = 8};
  add_job("team-b", "d", wide, runs, of_ann);
  const auto requests = [&](const Words& arguments) {
    counts_.requests = 0;
    EXPECT_THAT(slurm("squeue", arguments).out, HasSubstr("4"));
    return counts_.requests;
  };
  EXPECT_EQ(requests({"-h", "-j", "42", "-o", "%i %T"}), 1);
  EXPECT_EQ(requests({"-h", "-j", "42"}), 1);
  EXPECT_EQ(requests({"-h", "-j", "43"}), 2) << "of another namespace: the own one is asked first";
  EXPECT_GT(requests({"-h", "-j", "44"}), 1) << "%D of a job that waits follows from its partition";
  EXPECT_EQ(requests({"-h", "-j", "45"}), 1) << "%D is known";
  EXPECT_GT(requests({"-h", "-j", "42", "-O", "jobid,minmemory"}), 1) << "the partition's default";
  EXPECT_EQ(requests({"-h", "-u", "ann", "-t", "all", "-o", "%i %t"}), 1);
  login_name_ = "ann";
  EXPECT_EQ(requests({"-h", "--me", "-o", "%i"}), 1);
  login_name_.reset();
  counts_.requests = 0;
  EXPECT_EQ(slurm("squeue", {"-h", "--me", "-o", "%i"}).out, "") << "the caller is system:admin";
  EXPECT_EQ(counts_.requests, 2) << "who the user is, and the user's jobs";
}

// Tools ask for one job again and again: the server sends that one, and not 5,000 others.
TEST_F(SlurmCommands, ANumberIsSelectedByTheServer) {
  for (int i = 1; i <= 3; ++i) {
    add_job("team-b", "j" + std::to_string(i), {},
            {.state = kube::JobState::kRunning, .job_id = 40 + i});
  }
  const auto sent = [&](const std::string& command, const Words& arguments) {
    counts_.sent = 0;
    (void)slurm(command, arguments);
    return counts_.sent;
  };
  EXPECT_EQ(sent("squeue", {"-h", "-j", "42"}), 1);
  EXPECT_EQ(sent("squeue", {"-h", "-j", "41,43"}), 2);
  EXPECT_EQ(sent("scontrol", {"show", "job", "42"}), 1);
  EXPECT_EQ(sent("scontrol", {"hold", "42"}), 1);
  EXPECT_EQ(sent("squeue", {"-h", "-j", "42,99"}), 1 + 3) << "99 may be the number of a task";
  EXPECT_EQ(sent("squeue", {"-h"}), 3);
  EXPECT_EQ(sent("sacct", {"-j", "42"}), 1);
  EXPECT_EQ(sent("sacct", {"-a"}), 3);
  EXPECT_EQ(sent("scancel", {"42"}), 1);
  add_job("team-a", "other", {}, {.state = kube::JobState::kRunning, .job_id = 51});
  EXPECT_EQ(sent("squeue", {"-h", "-j", "51"}), 1) << "a job of another namespace";
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "51", "-o", "%j"}).out, "other\n");
}

// Sleeps in real time, so that a watch can arrive. Ends what sleeps when the test has seen enough.
class Rounds final : public kube::Sleeper {
 public:
  explicit Rounds(std::function<bool(int round)> goes_on) : goes_on_{std::move(goes_on)} {}

  base::Status sleep(base::Duration, std::stop_token stop) override {
    if (!goes_on_(++round_)) return base::Error{base::Code::kCancelled, "enough"};
    return kube::ThreadSleeper{}.sleep(std::chrono::milliseconds{10}, std::move(stop));
  }

 private:
  std::function<bool(int)> goes_on_;
  int round_ = 0;
};

// A table once a second costs the server one list and what changes.
TEST_F(SlurmCommands, ARepeatedQueueIsListedOnce) {
  const auto add = [&](const std::string& name, std::int64_t number) {
    add_job("team-b", name, {}, {.state = kube::JobState::kRunning, .job_id = number});
  };
  add("first", 1);
  Rounds rounds{[&](int round) {
    if (round == 1) add("second", 2);
    return round < 2000 && out_.str().find("2;") == std::string::npos;
  }};
  session_sleeper_ = &rounds;
  const Ran ran = slurm("squeue", {"-h", "-i", "1", "-o", "%i;"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(counts_.sent, 1);
  EXPECT_THAT(ran.out, HasSubstr("1;\n2;\n"));
}

// A number that is asked for again and again is selected again and again; one that is gone in a
// later round ends nothing.
TEST_F(SlurmCommands, ARepeatedQueueOutlivesItsJob) {
  const kube::Job job =
      add_job("team-b", "first", {}, {.state = kube::JobState::kRunning, .job_id = 1});
  Rounds rounds{[&](int round) {
    if (round == 1) {
      EXPECT_TRUE(client_.remove<kube::Job>(key_of(job.metadata)));
    }
    return round < 3;
  }};
  session_sleeper_ = &rounds;
  const Ran ran = slurm("squeue", {"-h", "-i", "1", "-j", "1", "-o", "%i;"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("Invalid job id specified"));
  EXPECT_EQ(slurm("squeue", {"-i", "1", "-j", "77"}).code, kExitFailed) << "the first round";
}

// As recorded.
TEST_F(SlurmCommands, SqueueRefusesWhatMakesNoSense) {
  add_nodes("n[1-2]");
  add_job("team-b", "a", {}, {.state = kube::JobState::kPending, .job_id = 1});
  const auto error_of = [&](const Words& words) {
    const Ran ran = slurm("squeue", words);
    EXPECT_EQ(ran.code, kExitFailed);
    return ran.err;
  };
  EXPECT_EQ(error_of({"-w", "n[2,9]"}), "squeue: error: Invalid node name n9\n");
  EXPECT_EQ(slurm("squeue", {"-w", "n1"}).code, kExitOk);
  EXPECT_EQ(error_of({"-S", "bogus"}), "squeue: error: Invalid sort specification: s\n");
  EXPECT_EQ(error_of({"-S", "foo"}), "squeue: error: Invalid sort specification: o\n");
  EXPECT_EQ(error_of({"-S", "i,F"}), "squeue: error: Invalid sort specification: F\n")
      << "it prints it, and does not sort by it";
  EXPECT_EQ(slurm("squeue", {"-S", "+j,,-C--"}).code, kExitOk);
  EXPECT_EQ(error_of({"-o", "%i", "-O", "jobid"}),
            "squeue: error: -O (--Format) is incompatible with -o (--format)\n");
  EXPECT_THAT(
      error_of({"-l", "-o", "%i"}),
      HasSubstr("squeue: fatal: Options -o(--format) and -l(--long) are mutually exclusive"));
}

TEST_F(SlurmCommands, SbatchRefusesADeadlineThatHasPassedAndTasksWithoutEnd) {
  const Ran late = slurm("sbatch", {"--deadline=2001-01-01", "--wrap", "true"});
  EXPECT_EQ(late.code, kExitFailed);
  EXPECT_THAT(late.err, HasSubstr("Requested time limit is invalid"));
  for (const char* tasks : {"--array=abc", "--array=0-4194302"}) {
    const Ran wide = slurm("sbatch", {tasks, "--wrap", "true"});
    EXPECT_EQ(wide.code, kExitFailed);
    EXPECT_THAT(wide.err, HasSubstr("tasks are numbers from 0 to 100000"));
  }
}

// As sbatch's own variables: the command line wins.
TEST_F(SlurmCommands, AVariableNamesTheTemplateOfSbatch) {
  session_sleeper_ = &numbers_jobs_;
  const std::string path =
      testing::TempDir() + "sbatch_template_" + std::to_string(::getpid()) + ".yaml";
  std::ofstream{path} << "spec:\n  containers: [{name: main, image: \"own:1\"}]\n";
  ::setenv("SBATCH_TEMPLATE", path.c_str(), 1);
  const Ran ran = slurm("sbatch", {"--wrap", "true"});
  const Ran other = slurm("sbatch", {"--template", "/nowhere.yaml", "--wrap", "true"});
  ::unsetenv("SBATCH_TEMPLATE");
  std::filesystem::remove(path);
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto jobs = client_.list<kube::Job>();
  ASSERT_EQ(jobs->items.size(), 1U);
  EXPECT_EQ(jobs->items[0].spec.pod_template.json()["spec"]["containers"][0]["image"], "own:1");
  EXPECT_THAT(other.err, HasSubstr("/nowhere.yaml"));
}

TEST_F(SlurmCommands, ANumberThatDoesNotExistIsAnError) {
  EXPECT_EQ(slurm("squeue", {"-j", "99"}).code, kExitFailed);
  EXPECT_THAT(slurm("scancel", {"99"}).err, HasSubstr("Invalid job id specified"));
  EXPECT_EQ(slurm("scontrol", {"show", "job", "99"}).code, kExitFailed);
}

// Tasks 0 to 9 of array 1001: task 0 runs as job 1002, task 1 has failed, the others are held.
class SlurmArrays : public SlurmCommands {
 protected:
  void SetUp() override {
    kube::JobSpec spec;
    spec.array = kube::JobArray{.tasks = "0-9", .parallelism = 2};
    spec.control.hold = true;
    spec.batch = kube::JobBatch{.script = "#!/bin/sh\n", .name = "sweep"};
    kube::JobStatus status;
    status.job_id = 1001;
    status.state = kube::JobState::kRunning;
    status.reason = "JobHeldUser";
    status.exit_code = 3;
    kube::ArrayStatus& array = status.array.emplace();
    array.summary = "1 of 10 done, 1 run, 1 failed";
    array.failed = "1";
    array.tasks.push_back(
        {.task = 0,
         .job_id = 1002,
         .state = kube::JobState::kRunning,
         .starts = 1,
         .allocation = kube::Allocation{.hostlist = "n1", .nodes = 1, .cpus = 1}});
    add_job("team-b", "sweep", spec, status);
  }
  kube::JobSpec spec() { return client_.get<kube::Job>({"team-b", "sweep"})->spec; }
  // Returns "8-9: hold" and so on.
  Words wishes() {
    Words all;
    for (const kube::TaskControl& each : spec().control.tasks) {
      all.push_back(each.tasks + (each.cancel ? ": cancel" : "") +
                    (each.hold ? *each.hold ? ": hold" : ": release" : "") +
                    (each.requeue_request ? ": requeue" : ""));
    }
    return all;
  }
};

TEST_F(SlurmArrays, AreShownAsSlurmShowsThem) {
  EXPECT_EQ(slurm("squeue", {"-h", "-o", "%i %A %F %K %t %r"}).out,
            "1001_[2-9%2] 1001 1001 2-9%2 PD JobHeldUser\n1001_0 1002 1001 0 R None\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-O", "jobid:6,jobarrayid:12"}).out,
            "1001  1001_[2-9%2]\n1002  1001_0      \n");
  EXPECT_EQ(slurm("squeue", {"-h", "-t", "R,PD", "-u", "team-b", "-o", "%i"}).out,
            "1001_[2-9%2]\n1001_0\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-t", "all", "-u", "team-a", "-o", "%i"}).out, "");
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "1001", "-u", "team-a", "-o", "%i"}).out, "");
  EXPECT_EQ(slurm("squeue", {"-h", "-r", "-t", "PD", "-o", "%i"}).out,
            "1001_2\n1001_3\n1001_4\n1001_5\n1001_6\n1001_7\n1001_8\n1001_9\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "1001_[0,4]", "-o", "%i"}).out, "1001_4\n1001_0\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "1001_0,1001_4,1001_6", "-o", "%i|%K"}).out,
            "1001_[4,6]|4,6\n1001_0|0\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-r", "-j", "1001_4,1001_6", "-o", "%i"}).out,
            "1001_4\n1001_6\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "1002", "-o", "%i"}).out, "1001_0\n");
  EXPECT_THAT(
      slurm("scontrol", {"show", "job", "1001"}).out,
      HasSubstr("JobId=1001 ArrayJobId=1001 ArrayTaskId=2-9%2 ArrayTaskThrottle=2 JobName="));
  EXPECT_THAT(slurm("scontrol", {"show", "job", "1001_1"}).out,
              testing::AllOf(HasSubstr("ArrayTaskId=1 "), HasSubstr("JobState=FAILED"),
                             HasSubstr("ExitCode=3:0")));
  const Ran no_task = slurm("squeue", {"-h", "-j", "1001_99"});
  EXPECT_EQ(no_task.out + no_task.err, "") << "the job is there";
  EXPECT_EQ(no_task.code, kExitOk);
  EXPECT_EQ(slurm("squeue", {"-h", "-j", "77_1"}).code, kExitFailed);
  const Ran none = slurm("scontrol", {"show", "job", "1001_99"});
  EXPECT_EQ(none.out, "Job 1001_99 not found\n");
  EXPECT_EQ(none.code, kExitFailed);
}

TEST_F(SlurmArrays, PartsAreCanceledHeldAndReleased) {
  EXPECT_THAT(slurm("scancel", {"1001_5-7"}).err, HasSubstr("Invalid job id 1001_5-7"));
  EXPECT_EQ(slurm("scancel", {"1001_3", "1001_[5-7]"}).code, kExitOk);
  EXPECT_THAT(wishes(), ElementsAre("3,5-7: cancel"));
  EXPECT_FALSE(spec().control.cancel);
  EXPECT_EQ(slurm("scontrol", {"release", "1001_[0,2]"}).code, kExitOk);
  EXPECT_EQ(slurm("scontrol", {"requeue", "1002"}).code, kExitOk) << "a task by its own number";
  EXPECT_THAT(wishes(), testing::IsSupersetOf({"0,2: release", "3,5-7: cancel", "0: requeue"}));
  EXPECT_EQ(slurm("scontrol", {"release", "1001"}).code, kExitOk);
  EXPECT_EQ(spec().control.hold, false);
  EXPECT_THAT(wishes(), testing::Not(testing::Contains("0,2: release")));
  EXPECT_EQ(slurm("scancel", {"1001"}).code, kExitOk);
  EXPECT_EQ(spec().control.cancel, true);
}

// As recorded: each kind of refused task is said with its reason, and the others are done.
TEST_F(SlurmArrays, TasksThatDoNotExistAreRefused) {
  const Ran released = slurm("scontrol", {"release", "1001_[2,98-99]"});
  EXPECT_EQ(released.code, kExitFailed);
  EXPECT_EQ(released.err, "1001_98-99: Invalid job id specified\n");
  EXPECT_THAT(wishes(), testing::Contains("2: release"));
  const Ran requeued = slurm("scontrol", {"requeue", "1001_[1,3-5]"});
  EXPECT_EQ(requeued.code, kExitFailed);
  EXPECT_THAT(requeued.err, testing::AllOf(HasSubstr("1001_1: Job has already finished\n"),
                                           HasSubstr("1001_3-5: Job is pending execution\n")));
  const Ran held = run({"hold", "sweep_[3,12]", "-n", "team-b"});
  EXPECT_EQ(held.code, kExitFailed);
  EXPECT_EQ(held.err, "kubectl-gang: job sweep_[3,12]: task 12 does not exist; name some of 0-9\n");
  EXPECT_EQ(run({"cancel", "1001_[3,5-7]", "-n", "team-b"}).out,
            "job.kubegang.io/sweep_[3,5-7] canceled\n");
  EXPECT_EQ(run({"explain", "1001_12", "-n", "team-b"}).err,
            "kubectl-gang explain: 1001 has no task 12\n");
  EXPECT_EQ(slurm("scontrol", {"hold", "1002_1"}).err, "Invalid job id specified for job 1002_1\n");
}

// A message names what was typed, and its own program.
TEST_F(SlurmArrays, MessagesNameTheTasks) {
  kube::JobSpec wide;
  wide.array = kube::JobArray{.tasks = "0-100000", .parallelism = {}};
  add_job("team-b", "wide", wide, {.state = kube::JobState::kPending, .job_id = 2001});
  EXPECT_EQ(slurm("scancel", {"2001_[0-50000]"}).err,
            "scancel: error: Kill job error on job id 2001_[0-50000]: no more than 10000 tasks of "
            "an array may differ from the rest; name fewer, or the whole array\n");
  add_job("team-b", "runs", {}, {.state = kube::JobState::kRunning, .job_id = 9});
  EXPECT_EQ(slurm("scontrol", {"hold", "9"}).err,
            "scontrol: error: job 9: the job is running; use kubectl gang suspend\n");
}

// Requests that were carried out, or are about tasks that have ended, make room for others, and
// tasks of which as much was asked are one entry.
TEST_F(SlurmArrays, RequestsNeverFillTheirList) {
  kube::JobSpec wide;
  wide.array = kube::JobArray{.tasks = "0-99", .parallelism = {}};
  kube::JobStatus status;
  status.job_id = 2001;
  status.array.emplace();
  add_job("team-b", "wide", wide, status);
  const auto job = [&] { return *client_.get<kube::Job>({"team-b", "wide"}); };
  for (int round = 0; round < 200; ++round) {
    const int task = round % 100;
    const std::string name = "wide_" + std::to_string(task);
    ASSERT_EQ(run({"requeue", name, "-n", "team-b"}).code, kExitOk);
    kube::Job changed = job();
    const kube::Job before = changed;
    std::int64_t asked = 0;
    for (const kube::TaskControl& each : before.spec.control.tasks) {
      const auto numbers = base::parse_number_list(each.tasks, 99);
      if (std::ranges::count(*numbers, task) > 0) asked = each.requeue_request.value_or(asked);
    }
    EXPECT_EQ(asked, round / 100 + 1);
    EXPECT_LE(before.spec.control.tasks.size(), 2U) << "round " << round;
    if (round % 3 == 0) {  // the operator has carried it out
      changed.status.array->tasks.push_back(
          {.task = task, .observed = kube::JobObserved{.requeue_request = asked}});
      ASSERT_TRUE(client_.patch_status_from(before, changed).ok());
    }
  }
  const kube::Job before = job();
  kube::Job changed = before;
  changed.status.array->failed = "0-49";
  ASSERT_TRUE(client_.patch_status_from(before, changed).ok());
  EXPECT_EQ(slurm("scancel", {"2001_99"}).code, kExitOk);
  for (const kube::TaskControl& each : job().spec.control.tasks) {
    const auto numbers = base::parse_number_list(each.tasks, 99);
    for (const int task : *numbers) {
      EXPECT_GE(task, 50);
      EXPECT_LT(task % 3, 2) << "was carried out";
    }
  }
}

TEST_F(SlurmArrays, AFilterNamesTasks) {
  EXPECT_EQ(slurm("scancel", {"-t", "PD", "-n", "sweep"}).code, kExitOk);
  EXPECT_THAT(wishes(), ElementsAre("2-9: cancel"));
}

TEST_F(SlurmArrays, TheThrottleIsUpdated) {
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001", "ArrayTaskThrottle=6"}).code, kExitOk);
  EXPECT_EQ(spec().array->parallelism, 6);
}

// Only tasks that run get signals: no pod runs here.
TEST_F(SlurmArrays, SignalsAreForTasksThatRun) {
  EXPECT_EQ(slurm("scancel", {"-s", "TERM", "1001_[2-4]"}).code, kExitOk) << "they wait";
  EXPECT_EQ(slurm("scancel", {"-s", "TERM", "1001_0"}).err,
            "scancel: error: Kill job error on job id 1001_0: Job is pending execution\n");
  const Ran gone = slurm("scancel", {"-s", "TERM", "1001_[1-2,12]"});
  EXPECT_EQ(gone.code, kExitFailed);
  EXPECT_EQ(gone.err,
            "scancel: error: Kill job error on job id 1001_1: Invalid job id specified\n"
            "scancel: error: Kill job error on job id 1001_12: Invalid job id specified\n");
  EXPECT_THAT(slurm("scancel", {"-s", "TERM", "1001"}).err, HasSubstr("on job id 1001_0:"));
  EXPECT_THAT(wishes(), ElementsAre());
  EXPECT_EQ(slurm("scancel", {"-s", "KILL", "1001_[0,3]"}).code, kExitOk);
  EXPECT_THAT(wishes(), ElementsAre("0,3: cancel"));
}

// As recorded: tasks are changed by themselves until the whole array is.
TEST_F(SlurmArrays, TasksAreUpdated) {
  const auto shown = [&] {
    return slurm("squeue", {"-h", "-r", "-j", "1001_[0,2-5]", "-o", "%K %l %y %Q"}).out;
  };
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001", "TimeLimit=10"}).code, kExitOk);
  EXPECT_EQ(slurm("scontrol", {"release", "1001"}).code, kExitOk);
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001_0", "TimeLimit=5"}).code, kExitOk);
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001_[3,4]", "TimeLimit=+7", "Nice=3"}).code,
            kExitOk);
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001_2", "Priority=77"}).code, kExitOk);
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001_5", "Priority=0"}).code, kExitOk);
  EXPECT_THAT(wishes(), testing::Contains("5: hold"));
  EXPECT_EQ(shown(), "2 10:00 0 77\n3 17:00 3 0\n4 17:00 3 0\n5 10:00 0 0\n0 5:00 0 0\n");
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1002", "TimeLimit=6"}).code, kExitOk);
  EXPECT_THAT(shown(), HasSubstr("0 6:00"));
  const Ran gone = slurm("scontrol", {"update", "JobId=1001_[1,3,11]", "TimeLimit=8"});
  EXPECT_EQ(gone.code, kExitFailed);
  EXPECT_EQ(gone.err, "1001_11: Invalid job id specified\n1001_1: Job has already finished\n");
  EXPECT_THAT(shown(), HasSubstr("3 8:00"));
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001_0", "Nice=1"}).err,
            "1001_0: Job is no longer pending execution\n");
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001_3", "JobName=x"}).err,
            "tasks of an array cannot differ in JobName; update the whole array for job 1001_3\n");
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=1001", "TimeLimit=9"}).code, kExitOk);
  EXPECT_EQ(shown(), "2 9:00 0 77\n3 9:00 3 0\n4 9:00 3 0\n5 9:00 0 0\n0 9:00 0 0\n");
  for (int task = 0; task < 70; ++task) {
    const std::string limit = "TimeLimit=" + std::to_string(100 + task);
    const std::string which = "JobId=1001_" + std::to_string(2 + task % 8);
    ASSERT_EQ(slurm("scontrol", {"update", which, limit}).code, kExitOk);
  }
}

// A partition of four nodes: n1 is full, n2 is half full, n3 is drained.
class SlurmNodes : public SlurmCommands {
 protected:
  void SetUp() override {
    kube::Partition partition;
    partition.metadata.name = "main";
    partition.spec.nodes.hostlist = "n[1-4]";
    partition.spec.is_default = true;
    ASSERT_TRUE(client_.create(partition).ok());
    partition = {};
    partition.metadata.name = "long";
    partition.spec.nodes.hostlist = "n[1-4]";
    ASSERT_TRUE(client_.create(partition).ok());
    add_nodes("n[1-4]");
    kube::JobStatus status = running_job().status;
    status.allocation =
        kube::Allocation{.hostlist = "n[1-2]",
                         .nodes = 2,
                         .cpus = 12,
                         .shares = {{.hostlist = "n1", .cpus = 8}, {.hostlist = "n2", .cpus = 4}}};
    kube::JobSpec spec = running_job().spec;
    spec.batch->script = "#!/bin/sh\n";
    add_job("team-b", "train-x7k2p", spec, status);
    ASSERT_EQ(
        slurm("scontrol", {"update", "NodeName=n3", "State=DRAIN", "Reason=disk is full"}).code,
        kExitOk);
  }
};

TEST_F(SlurmNodes, SinfoGroupsNodesThatDoNotDiffer) {
  EXPECT_EQ(slurm("sinfo", {}).out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "main*        up   infinite      1  drain n3\n"
            "main*        up   infinite      1    mix n2\n"
            "main*        up   infinite      1  alloc n1\n"
            "main*        up   infinite      1   idle n4\n"
            "long         up   infinite      1  drain n3\n"
            "long         up   infinite      1    mix n2\n"
            "long         up   infinite      1  alloc n1\n"
            "long         up   infinite      1   idle n4\n");
  EXPECT_EQ(slurm("sinfo", {"-h", "-o", "%D %C %A"}).out, "4 12/12/8/32 2/1\n")
      << "a node of two partitions counts once";
  EXPECT_EQ(slurm("sinfo", {"-s", "-h", "-p", "main"}).out,
            "main*        up   infinite          2/1/1/4 n[1-4]\n");
  EXPECT_EQ(slurm("sinfo", {"-h", "-R", "-o", "%E|%u|%N"}).out, "disk is full|system:admin|n3\n");
  EXPECT_EQ(slurm("sinfo", {"-h", "-N", "-p", "long", "-t", "mix,alloc"}).out,
            "n1             1      long alloc \nn2             1      long mix   \n");
  EXPECT_EQ(
      slurm("sinfo", {"-h", "-t", "down"}).out,
      "main*        up   infinite      0    n/a \nlong         up   infinite      0    n/a \n");
  EXPECT_THAT(slurm("sinfo", {"-t", "nosuch"}).err, HasSubstr("Bad state string: \"nosuch\""));
}

// n1 says what product its GPUs are, and did not when the job took one of them.
TEST_F(SlurmNodes, ShowDevicesOfNodes) {
  const auto has_gpus = [&](const std::string& node, const char* count) {
    const nlohmann::json status{{"status", {{"allocatable", {{"nvidia.com/gpu", count}}}}}};
    ASSERT_TRUE(client_.patch_status<kube::Node>({"", node}, status).ok());
  };
  has_gpus("n1", "4");
  has_gpus("n2", "2");
  const nlohmann::json label{
      {"metadata", {{"labels", {{"nvidia.com/gpu.product", "NVIDIA-A100-PCIE-40GB"}}}}}};
  ASSERT_TRUE(client_.patch<kube::Node>({"", "n1"}, label).ok());
  kube::JobStatus status{.state = kube::JobState::kRunning, .job_id = 9};
  status.allocation = kube::Allocation{
      .hostlist = "n1",
      .nodes = 1,
      .cpus = 1,
      .shares = {{.hostlist = "n1", .cpus = 1, .devices = {{"gpu", "nvidia", 3}}}}};
  add_job("team-b", "tune", {}, status);
  EXPECT_EQ(slurm("sinfo", {"-h", "-N", "-p", "main", "-o", "%N %G"}).out,
            "n1 gpu:nvidia-a100-pcie-40gb:4\nn2 gpu:2\nn3 (null)\nn4 (null)\n");
  EXPECT_EQ(slurm("sinfo", {"-h", "-N", "-p", "main", "-O", "nodelist:3,gresused:28"}).out,
            "n1 gpu:nvidia-a100-pcie-40gb:3 \nn2 gpu:0                       \n"
            "n3 (null)                      \nn4 (null)                      \n");
  EXPECT_THAT(slurm("scontrol", {"show", "node", "n1"}).out,
              HasSubstr("   Gres=gpu:nvidia-a100-pcie-40gb:4\n"));
  EXPECT_THAT(slurm("scontrol", {"show", "node", "n4"}).out, HasSubstr("   Gres=(null)\n"));
  EXPECT_EQ(slurm("scontrol", {"show", "node", "n1"}).out.find("Comment="), std::string::npos);
  const nlohmann::json one_of_them{{"metadata", {{"labels", {{"nvidia.com/gpu.count", "1"}}}}}};
  ASSERT_TRUE(client_.patch<kube::Node>({.ns = "", .name = "n1"}, one_of_them).ok());
  const std::string mixed = slurm("scontrol", {"show", "node", "n1"}).out;
  EXPECT_THAT(mixed, HasSubstr("   Gres=gpu:4\n"));
  EXPECT_THAT(mixed, HasSubstr("   Comment=nvidia.com/gpu is of several products: "));
}

TEST_F(SlurmNodes, ScontrolDrainsAndResumes) {
  EXPECT_THAT(
      slurm("scontrol", {"show", "node", "n3"}).out,
      testing::AllOf(HasSubstr("State=IDLE+DRAIN "),
                     HasSubstr("Reason=disk is full [system:admin@"), HasSubstr("CPUTot=8 ")));
  EXPECT_EQ(slurm("scontrol", {"update", "NodeName=n3", "State=resume"}).code, kExitOk);
  EXPECT_EQ(slurm("sinfo", {"-h", "-n", "n3", "-p", "main", "-o", "%t %E"}).out, "idle none\n");
  EXPECT_EQ(slurm("scontrol", {"update", "NodeName=n4", "State=DRAIN"}).code, kExitFailed);
  EXPECT_THAT(slurm("scontrol", {"update", "NodeName=n9", "State=RESUME"}).err,
              HasSubstr("Invalid node name"));
}

TEST_F(SlurmNodes, ScontrolChangesPartitions) {
  EXPECT_EQ(slurm("scontrol", {"update", "PartitionName=long", "State=DOWN", "MaxTime=60"}).code,
            kExitOk);
  EXPECT_EQ(slurm("sinfo", {"-h", "-s", "-o", "%R %a %l"}).out,
            "main up infinite\nlong down 1:00:00\n");
  EXPECT_THAT(slurm("scontrol", {"show", "partition", "long"}).out,
              testing::AllOf(HasSubstr("MaxTime=01:00:00"), HasSubstr("State=DOWN TotalCPUs=32")));
  EXPECT_EQ(slurm("scontrol", {"show", "partition", "nosuch"}).code, kExitFailed);
}

// A job that waits gets another dependency, or none; what becomes of it if that can never be stays.
TEST_F(SlurmCommands, ScontrolUpdateChangesWhatAJobWaitsFor) {
  using Terms = std::vector<kube::DependencyTerm>;
  for (std::int64_t number = 7; number <= 9; ++number) {
    kube::JobSpec spec;
    kube::JobStatus status{.state = kube::JobState::kPending, .job_id = number};
    if (number > 7) {
      spec.dependency.emplace().if_never_satisfied = kube::NeverSatisfied::kCancel;
      spec.dependency->terms = {{.job_id = number - 1}};
      status.dependency = {{.job_id = number - 1}};
    }
    add_job("team-b", "waits-" + std::to_string(number), spec, status);
  }
  const auto update = [&](const std::string& job, const std::string& text) {
    return slurm("scontrol", {"update", "JobId=" + job, "Dependency=" + text}).err;
  };
  const auto spec = [&](const std::string& job) {
    return client_.get<kube::Job>({.ns = "team-b", .name = "waits-" + job})->spec;
  };
  EXPECT_EQ(update("7", "afterok:9"), "Circular job dependency for job 7\n");
  EXPECT_EQ(update("7", "after:7"), "Circular job dependency for job 7\n");
  EXPECT_THAT(update("7", "afterwards:9"), HasSubstr("there is no kind of dependency"));
  EXPECT_FALSE(spec("7").dependency);
  EXPECT_EQ(update("7", "afterany:5?after:6+2"), "");
  EXPECT_EQ(spec("7").dependency->match, kube::DependencyMatch::kAny);
  EXPECT_EQ(
      spec("7").dependency->terms,
      (Terms{
          {.type = kube::DependencyType::kAfterAny, .job_id = 5},
          {.type = kube::DependencyType::kAfter, .job_id = 6, .delay = std::chrono::minutes{2}}}));
  EXPECT_EQ(update("9", "afterok:7"), "") << "by another way than before";
  EXPECT_EQ(spec("9").dependency->terms, (Terms{{.job_id = 7}}));
  EXPECT_EQ(spec("9").dependency->if_never_satisfied, kube::NeverSatisfied::kCancel);
  EXPECT_EQ(update("9", "0"), "");
  EXPECT_FALSE(spec("9").dependency);
  EXPECT_EQ(update("8", ""), "");
  EXPECT_FALSE(spec("8").dependency);
}

TEST_F(SlurmCommands, ACanceledJobKeepsWhyItWaited) {
  const base::Instant end = now();
  const kube::JobStatus cancelled{.state = kube::JobState::kCancelled, .end_time = end};
  kube::JobSpec later;
  later.schedule.begin_time = end + std::chrono::hours{1};
  kube::JobStatus one = cancelled;
  one.job_id = 1;
  add_job("team-b", "begins", later, one);
  kube::JobStatus two = cancelled;
  two.job_id = 2;
  two.dependency = {{.type = kube::DependencyType::kAfterOk, .job_id = 9}};
  add_job("team-b", "depends", later, two);
  kube::JobStatus three = cancelled;
  three.job_id = 3;
  add_job("team-b", "plain", {}, three);
  EXPECT_EQ(slurm("squeue", {"-h", "-t", "CA", "-S", "i", "-o", "%i %r"}).out,
            "1 BeginTime\n2 Dependency\n3 None\n");
}

TEST_F(SlurmCommands, ScontrolUpdateChangesWhatTheApiCanChange) {
  kube::Partition partition;
  partition.metadata.name = "main";
  partition.spec.nodes.hostlist = "n[1-4]";
  ASSERT_TRUE(client_.create(partition).ok());
  kube::JobSpec spec;
  spec.schedule.time_limit = std::chrono::minutes{10};
  add_job("team-b", "waits", spec, {.state = kube::JobState::kPending, .job_id = 7});
  EXPECT_EQ(slurm("scontrol",
                  {"update", "JobId=7", "TimeLimit=+5", "jobname=new", "Comment=hi", "Nice=10",
                   "NumNodes=2-3", "partition=main", "Requeue=0", "MinMemoryCPU=2G"})
                .err,
            "");
  const auto job = client_.get<kube::Job>({.ns = "team-b", .name = "waits"});
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->spec.schedule.time_limit, std::chrono::minutes{15});
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=7", "TimeLimit+=5"}).err, "");
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=7", "timelimit-=1"}).err, "");
  EXPECT_EQ(client_.get<kube::Job>({.ns = "team-b", .name = "waits"})->spec.schedule.time_limit,
            std::chrono::minutes{19});
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=7", "TimeLimit-=4"}).err, "");
  EXPECT_THAT(slurm("scontrol", {"update", "JobId=7", "Nice+=4"}).err,
              HasSubstr("Update of this parameter is not supported: Nice+=4"));
  EXPECT_EQ(job->spec.resources.nodes, (kube::JobNodes{.min = 2, .max = 3}));
  EXPECT_EQ(job->spec.resources.memory_per_cpu, kube::Bytes{std::int64_t{2} << 30U});
  EXPECT_EQ(job->spec.lifecycle.requeue, false);
  EXPECT_EQ(slurm("squeue", {"-h", "-o", "%j %k %y %P %l"}).out, "new hi 10 main 15:00\n");
  EXPECT_THAT(slurm("scontrol", {"update", "JobId=7", "Partition=nosuch"}).err,
              HasSubstr("Invalid partition name specified for job 7"));
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=8", "Nice=1"}).err,
            "Invalid job id specified for job 8\n");
  add_job("team-b", "runs", spec, {.state = kube::JobState::kRunning, .job_id = 9});
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=9", "NumNodes=2"}).code, kExitFailed);
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=9", "TimeLimit=1"}).code, kExitOk);
}

TEST_F(SlurmCommands, ScontrolUpdateChangesTheSizeOfAJobThatWaits) {
  add_job("team-b", "waits", {}, {.state = kube::JobState::kPending, .job_id = 7});
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=7", "NumTasks=6", "CPUsPerTask=2", "TasksPerNode=3",
                               "ReqNodes=2", "MinCPUs=4", "MinTmpDiskNode=10", "ReqSockets=2",
                               "ReqCores=8", "ReqThreads=1"})
                .err,
            "");
  const auto job = client_.get<kube::Job>({.ns = "team-b", .name = "waits"});
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->spec.resources.tasks, 6);
  EXPECT_EQ(job->spec.resources.cpus_per_task, 2);
  EXPECT_EQ(job->spec.resources.tasks_per_node, 3);
  EXPECT_EQ(job->spec.resources.nodes, (kube::JobNodes{.min = 2}));
  EXPECT_EQ(job->spec.placement.min_cpus_per_node, 4);
  EXPECT_EQ(job->spec.placement.tmp_disk, kube::Bytes{10 << 20});
  EXPECT_EQ(job->spec.placement.sockets_per_node, 2);
  EXPECT_EQ(job->spec.placement.cores_per_socket, 8);
  EXPECT_EQ(job->spec.placement.threads_per_core, 1);
  EXPECT_THAT(slurm("scontrol", {"update", "JobId=7", "CPUsPerTask=0"}).err,
              HasSubstr("CPUsPerTask"));
  EXPECT_THAT(slurm("scontrol", {"update", "JobId=7", "NumCPUs=4"}).err,
              HasSubstr("Update of this parameter is not supported: NumCPUs=4"));
  add_job("team-b", "runs", {}, {.state = kube::JobState::kRunning, .job_id = 9});
  EXPECT_EQ(slurm("scontrol", {"update", "JobId=9", "CPUsPerTask=2"}).err,
            "Job is no longer pending execution for job 9\n");
}

TEST_F(SlurmCommands, ScontrolUpdateRefusesFeaturesThatNoNodeHas) {
  kube::Node node;
  node.metadata.name = "n1";
  node.metadata.labels = {{"disk", "ssd"}, {"gpu", "true"}, {"big", "false"}};
  ASSERT_TRUE(client_.create(node).ok());
  add_job("team-b", "waits", {}, {.state = kube::JobState::kPending, .job_id = 7});
  const auto features = [&](const std::string& text) {
    return slurm("scontrol", {"update", "JobId=7", "Features=" + text}).err;
  };
  const std::string refused = "Invalid feature specification for job 7\n";
  for (const char* const bad :
       {"nosuch", "gpu&nosuch", "gpu|nosuch", "[gpu|nosuch]", "nosuch*2", "big", "disk=hdd"}) {
    EXPECT_EQ(features(bad), refused) << bad;
  }
  for (const char* const good : {"gpu", "disk", "(gpu|disk=ssd)", "[gpu*12&disk*1]", ""}) {
    EXPECT_EQ(features(good), "") << good;
  }
  const auto job = client_.get<kube::Job>({.ns = "team-b", .name = "waits"});
  EXPECT_EQ(job->spec.placement.constraint, std::nullopt);
}

// Held jobs have the priority 0, those that the system holds, too.
TEST_F(SlurmCommands, OfJobsThatWaitAndAreEqualTheLastComesFirst) {
  kube::JobSpec held;
  held.control.hold = true;
  const auto waits = [&](int number, std::int64_t priority, const kube::JobSpec& spec) {
    kube::JobStatus status{.state = kube::JobState::kPending, .job_id = number};
    status.priority = priority;
    if (number == 3) status.held = kube::JobHeld{.reason = "JobHeldAdmin"};
    add_job("team-b", "j" + std::to_string(number), spec, status);
  };
  waits(1, 50, {});
  waits(2, 60, held);
  waits(3, 70, {});
  waits(4, 80, held);
  waits(5, 90, {});
  add_job("team-b", "r6", {}, {.state = kube::JobState::kRunning, .job_id = 6});
  add_job("team-b", "r7", {}, {.state = kube::JobState::kRunning, .job_id = 7});
  EXPECT_EQ(slurm("squeue", {"-h", "-o", "%i %Q"}).out, "5 90\n1 50\n4 0\n3 0\n2 0\n6 0\n7 0\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-t", "PD", "-S", "-p,i", "-o", "%i"}).out, "5\n1\n2\n3\n4\n");
}

// A job's annotation names its user; without one it is the namespace's.
TEST_F(SlurmCommands, UsersAreToldApartByTheAnnotation) {
  add_job("team-a", "a", {}, {.state = kube::JobState::kPending, .job_id = 1},
          {.annotations = {{"kubegang.io/user", "ann"}}});
  add_job("team-a", "b", {}, {.state = kube::JobState::kPending, .job_id = 2},
          {.annotations = {{"kubegang.io/user", "ben"}}});
  add_job("team-b", "c", {}, {.state = kube::JobState::kPending, .job_id = 3});
  EXPECT_EQ(slurm("squeue", {"-h", "-S", "i", "-o", "%i %u %g"}).out,
            "1 ann team-a\n2 ben team-a\n3 team-b team-b\n");
  counts_.sent = 0;
  EXPECT_EQ(slurm("squeue", {"-h", "-u", "ben", "-o", "%i"}).out, "2\n");
  EXPECT_EQ(counts_.sent, 1) << "the server sends theirs alone";
  EXPECT_EQ(slurm("squeue", {"-h", "-u", "ben,ann,nosuch", "-S", "i", "-o", "%i"}).out, "1\n2\n");
  EXPECT_EQ(slurm("squeue", {"-h", "-u", "a=b,c", "-o", "%i"}).out, "");
  EXPECT_EQ(slurm("squeue", {"-h", "--me", "-o", "%i"}).out, "")
      << "the caller is system:admin here, and job 3 does not say whose it is";
  EXPECT_EQ(slurm("squeue", {"-h", "-u", "team-b", "-o", "%i"}).out, "3\n");
  login_name_ = "ann";
  EXPECT_EQ(slurm("squeue", {"-h", "--me", "-o", "%i"}).out, "1\n");
}

// A caller without a name has all jobs of the namespace.
TEST_F(SlurmCommands, ACallerWithoutANameHasTheJobsOfTheNamespace) {
  add_job("team-b", "a", {}, {.state = kube::JobState::kPending, .job_id = 1},
          {.annotations = {{"kubegang.io/user", "ann"}}});
  add_job("team-b", "b", {}, {.state = kube::JobState::kPending, .job_id = 2});
  add_job("team-a", "c", {}, {.state = kube::JobState::kPending, .job_id = 3});
  login_name_ = "";
  EXPECT_EQ(slurm("squeue", {"-h", "--me", "-S", "i", "-o", "%i"}).out, "1\n2\n");
}

TEST_F(SlurmCommands, SacctSaysWhatJobsHaveLeft) {
  const base::Instant today = kube::SystemClock{}.wall();
  kube::JobStatus ended{.state = kube::JobState::kFailed, .job_id = 5};
  ended.submit_time = ended.start_time = ended.end_time = today;
  ended.exit_code = 4;
  ended.allocation = on("n1");
  kube::JobSpec spec;
  spec.batch = kube::JobBatch{.script = "#!/bin/sh\n", .name = "bad"};
  add_job("team-b", "bad-1", spec, ended);
  const Ran ran = slurm("sacct", {"-P", "-j", "5", "-o", "jobid,jobname%3,state,exitcode,maxrss"});
  EXPECT_EQ(ran.out,
            "JobID|JobName|State|ExitCode|MaxRSS\n5|bad|FAILED|4:0|\n5.batch|batch|FAILED|4:0|\n");
  EXPECT_THAT(ran.err, HasSubstr("only Jobs that have not been deleted"));
  EXPECT_EQ(slurm("sacct", {"-X", "-j", "5", "-o", "jobid%8,jobname%6,state"}).out,
            "   JobID JobNam      State \n-------- ------ ---------- \n"
            "       5    bad     FAILED \n");
  // Numbers of jobs are at the left, unless a width says something else.
  EXPECT_EQ(slurm("sacct", {"-j", "5", "-o", "jobid,state%-9,jobname"}).out,
            "JobID        State        JobName \n------------ --------- ---------- \n"
            "5            FAILED           bad \n5.batch      FAILED         batch \n");
  EXPECT_EQ(slurm("sacct", {"-XPn", "-s", "F", "-S", "now-1hour", "-o", "jobid"}).out, "5\n");
  EXPECT_EQ(slurm("sacct", {"-XPn", "-s", "CD", "-S", "now-1hour", "-o", "jobid"}).out, "");
  EXPECT_EQ(slurm("sacct", {"-o", "nosuch"}).code, kExitFailed);
}

// Session sacct_sizes.
TEST_F(SlurmCommands, SacctSelectsBySizesAndLimits) {
  for (const int number : {1, 2, 3}) {
    kube::JobStatus status{.state = kube::JobState::kCompleted, .job_id = number};
    status.submit_time = status.start_time = status.end_time = kube::SystemClock{}.wall();
    status.allocation = kube::Allocation{.hostlist = "n1", .nodes = number, .cpus = 2 * number};
    kube::JobSpec spec;
    spec.schedule.time_limit = std::chrono::minutes{number};
    add_job("team-b", "j" + std::to_string(number), spec, status);
  }
  const auto found = [&](const Words& filter) {
    Words words{"-XPn", "-S", "now-1hour", "-o", "jobid"};
    words.insert(words.end(), filter.begin(), filter.end());
    return slurm("sacct", words).out;
  };
  EXPECT_EQ(found({"-i", "2"}), "2\n");
  EXPECT_EQ(found({"-i", "2-9"}), "2\n3\n");
  EXPECT_EQ(found({"-I", "1-4"}), "1\n2\n");
  EXPECT_EQ(found({"-k", "2"}), "2\n") << "the least alone is the only one";
  EXPECT_EQ(found({"-k", "1", "-K", "2"}), "1\n2\n");
  EXPECT_EQ(slurm("sacct", {"-i", "x"}).code, kExitFailed);
}

kube::JobUsage used() {
  using std::chrono::milliseconds;
  const kube::StepUsage script{.id = "batch",
                               .name = "batch",
                               .start_time = base::Instant{},
                               .elapsed = milliseconds{60'000},
                               .user_cpu = milliseconds{1'250},
                               .system_cpu = milliseconds{250},
                               .max_rss = kube::Bytes{5'120 << 10}};
  const kube::StepUsage first{.id = "0",
                              .name = "hostname",
                              .tasks = 2,
                              .nodes = 2,
                              .cpus = 2,
                              .start_time = base::Instant{},
                              .elapsed = milliseconds{2'000},
                              .user_cpu = milliseconds{30'000},
                              .system_cpu = milliseconds{0},
                              .max_rss = kube::Bytes{6'148 << 10}};
  kube::StepUsage second = first;
  second.id = "1";
  second.name = "false";
  second.exit_code = 1;
  second.user_cpu = std::chrono::hours{26};
  kube::StepUsage third = first;
  third.id = "2";
  third.signal = 9;
  return {.user_cpu = milliseconds{61'250} + std::chrono::hours{26},
          .system_cpu = milliseconds{250},
          .max_rss = kube::Bytes{6'148 << 10},
          .memory_peak = kube::Bytes{64 << 20},
          .steps = {script, first, second, third}};
}

// The output about a job is the same after its object is gone.
class SacctOfRecords : public SlurmCommands {
 protected:
  SacctOfRecords() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    writer_.emplace(std::move(*records::Writer::open(file_, today_)));
    has_records_.reader.emplace(std::move(*records::Reader::open(file_)));
  }
  ~SacctOfRecords() override { std::filesystem::remove_all(folder_); }

  void record(const kube::Job& job) {
    const auto changes = records::changes_of(nullptr, job, "kubegang", today_);
    EXPECT_TRUE(writer_->write(changes).ok());
  }
  void remove(const kube::Job& job) {
    EXPECT_TRUE(client_.remove<kube::Job>({job.metadata.ns, job.metadata.name}).ok());
  }
  kube::JobStatus status(std::int64_t id) const {
    kube::JobStatus status{.state = kube::JobState::kFailed, .job_id = id, .priority = 7};
    status.partition = "main";
    status.submit_time = status.eligible_time = today_ - std::chrono::seconds{90};
    status.start_time = today_ - std::chrono::seconds{80};
    status.end_time = today_ - std::chrono::seconds{10};
    status.run_time = kube::RunTime{.elapsed = std::chrono::seconds{60}, .as_of = *status.end_time};
    status.suspend_time =
        kube::RunTime{.elapsed = std::chrono::seconds{10}, .as_of = *status.end_time};
    status.time_limit = std::chrono::minutes{10};
    status.exit_code = 4;
    status.allocation = on("n[1-2]");
    return status;
  }

  const base::Instant today_ = kube::SystemClock{}.wall();
  const std::string folder_ = testing::TempDir() + "/sacct" + std::to_string(::getpid());
  const std::string file_ = folder_ + "/records.db";
  std::optional<records::Writer> writer_;
};

constexpr const char* kAllFields =
    "jobid,jobname,partition,account,user,group,qos,state,exitcode,derivedexitcode,reason,"
    "alloccpus,ncpus,reqcpus,allocnodes,nnodes,reqnodes,ntasks,nodelist,reqmem,alloctres,reqtres,"
    "submit,eligible,start,end,elapsed,elapsedraw,cputime,cputimeraw,planned,suspended,timelimit,"
    "timelimitraw,priority,constraints,comment,workdir,cluster,usercpu,systemcpu,totalcpu,avecpu,"
    "maxrss";

TEST_F(SacctOfRecords, AJobPrintsTheSameWithAndWithoutItsObject) {
  kube::JobSpec script;
  script.batch = kube::JobBatch{.script = "#!/bin/sh\n", .name = "bad"};
  script.batch->working_directory = "/home/ann";
  script.batch->comment = "again";
  script.resources.tasks = 2;
  script.resources.cpus_per_task = 4;
  script.resources.memory_per_cpu = kube::Bytes{30 << 20};
  script.schedule.account = "physics";
  script.schedule.qos = "high";
  script.placement.constraint = "fast";
  kube::JobSpec pods;
  pods.resources.nodes = kube::JobNodes{.min = 2};
  pods.resources.memory_per_node = kube::Bytes{50 << 20};
  kube::JobStatus of_script = status(5);
  of_script.usage = used();
  const std::vector<kube::Job> jobs = {
      add_job("team-a", "bad-1", script, of_script, {.annotations = {{"kubegang.io/user", "ann"}}}),
      add_job("team-b", "pods", pods, status(6)), add_job("team-b", "late", pods, status(7))};
  const Words words = {"-aP", "-S", "now-1hour", "-o", kAllFields};
  const std::string before = slurm("sacct", words).out;
  EXPECT_THAT(before, HasSubstr("|bad|"));
  for (const kube::Job& job : jobs) record(job);
  EXPECT_EQ(slurm("sacct", words).out, before) << "nothing twice";
  remove(jobs[0]);
  remove(jobs[1]);
  const Ran ran = slurm("sacct", words);
  EXPECT_EQ(ran.out, before);
  EXPECT_THAT(ran.err, HasSubstr("sacct: jobs are recorded since "));
  EXPECT_EQ(slurm("sacct", {"-XPn", "-u", "ann", "-S", "now-1hour", "-o", "jobid"}).out, "5\n");
  EXPECT_EQ(slurm("sacct", {"-XPn", "-j", "6", "-o", "jobid"}).out, "6\n");
  EXPECT_EQ(slurm("sacct", {"-XPn", "-S", "now-1hour", "-o", "jobid"}).out, "6\n7\n")
      << "the caller's, in team-b";
}

// SOURCE: the session sacct_basic for steps, sacct's _elapsed_time() and convert_num_unit().
TEST_F(SacctOfRecords, StepsAndWhatTheyHaveUsedAreRows) {
  kube::JobSpec script;
  script.batch = kube::JobBatch{.script = "#!/bin/sh\n", .name = "steps"};
  kube::JobStatus ended = status(5);
  ended.usage = used();
  ended.allocation->shares = {{.hostlist = "n1", .cpus = 3}, {.hostlist = "n2", .cpus = 5}};
  const kube::Job job = add_job("team-b", "steps-1", script, ended);
  const Words words = {"-Pn", "-j", "5", "-o",
                       "jobid,jobname,state,exitcode,ntasks,nnodes,alloccpus,elapsed,usercpu,"
                       "systemcpu,totalcpu,avecpu,maxrss"};
  const std::string want =
      "5|steps|FAILED|4:0||2|8|00:01:00|1-02:01:01|00:00.250|1-02:01:01||\n"
      "5.batch|batch|FAILED|4:0|1|1|3|00:01:00|00:01.250|00:00.250|00:01.500|00:00:01|5M\n"
      "5.0|hostname|COMPLETED|0:0|2|2|2|00:00:02|00:00:30|00:00:00|00:00:30|00:00:15|6148K\n"
      "5.1|false|FAILED|1:0|2|2|2|00:00:02|1-02:00:00|00:00:00|1-02:00:00|13:00:00|6148K\n"
      "5.2|hostname|CANCELLED|0:9|2|2|2|00:00:02|00:00:30|00:00:00|00:00:30|00:00:15|6148K\n";
  EXPECT_EQ(slurm("sacct", words).out, want);
  record(job);
  remove(job);
  EXPECT_EQ(slurm("sacct", words).out, want);
  EXPECT_EQ(slurm("sacct", {"-XPn", "-j", "5", "-o", "jobid,totalcpu"}).out, "5|1-02:01:01\n");
}

// SOURCE: contribs/seff.
TEST_F(SacctOfRecords, SeffSaysHowMuchOfAJobWasOfUse) {
  kube::JobSpec script;
  script.batch = kube::JobBatch{.script = "#!/bin/sh\n", .name = "steps"};
  script.resources.memory_per_node = kube::Bytes{100 << 20};
  kube::JobStatus ended = status(5);
  ended.usage = kube::JobUsage{.user_cpu = std::chrono::milliseconds{119'400},
                               .system_cpu = std::chrono::milliseconds{200},
                               .max_rss = kube::Bytes{25 << 20}};
  ended.usage->steps = {{.id = "batch", .max_rss = kube::Bytes{5 << 20}},
                        {.id = "0", .tasks = 2, .max_rss = kube::Bytes{25 << 20}}};
  const kube::Job job =
      add_job("team-a", "steps-1", script, ended, {.annotations = {{"kubegang.io/user", "ann"}}});
  const std::string want =
      "Job ID: 5\nCluster: kubegang\nUser/Group: ann/team-a\nState: FAILED (exit code 4)\n"
      "Nodes: 2\nCores per node: 4\nCPU Utilized: 00:02:00\n"
      "CPU Efficiency: 25.00% of 00:08:00 core-walltime\nJob Wall-clock time: 00:01:00\n"
      "Memory Utilized: 50.00 MB (estimated maximum)\n"
      "Memory Efficiency: 25.00% of 200.00 MB (100.00 MB/node)\n";
  EXPECT_EQ(slurm("seff", {"5"}).out, want);
  record(job);
  remove(job);
  EXPECT_EQ(slurm("seff", {"5"}).out, want);
  const Ran missing = slurm("seff", {"6"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "Job not found.\n");
  EXPECT_EQ(slurm("seff", {}).code, 1);
  EXPECT_EQ(slurm("seff", {"-d", "5"}).code, 1);
  EXPECT_EQ(slurm("seff", {"five"}).code, 1);
}

// The 26 fields that Open XDMoD asks sacct for, in its order. SOURCE: ubccr/xdmod,
// classes/OpenXdmod/Shredder/Slurm.php. A line has that many values whatever a job is named, its
// times are in UTC, and the numbers of user and group are those of the namespace's identity.
TEST_F(SacctOfRecords, XdmodReadsItsFields) {
  constexpr const char* kFields =
      "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,"
      "elapsed,exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,"
      "jobname";
  kube::JobSpec spec;
  spec.schedule.account = "physics";
  spec.schedule.qos = "high";
  spec.resources.nodes = kube::JobNodes{.min = 2};
  spec.resources.memory_per_node = kube::Bytes{100 << 20};
  const kube::Job job =
      add_job("team-a", "run", spec, status(5), {.annotations = {{"kubegang.io/user", "ann"}}});
  record(job);
  remove(job);
  kube::Account account;
  account.metadata.name = "physics";
  account.spec.namespaces = {
      {.name = "team-a", .identity = kube::PodIdentity{.uid = 1'007, .gid = 100}}};
  ASSERT_TRUE(client_.create(account).ok());
  const std::string line =
      slurm("sacct", {"--allusers", "--parsable2", "--noheader", "--allocations", "--duplicates",
                      "--clusters", "kubegang", "--format", kFields, "--state",
                      "CANCELLED,COMPLETED,FAILED,NODE_FAIL,PREEMPTED,TIMEOUT,OUT_OF_MEMORY",
                      "--starttime", "now-1hour", "--endtime", "now"})
          .out;
  const std::vector<std::string> values = slurm::split(line.substr(0, line.size() - 1), '|');
  ASSERT_EQ(values.size(), 26U) << line;
  const std::vector<std::string> names = slurm::split(kFields, ',');
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_FALSE(values[i].empty()) << names[i];
  EXPECT_THAT(line, testing::StartsWith("5|5|kubegang|main|high|physics|team-a|100|ann|1007|20"));
  EXPECT_THAT(line,
              testing::EndsWith("|00:01:00|4:0|FAILED|2|8|2|200M|billing=2,cpu=2,mem=200M,"
                                "node=2|billing=8,cpu=8,mem=200M,node=2|00:10:00|n[1-2]|run\n"));
}

// A job that ran for a minute after it had waited for ten seconds, on a cluster where it need not
// wait.
TEST_F(SacctOfRecords, SimulateReplaysThem) {
  const kube::Job job =
      add_job("team-a", "run", {}, status(5), {.annotations = {{"kubegang.io/user", "ann"}}});
  record(job);
  const std::string scenario = testing::TempDir() + "/past" + std::to_string(::getpid());
  ASSERT_TRUE(write_file(scenario,
                         "nodes:\n- {name: 'n[1-2]', cores: 4, memory: 1000}\n"
                         "partitions:\n- {name: main, Default: 'YES'}\ninputs: []\n")
                  .ok());
  const auto simulate = [&](Words more) {
    more.insert(more.begin(), {"simulate", scenario, "--from-records"});
    out_.str("");
    std::ostringstream err;
    const WithSession with_session =
        [this](const ConnectOptions&,
               const std::function<int(const Session&)>& use) -> base::Result<int> {
      return use(Session{counted_client_, clock_, *session_sleeper_, "team-b"});
    };
    const int code = run_program(more, with_session, {.out = out_, .err = err});
    return Ran{code, out_.str(), err.str()};
  };
  const Ran ran = simulate({});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Ended              1 jobs"));
  EXPECT_THAT(ran.out, HasSubstr("As recorded                 80 s      1.3"));
  EXPECT_THAT(ran.out, HasSubstr("As simulated                60 s      1.0"));
  const std::string before = ran.out;
  EXPECT_EQ(simulate({"--database", file_}).out, before) << "without the cluster";
  const Ran none = simulate({"--until", "now-1day", "--since", "now-2days"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("--from-records: there is no record of a job that has run"));
  EXPECT_THAT(simulate({"--since", "now", "--until", "now-1day"}).err,
              HasSubstr("--since must be before --until"));
  EXPECT_THAT(simulate({"--database", "/nowhere.db"}).err, HasSubstr("/nowhere.db"));
  std::filesystem::remove(scenario);
}

// Two runs of an hour on 8 CPUs each, of one of which half an hour lies in the window, and one of
// another user.
TEST_F(SacctOfRecords, SreportAddsUpWhatRanInItsWindow) {
  const base::Instant noon = base::instant_from_micros(1'700'000'000'000'000);
  const auto ran = [&](const std::string& name, std::int64_t id, const std::string& user,
                       base::Duration from) {
    kube::JobSpec spec;
    spec.schedule.account = "physics";
    kube::JobStatus ended = status(id);
    ended.submit_time = ended.eligible_time = ended.start_time = noon + from;
    ended.end_time = noon + from + std::chrono::hours{1};
    ended.run_time = kube::RunTime{.elapsed = std::chrono::hours{1}, .as_of = *ended.end_time};
    record(add_job("team-b", name, spec, ended, {.annotations = {{"kubegang.io/user", user}}}));
  };
  ran("a", 5, "ann", std::chrono::minutes{-30});
  ran("b", 6, "ann", std::chrono::hours{1});
  ran("c", 7, "ben", std::chrono::hours{2});
  ran("d", 8, "ben", std::chrono::hours{30});
  const std::string start = "start=" + slurm_time(noon);
  const std::string end = "end=" + slurm_time(noon + std::chrono::hours{24});
  EXPECT_EQ(slurm("sreport", {"-nP", "-t", "Hours", "user", "top", start, end}).out,
            "kubegang|ann||physics|12|0\nkubegang|ben||physics|8|0\n");
  EXPECT_EQ(slurm("sreport", {"-nP", "user", "top", "topcount=1", start, end}).out,
            "kubegang|ann||physics|720|0\n");
  EXPECT_EQ(slurm("sreport", {"-nP", "cluster", "AccountUtilizationByUser", start, end}).out,
            "kubegang|physics|||1200|0\nkubegang|physics|ann||720|0\n"
            "kubegang|physics|ben||480|0\n");
  const Ran heading = slurm("sreport", {"user", "TopUsage", "users=ben", start, end});
  EXPECT_THAT(heading.out, HasSubstr("Top 10 Users " + slurm_time(noon) + " - "));
  EXPECT_THAT(heading.out, HasSubstr("(86400 secs)\nUsage reported in CPU Minutes\n"));
  EXPECT_THAT(heading.out, HasSubstr("  Cluster     Login     Proper Name         Account"));
  EXPECT_THAT(slurm("sreport", {"-nP", "cluster", "utilization", start, end}).out,
              testing::StartsWith("kubegang|1200|||"));
  const Ran other = slurm("sreport", {"job", "SizesByAccount"});
  EXPECT_EQ(other.code, kExitFailed);
  EXPECT_THAT(other.err, HasSubstr("there is no report \"job SizesByAccount\" here"));
  EXPECT_EQ(slurm("sreport", {"user", "top", "format=login"}).code, kExitFailed);
  EXPECT_EQ(slurm("sreport", {"-t", "Percent", "user", "top"}).code, kExitFailed);
  EXPECT_EQ(slurm("sreport", {"-T", "gres/gpu", "user", "top"}).code, kExitFailed);
}

TEST_F(SacctOfRecords, SeffSaysWhyItKnowsNothing) {
  add_job("team-b", "pods", {}, status(6));
  EXPECT_THAT(slurm("seff", {"6"}).out,
              HasSubstr("Job Wall-clock time: 00:01:00\nEfficiency not available: nothing has said "
                        "what this job used.\n"));
  add_job("team-b", "waits", {}, {.state = kube::JobState::kPending, .job_id = 7});
  EXPECT_THAT(slurm("seff", {"7"}).out,
              HasSubstr("State: PENDING\nCores: 1\nEfficiency not available for jobs in the "
                        "PENDING state.\n"));
}

TEST_F(SacctOfRecords, ARequeuedJobHasEarlierRunsAsDuplicates) {
  kube::JobStatus first = status(5);
  first.state = kube::JobState::kRunning;
  first.end_time.reset();
  kube::Job job = add_job("team-b", "again", {}, first);
  record(job);
  job.status = status(5);
  job.status.submit_time = today_ - std::chrono::seconds{70};
  job.status.restarts = 1;
  record(job);
  remove(job);
  EXPECT_EQ(slurm("sacct", {"-XPn", "-j", "5", "-o", "jobid,state"}).out, "5|FAILED\n");
  EXPECT_EQ(slurm("sacct", {"-XPnD", "-j", "5", "-o", "jobid,state"}).out,
            "5|REQUEUED\n5|FAILED\n");
}

TEST_F(SacctOfRecords, ATaskIsWhatItsRecordSays) {
  kube::JobSpec spec;
  spec.array = kube::JobArray{.tasks = "0-2"};
  kube::JobStatus of_array{.state = kube::JobState::kRunning, .job_id = 9};
  of_array.submit_time = today_ - std::chrono::seconds{90};
  of_array.array.emplace();
  kube::ArrayTask entry{.task = 1, .job_id = 10, .state = kube::JobState::kRunning, .starts = 1};
  entry.allocation = on("n2");
  entry.start_time = today_ - std::chrono::seconds{60};
  of_array.array->tasks = {entry};
  kube::Job job = add_job("team-b", "sweep", spec, of_array);
  record(job);
  const Words words = {"-XPn", "-j", "9", "-o", "jobid,state,nodelist"};
  EXPECT_EQ(slurm("sacct", words).out, "9_[0,2]|PENDING|None assigned\n9_1|RUNNING|n2\n");
  of_array.array->tasks.clear();
  of_array.array->succeeded = "1";
  kube::Job changed = job;
  changed.status = of_array;
  ASSERT_TRUE(client_.patch_status_from(job, changed).ok());
  record(changed);
  EXPECT_EQ(slurm("sacct", words).out, "9_[0,2]|PENDING|None assigned\n9_1|COMPLETED|n2\n")
      << "the object no longer says where it ran";
  remove(changed);
  EXPECT_EQ(slurm("sacct", words).out, "9_1|COMPLETED|n2\n");
}

TEST_F(SlurmCommands, OptionsAreReadAsGetoptReadsThem) {
  add_job("team-b", "a", {}, {.state = kube::JobState::kPending, .job_id = 1});
  EXPECT_EQ(slurm("squeue", {"--nohead", "-o%i"}).out, "1\n") << "an abbreviation";
  EXPECT_EQ(slurm("squeue", {"-ho%i", "-Si"}).out, "1\n") << "letters in one word";
  EXPECT_EQ(slurm("squeue", {"--no"}).code, kExitFailed) << "noheader or noconvert";
  EXPECT_EQ(slurm("squeue", {"-O", "jobid:4,jobid:.6|,name:3"}).out,
            "JOBI JOBID|NAM\n1        1|a  \n");
  EXPECT_EQ(slurm("squeue", {"-h", "--start", "-o", "%i"}).out, "1\n");
  const Ran bad = slurm("squeue", {"-h", "-S", "!"});
  EXPECT_EQ(bad.code, kExitFailed);
  EXPECT_THAT(bad.err, HasSubstr("Invalid sort specification: !"));
  EXPECT_THAT(slurm("squeue", {"-j", "abc"}).err, HasSubstr("Invalid job id: abc"));
  EXPECT_EQ(slurm("squeue", {"-V"}).out, "slurm 22.05.8 (kubegang)\n");
}

}  // namespace
}  // namespace cli
