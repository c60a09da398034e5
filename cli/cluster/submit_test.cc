#include "cli/cluster/submit.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/cluster/batch_script.h"
#include "cli/testing/program_fixture.h"
#include "kube/testing/api_server/yaml_json.h"

namespace cli {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

// Goal: a command line of sbatch becomes the Job that means the same. Method: `submit` runs against
// the API server in memory, and the object that it stores is read back.
class Submit : public ProgramTest {
 protected:
  Submit() { session_sleeper_ = &numbers_jobs_; }

  // Makes a file of this test, removed with it.
  std::string script(const std::string& name, const std::string& text) {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path{testing::TempDir()} /
                 (std::string{"submit_"} + test->name() + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    const std::filesystem::path path = directory_ / name;
    std::ofstream{path} << text;
    return path.string();
  }
  ~Submit() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  kube::Job only_job() {
    const auto jobs = client_.list<kube::Job>();
    EXPECT_TRUE(jobs.ok());
    EXPECT_EQ(jobs->items.size(), 1U);
    return jobs->items.empty() ? kube::Job{} : jobs->items.front();
  }

  std::filesystem::path directory_;
};

// As with Slurm, the script and its steps know what was asked for.
TEST_F(Submit, OptionsForGpusAreVariablesOfTheScript) {
  ASSERT_EQ(run({"submit", "-n2", "--gpus-per-task=1", "--wrap", "true"}).code, kExitOk);
  const kube::Job job = only_job();
  EXPECT_EQ(job.spec.resources.devices_per_task, (std::vector<kube::JobDevice>{{"gpu", "", 1}}));
  EXPECT_EQ(job.spec.resources.tasks, 2);
  EXPECT_THAT(job.spec.batch->environment,
              testing::Contains(kube::BatchVariable{"SLURM_GPUS_PER_TASK", "1"}));
}

// As they were asked for: where the GPUs are is for the scheduler to say.
TEST_F(Submit, GpusOfTheJobAndWhatComesWithEach) {
  ASSERT_EQ(run({"submit", "--gpus=a100:3", "--cpus-per-gpu=4", "--mem-per-gpu=2G",
                 "--ntasks-per-gpu=2", "--wrap", "true"})
                .code,
            kExitOk);
  const kube::JobResources& asked = only_job().spec.resources;
  EXPECT_EQ(asked.devices_of_job, (std::vector<kube::JobDevice>{{"gpu", "a100", 3}}));
  EXPECT_TRUE(asked.devices.empty());
  EXPECT_EQ(asked.cpus_per_gpu, 4);
  EXPECT_EQ(asked.memory_per_gpu, kube::Bytes{std::int64_t{2} << 30});
  EXPECT_EQ(asked.tasks_per_gpu, 2);
  EXPECT_EQ(asked.tasks, 6);
  EXPECT_FALSE(asked.nodes.has_value());
}

// SOURCE: recorded: GPUs that follow from the tasks are not shown as asked for (TresPerJob).
TEST_F(Submit, GpusThatFollowFromTheTasks) {
  ASSERT_EQ(run({"submit", "-n4", "--ntasks-per-gpu=2", "--wrap", "true"}).code, kExitOk);
  const kube::JobResources& asked = only_job().spec.resources;
  EXPECT_TRUE(asked.devices_of_job.empty());
  EXPECT_EQ(asked.tasks_per_gpu, 2);
  EXPECT_TRUE(kube::asks_for_devices(asked));
}

// The options that most scripts have, in the short and the long form. The object's name begins with
// the program's.
TEST_F(Submit, CommandBecomesAJob) {
  const Ran ran = run({"submit", "-N2-4", "-n4", "-p", "batch,low", "-t", "5", "--mem=1G",
                       "--exclusive", "-w", "n[1-2]", "--nice=5", "--image", "busybox:1",
                       "--namespace", "team-a", "--", "/bin/sleep", "300"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const kube::Job job = only_job();
  EXPECT_EQ(ran.out, "job.kubegang.io/" + job.metadata.name + " created, job ID 1\n");
  EXPECT_EQ(job.metadata.ns, "team-a");
  EXPECT_EQ(job.metadata.name.substr(0, 6), "sleep-");
  EXPECT_EQ(job.spec.resources.nodes, (kube::JobNodes{.min = 2, .max = 4}));
  EXPECT_EQ(job.spec.resources.tasks, 4);
  EXPECT_EQ(job.spec.partitions, (Words{"batch", "low"}));
  EXPECT_EQ(job.spec.schedule.time_limit, minutes{5});
  EXPECT_EQ(job.spec.resources.memory_per_node, kube::Bytes{std::int64_t{1} << 30U});
  EXPECT_EQ(job.spec.placement.sharing, kube::JobSharing::kNode);
  EXPECT_EQ(job.spec.placement.hostlist, "n[1-2]");
  EXPECT_EQ(job.spec.schedule.nice, 5);
  const nlohmann::json container = job.spec.pod_template.json()["spec"]["containers"][0];
  EXPECT_EQ(container["image"], "busybox:1");
  EXPECT_EQ(container["command"], (Words{"/bin/sleep", "300"}));
}

// The script sees the option as it was written.
TEST_F(Submit, AJobMayWaitForOthers) {
  ASSERT_EQ(
      run({"submit", "-d", "afterok:7?after:8+5", "--kill-on-invalid-dep=yes", "--wrap", "true"})
          .code,
      kExitOk);
  const kube::Job job = only_job();
  using Type = kube::DependencyType;
  const kube::JobDependency want{
      .match = kube::DependencyMatch::kAny,
      .if_never_satisfied = kube::NeverSatisfied::kCancel,
      .terms = {{.type = Type::kAfterOk, .job_id = 7},
                {.type = Type::kAfter, .job_id = 8, .delay = minutes{5}}}};
  EXPECT_EQ(job.spec.dependency, want);
  EXPECT_EQ(job.spec.batch->environment.back(),
            (kube::BatchVariable{"SLURM_JOB_DEPENDENCY", "afterok:7?after:8+5"}));
}

// For the steps of the script: srun reads them.
TEST_F(Submit, ADistributionIsAVariableOfTheScript) {
  const auto environment_of = [&](const std::string& value) {
    EXPECT_EQ(run({"submit", "-m", value, "--wrap", "true"}).code, kExitOk);
    const kube::Job job = only_job();
    EXPECT_TRUE(client_.remove<kube::Job>(kube::key_of(job.metadata)).ok());
    return job.spec.batch->environment;
  };
  using Variables = std::vector<kube::BatchVariable>;
  EXPECT_EQ(environment_of("cyclic:block"), (Variables{{"SLURM_DISTRIBUTION", "cyclic:block"}}));
  EXPECT_EQ(environment_of("*:*"), (Variables{{"SLURM_DISTRIBUTION", "block:cyclic"}}));
  EXPECT_EQ(environment_of("plane=2"),
            (Variables{{"SLURM_DISTRIBUTION", "plane"}, {"SLURM_DIST_PLANESIZE", "2"}}));
}

// A claim, a folder of the nodes, a variable, and an image: by submit's own options, or as pyxis
// has them in a script.
TEST_F(Submit, WhatThePodsAreLikeIsInTheTemplate) {
  const std::string path =
      script("p.sh",
             "#!/bin/sh\n#SBATCH --container-image=docker://nvcr.io\\#nvidia/pytorch:24.01\n"
             "#SBATCH --container-mounts=/data:/data:ro,/scratch\n");
  ASSERT_EQ(
      run({"submit", "--volume", "home:/home/ann", "--env=A=$(B)", "--service-account=me", path})
          .code,
      kExitOk);
  const nlohmann::json spec = only_job().spec.pod_template.json()["spec"];
  const nlohmann::json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], "nvcr.io/nvidia/pytorch:24.01");
  EXPECT_EQ(container["env"][0]["value"], "$$(B)");
  EXPECT_EQ(spec["volumes"][0]["persistentVolumeClaim"]["claimName"], "home");
  EXPECT_EQ(spec["volumes"][1]["hostPath"]["path"], "/data");
  EXPECT_EQ(container["volumeMounts"][1]["readOnly"], true);
  EXPECT_EQ(container["volumeMounts"][2]["mountPath"], "/scratch");
  EXPECT_EQ(spec["serviceAccountName"], "me");
  EXPECT_EQ(spec["automountServiceAccountToken"], true);
}

// A pod cannot have a claim twice.
TEST_F(Submit, AClaimInTwoPlacesIsOneVolume) {
  ASSERT_EQ(run({"submit", "--volume", "data:/in:ro", "--volume", "data:/out", "--volume",
                 "other:/other", script("p.sh", "#!/bin/sh\n")})
                .code,
            kExitOk);
  const nlohmann::json spec = only_job().spec.pod_template.json()["spec"];
  EXPECT_EQ(spec["volumes"].size(), 2U);
  const nlohmann::json& mounts = spec["containers"][0]["volumeMounts"];
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0],
            (nlohmann::json{{"name", "submit-0"}, {"mountPath", "/in"}, {"readOnly", true}}));
  EXPECT_EQ(mounts[1], (nlohmann::json{{"name", "submit-0"}, {"mountPath", "/out"}}));
  EXPECT_EQ(mounts[2]["name"], "submit-1");
}

