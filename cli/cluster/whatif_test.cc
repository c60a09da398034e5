#include "cli/cluster/whatif.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cluster/page_sooner.h"
#include "cli/cluster/page_whatif.h"
#include "cli/slurm/slurm_program.h"
#include "cli/testing/program_fixture.h"

namespace cli {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;

// While a command sleeps, questions get the answer, as an operator would give it.
class AnswersQuestions final : public kube::Sleeper {
 public:
  AnswersQuestions(kube::ManualSleeper& sleeper, const kube::Client& client)
      : sleeper_{sleeper}, client_{client} {}
  base::Status sleep(base::Duration duration, std::stop_token stop) override {
    const auto jobs = client_.list<kube::Job>();
    if (!jobs) return jobs.error();
    for (const kube::Job& job : jobs->items) {
      if (!job.spec.test_only.value_or(false)) continue;
      asked = job;
      all_asked.push_back(job.spec);
      kube::Job changed = job;
      changed.status = status;
      const auto written = client_.patch_status_from(job, changed);
      if (!written) return written.error();
    }
    return sleeper_.sleep(duration, std::move(stop));
  }

  kube::JobStatus status;
  kube::Job asked;
  std::vector<kube::JobSpec> all_asked;

 private:
  kube::ManualSleeper& sleeper_;
  const kube::Client& client_;
};

class WhatIf : public ProgramTest {
 protected:
  WhatIf() {
    session_sleeper_ = &answers_;
    answers_.status.forecast = kube::JobForecast{.as_of = now(),
                                                 .job_id = 43,
                                                 .start_time = now() + minutes{5},
                                                 .partition = "batch",
                                                 .hostlist = "n[12-15]",
                                                 .nodes = 4,
                                                 .cpus = 32};
  }
  // Runs a command of Slurm, under its own name.
  Ran slurm(const std::string& name, const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    const WithSession with_session =
        [this](const ConnectOptions&,
               const std::function<int(const Session&)>& use) -> base::Result<int> {
      return use(Session{client_, clock_, *session_sleeper_, "default"});
    };
    const int code = run_slurm_command(name, arguments, with_session, {.out = out, .err = err});
    return {code, out.str(), err.str()};
  }
  Session session() { return {client_, clock_, *session_sleeper_, "default"}; }
  bool is_nothing_left() { return client_.list<kube::Job>()->items.empty(); }

