// The commands that talk to a cluster, against the in-memory API server.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "api/array_status.h"
#include "api/scheduler_config.h"
#include "cli/cluster/followed_queue.h"
#include "cli/cluster/missing_kubegang.h"
#include "cli/cluster/queue.h"
#include "cli/cluster/read.h"
#include "cli/testing/program_fixture.h"
#include "kube/api/batch_job.h"
#include "kube/api/node.h"
#include "kube/api/time_format.h"
#include "kube/testing/fake_transport.h"
#include "view/job_time.h"

namespace cli {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// Goal: what a user types, against what a user reads. Method: the whole program runs against the
// API server in memory, whose objects are written as the operator would write them; no operator and
// no agent runs, so states are what statuses and timetables say at the test's clock.
class ClusterCommands : public ProgramTest {
 protected:
  // Two gangs of n[12-13] that take turns of 30 s. `first` has run for 40 s, `second` for none; the
  // clock begins at the begin of an even slot, which is `first`'s.
  void add_two_gangs() {
    const kube::Job first = add_job("team-a", "first", {},
                                    {.state = kube::JobState::kRunning,
                                     .job_id = 1,
                                     .priority = 100,
                                     .allocation = on("n[12-13]"),
                                     .partition = "batch",
                                     .start_time = now() - seconds{40},
                                     .run_time = kube::RunTime{seconds{40}, now()},
                                     .conditions = ready()});
    const kube::Job second = add_job("team-b", "second", {},
                                     {.state = kube::JobState::kRunning,
                                      .job_id = 2,
                                      .priority = 99,
                                      .allocation = on("n[12-13]"),
                                      .partition = "batch",
                                      .start_time = now() - seconds{10},
                                      .run_time = kube::RunTime{seconds{0}, now()},
                                      .conditions = ready()});
    // The same cycle on both nodes, as a gang has it everywhere.
    for (const char* node : {"n12", "n13"}) {
      kube::NodeTimetable timetable;
      timetable.metadata.name = node;
      timetable.spec.term = 1;
      timetable.spec.revision = 1;
      timetable.spec.as_of = now();
      timetable.spec.pods = {{.ns = "team-a",
                              .name = "first-x-0",
                              .job_uid = first.metadata.uid,
                              .row = kube::TimetableRow::kActive,
                              .ran = seconds{40}},
                             {.ns = "team-b",
                              .name = "second-x-0",
                              .job_uid = second.metadata.uid,
                              .row = kube::TimetableRow::kWaiting,
                              .ran = seconds{0}}};
      timetable.spec.timetable.slice = seconds{30};
      timetable.spec.timetable.pods_count = 2;
      timetable.spec.timetable.cycle = {{0}, {1}};  // kStart is at an even slot
      const auto created = client_.create(timetable);
      ASSERT_TRUE(created.ok()) << created.error().message;
    }
  }
};

// Goal: states and run times follow the turns although nothing is written meanwhile. 10 s into its
// slot `first` has run 40 + 10 s. 45 s after the begin its slot is over for 15 s, which is how long
// `second` has run. A job that has ended is not shown.
TEST_F(ClusterCommands, QueueShowsExactStatesFromTheTimetables) {
  add_two_gangs();
  add_job("team-a", "third",
          {.partitions = {"batch"}, .resources = {.nodes = kube::JobNodes{.min = 3}}},
          {.state = kube::JobState::kPending, .reason = "Resources", .job_id = 3});
  add_job("team-a", "done", {}, {.state = kube::JobState::kCompleted, .job_id = 4});

  clock_.advance(seconds{10});
  const Ran early = run({"queue", "-A"});
  EXPECT_EQ(early.code, kExitOk) << early.err;
  EXPECT_EQ(early.out,
            "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "       3     batch    third   team-a PD       0:00      3 (Resources)\n"
            "       1     batch    first   team-a  R       0:50      2 n[12-13]\n"
            "       2     batch   second   team-b  S       0:00      2 n[12-13]\n");

  // Half a slot into the other one's turn, without any write in between.
  clock_.advance(seconds{35});
  const Ran late = run({"queue", "-n", "team-b"});
  EXPECT_EQ(late.out,
            "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "       2     batch   second   team-b  R       0:15      2 n[12-13]\n");
}

// Job 1 holds two, job 2 is on its way out and still holds one, and job 3 waits for three. There
// were six until an administrator said four; two more are not asked for by anyone.
TEST_F(ClusterCommands, LicensesShowsWhatIsInUseAndWhoWaits) {
  kube::SchedulerConfig config;
  config.metadata.name = "default";
  config.spec.licenses = {{"comsol", 2}, {"matlab", 4}};
  ASSERT_TRUE(client_.create(config).ok());
  const auto asks = [](int count) {
    kube::JobSpec spec;
    spec.resources.licenses["matlab"] = count;
    return spec;
  };
  add_job("team-a", "first", asks(2), {.state = kube::JobState::kSuspended, .job_id = 1});
  add_job("team-b", "second", asks(1),
          {.state = kube::JobState::kCompleted,
           .job_id = 2,
           .conditions = {{.type = "Completing",
                           .status = kube::ConditionStatus::kTrue,
                           .last_transition_time = now()}}});
  add_job("team-b", "third", asks(3),
          {.state = kube::JobState::kPending, .reason = "Licenses", .job_id = 3});
  add_job("team-b", "done", asks(4), {.state = kube::JobState::kCompleted, .job_id = 4});
  // Two tasks of an array run, and one has been requeued.
  kube::JobSpec tasks;
  tasks.resources.licenses["comsol"] = 1;
  tasks.array = kube::JobArray{.tasks = "0-3"};
  kube::ArrayStatus array{.counts = {.waiting = 2, .running = 2}};
  for (const int task : {0, 1, 2}) array.tasks.push_back({.task = task});
  for (const std::size_t runs : {0U, 1U}) {
    array.tasks[runs].allocation = kube::Allocation{.hostlist = "n1", .nodes = 1};
  }
  add_job("team-b", "array", tasks,
          {.state = kube::JobState::kRunning, .reason = "Licenses", .job_id = 5, .array = array});
  EXPECT_EQ(run({"licenses"}).out,
            "LICENSE           TOTAL   USED   FREE WAITING\n"
            "comsol                2      2      0 5\n"
            "matlab                4      3      1 3\n");
  const nlohmann::json all = nlohmann::json::parse(run({"licenses", "-o", "json"}).out);
  EXPECT_EQ(all[1]["waiting"][0]["name"], "third");
  EXPECT_EQ(all[1]["used"], 3);
}

// "job/NAME" as kubectl means it: a Job of the batch group. The command changes the kubegang Job.
// Two attempts exist, of which the second is the present one. A batch Job of another controller,
// and one that the operator has not seen yet, have their own messages.
TEST_F(ClusterCommands, TakeABatchJobForItsPresentAttempt) {
  const kube::BatchJob batch = add_batch_job("team-a", "train", "kubegang.io/job");
  for (const char* attempt : {"0", "1"}) {
    add_job("team-a", std::string{"train-r"} + attempt, {},
            {.state = kube::JobState::kPending, .job_id = 7}, attempt_at(batch, attempt));
  }
  // The third names the kubegang Job itself and comes to the same, with the batch Job behind it.
  for (const char* name : {"job/train", "jobs.batch/train", "gjob/train-r1"}) {
    EXPECT_EQ(run({"suspend", "-n", "team-a", name}).out,
              "job.kubegang.io/train-r1 suspended (of job.batch/train)\n");
  }
  EXPECT_THAT(run({"explain", "-n", "team-a", "job/train"}).out,
              HasSubstr("team-a/train-r1 (7) (of job.batch/train)"));
  // A batch Job that kubegang does not manage may not be canceled by a mistake of a name.
  add_batch_job("team-a", "theirs", "example.com/other");
  EXPECT_THAT(run({"cancel", "-n", "team-a", "job/theirs"}).err,
              HasSubstr("is not kubegang's: it lacks spec.managedBy"));
  add_batch_job("team-a", "new", "kubegang.io/job");
  EXPECT_THAT(run({"cancel", "-n", "team-a", "job/new"}).err, HasSubstr("no kubegang job yet"));
}

// Goal: a name selects by the same rules as in the other commands. "job/train" is a Job of the
// batch group and so both of its attempts, "gjob/train" one of our Jobs, "4" a number; a name that
// fits nothing is an error.
TEST_F(ClusterCommands, QueueShowsTheJobsThatAreNamed) {
  const auto add = [&](const std::string& name, int number, const kube::ObjectMeta& metadata = {}) {
    add_job("team-a", name, {.partitions = {"batch"}},
            {.state = kube::JobState::kPending, .reason = "Priority", .job_id = number}, metadata);
  };
  const kube::BatchJob batch = add_batch_job("team-a", "train", "kubegang.io/job");
  add("train", 1, attempt_at(batch, "0"));
  add("train-2ab-1", 2, attempt_at(batch, "1"));
  add("other", 3);
  add("mine", 4);
  const std::string head =
      "   JOBID PARTITION      NAME     USER ST       TIME  NODES NODELIST(REASON)\n";
  // Two attempts of one batch Job are shown by its name, which is the one that its user knows.
  const std::string attempts =
      "       1     batch job/train   team-a PD       0:00      1 (Priority)\n"
      "       2     batch job/train   team-a PD       0:00      1 (Priority)\n";
  EXPECT_EQ(run({"queue", "-n", "team-a", "job/train"}).out, head + attempts);
  const auto names = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"queue", "-n", "team-a", "-o", "json"});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    std::vector<std::string> out;
    const nlohmann::json json = nlohmann::json::parse(ran.out);
    for (const nlohmann::json& job : json["jobs"]) {
      out.push_back(job["name"].get<std::string>() + "/" +
                    (job["batchJob"].is_null() ? "" : job["batchJob"].get<std::string>()));
    }
    return out;
  };
  EXPECT_THAT(names({"gjob/train", "other", "4"}),
              testing::UnorderedElementsAre("train/train", "other/", "mine/"));
  const Ran missing = run({"queue", "-n", "team-a", "train", "none"});
  EXPECT_EQ(missing.code, kExitFailed);
  EXPECT_THAT(missing.err, HasSubstr("none"));
}

