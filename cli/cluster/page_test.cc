// The page against the in-memory API server: what its board says agrees with `queue -o json`.
#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/number_list.h"
#include "cli/cluster/dashboard.h"
#include "cli/cluster/page_control.h"
#include "cli/cluster/page_feed.h"
#include "cli/cluster/page_objects.h"
#include "cli/cluster/page_records.h"
#include "cli/testing/has_records.h"
#include "cli/testing/program_fixture.h"
#include "kube/api/node.h"
#include "records/store.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

class Page : public ProgramTest {
 protected:
  // Two gangs that take turns of 30 s on n[12-13], a job that waits, one that is held, one that has
  // ended.
  void add_world() {
    const auto gang = [this](const std::string& ns, const std::string& name, std::int64_t id) {
      return add_job(ns, name, {},
                     {.state = kube::JobState::kRunning,
                      .job_id = id,
                      .priority = 100,
                      .allocation = on("n[12-13]"),
                      .partition = "batch",
                      .start_time = now() - seconds{40},
                      .run_time = kube::RunTime{seconds{20}, now()},
                      .conditions = ready()});
    };
    const kube::Job first = gang("team-a", "first", 1);
    const kube::Job second = gang("team-b", "second", 2);
    add_job("team-a", "waits",
            {.partitions = {"batch"}, .resources = {.nodes = kube::JobNodes{.min = 2}}},
            {.state = kube::JobState::kPending,
             .reason = "Resources",
             .job_id = 3,
             .priority = 7,
             .expected_start_time = now() + seconds{600},
             .planned_nodes = "n[12-13]"});
    add_job("team-a", "held", {.control = {.hold = true}},
            {.state = kube::JobState::kPending, .reason = "JobHeldUser", .job_id = 4});
    add_job("team-a", "done", {}, {.state = kube::JobState::kCompleted, .job_id = 5});
    add_job("team-a", "sweep", {.array = kube::JobArray{.tasks = "1-6", .parallelism = 2}},
            {.state = kube::JobState::kRunning,
             .reason = "JobArrayTaskLimit",
             .job_id = 6,
             .partition = "batch",
             .array = kube::ArrayStatus{.summary = "1 of 6 done, 1 run", .succeeded = "1"}});
    for (const char* node : {"n12", "n13"}) add_timetable(node, first, second);
    kube::Partition batch;
    batch.metadata.name = "batch";
    batch.spec.nodes.hostlist = "n[12-13]";
    ASSERT_TRUE(client_.create(batch));
  }

  // Returns an entry of a task that runs on one node.
  kube::ArrayTask running(int task, const std::string& node) const {
    return {.task = task,
            .job_id = 1000 + task,
            .state = kube::JobState::kRunning,
            .allocation = on(node),
            .start_time = now() - seconds{10}};
  }

  static std::string wish(const std::string& verb, const kube::Job& job,
                          const std::string& tasks = "") {
    return Json{{"verb", verb},
                {"ns", job.metadata.ns},
                {"name", job.metadata.name},
                {"uid", job.metadata.uid},
                {"tasks", tasks}}
        .dump();
  }

  kube::JobControl control_of(const kube::Job& job) const {
    return client_.get<kube::Job>(kube::key_of(job.metadata)).value().spec.control;
  }

  void add_timetable(const std::string& node, const kube::Job& first, const kube::Job& second) {
    kube::NodeTimetable timetable;
    timetable.metadata.name = node;
    timetable.spec.term = 1;
    timetable.spec.revision = 1;
    timetable.spec.as_of = now();
    timetable.spec.pods = {
        {.ns = "team-a", .name = "a", .job_uid = first.metadata.uid, .ran = seconds{20}},
        {.ns = "team-b", .name = "b", .job_uid = second.metadata.uid, .ran = seconds{20}}};
    timetable.spec.timetable.slice = seconds{30};
    timetable.spec.timetable.pods_count = 2;
    timetable.spec.timetable.plan = {{.until = now() + seconds{10}, .run = {0, 1}}};
    timetable.spec.timetable.cycle = {{0}, {1}};
    ASSERT_TRUE(client_.create(timetable));
  }

  Session session() const {
    return {.client = client_, .clock = clock_, .sleeper = *session_sleeper_, .ns = "team-a"};
  }

