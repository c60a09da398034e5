// The page against the in-memory API server: what its board says agrees with `queue -o json`.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "cli/cluster/dashboard.h"
#include "cli/cluster/page_feed.h"
#include "cli/cluster/page_objects.h"
#include "cli/testing/program_fixture.h"
#include "kube/api/node.h"

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
    for (const char* node : {"n12", "n13"}) add_timetable(node, first, second);
    kube::Partition batch;
    batch.metadata.name = "batch";
    batch.spec.nodes.hostlist = "n[12-13]";
    ASSERT_TRUE(client_.create(batch));
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

TEST_F(Page, ThePortIsChecked) {
  EXPECT_EQ(run({"dashboard", "--port", "70000"}).code, kExitUsage);
}

}  // namespace
}  // namespace cli