// Shifter names the type of an image in front of it. The command line beats the script.
TEST_F(Submit, AnImageAsShifterHasIt) {
  const std::string path = script("p.sh", "#!/bin/sh\n#SBATCH --image=docker:ubuntu:22.04\n");
  const auto image_of = [&](const Words& options) {
    Words words{"submit", "--dry-run=client", "-o", "json"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(path);
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    const nlohmann::json job = nlohmann::json::parse(ran.out);
    return job["spec"]["template"]["spec"]["containers"][0]["image"].get<std::string>();
  };
  EXPECT_EQ(image_of({}), "ubuntu:22.04");
  EXPECT_EQ(image_of({"--image", "docker://nersc/x:1"}), "nersc/x:1");
  EXPECT_EQ(image_of({"--image=registry:5000/a/b:2"}), "registry:5000/a/b:2");
  EXPECT_EQ(image_of({"--container-image=c"}), "c");
}

// The image is the partition's, or the operator's own.
TEST_F(Submit, AScriptWithoutOptionsHasNoImageAndNoToken) {
  ASSERT_EQ(run({"submit", "--wrap", "true"}).code, kExitOk);
  const nlohmann::json spec = only_job().spec.pod_template.json()["spec"];
  EXPECT_FALSE(spec["containers"][0].contains("image"));
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
}

TEST_F(Submit, ATemplateIsTheBeginning) {
  const std::string file = script("t.yaml",
                                  "kind: PodTemplate\ntemplate:\n  spec:\n"
                                  "    containers:\n    - {name: a, image: own:1}\n"
                                  "    securityContext: {runAsUser: 1000}\n");
  ASSERT_EQ(run({"submit", "--template", file, "--", "true"}).code, kExitOk);
  const nlohmann::json spec = only_job().spec.pod_template.json()["spec"];
  EXPECT_EQ(spec["containers"][0]["image"], "own:1");
  EXPECT_EQ(spec["containers"][0]["command"], Words{"true"});
  EXPECT_EQ(spec["securityContext"]["runAsUser"], 1000);
  const std::string wrong = script("w.yaml", "spec: {}\n");
  EXPECT_THAT(run({"submit", "--template", wrong, "--", "true"}).err,
              HasSubstr("must be a pod template with spec.containers"));
}

TEST_F(Submit, WrongOptionsOfThePodsAreTold) {
  const auto refusal = [&](const Words& options) {
    Words words{"submit"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--wrap", "true"});
    return run(words).err;
  };
  EXPECT_THAT(refusal({"--volume", "home"}), HasSubstr("must be CLAIM:PATH or /FOLDER:PATH"));
  EXPECT_THAT(refusal({"--volume", "home:/x:rx"}), HasSubstr("unknown flag rx"));
  EXPECT_THAT(refusal({"--env", "A"}), HasSubstr("must be NAME=VALUE"));
  EXPECT_THAT(refusal({"--container-image=/x.sqsh"}), HasSubstr("is a file of enroot"));
  EXPECT_THAT(refusal({"--image=/x.sqsh"}), HasSubstr("image \"/x.sqsh\": is a file of enroot"));
}

// It would fail in its pod, minutes later.
TEST_F(Submit, AScriptThatSubmitsIsWarnedThatItHasNoToken) {
  const Ran warned = run({"submit", "--wrap", "sbatch next.sh"});
  EXPECT_THAT(warned.err, HasSubstr("calls sbatch, which asks the API server"));
  EXPECT_THAT(run({"submit", "--service-account=me", "--wrap", "sbatch next.sh"}).err,
              Not(HasSubstr("token")));
}

// The options that filter nodes. An option that is forgotten lets the job start on nodes that it
// cannot use.
TEST_F(Submit, WhatTheNodesMustBeLikeIsPassedOn) {
  const Ran ran = run({"submit", "-N1-3", "--use-min-nodes", "-B", "2:4:1", "--mincpus=3",
                       "--ntasks-per-socket=2", "--ntasks-per-core=1", "-O", "--tmp=1G",
                       "--gpus-per-node=a100:2", "--", "x"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const kube::JobSpec spec = only_job().spec;
  EXPECT_EQ(spec.resources.use_min_nodes, true);
  EXPECT_EQ(spec.resources.overcommit, true);
  EXPECT_EQ(spec.placement.sockets_per_node, 2);
  EXPECT_EQ(spec.placement.cores_per_socket, 4);
  EXPECT_EQ(spec.placement.threads_per_core, 1);
  EXPECT_EQ(spec.placement.min_cpus_per_node, 3);
  EXPECT_EQ(spec.resources.tasks_per_socket, 2);
  EXPECT_EQ(spec.resources.tasks_per_core, 1);
  EXPECT_EQ(spec.placement.tmp_disk, kube::Bytes{std::int64_t{1} << 30U});
  EXPECT_EQ(spec.resources.devices, (std::vector<kube::JobDevice>{{"gpu", "a100", 2}}));
}

// sbatch's --mem=0 means all memory of each node. For --mem-per-cpu it has no such meaning, so the
// message names the option that has.
TEST_F(Submit, MemoryOfZeroIsAllOfTheNodes) {
  ASSERT_EQ(run({"submit", "--mem=0", "--", "x"}).code, kExitOk);
  EXPECT_EQ(only_job().spec.resources.all_memory, true);
  EXPECT_EQ(only_job().spec.resources.memory_per_node, std::nullopt);
  const Ran wrong = run({"submit", "--mem-per-cpu=0", "--", "x"});
  EXPECT_NE(wrong.err.find("use --mem 0"), std::string::npos) << wrong.err;
}

// sbatch's spellings of "no limit", which the commands show as UNLIMITED.
TEST_F(Submit, ATimeWithoutALimitIsTheLongestOne) {
  for (const char* option : {"--time=UNLIMITED", "--time=0", "--time=-1", "-tinfinite"}) {
    const Ran ran = run({"submit", "--dry-run=client", "-o", "yaml", option, "--", "x"});
    EXPECT_EQ(ran.code, kExitOk) << option << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("876000h")) << option;
  }
  EXPECT_THAT(run({"submit", "--time-min=0", "--", "x"}).err, HasSubstr("--time-min"));
  ASSERT_EQ(run({"submit", "--time=2-", "--", "x"}).code, kExitOk);
  EXPECT_EQ(only_job().spec.schedule.time_limit, std::chrono::hours{48});
}

// Kubernetes' notation, since the option is not one of sbatch's.
TEST_F(Submit, TtlAfterFinishedIsADuration) {
  ASSERT_EQ(run({"submit", "--ttl-after-finished=1m", "--", "x"}).code, kExitOk);
  EXPECT_EQ(only_job().spec.lifecycle.ttl_after_finished, minutes{1});
  const Ran wrong = run({"submit", "--ttl-after-finished", "soon", "--", "x"});
  EXPECT_NE(wrong.code, kExitOk);
  EXPECT_NE(wrong.err.find("invalid duration \"soon\""), std::string::npos) << wrong.err;
}

// The script asks for 10 minutes, the command line for 20. -N and -J stand in the script only. The
// text stands in the Job once, and its pods get no command.
TEST_F(Submit, ScriptsDirectivesAreReadAndTheCommandLineBeatsThem) {
  const std::string text = "#!/bin/bash -e\n#SBATCH -N2 -J load\n#SBATCH -t 10\nhostname\n";
  const Ran ran = run({"submit", "-t", "20", script("job.sh", text), "one", "two"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const kube::Job job = only_job();
  EXPECT_EQ(job.metadata.name.substr(0, 5), "load-");
  EXPECT_EQ(job.spec.resources.nodes, kube::JobNodes{.min = 2});
  EXPECT_EQ(job.spec.schedule.time_limit, minutes{20});
  ASSERT_TRUE(job.spec.batch);
  EXPECT_EQ(job.spec.batch->script, text);
  EXPECT_EQ(job.spec.batch->name, "load");
  EXPECT_EQ(job.spec.batch->arguments, (Words{"one", "two"}));
  EXPECT_FALSE(job.spec.pod_template.json()["spec"]["containers"][0].contains("command"));
}

// The files' names are patterns for the launcher, which knows the job's number; nothing of them is
// changed here.
TEST_F(Submit, ScriptsFilesAndVariablesArePassedOn) {
  ::setenv("SUBMIT_TEST_MINE", "a b", 1);
  const Ran ran =
      run({"submit", "-o", "logs/%x-%j.out", "-e", "e", "-i", "in", "--open-mode=append", "-D",
           "/work", "--comment", "hello", "--export=SUBMIT_TEST_MINE,NEW=1,GONE",
           script("job.sh", "#!/bin/sh\nsrun ./a.out\n")});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.err, "");
  const kube::JobBatch batch = *only_job().spec.batch;
  EXPECT_EQ(batch.output, "logs/%x-%j.out");
  EXPECT_EQ(batch.error, "e");
  EXPECT_EQ(batch.input, "in");
  EXPECT_EQ(batch.open_mode, kube::OpenMode::kAppend);
  EXPECT_EQ(batch.working_directory, "/work");
  EXPECT_EQ(batch.comment, "hello");
  EXPECT_EQ(batch.environment,
            (std::vector<kube::BatchVariable>{
                {"NEW", "1"}, {"SUBMIT_TEST_MINE", "a b"}, {"SLURM_OPEN_MODE", "a"}}));
}

// A script for the cluster may say --export=ALL; the variables of a laptop would break it there.
TEST_F(Submit, VariablesOfThisMachineStayHere) {
  const Ran ran =
      run({"submit", script("job.sh", "#!/bin/sh\n#SBATCH --export=ALL,NEW=1\ndate\n")});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.err, AllOf(HasSubstr("variables of this machine are not taken along ("),
                             HasSubstr("): list those that the script needs")));
  EXPECT_EQ(only_job().spec.batch->environment, (std::vector<kube::BatchVariable>{{"NEW", "1"}}));
}

// A sleeper that takes no time. --wait sleeps between two looks, so the third sleep is the third
// second: then the job ends, as if the operator had written its status.
class EndsTheJob final : public kube::Sleeper {
 public:
  EndsTheJob(const kube::Client& client, kube::JobStatus end) : client_{client}, end_{end} {}

  base::Status sleep(base::Duration, std::stop_token) override {
    if (++sleeps_count_ < 3) return {};
    const auto jobs = client_.list<kube::Job>();
    if (!jobs) return jobs.error();
    kube::Job changed = jobs->items.at(0);
    changed.status = end_;
    const auto written = client_.patch_status_from(jobs->items.at(0), changed);
    return written ? base::Status{} : base::Status{written.error()};
  }
  int sleeps_count() const { return sleeps_count_; }

 private:
  const kube::Client& client_;
  kube::JobStatus end_;
  int sleeps_count_ = 0;
};

// SOURCE: sbatch.1, --wait: the exit code is the job's.
TEST_F(Submit, WaitEndsWithTheJobAndExitsAsItDid) {
  EndsTheJob sleeper{client_, {.state = kube::JobState::kFailed, .exit_code = 7}};
  session_sleeper_ = &sleeper;
  const Ran ran = run({"submit", "--wait", "--", "false"});
  EXPECT_EQ(ran.code, 7) << ran.err;
  // The job ends during the third sleep, and the next look sees it.
  EXPECT_EQ(sleeper.sleeps_count(), 3);
  EXPECT_THAT(ran.out, HasSubstr(" Failed\n"));
}

// kubectl's formats are for programs: with a sentence behind it the object could not be parsed.
TEST_F(Submit, WaitTellsTheEndBesideTheFormats) {
  for (const char* format : {"json", "yaml", "name"}) {
    EndsTheJob sleeper{client_, {.state = kube::JobState::kCompleted, .exit_code = 0}};
    session_sleeper_ = &sleeper;
    const Ran ran = run({"submit", "-W", "-o", format, "--", "true"});
    ASSERT_EQ(ran.code, kExitOk) << ran.err;
    EXPECT_THAT(ran.out, testing::Not(testing::ContainsRegex("job.kubegang.io/.* Completed")))
        << format;
    EXPECT_THAT(ran.err, HasSubstr(" Completed\n")) << format;
    if (std::string_view{format} == "json") {
      EXPECT_EQ(nlohmann::json::parse(ran.out)["kind"], "Job");
    }
    ASSERT_TRUE(client_.remove<kube::Job>(kube::key_of(only_job().metadata)).ok());
  }
}

// The short form of the option.
TEST_F(Submit, WaitExitsWithZeroWhenTheJobCompletes) {
  EndsTheJob sleeper{client_, {.state = kube::JobState::kCompleted, .exit_code = 0}};
  session_sleeper_ = &sleeper;
  EXPECT_EQ(run({"submit", "-W", "--", "true"}).code, kExitOk);
}

// A canceled job has no exit code of its own; 0 would say that it succeeded.
TEST_F(Submit, WaitExitsWithOneWhenTheJobEndsWithoutAnExitCode) {
  EndsTheJob sleeper{client_, {.state = kube::JobState::kCancelled}};
  session_sleeper_ = &sleeper;
  EXPECT_EQ(run({"submit", "-W", "--", "true"}).code, kExitFailed);
}

// The client tries each call several times. Eight failures in a row are more than that, so a whole
// look fails, and --wait must go on all the same.
TEST_F(Submit, WaitOutlivesAnOutageOfTheServer) {
  EndsTheJob sleeper{client_, {.state = kube::JobState::kCompleted, .exit_code = 0}};
  session_sleeper_ = &sleeper;
  server_.inject({.verb = "get", .resource = "jobs", .code = 503, .count = 8});
  const Ran ran = run({"submit", "-W", "--", "true"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("; still waiting\n"));
  EXPECT_EQ(ran.err.find("still waiting"), ran.err.rfind("still waiting")) << "told once";
}

// A script of Slurm's does jid=$(sbatch --parsable …): nothing but the number may be printed.
TEST_F(Submit, ParsablePrintsTheNumberAlone) {
  const Ran ran = run({"submit", "--parsable", "--", "true"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.out, "1\n");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(run({"submit", "--parsable", "--dry-run", "--", "true"}).code, kExitUsage);
}

// No operator answers for a minute. A script that asks for the number must not leave a job behind
// that it knows nothing of; a user gets a message.
TEST_F(Submit, WithoutAnOperatorTheNumberIsMissing) {
  session_sleeper_ = &sleeper_;
  const base::Duration begin = clock_.monotonic();
  const Ran told = run({"submit", "--", "true"});
  EXPECT_EQ(told.code, kExitOk);
  EXPECT_THAT(told.err, HasSubstr("warning: no operator has numbered it within 60 s\n"));
  EXPECT_EQ(clock_.monotonic() - begin, std::chrono::seconds{60});
  ASSERT_TRUE(client_.remove<kube::Job>(kube::key_of(only_job().metadata)).ok());
  const Ran ran = run({"submit", "--parsable", "--", "true"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            "kubectl-gang submit: no operator has numbered it within 60 s; the job is deleted "
            "again\n");
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 0U);
}

// As sbatch: the sentence is the operator's, and no job stays in the queue.
TEST_F(Submit, AJobThatIsRefusedOrCanNeverRunIsDeletedAgain) {
  const std::string never = "no 9 nodes of partition batch can ever hold it";
  const std::string unknown = "there is no partition \"x\"; name one of: batch";
  kube::JobStatus refused{.state = kube::JobState::kPending, .reason = "NotAccepted"};
  refused.conditions = {{.type = "Accepted",
                         .status = kube::ConditionStatus::kFalse,
                         .last_transition_time = now(),
                         .reason = "Invalid",
                         .message = unknown}};
  const kube::JobStatus bad{
      .state = kube::JobState::kPending, .reason = "BadConstraints", .message = never, .job_id = 7};
  for (const auto& [status, want] : {std::pair{refused, unknown}, std::pair{bad, never}}) {
    EndsTheJob sleeper{client_, status};
    session_sleeper_ = &sleeper;
    const Ran ran = run({"submit", "-o", "name", "--", "true"});
    EXPECT_EQ(ran.code, kExitFailed);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "kubectl-gang submit: " + want + "\n");
    EXPECT_EQ(client_.list<kube::Job>()->items.size(), 0U);
  }
}

// The server is not asked for what only the operator knows; the rest is checked and reported.
TEST_F(Submit, AServerDryRunLooksForWhatTheJobNames) {
  kube::Partition partition;
  partition.metadata.name = "debug-q";
  partition.spec.nodes.hostlist = "n1";
  ASSERT_TRUE(client_.create(partition).ok());
  EXPECT_EQ(run({"submit", "--dry-run=server", "-p", "Debug_Q", "--", "x"}).code, kExitOk);
  EXPECT_EQ(run({"submit", "--dry-run=server", "-p", "debug-q", "-A", "lab", "--", "x"}).code,
            kExitOk)
      << "without accounts every name is taken";
  kube::Account account;
  account.metadata.name = "physics";
  account.spec.shares = 1;
  const auto made = client_.create(account);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"-p", "nosuch"}, "there is no partition \"nosuch\"; name one of: debug-q"},
      {{"-p", "debug-q", "-q", "high"}, "there is no QOS \"high\""},
      {{"-p", "debug-q", "-A", "lab"}, "there is no account \"lab\"; name one of: physics"},
      {{}, "no partition is the default; name one with -p"}};
  for (const auto& [options, want] : cases) {
    Words words = {"submit", "--dry-run=server"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "x"});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kExitFailed) << want;
    EXPECT_EQ(ran.err, "kubectl-gang submit: " + want + "\n");
  }
}

