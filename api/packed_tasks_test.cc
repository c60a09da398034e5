// The lists of tasks in the status of an array, as they are stored.
#include "api/packed_tasks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "kube/base64.h"

namespace kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Instant kBegin = base::Instant{} + seconds{1'800'000'000};

// A task of one core that runs, with times and a node of its own.
ArrayTask running(int task) {
  const base::Instant start = kBegin + milliseconds{task * 7'919LL};
  const std::string node = "node-" + std::to_string(1'000 + task * 37 % 300);
  ArrayTask entry;
  entry.task = task;
  entry.job_id = 1'230'000 + task;
  entry.state = JobState::kRunning;
  entry.starts = 1;
  NodeShare share{.hostlist = node, .cores = std::to_string(task % 8), .cpus = 1, .tasks = 1};
  share.memory = Bytes{1 << 30};
  entry.allocation = Allocation{.hostlist = node, .nodes = 1, .cpus = 1, .shares = {share}};
  entry.partition = "batch";
  entry.submit_time = entry.eligible_time = kBegin;
  entry.start_time = start;
  entry.time_limit = std::chrono::hours{1};
  entry.run_time = entry.suspend_time = RunTime{.elapsed = {}, .as_of = start};
  entry.observed = JobObserved{.time_limit = std::chrono::hours{1}};
  return entry;
}

Job array_of(int tasks) {
  Job job;
  job.metadata = {.name = "sweep", .ns = "team-a", .uid = "u", .resource_version = "1"};
  job.status.term = 3;
  job.status.array.emplace().succeeded = "5000-5009";
  for (int task = 0; task < tasks; ++task) job.status.array->tasks.push_back(running(task));
  return job;
}

base::Result<Job> read(const json& object) {
  return decode<Job>(object);
}

std::size_t bytes_of(int tasks) {
  return encode(array_of(tasks))["status"]["array"].dump().size();
}

// Each write of the status has all entries, so a task costs what an entry takes, and that as often
// as others start and end.
TEST(PackedTasks, AreFewBytes) {
  EXPECT_LT(bytes_of(100) / 100, 60U);
  EXPECT_LT(bytes_of(1'000) / 1'000, 45U);
  RecordProperty("bytes of an entry of 100", static_cast<int>(bytes_of(100) / 100));
  RecordProperty("bytes of an entry of 1000", static_cast<int>(bytes_of(1'000) / 1'000));
}

TEST(PackedTasks, AreTheSameWhenTheyAreRead) {
  Job job = array_of(300);
  job.status.array->tasks[7].ending = JobEnding{.reason = "Killed", .since = kBegin};
  job.status.array->tasks[8].message = "\"\\ \xC3\xA9";
  job.status.array->ended.push_back({.task = 301, .job_id = 5, .end_time = kBegin});
  const json stored = encode(job);
  const json& array = stored["status"]["array"];
  EXPECT_FALSE(array.contains("tasks"));
  EXPECT_FALSE(array.contains("ended"));
  EXPECT_TRUE(array.contains("packed"));
  const auto again = read(stored);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, job);
}

// As people read them, and as programs from before read them.
TEST(PackedTasks, OfFewTasksAreLists) {
  const Job job = array_of(1);
  const json stored = encode(job);
  EXPECT_EQ(stored["status"]["array"]["tasks"].size(), 1U);
  EXPECT_FALSE(stored["status"]["array"].contains("packed"));
  EXPECT_EQ(*read(stored), job);
}

// So wrote programs before there was another form.
TEST(PackedTasks, ThatAreListsAreRead) {
  const Job job = array_of(100);
  json stored = encode(job);
  json& array = stored["status"]["array"];
  array.erase("packed");
  array["tasks"] = json::array();
  for (int task = 0; task < 100; ++task) {
    Job one = array_of(0);
    one.status.array->tasks = {running(task)};
    array["tasks"].push_back(encode(one)["status"]["array"]["tasks"][0]);
  }
  const auto again = read(stored);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, job);
}

// A program that does not know the text leaves it as it is, under a term of its own.
TEST(PackedTasks, OfAnEarlierTermSayNothing) {
  json stored = encode(array_of(100));
  stored["status"]["term"] = 4;
  stored["status"]["array"]["tasks"] = json::array({{{"task", 5}}});
  const auto again = read(stored);
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->status.array->tasks.size(), 1U);
  EXPECT_EQ(again->status.array->tasks[0].task, 5);
  EXPECT_EQ(again->status.array->packed, "");
}

TEST(PackedTasks, ThatCannotBeReadAreAnError) {
  json stored = encode(array_of(100));
  std::string& packed = stored["status"]["array"]["packed"].get_ref<std::string&>();
  const std::string whole = packed;
  for (const std::string& text :
       {std::string{"!"}, encode_base64("no such text"), whole.substr(0, whole.size() / 2)}) {
    packed = text;
    const auto again = read(stored);
    ASSERT_FALSE(again.ok()) << text;
    EXPECT_NE(again.error().message.find("Job team-a/sweep: status.array.packed: want"),
              std::string::npos)
        << again.error().message;
  }
}

}  // namespace
}  // namespace kube