  // Watches have threads of their own.
  template <typename Condition>
  static void until(const Condition& holds) {
    while (!holds()) std::this_thread::yield();
  }

  Json board_json(const dashboard::Board& board) const {
    return Json::parse(board.since(0, now()).json)["set"];
  }

  // squeue's code of a job on the board, by the rule that the browser has: the entry of the plan
  // that is in force, else the slot.
  static std::string state_at(const Json& board, const std::string& uid, std::int64_t at) {
    const std::string state = board["jobs"][uid]["state"];
    if (state != "R") return state;
    for (const auto& [node, table] : board["nodes"].items()) {
      for (std::size_t pod = 0; pod < table["pods"].size(); ++pod) {
        if (table["pods"][pod]["job"] != uid) continue;
        Json run =
            table["cycle"][static_cast<std::size_t>(at / table["slice"].get<std::int64_t>()) %
                           table["cycle"].size()];
        for (std::size_t i = table["plan"].size(); i-- > 0;) {
          if (at < table["plan"][i]["until"]) run = table["plan"][i]["run"];
        }
        return std::ranges::find(run, Json(pod)) != run.end() ? "R" : "S";
      }
    }
    return "R";
  }
};

// Goal: the page and the command say the same at the same instant. Method: instants before and in
// each turn; nothing is written in between, so the page hears of nothing.
TEST_F(Page, AgreesWithTheQueue) {
  add_world();
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  until(
      [&] { return feed.has_synced() && board_json(board)["about"]["server"]["synced"] == true; });
  const std::uint64_t version = board.version();
  const Json shown = board_json(board);
  for (const seconds later : {seconds{0}, seconds{15}, seconds{30}, seconds{30}}) {
    clock_.advance(later);
    const Json queue = Json::parse(run({"queue", "-A", "-o", "json"}).out);
    std::size_t found = 0;
    for (const auto& [uid, job] : shown["jobs"].items()) {
      for (const Json& want : queue["jobs"]) {
        if (want["name"] != job["name"]) continue;
        ++found;
        EXPECT_EQ(job["id"], want["jobID"]);
        EXPECT_EQ(job["ns"], want["namespace"]);
        EXPECT_EQ(job["partition"], want["partition"]);
        EXPECT_EQ(job["nodes"], want["nodes"]);
        EXPECT_EQ(job["priority"], want["priority"]);
        EXPECT_EQ(job["hostlist"], want["hostlist"].is_null() ? Json("") : want["hostlist"]);
        EXPECT_EQ(job["reason"], want["reason"].is_null() ? Json("") : want["reason"]);
        EXPECT_EQ(job["plannedNodes"],
                  want["plannedNodes"].is_null() ? Json("") : want["plannedNodes"]);
        EXPECT_EQ(job["expected"].is_null(), want["expectedStart"].is_null());
        EXPECT_EQ(state_at(shown, uid, base::micros_since_epoch(now())), want["state"])
            << want["name"] << " after " << later.count() << " s";
      }
    }
    EXPECT_EQ(found, queue["jobs"].size());
  }
  EXPECT_EQ(board.version(), version) << "turns are no news";
}

// Goal: what is over stays visible. The timetable that another one replaces becomes a piece of the
// past, and a job that ends keeps the nodes that it had.
TEST_F(Page, KeepsThePast) {
  add_world();
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  until([&] { return feed.has_synced(); });
  clock_.advance(seconds{20});
  auto timetable = client_.get<kube::NodeTimetable>({.ns = "", .name = "n12"});
  ASSERT_TRUE(timetable);
  timetable->spec.revision = 2;
  timetable->spec.timetable.cycle = {{1}};
  ASSERT_TRUE(client_.update(*timetable));
  until([&] { return board_json(board).contains("past"); });
  const Json past = board_json(board)["past"]["1"];
  EXPECT_EQ(past["node"], "n12");
  EXPECT_EQ(past["cycle"].size(), 2U);
  EXPECT_EQ(past["to"], base::micros_since_epoch(now()));
  EXPECT_EQ(past["from"], base::micros_since_epoch(now() - seconds{20}));

  const auto gone = client_.get<kube::Job>({.ns = "team-a", .name = "first"});
  ASSERT_TRUE(gone);
  ASSERT_TRUE(client_.remove<kube::Job>({.ns = "team-a", .name = "first"}));
  until([&] { return board_json(board)["jobs"][gone->metadata.uid].contains("gone"); });
  const Json stay = board_json(board)["jobs"][gone->metadata.uid]["stays"][0];
  EXPECT_EQ(stay["on"], Json::array({"n12", "n13"}));
  EXPECT_EQ(stay["from"], base::micros_since_epoch(now() - seconds{60}));
  EXPECT_EQ(stay["to"], base::micros_since_epoch(now()));
}