// With rbac.lookersReadTimetables: false users may not read timetables. Both jobs are then shown as
// running, with the run times of their statuses. A queue without turns is better than no queue, but
// the user must know.
TEST_F(ClusterCommands, QueueWithoutTheRightToTimetablesShowsWhatTheStatusesSay) {
  add_two_gangs();
  server_.fail_next("get", "nodetimetables", 403);
  const Ran ran = run({"queue", "-A"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_THAT(ran.err, HasSubstr("timetables may not be read, so turns are not shown"));
  EXPECT_EQ(ran.out,
            "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "       1     batch    first   team-a  R       0:40      2 n[12-13]\n"
            "       2     batch   second   team-b  R       0:00      2 n[12-13]\n");
}

// squeue's default format: %.9P %.8j %.8u. The longest line has 100 characters: with 100 columns it
// is whole. With fewer the partition is cut first, down to 9 characters, then the name, of which
// kubectl needs all: at 82 columns by 5. Below squeue's widths nothing is cut, and -o wide never
// cuts.
TEST_F(ClusterCommands, QueueCutsNamesWhereTheTerminalIsTooNarrow) {
  add_job("team-a", "weather-model-2026-11", {.partitions = {"batch-of-the-institute"}},
          {.state = kube::JobState::kPending, .reason = "Resources", .job_id = 3});
  add_job("team-a", "short", {.partitions = {"batch"}},
          {.state = kube::JobState::kPending, .reason = "Priority", .job_id = 4, .priority = 70});
  const std::string whole =
      "   JOBID              PARTITION                  NAME     USER ST       TIME  NODES "
      "NODELIST(REASON)\n"
      "       4                  batch                 short   team-a PD       0:00      1 "
      "(Priority)\n"
      "       3 batch-of-the-institute weather-model-2026-11   team-a PD       0:00      1 "
      "(Resources)\n";
  EXPECT_EQ(run({"queue", "-A"}).out, whole) << "no terminal";
  terminal_columns_ = 100;
  EXPECT_EQ(run({"queue", "-A"}).out, whole) << "wide enough";
  terminal_columns_ = 82;
  EXPECT_EQ(run({"queue", "-A"}).out,
            "   JOBID PARTITION             NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "       4     batch            short   team-a PD       0:00      1 (Priority)\n"
            "       3 batch-of- weather-model-20   team-a PD       0:00      1 (Resources)\n");
  terminal_columns_ = 60;
  EXPECT_EQ(run({"queue", "-A"}).out,
            "   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "       4     batch    short   team-a PD       0:00      1 (Priority)\n"
            "       3 batch-of- weather-   team-a PD       0:00      1 (Resources)\n");
  // Still at 60 columns: the wide form is always whole.
  EXPECT_EQ(run({"queue", "-A", "-o", "wide"}).out,
            "   JOBID              PARTITION                  NAME     USER ST       TIME  NODES   "
            "PRIORITY NODELIST(REASON)\n"
            "       4                  batch                 short   team-a PD       0:00      1   "
            "      70 (Priority)\n"
            "       3 batch-of-the-institute weather-model-2026-11   team-a PD       0:00      1   "
            "       0 (Resources)\n");
}

// 12 of 40 have succeeded, 5 of them in an attempt before this one.
TEST_F(ClusterCommands, ShowHowManyCompletionsAJobHas) {
  add_job("team-a", "plain", {.partitions = {"batch"}},
          {.state = kube::JobState::kPending, .reason = "Priority", .job_id = 4});
  add_job("team-a", "sweep",
          {.partitions = {"batch"},
           .pod_policy = kube::PodPolicy::kPerTask,
           .completions = 40,
           .completed_indexes = "0-4"},
          {.state = kube::JobState::kPending,
           .reason = "Resources",
           .job_id = 3,
           .priority = 7,
           .succeeded_indexes = "0-10,12"});
  // The column is there because one job has completions; the other one's cell is empty.
  EXPECT_EQ(run({"queue", "-A", "-o", "wide"}).out,
            "   JOBID PARTITION     NAME     USER ST       TIME  NODES   PRIORITY  SUCCEEDED "
            "NODELIST(REASON)\n"
            "       3     batch    sweep   team-a PD       0:00      1          7      12/40 "
            "(Resources)\n"
            "       4     batch    plain   team-a PD       0:00      1          0            "
            "(Priority)\n");
  const auto json = nlohmann::json::parse(run({"queue", "-A", "-o", "json"}).out);
  EXPECT_EQ(json["jobs"][0]["succeeded"], 12);
  EXPECT_EQ(json["jobs"][0]["completions"], 40);
  EXPECT_EQ(json["jobs"][1]["completions"], nullptr);
  EXPECT_THAT(run({"explain", "-n", "team-a", "sweep"}).out,
              HasSubstr("Succeeded   12 of 40 completions\n"));
  EXPECT_THAT(run({"explain", "-n", "team-a", "plain"}).out,
              testing::Not(HasSubstr("completions")));
}

// A task has a start, or an end, of its own; the others wait for what the array waits for.
TEST_F(ClusterCommands, ExplainATaskOfAnArray) {
  kube::JobStatus status{
      .state = kube::JobState::kRunning, .reason = "Resources", .job_id = 8, .priority = 7};
  kube::ArrayStatus& array = status.array.emplace();
  kube::ArrayTask& running = array.tasks.emplace_back();
  running.task = 3;
  running.job_id = 11;
  running.state = kube::JobState::kRunning;
  running.starts = 1;
  running.allocation = kube::Allocation{.hostlist = "n2", .nodes = 1, .cpus = 4};
  kube::TaskOutcomes outcomes;
  outcomes.set(1, kube::TaskOutcome::kFailed);
  outcomes.show(array);
  add_job("team-a", "sweep", {.array = kube::JobArray{.tasks = "0-5"}}, status);
  const auto explain = [&](const std::string& word) {
    return run({"explain", "-n", "team-a", word});
  };
  EXPECT_THAT(explain("8_3").out, testing::StartsWith("Job         team-a/sweep_3 (8_3)\n"
                                                      "Job ID      11\nState       Running"));
  EXPECT_THAT(explain("8_3").out, HasSubstr("Nodes       n2\n"));
  EXPECT_THAT(explain("sweep_3").out, HasSubstr("Nodes       n2\n"));
  EXPECT_THAT(explain("8_1").out, HasSubstr("State       Failed\n"));
  EXPECT_THAT(explain("8_0").out, HasSubstr("State       Pending\nReason      Resources\n"));
  EXPECT_THAT(explain("8_9").err, HasSubstr("8 has no task 9"));
  EXPECT_THAT(explain("8_[0-1]").err, HasSubstr("one task at a time"));
  const std::string json = run({"explain", "-n", "team-a", "8_3", "-o", "json"}).out;
  EXPECT_EQ(nlohmann::json::parse(json)["task"], 3);
}

// A watch follows the server, and asks it for nothing but the changes.
TEST_F(ClusterCommands, WatchListsOnceAndThenFollows) {
  add_two_gangs();
  const Session session{.client = client_, .clock = clock_, .sleeper = sleeper_, .ns = "team-a"};
  FollowedQueue queue{session, ""};
  const auto until = [](const auto& holds) {
    while (!holds()) std::this_thread::yield();
  };
  // The lists come in threads of their own; only after both is the picture whole.
  until([&] { return queue.has_synced(); });
  const auto codes = [&] {
    std::string out;
    for (const view::QueueLine& line :
         view::queue_lines(queue.jobs(), queue.timetable_of(), now())) {
      out += line.name + "=" + line.moment.code + " ";
    }
    return out;
  };
  EXPECT_EQ(codes(), "first=R second=S ");
  clock_.advance(seconds{30});
  EXPECT_EQ(codes(), "second=R first=S ") << "a turn changed without a write";
  add_job("team-b", "third", {}, {.state = kube::JobState::kPending, .job_id = 3});
  until([&] { return queue.jobs().size() == 3 && codes().find("third=PD") != std::string::npos; });
  EXPECT_FALSE(queue.take_error());
}

// Errors that a new try cannot mend end the command; a screen that stands still would look like a
// quiet queue. The second client has been stopped, so its first list fails at once.
TEST_F(ClusterCommands, WatchPrintsRoundsAndEndsWithTheFirstError) {
  add_two_gangs();
  const Session session{.client = client_, .clock = clock_, .sleeper = sleeper_, .ns = "team-a"};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_queue(session, {.watch = true, .watch_rounds_max = 1}, {.out = out, .err = err}),
            kExitOk);
  EXPECT_THAT(out.str(), HasSubstr("n[12-13]"));
  kube::Client stopped = client_;
  stopped.request_stop();
  const Session broken{.client = stopped, .clock = clock_, .sleeper = sleeper_, .ns = "team-a"};
  EXPECT_EQ(run_queue(broken, {.watch = true}, {.out = out, .err = err}), kExitFailed);
  EXPECT_THAT(err.str(), HasSubstr("kubectl-gang queue: list "));
}

// `queue -w | head`: after ten lines the reader goes away. A watch that went on would never end.
TEST_F(ClusterCommands, WatchEndsWhenItsOutputCannotBeWritten) {
  const Session session{.client = client_, .clock = clock_, .sleeper = sleeper_, .ns = "team-a"};
  std::ostream closed{nullptr};
  std::ostringstream err;
  EXPECT_EQ(run_queue(session, {.watch = true}, {.out = closed, .err = err}), kExitOk);
}

// As without --watch: a missing right costs the turns, not the queue.
TEST_F(ClusterCommands, WatchWithoutTheRightToTimetablesShowsWhatTheStatusesSay) {
  add_two_gangs();
  // As often as the watch may ask again within the test.
  server_.inject({.verb = "list", .resource = "nodetimetables", .code = 403, .count = 1'000});
  const Session session{.client = client_, .clock = clock_, .sleeper = sleeper_, .ns = "team-a"};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_queue(session, {.all_namespaces = true, .watch = true, .watch_rounds_max = 1},
                      {.out = out, .err = err}),
            kExitOk);
  EXPECT_THAT(err.str(), HasSubstr("timetables may not be read, so turns are not shown"));
  EXPECT_THAT(out.str(), HasSubstr("       2     batch   second   team-b  R"));
}

// A few nodes are asked for by name; beyond kSingleReadsMax one list is cheaper. Pointers that were
// given out stay valid when the list is read: the caller may still hold them. The hundred nodes
// without a timetable use the single reads up.
TEST_F(ClusterCommands, TimetablesAreReadOneByOneOrAllAtOnce) {
  add_two_gangs();
  const Session session{.client = client_, .clock = clock_, .sleeper = sleeper_, .ns = ""};
  TimetableReader reader{session, {.out = std::cout, .err = std::cerr}};
  const view::TimetableOf timetable_of = reader.lookup();
  ASSERT_NE(timetable_of("n12"), nullptr);
  const kube::NodeTimetable* n12 = timetable_of("n12");
  EXPECT_EQ(timetable_of("n99"), nullptr) << "there is none";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(timetable_of("x" + std::to_string(i)), nullptr);
  EXPECT_EQ(timetable_of("n12"), n12) << "what was read stays when all are read";
  EXPECT_NE(timetable_of("n13"), nullptr);
  EXPECT_TRUE(reader.status().ok());
}

// squeue(1), --partition: a list, and a waiting job may be for several. "nightly" is not "night";
// the last case shows that -p takes one word only, so that a job may follow it.
TEST_F(ClusterCommands, QueueOfSomePartitions) {
  const auto add = [&](const char* name, std::vector<std::string> partitions, std::int64_t number) {
    add_job("team-a", name, {.partitions = std::move(partitions)},
            {.state = kube::JobState::kPending, .reason = "Priority", .job_id = number});
  };
  add("one", {"batch"}, 1);
  add("two", {"batch", "night"}, 2);
  add("three", {"night"}, 3);
  add("four", {"nightly"}, 4);
  const auto names = [&](const std::string& partitions) {
    std::vector<std::string> out;
    const Ran ran = run({"queue", "-A", "-o", "json", "-p", partitions});
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    const nlohmann::json json = nlohmann::json::parse(ran.out);
    for (const nlohmann::json& job : json["jobs"]) out.push_back(job["name"]);
    return out;
  };
  EXPECT_THAT(names("night"), testing::ElementsAre("two", "three"));
  EXPECT_THAT(names("batch,nightly"), testing::ElementsAre("one", "two", "four"));
  EXPECT_THAT(names("none"), testing::IsEmpty());
  const Ran apart = run({"queue", "-p", "batch", "night"});
  EXPECT_EQ(apart.code, kExitFailed);
  EXPECT_THAT(apart.err, HasSubstr("\"night\" not found")) << "a job is looked for, no partition";
}

// Numbers are numbers and what is absent is null, for scripts.
TEST_F(ClusterCommands, QueueAsJson) {
  add_two_gangs();
  const Ran ran = run({"queue", "-A", "-o", "json"});
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["jobs"].size(), 2U);
  EXPECT_EQ(json["jobs"][0]["state"], "R");
  EXPECT_EQ(json["jobs"][1]["state"], "S");
  EXPECT_EQ(json["jobs"][0]["runSeconds"], 40.0);
  EXPECT_EQ(json["jobs"][0]["hostlist"], "n[12-13]");
  EXPECT_EQ(json["jobs"][0]["reason"], nullptr);
}

// A running job: with which jobs it takes turns, its part of them and its next one. 40 s after the
// begin of its turn of 30 s `first` stands still for 20 s more. A user who may read one namespace
// only learns that the other job is of another.
TEST_F(ClusterCommands, ExplainSaysWithWhomAJobTakesTurns) {
  add_two_gangs();
  clock_.advance(seconds{40});
  EXPECT_THAT(run({"explain", "-n", "team-a", "first"}).out,
              HasSubstr("Turns       1 of 2, 30s each; it runs again at " +
                        kube::format_time(now() + seconds{20}) +
                        "\nShares with team-b/second (2) on n[12-13]\n"));
  EXPECT_THAT(run({"explain", "-n", "team-b", "second"}).out,
              HasSubstr("30s each; it stands still at " + kube::format_time(now() + seconds{20}) +
                        "\nShares with team-a/first (1) on n[12-13]\n"));
  const auto json =
      nlohmann::json::parse(run({"explain", "-n", "team-a", "first", "-o", "json"}).out);
  EXPECT_EQ(json["state"], "S");
  EXPECT_EQ(json["runSeconds"], 70.0);
  const double next = static_cast<double>(base::micros_since_epoch(now() + seconds{20})) / 1e6;
  EXPECT_EQ(json["turns"],
            (nlohmann::json{{"sliceSeconds", 30.0}, {"own", 1}, {"all", 2}, {"nextChange", next}}));
  EXPECT_EQ(json["sharesWith"], nlohmann::json::parse(R"([{"jobID": 2, "name": "second",
            "namespace": "team-b", "hostlist": "n[12-13]"}])"));
  EXPECT_EQ(json["lines"][0], (nlohmann::json{{"label", "Job"}, {"text", "team-a/first (1)"}}));
  EXPECT_THAT(run({"explain", "-n", "team-a", "first", "-o", "yaml"}).out, HasSubstr("state: S\n"));
  server_.fail_next("list", "jobs", 403);
  EXPECT_THAT(run({"explain", "-n", "team-a", "first"}).out,
              HasSubstr("Shares with a job of namespace team-b on n[12-13]\n"));
}