// Names of hosts of its tasks are made from it (the operator's check_name).
TEST_F(Submit, ALongNameIsCutToWhatAnArrayMayHave) {
  const Ran ran = run({"submit", "-J", std::string(80, 'x'), "--array=0-3", "--", "x"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(only_job().metadata.name.size(), 48U);
}

// A command has no output file, and the operator deletes the pods of ended tasks
// (ControlLoop::delete_old_pods).
TEST_F(Submit, AnArrayOfACommandWarnsThatLogsGo) {
  const Ran ran = run({"submit", "--array=0-3", "--", "x"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("warning: the logs of most tasks go with their pods"));
  const Ran script_ran = run({"submit", "--array=0-3", script("job.sh", "#!/bin/sh\ntrue\n")});
  ASSERT_EQ(script_ran.code, kExitOk) << script_ran.err;
  EXPECT_EQ(script_ran.err, "") << "its output goes to files";
}

// The script that docs/from-slurm.md names, as people submit it: its directives are read, and it
// asks for nothing that is refused.
TEST_F(Submit, TheExampleWithStepsIsAccepted) {
  const Ran ran = run({"submit", KUBEGANG_SOURCE_DIR "/examples/steps.sh"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.err, "");
  const kube::Job job = only_job();
  EXPECT_EQ(job.metadata.generate_name, "steps-");
  EXPECT_EQ(job.spec.resources.tasks, 4);
  EXPECT_EQ(job.spec.schedule.time_limit, minutes{10});
}

// Users of kubectl write options last. One that is lost without a word submits a job.
TEST_F(Submit, ItsOptionsBehindTheScriptAreRefused) {
  const std::string path = script("job.sh", "#!/bin/sh\necho $1\n");
  for (const Words& behind :
       {Words{"--dry-run"}, Words{"-o", "yaml"}, Words{"-oname"}, Words{"-n", "team-a"},
        Words{"--namespace=team-a"}, Words{"--context", "x"}, Words{"5", "--dry-run=client"},
        Words{"--wait"}, Words{"--image=x"}, Words{"--parsable"}}) {
    Words words = {"submit", path};
    words.insert(words.end(), behind.begin(), behind.end());
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kExitUsage) << behind.front();
    EXPECT_THAT(ran.err, HasSubstr(" stands after the script and would be its argument; write it "
                                   "before the script, or -- between"));
  }
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 0U);
  EXPECT_EQ(run({"submit", path, "-o", "x.log", "-N", "--epochs=3"}).code, kExitOk);
  EXPECT_EQ(run({"submit", path, "--", "--dry-run"}).code, kExitOk);
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 2U);
}

// One rule for both: what import calls debug-q, a script calls Debug_Q.
TEST_F(Submit, FindsTheNamesThatImportHasChanged) {
  ASSERT_EQ(run({"submit", "-p", "Debug_Q,batch", "-q", "High", "-A", "p_123@gpu", "--", "x"}).code,
            kExitOk);
  const kube::Job job = only_job();
  EXPECT_EQ(job.spec.partitions, (Words{"debug-q", "batch"}));
  EXPECT_EQ(job.spec.schedule.qos, "high");
  EXPECT_EQ(job.spec.schedule.account, "p-123-gpu");
}

// There would be no job to wait for.
TEST_F(Submit, WaitAndDryRunExcludeEachOther) {
  EXPECT_EQ(run({"submit", "-W", "--dry-run", "--", "true"}).code, kExitUsage);
}

// The chart's admission policies refuse pods with a token from users who may not create pods
// themselves.
TEST_F(Submit, PodsGetNoToken) {
  ASSERT_EQ(run({"submit", "--", "true"}).code, kExitOk);
  EXPECT_EQ(only_job().spec.pod_template.json()["spec"]["automountServiceAccountToken"], false);
}

// sbatch --wrap makes a script of its own with #!/bin/sh in front.
TEST_F(Submit, WrapIsAShellCommand) {
  ASSERT_EQ(run({"submit", "--wrap=hostname; date"}).code, kExitOk);
  const kube::JobBatch batch = *only_job().spec.batch;
  EXPECT_EQ(batch.name, "wrap");
  // SOURCE: recorded: a shell that complains of the command names line 4.
  EXPECT_EQ(batch.script,
            "#!/bin/sh\n# This script was created by sbatch --wrap.\n\nhostname; date\n");
}

// As kubectl prints it, for `kubectl wait "$(kubectl gang submit -o name …)"`. --output is sbatch's
// option, too, and takes its file: only the three formats are kubectl's.
TEST_F(Submit, OutputNameIsTheNameAlone) {
  for (const Words& option :
       {Words{"-o", "name"}, Words{"-oname"}, Words{"--output=name"}, Words{"--output", "name"}}) {
    Words words = {"submit"};
    words.insert(words.end(), option.begin(), option.end());
    words.insert(words.end(), {"--", "true"});
    const Ran ran = run(words);
    ASSERT_EQ(ran.code, kExitOk) << ran.err;
    EXPECT_EQ(ran.err, "");
    const kube::Job job = only_job();
    EXPECT_EQ(ran.out, "job.kubegang.io/" + job.metadata.name + "\n");
    ASSERT_TRUE(client_.remove<kube::Job>(kube::key_of(job.metadata)).ok());
  }
  EXPECT_EQ(run({"submit", "--dry-run", "-o", "name", "--", "true"}).out,
            "job.kubegang.io/true-…\n");
  EXPECT_THAT(run({"submit", "--output", "x.log", "--", "true"}).err,
              HasSubstr("--output, --error and"));
}

// The Job stays what is sent; what its pods get in addition stands in comments.
TEST_F(Submit, AServerDryRunShowsWhatThePartitionAdds) {
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n1";
  partition.spec.is_default = true;
  partition.spec.pod_defaults = kube::PodDefaults{
      .image = "site:1",
      .volumes = kube::RawJson{{{{"name", "home"}, {"emptyDir", nlohmann::json::object()}}}},
      .volume_mounts = kube::RawJson{{{{"name", "home"}, {"mountPath", "$(HOME)"}}}}};
  const auto made = client_.create(partition);
  ASSERT_TRUE(made.ok()) << made.error().message;
  kube::Partition said = *made;
  said.status.accepted = made->spec;
  ASSERT_TRUE(client_.patch_status_from(*made, said).ok());
  const Words words = {"submit",      "--dry-run=server", "-o",     "yaml",
                       "--namespace", "team-a",           "--wrap", "true"};
  const Ran refused = run(words);
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("partition batch puts $(HOME) into the pods, and no account"));
  kube::Account account;
  account.metadata.name = "people";
  account.spec.namespaces = {
      {.name = "team-a",
       .identity = kube::PodIdentity{.uid = 1000, .gid = 100, .home = "/home/ann"}}};
  const auto account_made = client_.create(account);
  ASSERT_TRUE(account_made.ok()) << account_made.error().message;
  kube::Account account_said = *account_made;
  account_said.status.accepted = account_made->spec;
  ASSERT_TRUE(client_.patch_status_from(*account_made, account_said).ok());
  const Ran ran = run(words);
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const std::size_t comments = ran.out.find("# With the podDefaults of partition batch and the");
  ASSERT_NE(comments, std::string::npos) << ran.out;
  EXPECT_THAT(ran.out.substr(comments), HasSubstr("#       image: \"site:1\"\n"));
  EXPECT_THAT(ran.out.substr(comments), HasSubstr("mountPath: /home/ann\n"));
  EXPECT_THAT(ran.out.substr(comments), HasSubstr("runAsUser: 1000\n"));
  EXPECT_THAT(ran.out.substr(0, comments), Not(HasSubstr("site:1")));
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 0U);
}