// Shows who may use a partition, and how jobs share it, as its spec says.
TEST_F(Page, SaysWhoMayUseAPartition) {
  kube::Partition partition;
  partition.metadata.name = "few";
  partition.spec.nodes.hostlist = "n12";
  EXPECT_EQ(Json::parse(page_partition(partition, {}))["allow"], Json());
  partition.spec.allow = kube::AccessList{.namespaces = {{"team-a", "team-b"}}};
  partition.spec.deny = kube::AccessList{.qos = {{"low"}}};
  partition.spec.over_subscribe =
      kube::OverSubscribe{.policy = kube::OverSubscribePolicy::kForce, .max_share = 3};
  const Json json = Json::parse(page_partition(partition, {}));
  EXPECT_EQ(json["allow"], Json::parse(R"({"namespaces": ["team-a", "team-b"], "qos": null})"));
  EXPECT_EQ(json["deny"], Json::parse(R"({"namespaces": null, "qos": ["low"]})"));
  EXPECT_EQ(json["share"], Json::parse(R"({"policy": "Force", "max": 3})"));
}

TEST_F(Page, SaysWhoHasSubmittedAJob) {
  kube::ObjectMeta metadata;
  metadata.annotations = {{"kubegang.io/user", "ann"}, {"other", "x"}};
  const kube::Job job =
      add_job("team-a", "train", {}, {.state = kube::JobState::kPending}, metadata);
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  until([&] { return board_json(board)["jobs"].contains(job.metadata.uid); });
  EXPECT_EQ(board_json(board)["jobs"][job.metadata.uid]["user"], "ann");
}

// Goal: a job that had ended before the page was opened, and whose object is still there, is drawn.
TEST_F(Page, KnowsWhereAJobWasThatHadEnded) {
  const kube::Job job = add_job("team-a", "over", {},
                                {.state = kube::JobState::kCompleted,
                                 .job_id = 5,
                                 .allocation = on("n[12-13]"),
                                 .start_time = now() - seconds{40},
                                 .end_time = now() - seconds{10}});
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  until([&] { return board_json(board)["jobs"].contains(job.metadata.uid); });
  const Json stays = board_json(board)["jobs"][job.metadata.uid]["stays"];
  ASSERT_EQ(stays.size(), 1);
  EXPECT_EQ(stays[0]["on"], Json({"n12", "n13"}));
  EXPECT_EQ(stays[0]["from"], base::micros_since_epoch(now() - seconds{40}));
  EXPECT_EQ(stays[0]["to"], base::micros_since_epoch(now() - seconds{10}));
}