// Alone on its nodes, or beside a job that runs in the same turns, a job shares none.
TEST_F(ClusterCommands, ExplainSaysNothingOfTurnsIfThereAreNone) {
  add_two_gangs();
  for (const char* name : {"n12", "n13"}) {
    kube::NodeTimetable timetable = *client_.get<kube::NodeTimetable>({"", name});
    timetable.spec.timetable.cycle = {{0, 1}};
    ASSERT_TRUE(client_.update(timetable).ok());
  }
  const std::string out = run({"explain", "-n", "team-a", "first"}).out;
  EXPECT_EQ(out.find("Turns"), std::string::npos) << out;
  EXPECT_EQ(out.find("Shares"), std::string::npos) << out;
  EXPECT_EQ(
      nlohmann::json::parse(run({"explain", "-n", "team-a", "first", "-o", "json"}).out)["turns"],
      nullptr);
}

// The first question of most commands is about jobs, and a cluster without kubegang's CRDs answers
// with a page for browsers. The error for a missing object of a known kind is unchanged.
TEST_F(ClusterCommands, AClusterWithoutKubegangIsToldAsOne) {
  kube::FakeTransport answers;
  TellsMissingKubegang transport{answers, "kubeconfig f, context dev"};
  const kube::Client client{transport, clock_, sleeper_, {}};
  const Session session{.client = client, .clock = clock_, .sleeper = sleeper_, .ns = "team-a"};
  std::ostringstream out;
  std::ostringstream err;
  answers.answer(404, "404 page not found\n");
  EXPECT_EQ(run_queue(session, {}, {.out = out, .err = err}), kExitFailed);
  EXPECT_EQ(err.str(),
            "kubectl-gang queue: list Job team-a: this cluster has no kubegang (kubeconfig f, "
            "context dev); is the chart installed?\n");
  answers.answer(404, R"({"kind": "Status", "reason": "NotFound", "details": {"name": "a"},
                          "message": "jobs.kubegang.io \"a\" not found"})");
  EXPECT_THAT(client.get<kube::Job>({.ns = "team-a", .name = "a"}).error().message,
              HasSubstr("jobs.kubegang.io \"a\" not found"));
  // Another user may have come between the two, so it is tried again.
  constexpr int kTriesMax = 16;
  for (int i = 0; i < kTriesMax; ++i) answers.answer(404, "404 page not found\n");
  EXPECT_THAT(client.get<kube::Node>({.ns = "", .name = "n1"}).error().message,
              testing::EndsWith("HTTP status 404: 404 page not found"));
}