// Nothing is sent.
TEST_F(Submit, DryRunPrintsTheObjectAndSendsNothing) {
  const Ran ran = run({"submit", "-N1", "--dry-run", "-o", "yaml", "--", "true"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("kind: Job\n"));
  EXPECT_THAT(ran.out, HasSubstr("- \"true\""));  // else YAML would read a boolean
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 0U);
}

// The printed YAML can be applied: a reader gets the same text. Some of the texts do not fit a
// block of YAML: they begin with a blank or an empty line, or have control characters.
TEST_F(Submit, DryRunPrintsATextThatYamlReadsBack) {
  for (const char* text :
       {"#!/bin/sh\nif true; then\n  date\nfi\n", "  date\nhostname\n", "\n  date\nhostname\n",
        "#!/bin/sh\n\n\tdate\n", "printf 'a\rb'\n\x1B\n"}) {
    const Ran ran = run({"submit", "--dry-run", "-o", "yaml", "--", "/bin/sh", "-c", text});
    ASSERT_EQ(ran.code, kExitOk) << ran.err;
    const auto documents = devcluster::yaml_documents(ran.out);
    ASSERT_TRUE(documents.ok()) << documents.error().message << "\n" << ran.out;
    const nlohmann::json job = nlohmann::json::parse(documents->at(0));
    EXPECT_EQ(job["spec"]["template"]["spec"]["containers"][0]["command"][2], text) << ran.out;
  }
}