// Goal: who stopped a job is seen: its user, a job of a higher tier that has its cores, or one for
// which it had to end.
TEST_F(Page, SaysWhoHasStoppedAJob) {
  add_world();
  kube::Partition high;
  high.metadata.name = "high";
  high.spec.nodes.hostlist = "n[12-13]";
  high.spec.priority_tier = 9;
  ASSERT_TRUE(client_.create(high));
  const auto cores = [](const std::string& node, const std::string& numbers) {
    kube::Allocation all = on(node);
    all.shares.front().cores = numbers;
    return all;
  };
  const auto urgent = [&](const std::string& name, const std::string& numbers) {
    return add_job("team-b", name, {},
                   {.state = kube::JobState::kRunning,
                    .allocation = cores("n12", numbers),
                    .partition = "high",
                    .start_time = now()});
  };
  (void)urgent("beside", "4-7");
  const kube::Job stopper = urgent("urgent", "0-3");
  kube::Job job = add_job("team-a", "train", {},
                          {.state = kube::JobState::kRunning,
                           .allocation = cores("n12", "2-3"),
                           .partition = "batch",
                           .start_time = now()});
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  until([&] { return feed.has_synced(); });
  const auto stay = [&] { return board_json(board)["jobs"][job.metadata.uid]["stays"].back(); };
  const auto write = [&](kube::JobState state, const std::string& reason) {
    clock_.advance(seconds{10});
    job.status.state = state;
    job.status.reason = reason;
    job.status.run_time = job.status.suspend_time = kube::RunTime{{}, now() - seconds{1}};
    ASSERT_TRUE(client_.update_status(job));
    job = client_.get<kube::Job>({.ns = "team-a", .name = "train"}).value();
  };
  const auto begin = now() + seconds{9};
  write(kube::JobState::kSuspended, "Timeslice");
  write(kube::JobState::kSuspended, "User");
  until([&] { return stay().contains("pauses"); });
  EXPECT_EQ(stay()["pauses"],
            Json::array({{{"byUser", true},
                          {"by", Json::array()},
                          {"from", base::micros_since_epoch(begin + seconds{10})},
                          {"to", nullptr}}}));
  write(kube::JobState::kSuspended, "Preempted");
  until([&] { return stay()["pauses"].size() == 2; });
  EXPECT_EQ(stay()["pauses"][0]["to"], base::micros_since_epoch(begin + seconds{20}));
  EXPECT_EQ(stay()["pauses"][1]["byUser"], false);
  EXPECT_EQ(stay()["pauses"][1]["by"], Json::array({stopper.metadata.uid}));
  write(kube::JobState::kRunning, "");
  until([&] { return !stay()["pauses"][1]["to"].is_null(); });
  job.status.ending = kube::JobEnding{
      .verdict = kube::EndingVerdict::kRequeue,
      .by = kube::JobReference{.ns = "team-b", .name = "urgent", .uid = stopper.metadata.uid}};
  write(kube::JobState::kRunning, "");
  until([&] { return stay().contains("endedFor"); });
  EXPECT_EQ(stay()["endedFor"], stopper.metadata.uid);
  EXPECT_EQ(stay()["pauses"].size(), 2U);
}

// Goal: the board keeps a thousand jobs that have ended, and says from when on it is complete.
TEST_F(Page, SaysSinceWhenThePastIsWhole) {
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  const auto whole = [&] { return board_json(board)["about"]["server"]["whole"]; };
  until([&] { return feed.has_synced() && !whole().is_null(); });
  EXPECT_EQ(whole(), base::micros_since_epoch(now()));
  const auto run_and_remove = [&](int number) {
    const kube::Job job = add_job("team-a", "j" + std::to_string(number), {},
                                  {.state = kube::JobState::kCompleted,
                                   .job_id = number,
                                   .allocation = on("n12"),
                                   .start_time = now() - seconds{1},
                                   .end_time = now()});
    ASSERT_TRUE(client_.remove<kube::Job>({job.metadata.ns, job.metadata.name}).ok());
  };
  clock_.advance(seconds{1});
  const std::int64_t first_end = base::micros_since_epoch(now());
  run_and_remove(1);
  clock_.advance(seconds{1});
  for (int i = 2; i <= 1001; ++i) run_and_remove(i);
  until([&] {
    clock_.advance(std::chrono::milliseconds{100});  // changes are published within a while
    return whole() == first_end;
  });
}

// The runs that records remember, beside those that the page watches.
class PageWithRecords : public Page {
 protected:
  PageWithRecords() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    writer_.emplace(std::move(*records::Writer::open(file_, now())));
    has_records_.reader.emplace(std::move(*records::Reader::open(file_)));
  }
  ~PageWithRecords() override { std::filesystem::remove_all(folder_); }

  void record(const std::string& ns, std::int64_t id, seconds ago, seconds ran,
              std::optional<std::int32_t> task = {}) {
    const records::Record run{.cluster = "kubegang",
                              .job_uid = "uid-" + std::to_string(id),
                              .task = task,
                              .job_id = id,
                              .ns = ns,
                              .object = "train-" + std::to_string(id),
                              .name = "train",
                              .user = "ann",
                              .partition = "batch",
                              .nodes = 2,
                              .hostlist = "n[12-13]",
                              .allocated_nodes = 2,
                              .submit_time = now() - ago - seconds{5},
                              .start_time = now() - ago,
                              .end_time = now() - ago + ran,
                              .elapsed = ran,
                              .state = records::RecordState::kFailed,
                              .exit_code = 3};
    const std::vector<records::Change> changes = {records::Written{.record = run}};
    ASSERT_TRUE(writer_->write(changes).ok());
  }
  Json past(Json question) {
    question.update({{"from", base::micros_since_epoch(now() - seconds{3600})},
                     {"until", base::micros_since_epoch(now())}});
    const auto answer = page_records(session_of_records(), question.dump());
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer ? Json::parse(*answer) : Json{};
  }
  Session session_of_records() const {
    return {
        .client = records_client_, .clock = clock_, .sleeper = *session_sleeper_, .ns = "team-a"};
  }

  HasRecords has_records_{transport_};
  const kube::Client records_client_{has_records_, clock_, sleeper_, {}};
  const std::string folder_ = testing::TempDir() + "/page" + std::to_string(::getpid());
  const std::string file_ = folder_ + "/records.db";
  std::optional<records::Writer> writer_;
};