  AnswersQuestions answers_{sleeper_, client_};
};

TEST_F(WhatIf, SaysWhenAndWhereAndLeavesNothing) {
  const Ran ran = run({"whatif", "-N4", "-t", "2:00:00", "-p", "batch"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(", in 5:00, in partition batch, on n[12-15] (4 nodes, 32 CPUs).\n"
                                 "It would stop no other job.\n"));
  EXPECT_EQ(answers_.asked.spec.test_only, true);
  EXPECT_EQ(answers_.asked.spec.resources.nodes->min, 4);
  EXPECT_EQ(answers_.asked.spec.schedule.time_limit, minutes{120});
  EXPECT_TRUE(is_nothing_left());
}

TEST_F(WhatIf, SaysWhomItWouldStop) {
  answers_.status.forecast->start_time = now();
  answers_.status.forecast->stops =
      kube::ForecastStops{.suspended = 1, .requeued = 2, .jobs = {"train"}};
  const Ran ran = run({"whatif", "-N4"});
  EXPECT_THAT(ran.out, HasSubstr("It would start now, in partition batch"));
  EXPECT_THAT(ran.out,
              HasSubstr("It would suspend 1 job and requeue 2 jobs: train and 2 more jobs.\n"));
}

TEST_F(WhatIf, SaysWhyItWouldNotStart) {
  answers_.status.forecast = kube::JobForecast{.as_of = now(), .message = "there are 5 nodes"};
  const Ran ran = run({"whatif", "-N6"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out, "It would not start: there are 5 nodes\n");
  EXPECT_TRUE(is_nothing_left());
}

TEST_F(WhatIf, WithoutAnAnswerNothingIsLeft) {
  answers_.status = {};
  const Ran none = run({"whatif", "-N4"});
  EXPECT_EQ(none.code, kExitFailed);
  EXPECT_THAT(none.err, HasSubstr("no operator has answered within 30 s"));
  EXPECT_TRUE(is_nothing_left());
  // One that takes it for a job to run.
  answers_.status.state = kube::JobState::kPending;
  const Ran old = run({"whatif", "-N4"});
  EXPECT_EQ(old.code, kExitFailed);
  EXPECT_THAT(old.err, HasSubstr("the operator does not know spec.testOnly"));
  EXPECT_TRUE(is_nothing_left());
}

TEST_F(WhatIf, AsAnOptionOfSubmit) {
  EXPECT_THAT(run({"submit", "--test-only", "--wrap", "true"}).out, HasSubstr("It would start "));
  EXPECT_EQ(run({"submit", "--test-only", "--dry-run", "--wrap", "true"}).code, kExitUsage);
  EXPECT_THAT(run({"whatif", "-o", "json", "-N4"}).out, HasSubstr("\"hostlist\": \"n[12-15]\""));
}

// SOURCE: recorded with Slurm 22.05.
TEST_F(WhatIf, SbatchSpeaksAsSlurm) {
  const Ran starts = slurm("sbatch", {"--test-only", "-N4", "--wrap", "true"});
  EXPECT_EQ(starts.code, kExitOk) << starts.err;
  EXPECT_EQ(starts.out, "");
  EXPECT_THAT(starts.err, HasSubstr("sbatch: Job 43 to start at "));
  EXPECT_THAT(starts.err, HasSubstr(" using 32 processors on nodes n[12-15] in partition batch\n"));
  answers_.status.forecast->stops = kube::ForecastStops{.requeued = 1, .jobs = {"train"}};
  EXPECT_THAT(slurm("sbatch", {"--test-only", "--wrap", "true"}).err,
              HasSubstr("sbatch:   Preempts: train\n"));
  answers_.status.forecast = kube::JobForecast{.as_of = now(), .message = "there are 5 nodes"};
  const Ran never = slurm("sbatch", {"--test-only", "-N4", "--wrap", "true"});
  EXPECT_EQ(never.code, kExitFailed);
  EXPECT_EQ(never.err, "allocation failure: there are 5 nodes\n");
  EXPECT_TRUE(is_nothing_left());
}

// Goal: the page asks what the command asks, and says what it says.
TEST_F(WhatIf, ThePageAsksAsTheCommand) {
  answers_.status.forecast->stops =
      kube::ForecastStops{.suspended = 1, .requeued = 2, .jobs = {"train"}};
  run({"whatif", "-N4", "-t", "2:00:00", "-p", "batch", "--qos=high", "--gres=gpu:2",
       "--ntasks-per-node=1", "-c8"});
  const kube::JobSpec want = answers_.asked.spec;
  const auto answer = page_whatif(session(), R"({"ns": "default", "nodes": "4", "time": "2:00:00",
      "partition": "batch", "qos": "high", "gpus": "2", "cpus": "8"})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(kube::changed_fields(answers_.asked.spec, want), std::vector<std::string>{});
  EXPECT_EQ(answers_.asked.spec.pod_template, want.pod_template);
  const auto json = nlohmann::json::parse(*answer);
  EXPECT_EQ(json["start"], base::micros_since_epoch(*answers_.status.forecast->start_time));
  EXPECT_EQ(json["limit"], base::Duration{minutes{120}}.count());
  EXPECT_EQ(json["on"], (nlohmann::json{"n12", "n13", "n14", "n15"}));
  EXPECT_EQ(json["cpus"], 32);
  EXPECT_EQ(json["stops"]["suspended"], 1);
  EXPECT_EQ(json["stops"]["names"], "train and 2 more jobs");
  EXPECT_TRUE(is_nothing_left());
}

TEST_F(WhatIf, ThePageSaysWhatIsWrong) {
  const auto why = [&](const std::string& text) {
    const auto answer = page_whatif(session(), text);
    return answer ? "" : answer.error().message;
  };
  EXPECT_EQ(why("[]"), "the body must be a JSON object");
  EXPECT_EQ(why(R"({"nodes": "4"})"), "ns must name a namespace");
  EXPECT_THAT(why(R"({"ns": "default", "nodes": "many"})"), HasSubstr("--nodes"));
  EXPECT_THAT(why(R"({"ns": "default", "time": "--wait"})"), HasSubstr("--time"));
  EXPECT_THAT(why(R"({"ns": "default", "cpus": "0"})"), HasSubstr("--cpus-per-task"));
  server_.inject({.verb = "create", .resource = "jobs", .code = 403});
  EXPECT_THAT(why(R"({"ns": "default"})"),
              HasSubstr("to ask takes the right to create jobs in namespace default: "));
  EXPECT_TRUE(is_nothing_left());
}

// Goal: what would make a job sooner is asked of the operator, one change at a time, of the job's
// own spec.
TEST_F(WhatIf, ThePageAsksWhatWouldMakeAJobSooner) {
  for (const char* name : {"batch", "fast"}) {
    kube::Partition partition;
    partition.metadata.name = name;
    partition.spec.nodes.hostlist = "n[12-15]";
    ASSERT_TRUE(client_.create(partition));
  }
  kube::JobSpec spec;
  spec.partitions = {"batch"};
  spec.resources.nodes = kube::JobNodes{.min = 4};
  spec.resources.memory_per_node = kube::Bytes{1 << 30};
  spec.schedule.time_limit = minutes{121};
  add_job("default", "waits", spec, {.state = kube::JobState::kPending, .job_id = 3});
  const auto answer = page_sooner(session(), R"({"ns": "default", "name": "waits"})");
  ASSERT_TRUE(answer) << answer.error().message;
  const auto json = nlohmann::json::parse(*answer);
  EXPECT_EQ(json["same"]["start"], base::micros_since_epoch(*answers_.status.forecast->start_time));
  std::vector<std::string> changes;
  for (const auto& variant : json["variants"]) changes.push_back(variant["change"]);
  EXPECT_EQ(changes,
            (std::vector<std::string>{"with a time limit of 1:00:00", "with a time limit of 30:00",
                                      "on 2 nodes", "in partition fast"}));
  ASSERT_EQ(answers_.all_asked.size(), 5);
  for (kube::JobSpec& asked : answers_.all_asked) {
    EXPECT_EQ(asked.test_only, true);
    EXPECT_EQ(asked.resources.memory_per_node, spec.resources.memory_per_node);
  }
  EXPECT_EQ(answers_.all_asked[1].schedule.time_limit, minutes{60});
  EXPECT_EQ(answers_.all_asked[3].resources.nodes->min, 2);
  EXPECT_EQ(answers_.all_asked[4].partitions, std::vector<std::string>{"fast"});
  EXPECT_EQ(client_.list<kube::Job>()->items.size(), 1) << "no question is left";
}

TEST_F(WhatIf, ThePageSaysWhyNothingWouldMakeAJobSooner) {
  const auto why = [&](const std::string& name) {
    const auto answer = page_sooner(session(), R"({"ns": "default", "name": ")" + name + "\"}");
    return answer ? "" : answer.error().message;
  };
  add_job("default", "runs", {}, {.state = kube::JobState::kRunning});
  add_job("default", "held", {.control = {.hold = true}}, {.state = kube::JobState::kPending});
  add_job("default", "sweep", {.array = kube::JobArray{.tasks = "1-6"}},
          {.state = kube::JobState::kPending});
  EXPECT_EQ(why("runs"), "the job does not wait");
  EXPECT_EQ(why("held"), "it is held: release it");
  EXPECT_THAT(why("sweep"), HasSubstr("an array's tasks start one by one"));
  EXPECT_THAT(why("none"), HasSubstr("not found"));
  EXPECT_EQ(why(""), "ns and name must name a job");
  EXPECT_FALSE(page_sooner(session(), "[]").ok());
  EXPECT_TRUE(answers_.all_asked.empty());
}

// A queue does not show questions.
TEST_F(WhatIf, QuestionsAreLeftOutOfQueues) {
  kube::JobSpec spec;
  spec.test_only = true;
  add_job("default", "question", spec, {.forecast = kube::JobForecast{.as_of = now()}});
  EXPECT_THAT(run({"queue"}).out, testing::Not(HasSubstr("question")));
  EXPECT_THAT(slurm("squeue", {}).out, testing::Not(HasSubstr("question")));
}

}  // namespace
}  // namespace cli