// Before and after the command's own options, with and without =; for submit they stand among those
// of sbatch.
TEST_F(ClusterCommands, ConnectionOptionsAreKubectls) {
  ConnectOptions seen;
  const WithSession note = [&](const ConnectOptions& options, const auto&) {
    seen = options;
    return base::Result<int>{kExitOk};
  };
  std::ostringstream out;
  std::ostringstream err;
  // All that kubectl has and this program takes, in both spellings.
  const std::vector<std::string> options = {
      "--kubeconfig=f",      "--context", "dev",  "--cluster=c",  "--user=u",     "--server=s",
      "--token=t",           "--as",      "anna", "--as-group=g", "--as-group=h", "--as-uid=7",
      "--request-timeout=1m"};
  const auto expect_all = [&] {
    EXPECT_EQ(seen.kubeconfig, "f");
    EXPECT_EQ(seen.overrides.context, "dev");
    EXPECT_EQ(seen.overrides.cluster, "c");
    EXPECT_EQ(seen.overrides.user, "u");
    EXPECT_EQ(seen.overrides.server, "s");
    EXPECT_EQ(seen.overrides.token, "t");
    EXPECT_EQ(seen.overrides.impersonate,
              (kube::Impersonation{.user = "anna", .uid = "7", .groups = {"g", "h"}}));
    EXPECT_EQ(seen.request_timeout, std::chrono::minutes{1});
  };
  std::vector<std::string> queue = options;
  queue.insert(queue.begin(), "queue");
  EXPECT_EQ(run_program(queue, note, {.out = out, .err = err}), kExitOk) << err.str();
  expect_all();
  seen = {};
  std::vector<std::string> submit = options;
  submit.insert(submit.begin(), "submit");
  for (const char* word : {"--image=i", "--wrap", "true"}) submit.emplace_back(word);
  EXPECT_EQ(run_program(submit, note, {.out = out, .err = err}), kExitOk) << err.str();
  expect_all();
  EXPECT_EQ(run_program(std::vector<std::string>{"queue", "--request-timeout=soon"}, note,
                        {.out = out, .err = err}),
            kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("invalid duration \"soon\" (examples: 5s, 2m)"));
}