TEST_F(PageWithRecords, ARunIsAJobAsOnTheBoard) {
  record("team-a", 7, seconds{600}, seconds{60});
  record("team-a", 8, seconds{7200}, seconds{60});  // before what is asked about
  record("team-b", 9, seconds{300}, seconds{30}, 4);
  const Json answer = past(Json::object());
  EXPECT_EQ(answer["next"], "");
  EXPECT_EQ(answer["since"], base::micros_since_epoch(now()));
  ASSERT_EQ(answer["runs"].size(), 2) << answer;
  const Json& run = answer["runs"][0];
  EXPECT_EQ(run["uid"], "uid-7");
  EXPECT_FALSE(run.contains("task"));
  const Json& job = run["job"];
  EXPECT_EQ(job["id"], 7);
  EXPECT_EQ(job["ns"], "team-a");
  EXPECT_EQ(job["name"], "train-7");
  EXPECT_EQ(job["user"], "ann");
  EXPECT_EQ(job["partition"], "batch");
  EXPECT_EQ(job["state"], "F");
  EXPECT_EQ(job["exit"], 3);
  EXPECT_EQ(job["ran"]["elapsed"], 60'000'000);
  EXPECT_EQ(job["submit"], base::micros_since_epoch(now() - seconds{605}));
  EXPECT_EQ(
      job["stays"],
      Json::parse(R"([{"on": ["n12", "n13"], "from": )" +
                  std::to_string(base::micros_since_epoch(now() - seconds{600})) + ", \"to\": " +
                  std::to_string(base::micros_since_epoch(now() - seconds{540})) + "}]"));
  EXPECT_EQ(answer["runs"][1]["task"], 4);
  EXPECT_EQ(past({{"jobs", {9}}})["runs"].size(), 1);
}

TEST_F(PageWithRecords, ALargePastComesInPages) {
  for (int i = 1; i <= 1001; ++i) record("team-a", i, seconds{600}, seconds{60});
  const Json first = past(Json::object());
  EXPECT_EQ(first["runs"].size(), 1000);
  const Json second = past({{"next", first["next"]}});
  EXPECT_EQ(second["runs"].size(), 1);
  EXPECT_EQ(second["next"], "");
}

// The API server decides; the browser asks for each namespace then.
TEST_F(PageWithRecords, AReaderGetsTheNamespacesThatTheyMayRead) {
  record("team-a", 7, seconds{600}, seconds{60});
  record("team-b", 8, seconds{600}, seconds{60});
  has_records_.only = "team-b";
  const std::string window =
      R"("from": 0, "until": )" + std::to_string(base::micros_since_epoch(now()));
  const auto all = page_records(session_of_records(), "{" + window + "}");
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, base::Code::kPermissionDenied);
  const Json one = past({{"ns", "team-b"}});
  ASSERT_EQ(one["runs"].size(), 1);
  EXPECT_EQ(one["runs"][0]["job"]["ns"], "team-b");
}

TEST_F(PageWithRecords, WithoutRecordsThereIsASentence) {
  const std::string window = R"({"from": 0, "until": 5})";
  const auto none = page_records(session(), window);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, base::Code::kNotFound);
  EXPECT_EQ(none.error().message, "this cluster keeps no records");
}