// Exit code 2, and the sentence names the option; no request is sent.
TEST_F(Submit, WrongCommandLinesAreUsageErrors) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"submit", "--bb=a", "--", "x"}, "--bb: not supported yet; leave it out"},
      {{"submit", "-N0", "--", "x"}, "-N \"0\": must be from 1 to 1000000"},
      {{"submit", "-n", "team-a", "--", "x"},
       "-n \"team-a\": not a whole number; -n is --ntasks here, and a namespace is --namespace"},
      {{"submit", "-N1"}, "say what to run: a batch script, --wrap=COMMAND, or -- COMMAND"},
      {{"submit", "--"}, "--: must be followed by a command"},
      {{"submit", "--wrap=x", "--", "y"}, "--wrap: cannot be combined with a script or a command"},
      {{"submit", "--dry-run=maybe", "--", "y"}, "--dry-run=maybe: must be client or server"},
  };
  for (const auto& [arguments, want] : cases) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, kExitUsage) << want;
    EXPECT_EQ(ran.err, "kubectl-gang submit: " + want + "\nRun kubectl gang submit --help.\n");
  }
}

// Exit code 1: the command line was right, but the file, an expression in it, or the server was
// not.
TEST_F(Submit, TellsWhatTheServerOrTheScriptRefuse) {
  EXPECT_EQ(run({"submit", "/does/not/exist.sh"}).err,
            "kubectl-gang submit: read /does/not/exist.sh: No such file or directory\n");
  const Ran device = run({"submit", "--gres=nic:1", "--", "x"});
  EXPECT_EQ(device.code, kExitFailed);
  EXPECT_THAT(device.err, HasSubstr("--gres nic: no node has devices of that name"));
  const Ran constraint = run({"submit", "-C", "a&", "--", "x"});
  EXPECT_EQ(constraint.code, kExitFailed);
  EXPECT_THAT(constraint.err, HasSubstr("kubectl-gang submit: --constraint \"a&\": "));
  EXPECT_EQ(run({"submit", "-w", "n_1", "--dry-run", "--", "x"}).err,
            "kubectl-gang submit: --nodelist: '_' in a name; nodes of Kubernetes have letters, "
            "digits, '-' and '.' only\n");
  EXPECT_THAT(run({"submit", "-x", "n[1-2],n_1", "--", "x"}).err, HasSubstr("--exclude: '_' in"));
  server_.fail_next("create", "jobs", 403);
  const Ran refused = run({"submit", "--", "x"});
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("kubectl-gang submit: "));
}