// kubectl's users know -o yaml. It is the JSON in another form.
TEST_F(ClusterCommands, JsonIsThereAsYamlToo) {
  add_job("default", "big", {}, {.state = kube::JobState::kPending, .job_id = 7});
  EXPECT_THAT(run({"queue", "-o", "yaml"}).out, HasSubstr("  - batchJob: ~\n"));
  EXPECT_THAT(run({"queue", "-o", "yaml"}).out, HasSubstr("    name: big\n"));
  EXPECT_EQ(run({"info", "-o", "yaml"}).out, "[]\n");
  EXPECT_EQ(run({"queue", "--watch", "-o", "yaml"}).code, kExitUsage);
}

// On a terminal the text fits its width; a program that looks for a line gets whole ones. The
// sentence of the message stands there once, and a job that is refused has no place in the queue.
TEST_F(ClusterCommands, ExplainOfARefusedJobSaysItOnce) {
  const std::string why =
      "there is no partition \"x\"; name one of: batch, debug, long, short, interactive, night";
  add_job("default", "j", {.schedule = {.qos = "high", .account = "lab"}},
          {.state = kube::JobState::kPending,
           .reason = "NotAccepted",
           .message = why,
           .conditions = {{.type = "Accepted",
                           .status = kube::ConditionStatus::kFalse,
                           .last_transition_time = kube::ManualClock::kStart,
                           .reason = "Invalid",
                           .message = why}}});
  add_job("default", "other", {}, {.state = kube::JobState::kPending, .priority = 9});
  EXPECT_EQ(run({"explain", "j"}).out,
            "Job         default/j\n"
            "State       Pending\n"
            "Account     lab\n"
            "QOS         high\n"
            "Reason      NotAccepted\n"
            "Message     " +
                why +
                "\n"
                "Condition   Accepted=False Invalid\n");
  terminal_columns_ = 60;
  std::istringstream lines{run({"explain", "j"}).out};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60U) << line;
}