TEST_F(PageWithRecords, TheQuestionIsChecked) {
  for (const char* text :
       {"", "[]", "{}", R"({"from": 5})", R"({"from": "5", "until": 6})",
        R"({"from": 6, "until": 6})", R"({"from": -1, "until": 6})",
        R"({"from": 0, "until": 9000000000000000000})", R"({"from": 0, "until": 5, "ns": "../x"})",
        R"({"from": 0, "until": 5, "ns": 7})", R"({"from": 0, "until": 5, "next": []})",
        R"({"from": 0, "until": 5, "jobs": "7"})", R"({"from": 0, "until": 5, "jobs": ["7"]})",
        R"({"from": 0, "until": 5, "next": "nonsense"})"}) {
    const auto answer = page_records(session_of_records(), text);
    ASSERT_FALSE(answer.ok()) << text;
    EXPECT_EQ(answer.error().code, base::Code::kInvalidArgument) << text << answer.error().message;
  }
}

// A partition with a selector has the nodes with that label, and loses one with its label.
TEST_F(Page, SelectorsFindNodes) {
  kube::Partition labeled;
  labeled.metadata.name = "labeled";
  labeled.spec.nodes.selector = kube::LabelSelector{.match_labels = {{"pool", "batch"}}};
  ASSERT_TRUE(client_.create(labeled));
  for (const char* name : {"a1", "a2", "b1"}) {
    kube::Node node;
    node.metadata.name = name;
    if (name[0] == 'a') node.metadata.labels = {{"pool", "batch"}};
    ASSERT_TRUE(client_.create(node));
  }
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  const auto members = [&] { return board_json(board)["partitions"]["labeled"]["on"]; };
  until([&] { return members() == Json::array({"a1", "a2"}); });
  ASSERT_TRUE(client_.remove<kube::Node>({.ns = "", .name = "a1"}));
  until([&] { return members() == Json::array({"a2"}); });
  ASSERT_TRUE(client_.remove<kube::Partition>({.ns = "", .name = "labeled"}));
  until([&] { return !board_json(board).contains("partitions"); });
}

// A name of whatever bytes is a JSON string and nothing else.
TEST_F(Page, TextsOfObjectsStayTexts) {
  auto job = std::make_shared<kube::Job>();
  job->metadata.name = "</script><img src=x onerror=alert(1)>";
  job->status.message = std::string{"\"},\n\xff"};
  const Json json = Json::parse(page_job(job, {}));
  EXPECT_EQ(json["name"], job->metadata.name);
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("\"},\n"));
}