// JSON has no other text. Replaced characters would make it another script.
TEST_F(Submit, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(run({"submit", script("latin.sh", "#!/bin/sh\n# caf\xE9\n")}).err,
              HasSubstr("latin.sh: line 2: must be UTF-8"));
  // Each word, whatever it is for; with --dry-run, which needs no server, as well.
  const std::string word = "caf\xE9";
  for (const Words& options :
       {Words{"-D", word}, Words{"-p", word}, Words{"-q", word}, Words{"-A", word},
        Words{"-C", word}, Words{"-J", word}, Words{"-w", word}, Words{"--image", word},
        Words{"--namespace", word}, Words{"--comment", word}, Words{"--dry-run", "--image=" + word},
        Words{"--", word}}) {
    Words words = {"submit"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "x"});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kExitUsage) << options.front();
    EXPECT_THAT(ran.err, HasSubstr("word 2 after submit: must be UTF-8")) << options.front();
  }
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 0U);
  EXPECT_EQ(run({"submit", "--", "echo", "caf\xC3\xA9"}).code, kExitOk);
}

TEST_F(Submit, OutputFileIsAWarning) {
  // -o is sbatch's output file here, because "out.txt" is not one of kubectl's formats.
  const Ran ran = run({"submit", "-o", "out.txt", "--", "true"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(
      ran.err,
      "kubectl-gang submit: warning: --output, --error and --input have no effect: a command's "
      "output is the log of its pods\n");
}

// mpirun starts its processes beside itself if there is one pod. A batch script may call what it
// likes: its launcher has srun.
TEST_F(Submit, MpirunInACommandIsForOnePodOnly) {
  const auto code = [this](std::vector<std::string> options, const std::string& program) {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--", program, "./a"});
    return run(options).code;
  };
  EXPECT_EQ(code({"-N1", "-n4"}, "mpirun"), kExitOk);
  EXPECT_EQ(code({}, "mpirun"), kExitOk);
  EXPECT_NE(code({"-N2"}, "mpirun"), kExitOk);
  EXPECT_NE(code({"-n4"}, "mpirun"), kExitOk) << "on up to four nodes";
  EXPECT_NE(code({"-N1"}, "srun"), kExitOk);
  EXPECT_EQ(run({"submit", "-N2", "--wrap=srun ./a"}).code, kExitOk);
}

// A Linux shell would look for a command "hostname\r".
TEST(BatchScript, RefusesDosLineBreaks) {
  EXPECT_EQ(check_batch_script("#!/bin/sh\nhostname\r\n").error().message,
            "line 2: ends with a DOS line break; convert the script, for example with dos2unix");
  EXPECT_TRUE(check_batch_script("#!/bin/sh\nprintf 'a\rb'\n").ok()) << "within a line";
}

// The API server stores objects of at most 1.5 MiB, and text that is UTF-8.
TEST(BatchScript, RefusesWhatCannotBeStored) {
  EXPECT_TRUE(check_batch_script("#!/opt/tool\n" + std::string(500'000, 'x')).ok());
  EXPECT_FALSE(check_batch_script("#!/bin/sh\n" + std::string(600'000, 'x')).ok());
  EXPECT_FALSE(check_batch_script(std::string{"#!/bin/sh\n\0b", 12}).ok());
}

// sbatch refuses these, too. With /bin/sh instead, the job would run another program than its
// author wrote, without the options in its #SBATCH lines.
TEST(BatchScript, RefusesWhatDoesNotBeginAsAScript) {
  const auto error = [](const std::string& script) {
    const base::Status status = check_batch_script(script);
    return status.ok() ? std::string{} : status.error().message;
  };
  const std::string begin =
      "line 1: not a batch script; the script must begin with #! and the path of an interpreter, "
      "for example #!/bin/sh";
  EXPECT_EQ(error(""), "the batch script is empty");
  EXPECT_EQ(error(" \t\n\n"), "the batch script has only blanks and line breaks");
  EXPECT_EQ(error("\xEF\xBB\xBF#!/bin/sh\ndate\n"),
            "line 1: begins with a byte order mark; save the script as UTF-8 without one");
  for (const char* text : {"\n#!/bin/sh\ndate\n", " #!/bin/sh\n", "date\n", "#SBATCH -N2\n"}) {
    EXPECT_EQ(error(text), begin) << text;
  }
}

}  // namespace
}  // namespace cli