// A user without the right to list jobs must not see an empty queue, which would look like a free
// cluster.
TEST_F(ClusterCommands, QueueTellsWhatItCannotReach) {
  server_.fail_next("list", "jobs", 403);
  const Ran ran = run({"queue"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_THAT(ran.err, HasSubstr("kubectl-gang queue: "));
}

// The job is asked for by its number. The message is the scheduler's, as the operator has stored
// it; lines without a value are left out.
TEST_F(ClusterCommands, ExplainSaysWhyAJobWaits) {
  add_job("default", "big", {.resources = {.nodes = kube::JobNodes{.min = 3}}},
          {.state = kube::JobState::kPending,
           .reason = "Resources",
           .message = "needs 3 nodes; 2 idle, 1 could be preempted, 4 are held by tier 2",
           .job_id = 7,
           .partition = "batch",
           .conditions = {{.type = "Accepted",
                           .status = kube::ConditionStatus::kTrue,
                           .last_transition_time = kube::ManualClock::kStart}}});
  const Ran ran = run({"explain", "7"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out,
            "Job         default/big (7)\n"
            "State       Pending\n"
            "Partition   batch\n"
            "Reason      Resources\n"
            "Message     needs 3 nodes; 2 idle, 1 could be preempted, 4 are held by tier 2\n"
            "Condition   Accepted=True\n");
  // The namespace is named, since the job may well be in another.
  const Ran none = run({"explain", "8"});
  EXPECT_EQ(none.code, kExitFailed);
  EXPECT_EQ(none.err, "kubectl-gang explain: there is no job 8 in namespace default\n");
}

// Kubegang's own roles give no right to events. So for most users this is the usual case.
TEST_F(ClusterCommands, ExplainWithoutTheRightToEventsShowsTheRest) {
  add_job("default", "big", {}, {.state = kube::JobState::kPending, .reason = "Resources"});
  server_.fail_next("list", "events", 403);
  const Ran ran = run({"explain", "big"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.err, "kubectl-gang explain: events may not be read, so they are not shown\n");
  EXPECT_THAT(ran.out, HasSubstr("Reason      Resources\n"));
}

// `runs` has n12 and n13 since 60 s and may run for 600: it ends in 540 s at the latest, when
// `first` is expected to start. `first` may run for 300 s, so `second` is expected after 840 s. The
// blockers of `second` are both of them, the one that leaves last first. `unknown` has no plan and
// comes last.
TEST_F(ClusterCommands, StartsThatAreExpectedAreShown) {
  add_job("team-a", "runs", {.schedule = {.time_limit = seconds{600}}},
          {.state = kube::JobState::kRunning,
           .job_id = 1,
           .priority = 100,
           .allocation = on("n[12-13]"),
           .partition = "batch",
           .start_time = now() - seconds{60},
           .conditions = ready()});
  const auto waiting = [&](const char* name, std::int64_t id, std::optional<base::Instant> start) {
    add_job("team-b", name,
            {.resources = {.nodes = kube::JobNodes{.min = 2}},
             .schedule = {.time_limit = seconds{300}}},
            {.state = kube::JobState::kPending,
             .reason = "Priority",
             .job_id = id,
             .priority = 100 - id,
             .partition = "batch",
             .expected_start_time = start,
             .planned_nodes = start ? "n[12-13]" : ""});
  };
  // Not in the order in which they are expected, so that the sort has something to do.
  waiting("unknown", 2, std::nullopt);
  waiting("second", 4, now() + seconds{840});
  waiting("first", 3, now() + seconds{540});
  const std::string at = kube::format_time(now() + seconds{540});
  const std::string then = kube::format_time(now() + seconds{840});
  EXPECT_EQ(
      run({"queue", "-A", "--start"}).out,
      "   JOBID PARTITION     NAME     USER ST           START_TIME  NODES SCHEDNODES         "
      "  NODELIST(REASON)\n"
      "       3     batch    first   team-b PD " +
          at +
          "      2 n[12-13]             "
          "(Priority)\n"
          "       4     batch   second   team-b PD " +
          then +
          "      2 n[12-13]             "
          "(Priority)\n"
          "       2     batch  unknown   team-b PD                  N/A      2 (null)             "
          "  (Priority)\n");
  const auto json = nlohmann::json::parse(run({"queue", "-A", "--start", "-o", "json"}).out);
  ASSERT_EQ(json["jobs"].size(), 3U);
  EXPECT_EQ(json["jobs"][1]["plannedNodes"], "n[12-13]");
  EXPECT_EQ(json["jobs"][1]["expectedStart"],
            static_cast<double>(base::micros_since_epoch(now() + seconds{540})) / 1e6);
  EXPECT_EQ(json["jobs"][0]["expectedStart"], nullptr);

  terminal_columns_ = 80;
  EXPECT_EQ(run({"explain", "second", "-n", "team-b"}).out,
            "Job         team-b/second (4)\n"
            "State       Pending\n"
            "Partition   batch\n"
            "Reason      Priority\n"
            "Priority    96\n"
            "Queue       2 jobs are before it in its partitions; it needs 2 nodes\n"
            "Expected    " +
                then +
                ", in 14:00, on n[12-13]; sooner if jobs end\n"
                "            before their time limits, later if a limit is raised or a job of\n"
                "            higher priority comes\n"
                "Waits for   n[12-13]: promised to job 3 (team-b/first) from " +
                at + "\n            until " + then +
                "\n"
                "Waits for   n[12-13]: job 1 (team-a/runs) runs there, until\n"
                "            " +
                at + ", in 9:00 by its time limit\n");
}

// The operator has refused the new default time of an hour: ten minutes are in force. With the time
// limit of the refused spec the blocker would be said to run for an hour.
TEST_F(ClusterCommands, ExplainReckonsWithThePartitionThatIsInForce) {
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n1";
  partition.spec.limits = kube::PartitionLimits{.default_time = std::chrono::hours{1}};
  const auto created = client_.create(partition);
  ASSERT_TRUE(created.ok()) << created.error().message;
  kube::Partition said = *created;
  said.status.accepted = created->spec;
  said.status.accepted->limits->default_time = seconds{600};
  ASSERT_TRUE(client_.patch_status_from(*created, said).ok());
  add_job("default", "runs", {},
          {.state = kube::JobState::kRunning,
           .job_id = 1,
           .allocation = on("n1"),
           .partition = "batch",
           .start_time = now(),
           .conditions = ready()});
  add_job("default", "waits", {},
          {.state = kube::JobState::kPending,
           .job_id = 2,
           .partition = "batch",
           .expected_start_time = now() + seconds{600},
           .planned_nodes = "n1"});
  EXPECT_THAT(run({"explain", "waits"}).out, HasSubstr("10:00 by its time limit"));
}

// The backfill has started `cut` with less than its spec asks for, so it is gone in 240 s. The plan
// was written when that seemed to be 237 s: the operator leaves what is 5 s off. `shares` has no
// limit at all and `long` stays for hours; both leave room on the node, so `waits` does not wait
// for them. `next` would run for ten minutes and is content with one.
TEST_F(ClusterCommands, ExplainExpectsNoStartBeforeWhatAJobWaitsFor) {
  const auto runs = [&](const char* name, std::int64_t id, std::optional<seconds> wanted,
                        std::optional<seconds> in_force) {
    add_job("default", name, {.schedule = {.time_limit = wanted}},
            {.state = kube::JobState::kRunning,
             .job_id = id,
             .allocation = on("n1"),
             .partition = "batch",
             .start_time = now() - seconds{60},
             .time_limit = in_force,
             .observed = kube::JobObserved{.time_limit = wanted},
             .conditions = ready()});
  };
  runs("cut", 1, seconds{600}, seconds{300});
  runs("shares", 2, std::nullopt, std::nullopt);
  runs("long", 3, seconds{7200}, seconds{7200});
  const auto waits = [&](const char* name, std::int64_t id, int start) {
    add_job("default", name, {.schedule = {.time_limit = seconds{600}, .time_min = seconds{60}}},
            {.state = kube::JobState::kPending,
             .job_id = id,
             .partition = "batch",
             .expected_start_time = now() + seconds{start},
             .planned_nodes = "n1"});
  };
  waits("next", 4, 237);
  waits("last", 5, 297);
  const std::string ends = kube::format_time(now() + seconds{240});
  const std::string next = run({"explain", "next"}).out;
  EXPECT_THAT(next, HasSubstr("Expected    " + ends + ", in 4:00, on n1;"));
  EXPECT_THAT(next, HasSubstr("Waits for   n1: job 1 (default/cut) runs there, until " + ends +
                              ", in 4:00 by its time limit\n"));
  EXPECT_THAT(next, Not(HasSubstr("job 2")));
  EXPECT_THAT(next, Not(HasSubstr("job 3")));
  const std::string then = kube::format_time(now() + seconds{297});
  const std::string last = run({"explain", "last"}).out;
  EXPECT_THAT(last, HasSubstr("Expected    " + then));
  EXPECT_THAT(last, HasSubstr("promised to job 4 (default/next) from " +
                              kube::format_time(now() + seconds{237}) + " until " + then + "\n"));
}

// Two minutes of ten are over.
TEST_F(ClusterCommands, ExplainSaysHowMuchMemoryAJobHasAndWhenItEnds) {
  kube::Allocation allocation = on("n1");
  allocation.shares = {{.hostlist = "n1", .cpus = 2, .memory = kube::Bytes{2LL << 30}}};
  const kube::JobStatus status{.state = kube::JobState::kRunning,
                               .job_id = 1,
                               .allocation = allocation,
                               .partition = "batch",
                               .start_time = now() - seconds{120},
                               .time_limit = seconds{600},
                               .run_time = kube::RunTime{seconds{120}, now()},
                               .conditions = ready()};
  add_job("default", "runs", {.resources = {.memory_per_cpu = kube::Bytes{1LL << 30}}}, status);
  add_job("default", "waits", {.resources = {.memory_per_cpu = kube::Bytes{1LL << 30}}},
          {.state = kube::JobState::kPending, .job_id = 3});
  const std::string runs = run({"explain", "runs"}).out;
  EXPECT_THAT(runs, HasSubstr("Memory      2Gi on each node\n"));
  EXPECT_THAT(runs, HasSubstr("Ends        " + kube::format_time(now() + seconds{480}) +
                              ", in 8:00, by its time limit\n"));
  EXPECT_THAT(run({"explain", "waits"}).out, HasSubstr("Memory      1Gi for each CPU\n"));
}

// Each command changes one field of spec.control. Requests are counters that only grow, and the two
// refusals come from the command: the job is running, so there is nothing to hold, and its user has
// resumed it already. The other fields of spec.control must stay, or a suspend would undo a cancel.
TEST_F(ClusterCommands, ControlChangesOneFieldOfTheSpec) {
  add_job("default", "j", {},
          {.state = kube::JobState::kRunning,
           .job_id = 1,
           .allocation = on("n1"),
           .conditions = ready()});
  const auto spec = [&] { return client_.get<kube::Job>({"default", "j"})->spec; };
  EXPECT_EQ(run({"suspend", "j"}).out, "job.kubegang.io/j suspended\n");
  EXPECT_EQ(spec().control.suspend, true);
  // By its number, which every command takes for a name.
  EXPECT_EQ(run({"resume", "1"}).code, kExitOk);
  EXPECT_EQ(spec().control.suspend, false);
  EXPECT_EQ(run({"requeue", "j"}).code, kExitOk);
  EXPECT_EQ(spec().control.requeue_request, 1);
  EXPECT_EQ(run({"requeue", "j"}).code, kExitOk);
  EXPECT_EQ(spec().control.requeue_request, 2);
  EXPECT_EQ(run({"cancel", "j"}).code, kExitOk);
  EXPECT_EQ(spec().control.cancel, true);
  // 13.2: a running job is not held; R2.3: what is not suspended is not resumed.
  EXPECT_EQ(run({"hold", "j"}).err,
            "kubectl-gang: job j: the job is running; use kubectl gang suspend\n");
  EXPECT_EQ(run({"resume", "j"}).err, "kubectl-gang: job j: it is not suspended by its user\n");
}

// Releasing takes back the user's own hold, and asks for the end of the operator's by a counter
// above the last one that was carried out (4).
TEST_F(ClusterCommands, HoldAndReleaseOfAWaitingJob) {
  add_job("default", "j", {},
          {.state = kube::JobState::kPending,
           .held = kube::JobHeld{"JobHoldMaxRequeue"},
           .observed = kube::JobObserved{.release_request = 4}});
  EXPECT_EQ(run({"hold", "j"}).code, kExitOk);
  EXPECT_EQ(client_.get<kube::Job>({"default", "j"})->spec.control.hold, true);
  EXPECT_EQ(run({"release", "j"}).code, kExitOk);
  const kube::JobSpec spec = client_.get<kube::Job>({"default", "j"})->spec;
  EXPECT_EQ(spec.control.hold, false);
  EXPECT_EQ(spec.control.release_request, 5);  // above what was done already
}

// A message that says "released" of a job that waits for something else sends its user away. The
// name is the one that `explain` prints.
TEST_F(ClusterCommands, ReleaseOfAJobThatIsNotHeldIsAnError) {
  add_job("team-b", "j", {}, {.state = kube::JobState::kPending});
  EXPECT_EQ(run({"release", "team-b/j"}).err, "kubectl-gang: job team-b/j: it is not held\n");
  EXPECT_EQ(run({"hold", "team-b/j"}).out, "job.kubegang.io/j held\n");
  EXPECT_EQ(run({"release", "team-b/j"}).out, "job.kubegang.io/j released\n");
}

// As kubectl does with several names: each is tried, and the exit code shows the failure.
TEST_F(ClusterCommands, ControlGoesOnAfterAFailure) {
  add_job("default", "b", {}, {.state = kube::JobState::kPending});
  const Ran ran = run({"cancel", "a", "b"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out, "job.kubegang.io/b canceled\n");
  EXPECT_THAT(ran.err, HasSubstr("default/a"));
}

// One line per partition and state, as in sinfo. n1 has 8 CPUs and a job of 8: alloc. n2 is free,
// n3 does not report, n4 is cordoned. The states are in alphabetical order of the states' names, as
// by_state sorts them: alloc, down, drain, idle.
TEST_F(ClusterCommands, InfoShowsPartitionsAndNodeStates) {
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n[1-4]";
  partition.spec.is_default = true;
  ASSERT_TRUE(client_.create(partition).ok());
  add_nodes("n[1-4]");
  ASSERT_TRUE(
      client_.patch<kube::Node>({.ns = "", .name = "n4"}, {{"spec", {{"unschedulable", true}}}})
          .ok());
  const nlohmann::json not_ready = {{{"type", "Ready"}, {"status", "False"}}};
  ASSERT_TRUE(client_
                  .patch_status<kube::Node>({.ns = "", .name = "n3"},
                                            {{"status", {{"conditions", not_ready}}}})
                  .ok());
  add_job("default", "j", {},
          {.state = kube::JobState::kRunning, .allocation = on("n1"), .conditions = ready()});
  const Ran ran = run({"info"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "batch*       up   infinite      1  alloc n1\n"
            "batch*       up   infinite      1   down n3\n"
            "batch*       up   infinite      1  drain n4\n"
            "batch*       up   infinite      1   idle n2\n");
}

// The column is there if any node has GPUs.
TEST_F(ClusterCommands, InfoShowsHowManyGpusJobsHold) {
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n[1-3]";
  ASSERT_TRUE(client_.create(partition).ok());
  add_nodes("n[1-3]");
  for (const char* node : {"n1", "n2"}) {
    const nlohmann::json gpus{{"status", {{"allocatable", {{"nvidia.com/gpu", "4"}}}}}};
    ASSERT_TRUE(client_.patch_status<kube::Node>({.ns = "", .name = node}, gpus).ok());
  }
  kube::Allocation held = on("n1");
  held.shares[0].devices = {{"gpu", "nvidia", 3}};
  add_job("default", "j", {},
          {.state = kube::JobState::kRunning, .allocation = held, .conditions = ready()});
  EXPECT_EQ(run({"info"}).out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE   GPUS NODELIST\n"
            "batch        up   infinite      1  alloc    3/4 n1\n"
            "batch        up   infinite      2   idle    0/4 n[2-3]\n");
  const auto lines = nlohmann::json::parse(run({"info", "-o", "json"}).out);
  EXPECT_EQ(lines[0]["gpus"], 4);
  EXPECT_EQ(lines[0]["gpusHeld"], 3);
  EXPECT_THAT(run({"explain", "-n", "default", "j"}).out, HasSubstr("Devices     gpu:3 on n1\n"));
}

// Goal: a node that is Ready to Kubernetes and gets no jobs is not shown as idle, and both commands
// say why. n1 and n2 take no jobs; n2 still runs one, so it is draining. Explain names all such
// nodes to a job that waits, and only its own to a job that runs.
TEST_F(ClusterCommands, InfoAndExplainSayWhyNodesTakeNoJobs) {
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n[1-3]";
  const auto created = client_.create(partition);
  ASSERT_TRUE(created.ok());
  kube::Partition said = *created;
  said.status.nodes = 3;
  said.status.unusable_nodes = 2;
  said.status.unusable = {{"AgentNotReady", "has an agent that says Stopped", 2, "n[1-2]"}};
  ASSERT_TRUE(client_.patch_status_from(*created, said).ok());
  add_nodes("n[1-3]");
  add_job("default", "runs", {},
          {.state = kube::JobState::kRunning,
           .allocation = on("n[2-3]"),
           .partition = "batch",
           .conditions = ready()});
  add_job("default", "waits", {}, {.state = kube::JobState::kPending, .partition = "batch"});
  EXPECT_EQ(run({"info"}).out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "batch        up   infinite      1  alloc n3\n"
            "batch        up   infinite      1  drain n1\n"
            "batch        up   infinite      1   drng n2\n");
  EXPECT_EQ(run({"info", "-R"}).out,
            "REASON               PARTITION  NODES NODELIST             MESSAGE\n"
            "AgentNotReady        batch          2 n[1-2]               has an agent that says "
            "Stopped\n");
  EXPECT_EQ(nlohmann::json::parse(run({"info", "-R", "-o", "json"}).out)[0]["hostlist"], "n[1-2]");
  terminal_columns_ = 80;
  EXPECT_THAT(run({"explain", "waits"}).out,
              HasSubstr("Unusable    2 of 3 nodes of batch take no new jobs: n[1-2] "
                        "has an agent that\n"
                        "            says Stopped (AgentNotReady)\n"));
  EXPECT_THAT(run({"explain", "runs"}).out,
              HasSubstr("Unusable    n2 has an agent that says Stopped (AgentNotReady)\n"));
}

// A new partition: its agents report one by one. "drain" would look like an administrator's act.
TEST_F(ClusterCommands, InfoShowsNodesWhoseAgentHasNotReportedAsUnknown) {
  kube::Partition partition;
  partition.metadata.name = "batch";
  partition.spec.nodes.hostlist = "n[1-2]";
  const auto created = client_.create(partition);
  ASSERT_TRUE(created.ok());
  kube::Partition said = *created;
  said.status.unusable = {{"NoAgent", "has no agent yet", 1, "n2"}};
  ASSERT_TRUE(client_.patch_status_from(*created, said).ok());
  add_nodes("n[1-2]");
  EXPECT_EQ(run({"info"}).out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "batch        up   infinite      1   idle n1\n"
            "batch        up   infinite      1    unk n2\n");
}

// For users with the chart's roles alone. The numbers are the operator's. Names are shown if they
// are all known: those of partition `labels` are not, and of five that take no jobs it names two.
TEST_F(ClusterCommands, InfoWithoutTheRightToNodesOrJobsShowsWhatThePartitionsSay) {
  const auto add = [&](const std::string& name, kube::PartitionNodes nodes,
                       kube::PartitionStatus status) {
    kube::Partition partition;
    partition.metadata.name = name;
    partition.spec.nodes = std::move(nodes);
    const auto created = client_.create(partition);
    ASSERT_TRUE(created.ok()) << created.error().message;
    kube::Partition said = *created;
    said.status = std::move(status);
    ASSERT_TRUE(client_.patch_status_from(*created, said).ok());
  };
  const kube::UnusableNodes drained{
      .reason = "Cordoned", .message = "is cordoned", .nodes = 2, .hostlist = "n[1-2]"};
  add("listed", {.hostlist = "n[1-4]"}, {.nodes = 4, .unusable_nodes = 2, .unusable = {drained}});
  add("labels", {.selector = kube::LabelSelector{}},
      {.nodes = 9, .unusable_nodes = 5, .unusable = {drained}});
  add("new", {.hostlist = "n9"}, {});
  const std::string want =
      "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
      "labels       up   infinite      5  drain \n"
      "labels       up   infinite      4    unk \n"
      "listed       up   infinite      2  drain n[1-2]\n"
      "listed       up   infinite      2    unk n[3-4]\n"
      "new          up   infinite      0    n/a \n";
  const std::string need =
      " may not be read, so states of nodes are not shown; they need the rights to list nodes and "
      "the jobs.kubegang.io of all namespaces\n";
  for (const auto& [resource, what] :
       {std::pair{"nodes", "nodes"}, std::pair{"jobs", "jobs of all namespaces"}}) {
    server_.fail_next("list", resource, 403);
    const Ran ran = run({"info"});
    EXPECT_EQ(ran.code, kExitOk);
    EXPECT_EQ(ran.out, want) << resource;
    EXPECT_EQ(ran.err, std::string{"kubectl-gang info: "} + what + need);
  }
  server_.fail_next("list", "nodes", 403);
  EXPECT_EQ(nlohmann::json::parse(run({"info", "-o", "json"}).out)[0]["nodes"], 5);
}

// A partition that was refused from the beginning has nothing in force: no nodes, and no job gets
// it by default, although its spec asks for both. Its asterisk and its node would make users wait
// for a partition that does not exist.
TEST_F(ClusterCommands, InfoShowsThatARefusedPartitionIsNotThere) {
  kube::Partition partition;
  partition.metadata.name = "second";
  partition.spec.nodes.hostlist = "n1";
  partition.spec.is_default = true;
  partition.status.conditions = {{.type = "Accepted",
                                  .status = kube::ConditionStatus::kFalse,
                                  .last_transition_time = base::Instant{},
                                  .reason = "Illegal",
                                  .message = "spec.default: another one is"}};
  const auto created = client_.create(partition);
  ASSERT_TRUE(created.ok());
  kube::Partition refused = *created;
  refused.status = partition.status;
  ASSERT_TRUE(client_.patch_status_from(*created, refused).ok());
  EXPECT_EQ(run({"info"}).out,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "second    inact        n/a      0    n/a \n"
            "partition second is refused: spec.default: another one is\n");
}

// Exit code 1 always comes with a sentence. An empty YAML and exit code 0 would be applied by a
// script.
TEST_F(ClusterCommands, ImportOfNothingSaysSo) {
  const Ran ran = run({"import", "/dev/null"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(
      ran.err,
      "kubectl-gang import: nothing in the files can be translated; they must be a slurm.conf, "
      "gres.conf or output of sacctmgr\n");
}

// YAML and JSON have no other text; the line is one that an editor can go to.
TEST_F(ClusterCommands, ImportRefusesTextThatIsNotUtf8) {
  const std::string path = testing::TempDir() + "/latin" + std::to_string(::getpid()) + ".conf";
  std::ofstream{path} << "ClusterName=c\n# caf\xE9\n";
  const Ran ran = run({"import", path});
  std::filesystem::remove(path);
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "kubectl-gang import: " + path + ": line 2: must be UTF-8\n");
}

// A script must notice that a partition is missing without reading the remarks. Parameters without
// effect are in every file, so they count on request only.
TEST_F(ClusterCommands, ImportExitsWithTwoIfAnObjectIsLeftOut) {
  const std::string path = testing::TempDir() + "/conf" + std::to_string(::getpid());
  const auto code = [&](const std::string& text, std::vector<std::string> arguments) {
    std::ofstream{path} << text;
    arguments.push_back(path);
    return run(arguments).code;
  };
  const std::string fine = "ClusterName=c\nNodeName=n1\nPartitionName=p\n";
  EXPECT_EQ(code(fine, {"import", "--strict"}), kExitOk);
  EXPECT_EQ(code(fine + "TopologyPlugin=topology/tree\n", {"import"}), kExitOk);
  EXPECT_EQ(code(fine + "TopologyPlugin=topology/tree\n", {"import", "--strict"}), 2);
  EXPECT_EQ(code(fine + "PartitionName=q Nodes=n_1\n", {"import"}), 2);
  EXPECT_EQ(code(fine + "include other.conf\n", {"import"}), 2);
  std::filesystem::remove(path);
}

// So that scripts can tell a wrong call from a cluster that refuses (1). Help fits a terminal of 80
// columns.
TEST_F(ClusterCommands, WrongCommandLinesExitWithTwo) {
  const Ran nothing = run({});
  // Each of these sentences says what to do next; a usage text of a screen would hide it.
  EXPECT_EQ(nothing.code, kExitUsage);
  EXPECT_EQ(nothing.err,
            "kubectl-gang: a command is missing (example: queue)\nRun kubectl gang --help.\n");
  const Ran option = run({"--frobnicate"});
  EXPECT_EQ(option.code, kExitUsage);
  EXPECT_THAT(option.err, HasSubstr("--frobnicate"));
  const Ran unknown = run({"frobnicate"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_EQ(unknown.err,
            "kubectl-gang: there is no command \"frobnicate\"\nRun kubectl gang --help.\n");
  // One style: the command, the mistake, what may be meant, the way to help.
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"queu"}, ": there is no command \"queu\"; did you mean queue?\nRun kubectl gang --help.\n"},
      {{"queue", "--nope"}, " queue: --nope: unknown option\nRun kubectl gang queue --help.\n"},
      {{"queue", "--strat"},
       " queue: --strat: unknown option; did you mean --start?\nRun kubectl gang queue --help.\n"},
      {{"info", "-p", "batch"}, " info: -p: unknown option\nRun kubectl gang info --help.\n"},
      {{"info", "batch"}, " info: batch: unexpected argument\nRun kubectl gang info --help.\n"},
      {{"explain"}, " explain: JOB is required\nRun kubectl gang explain --help.\n"}};
  for (const auto& [arguments, want] : cases) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, kExitUsage) << want;
    EXPECT_EQ(ran.err, "kubectl-gang" + want);
  }
  EXPECT_EQ(run({"submit"}).code, kExitUsage);
  for (const char* command : {"info", "licenses"}) {
    EXPECT_EQ(run({command, "-A"}).code, kExitOk) << command;
  }
  EXPECT_THAT(run({"--help"}).out, HasSubstr("Usage: kubectl gang [OPTIONS] [SUBCOMMAND]\n"));
  EXPECT_THAT(run({"queue", "--help"}).out, HasSubstr("Usage: kubectl gang queue [OPTIONS]"));
  EXPECT_EQ(run({"--version"}).out, "kubectl-gang " KUBEGANG_VERSION "\n");
  const std::vector<std::string> commands = {"",        "queue",   "submit",  "info",
                                             "explain", "suspend", "simulate"};
  for (const std::string& command : commands) {
    const Ran help = command.empty() ? run({"--help"}) : run({command, "--help"});
    EXPECT_EQ(help.code, kExitOk) << command;
    std::istringstream lines{help.out};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(ExpectedStart, OfAHeldJobIsNotWhatWasPlannedBefore) {
  const base::Instant now{std::chrono::seconds{1000}};
  kube::Job job;
  job.status.expected_start_time = now + std::chrono::seconds{60};
  EXPECT_EQ(view::expected_start(job, now), job.status.expected_start_time);
  job.spec.control.hold = true;
  EXPECT_EQ(view::expected_start(job, now), std::nullopt);
  job.spec.schedule.begin_time = now + std::chrono::seconds{90};
  EXPECT_EQ(view::expected_start(job, now), job.spec.schedule.begin_time);
}

}  // namespace
}  // namespace cli