TEST_F(Page, SaysOfOneJobWhatExplainSays) {
  add_world();
  const auto details = page_job_details(session(), "team-b", "second");
  ASSERT_TRUE(details) << details.error().message;
  const Json json = Json::parse(*details);
  EXPECT_EQ(json["explain"],
            Json::parse(run({"explain", "-n", "team-b", "second", "-o", "json"}).out));
  EXPECT_EQ(json["pods"], Json::array());
  const auto missing = page_job_details(session(), "team-b", "nothing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, base::Code::kNotFound);
}

// Goal: a large array costs what runs of it. Method: 10,000 tasks of which 50 run; then one of them
// ends and the next one starts.
TEST_F(Page, AnArrayIsItsBegunTasksAndARange) {
  kube::ArrayStatus status{.summary = "100 of 10000 done, 50 run",
                           .counts = {.waiting = 9850, .running = 50, .succeeded = 99, .failed = 1},
                           .succeeded = "0-98",
                           .failed = "99"};
  for (int task = 100; task < 150; ++task) status.tasks.push_back(running(task, "n12"));
  kube::Job sweep =
      add_job("team-a", "sweep", {.array = kube::JobArray{.tasks = "0-9999", .parallelism = 50}},
              {.state = kube::JobState::kRunning,
               .reason = "JobArrayTaskLimit",
               .job_id = 7,
               .array = status});
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  until([&] { return feed.has_synced(); });
  const auto whole = board.since(0, now());
  EXPECT_LT(whole.json.size(), 40'000U);
  const Json shown = Json::parse(whole.json)["set"];
  const std::string& uid = sweep.metadata.uid;
  const Json& array = shown["jobs"][uid]["array"];
  EXPECT_EQ(array["waiting"], "150-9999");
  EXPECT_EQ(array["throttle"], 50);
  EXPECT_EQ(array["counts"]["waiting"], 9850);
  EXPECT_EQ(array["failed"], "99");
  EXPECT_EQ(shown["tasks"].size(), 50U);
  const Json task = shown["tasks"][uid + "_149"];
  EXPECT_EQ(task["of"], uid);
  EXPECT_EQ(task["task"], 149);
  EXPECT_EQ(task["id"], 1149);
  EXPECT_EQ(task["state"], "R");
  EXPECT_EQ(task["stays"][0]["on"], Json::array({"n12"}));

  clock_.advance(seconds{5});
  status.tasks.erase(status.tasks.begin());
  status.tasks.push_back(running(150, "n13"));
  status.succeeded = "0-98,100";
  sweep.status.array = status;
  ASSERT_TRUE(client_.update_status(sweep));
  until([&] { return board_json(board)["tasks"].contains(uid + "_150"); });
  const auto change = board.since(whole.version, now());
  EXPECT_LT(change.json.size(), 2'500U) << change.json;
  const Json set = Json::parse(change.json)["set"];
  EXPECT_EQ(set["jobs"][uid]["array"]["waiting"], "151-9999");
  EXPECT_EQ(set["tasks"].size(), 2U);
  const Json ended = set["tasks"][uid + "_100"];
  EXPECT_EQ(ended["state"], "CD");
  EXPECT_EQ(ended["id"], 1100);
  EXPECT_EQ(ended["stays"][0]["to"], base::micros_since_epoch(now()));
}

// A task that waits for its first start by itself (it is held) has no past when it is like the
// others again. With the object of the array the tasks end that were seen to run.
TEST_F(Page, TasksThatNeverRanGoAwayAndOthersStay) {
  kube::ArrayStatus status{
      .tasks = {running(1, "n12"),
                {.task = 2, .state = kube::JobState::kPending, .reason = "JobHeldUser"}}};
  kube::Job sweep = add_job("team-a", "sweep", {.array = kube::JobArray{.tasks = "1-9"}},
                            {.state = kube::JobState::kRunning, .array = status});
  dashboard::Board board;
  const PageFeed feed{session(), "", board};
  const std::string& uid = sweep.metadata.uid;
  until([&] { return board_json(board)["tasks"].contains(uid + "_2"); });
  EXPECT_EQ(board_json(board)["tasks"][uid + "_2"]["reason"], "JobHeldUser");
  sweep.status.array->tasks.pop_back();
  ASSERT_TRUE(client_.update_status(sweep));
  until([&] { return !board_json(board)["tasks"].contains(uid + "_2"); });
  ASSERT_TRUE(client_.remove<kube::Job>(kube::key_of(sweep.metadata)));
  until([&] { return board_json(board)["jobs"][uid].contains("gone"); });
  EXPECT_EQ(board_json(board)["tasks"][uid + "_1"]["state"], "CA");
}

// Numbers with holes are cut; nothing else of an array grows with its tasks.
TEST_F(Page, ARaggedArrayHasAShortText) {
  auto job = std::make_shared<kube::Job>();
  job->spec.array = kube::JobArray{.tasks = "0-100000"};
  std::vector<int> odd;
  for (int task = 1; task < 2000; task += 2 + task % 3) odd.push_back(task);
  job->status.array = kube::ArrayStatus{.failed = base::format_number_list(odd)};
  EXPECT_LT(page_job(job, {}).size(), 2'000U);
}

TEST_F(Page, HoldsReleasesAndCancelsAsTheCommandsDo) {
  const kube::Job job =
      add_job("team-a", "waits", {}, {.state = kube::JobState::kPending, .job_id = 3});
  const auto held = page_control(session(), wish("hold", job));
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(control_of(job).hold, true);
  ASSERT_TRUE(page_control(session(), wish("release", job)));
  EXPECT_EQ(control_of(job).hold, false);
  ASSERT_TRUE(page_control(session(), wish("cancel", job)));
  EXPECT_EQ(control_of(job).cancel, true);

  const kube::Job array = add_job("team-a", "sweep", {.array = kube::JobArray{.tasks = "0-99"}},
                                  {.state = kube::JobState::kPending, .job_id = 9});
  ASSERT_TRUE(page_control(session(), wish("cancel", array, "3,5-7")));
  ASSERT_EQ(control_of(array).tasks.size(), 1U);
  EXPECT_EQ(control_of(array).tasks[0].tasks, "3,5-7");
  EXPECT_EQ(control_of(array).tasks[0].cancel, true);
  EXPECT_FALSE(control_of(array).cancel.has_value());
}

// A dialog may stand open while the job is deleted and another one gets its name.
TEST_F(Page, ChangesNoOtherJobOfThatName) {
  kube::Job seen = add_job("team-a", "waits", {}, {.state = kube::JobState::kPending});
  const kube::Job now_there = seen;
  seen.metadata.uid = "another";
  const auto refused = page_control(session(), wish("cancel", seen));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kNotFound);
  EXPECT_FALSE(control_of(now_there).cancel.has_value());
}

TEST_F(Page, SaysWhyAWishCannotBeDone) {
  const kube::Job job =
      add_job("team-a", "waits", {}, {.state = kube::JobState::kPending, .job_id = 3});
  const auto why = [&](const std::string& text) {
    const auto done = page_control(session(), text);
    return done ? "done" : done.error().message;
  };
  EXPECT_EQ(why("<script>"), "the body must be a JSON object");
  EXPECT_EQ(why("[1]"), "the body must be a JSON object");
  EXPECT_EQ(why(wish("suspend", job)), "verb must be hold, release or cancel");
  EXPECT_EQ(why(R"({"verb": "hold", "ns": 7, "name": "waits", "uid": "u"})"),
            "ns, name and uid must name a job");
  EXPECT_EQ(why(wish("hold", job, "1,x")), "tasks must be numbers of tasks such as 3,5-7");
  EXPECT_EQ(why(wish("release", job)), "job waits: it is not held");
  EXPECT_THAT(why(wish("cancel", job, "3")), HasSubstr("it has no tasks"));
  server_.inject({.verb = "patch", .resource = "jobs", .code = 403});
  EXPECT_THAT(why(wish("cancel", job)), HasSubstr("team-a/waits"));
  EXPECT_EQ(control_of(job), kube::JobControl{});
}

// Whatever a body is, it is a wish for a named job or an error in words. Each byte is replaced, and
// each beginning is read.
TEST(PageWish, IsReadOrRefused) {
  const std::string good =
      R"({"verb": "hold", "ns": "a", "name": "b", "uid": "c", "tasks": "3,5-7"})";
  ASSERT_TRUE(read_page_wish(good));
  const auto check = [](const std::string& text) {
    const auto wish = read_page_wish(text);
    EXPECT_TRUE(wish ? !wish->job.uid.empty() : !wish.error().message.empty()) << text;
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    check(good.substr(0, i));
    for (const char c : {'"', '{', '\\', '\0', '9', '\xff'}) {
      std::string text = good;
      text[i] = c;
      check(text);
    }
  }
  EXPECT_FALSE(read_page_wish(std::string(1000, '[')));
}

// Actions that do not suit the state are refused, and all without the right to change the job.
TEST_F(Page, RefusesByStateAndByRights) {
  const kube::Job job =
      add_job("team-a", "waits", {}, {.state = kube::JobState::kPending, .job_id = 3});
  const auto refusals = [&] {
    return Json::parse(page_job_details(session(), "team-a", "waits").value())["refusals"];
  };
  EXPECT_EQ(refusals(), (Json{{"hold", ""}, {"release", "it is not held"}, {"cancel", ""}}));
  server_.inject({.verb = "create",
                  .resource = "selfsubjectaccessreviews",
                  .code = 201,
                  .text = R"({"status": {"allowed": false}})"});
  const std::string no_right = "you have no right to change jobs in namespace team-a";
  EXPECT_EQ(refusals(), (Json{{"hold", no_right}, {"release", no_right}, {"cancel", no_right}}));
}

// The name of a job may look like a number, which is another job's.
TEST_F(Page, ANameThatIsANumberIsAName) {
  add_job("team-a", "3", {}, {.state = kube::JobState::kPending, .job_id = 4});
  add_job("team-a", "other", {}, {.state = kube::JobState::kPending, .job_id = 3});
  const auto details = page_job_details(session(), "team-a", "3");
  ASSERT_TRUE(details);
  EXPECT_EQ(Json::parse(*details)["explain"]["name"], "3");
}

TEST_F(Page, ThePortIsChecked) {
  EXPECT_EQ(run({"dashboard", "--port", "70000"}).code, kExitUsage);
}

}  // namespace
}  // namespace cli
