// Arrays as squeue and scontrol show them: what the recordings of Slurm have (13.4).
#include "cli/slurm/array_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "cli/cluster/task_control.h"

namespace cli {
namespace {

using ::testing::ElementsAre;

// Returns the tasks 1 to 6, two at a time; 1 has succeeded, 2 runs, the others wait.
kube::Job array() {
  kube::Job job;
  job.spec.array = kube::JobArray{.tasks = "1-6", .parallelism = 2};
  job.status.job_id = 1001;
  job.status.state = kube::JobState::kRunning;
  job.status.reason = "JobArrayTaskLimit";
  kube::ArrayStatus& status = job.status.array.emplace();
  status.succeeded = "1";
  status.tasks.push_back({.task = 2,
                          .job_id = 1003,
                          .state = kube::JobState::kRunning,
                          .starts = 1,
                          .allocation = kube::Allocation{.hostlist = "n1", .nodes = 1, .cpus = 1}});
  return job;
}

std::vector<std::string> labels(const kube::Job& job, ArrayView view, bool has_ended = false) {
  std::vector<std::string> all;
  for (const JobPart& part : array_parts({job}, view, has_ended)) {
    all.push_back(job_label(part.job->status.job_id.value_or(0), part.array) + " " +
                  std::string{to_string(*part.job->status.state)} + " " + part.job->status.reason);
  }
  return all;
}

TEST(ArrayParts, TasksThatWaitAreOnePart) {
  EXPECT_THAT(labels(array(), ArrayView::kJoined),
              ElementsAre("1001_[3-6%2] Pending JobArrayTaskLimit", "1001_2 Running "));
  EXPECT_THAT(labels(array(), ArrayView::kEach, true),
              ElementsAre("1001_3 Pending JobArrayTaskLimit", "1001_4 Pending JobArrayTaskLimit",
                          "1001_5 Pending JobArrayTaskLimit", "1001_6 Pending JobArrayTaskLimit",
                          "1001_1 Completed ", "1001_2 Running "));
}

// While the records do not have its end, the status of the array has; afterwards its number is that
// of the array, and its exit code the highest of all.
TEST(ArrayParts, ATaskThatHasEndedHasItsNumberUntilItIsRecorded) {
  kube::Job job = array();
  job.status.exit_code = 9;
  job.status.array->succeeded = "";
  job.status.array->failed = "1,3";
  job.status.array->ended.push_back(
      {.task = 3, .job_id = 1004, .state = kube::JobState::kOutOfMemory, .exit_code = 2});
  const auto parts = array_parts({job}, ArrayView::kEach, true);
  const auto of = [&](int task) {
    const auto found = std::ranges::find_if(
        parts, [&](const JobPart& part) { return part.array->tasks.front() == task; });
    const kube::JobStatus& status = found->job->status;
    return std::to_string(*status.job_id) + " " + std::string{to_string(*status.state)} + " " +
           std::to_string(status.exit_code.value_or(-1));
  };
  EXPECT_EQ(of(3), "1004 OutOfMemory 2");
  EXPECT_EQ(of(1), "1001 Failed 9");
}

// As recorded: a row of steps is written as such if it spans more than ten numbers, and any other
// list is cut.
TEST(ArrayParts, ALongListOfTasksIsShortened) {
  const auto label = [](const std::string& tasks) {
    return job_label(1005, ArrayPart{1005, *parse_job_word("1_[" + tasks + "]")->tasks});
  };
  std::string evens = "0";
  for (int task = 2; task <= 98; task += 2) evens += "," + std::to_string(task);
  EXPECT_EQ(label(evens), "1005_[0-98:2]");
  EXPECT_EQ(label("1,3,5,7"), "1005_[1,3,5,7]");
  EXPECT_EQ(label("0-20"), "1005_[0-20]");
  EXPECT_EQ(label("0,20"), "1005_[0,20]");
  const std::string ragged =
      "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,40,42,44,46,48,50,52,54";
  EXPECT_EQ(label(ragged),
            "1005_[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,40,42,44...]");
  const ArrayPart part{1005, *parse_job_word("1_[" + ragged + "]")->tasks};
  EXPECT_EQ(short_job_label(1005, part), "1005_[1,3,5,7,9,11,13,15,17,19,");
  ASSERT_EQ(::setenv("SLURM_BITSTR_LEN", "16", 1), 0);
  EXPECT_EQ(short_job_label(1005, part), "1005_[1,3,5,7,9,11...]");
  ASSERT_EQ(::unsetenv("SLURM_BITSTR_LEN"), 0);
}

// A copy of the job for each of them would fill the memory.
TEST(ArrayParts, TasksOfWhichTheSameIsSaidShareAJob) {
  kube::Job job = array();
  job.spec.array->tasks = "0-99999";
  job.spec.control.tasks = {{.tasks = "70000-79999", .hold = true}};
  job.status.array->succeeded = "0-1,3-49999";
  job.status.array->failed = "50000-59999";
  std::set<const kube::Job*> jobs;
  const auto parts = array_parts({job}, ArrayView::kEach, true);
  ASSERT_EQ(parts.size(), 100'000U);
  for (const JobPart& part : parts) jobs.insert(part.job.get());
  EXPECT_EQ(jobs.size(), 5U) << "succeeded, failed, runs, waits, held";
}

// As recorded: the limit is that of the rest.
TEST(ArrayParts, TasksHaveLimitsOfTheirOwn) {
  kube::Job job = array();
  job.spec.schedule.time_limit = std::chrono::minutes{10};
  job.spec.control.tasks = {{.tasks = "3", .time_limit = std::chrono::minutes{7}, .nice = 5}};
  job.status.priority = 100;
  const auto joined = array_parts({job}, ArrayView::kJoined, false);
  EXPECT_EQ(joined.front().job->spec.schedule.time_limit, std::chrono::minutes{10});
  const auto each = array_parts({job}, ArrayView::kEach, false);
  EXPECT_EQ(each.front().job->spec.schedule.time_limit, std::chrono::minutes{7});
  EXPECT_EQ(each.front().job->status.priority, 95);
  EXPECT_EQ(each.back().job->spec.schedule.time_limit, std::chrono::minutes{10});
}

TEST(ArrayParts, EachReasonIsNamedOnce) {
  kube::Job job = array();
  job.spec.control.tasks = {{.tasks = "4-5", .hold = true}};
  EXPECT_THAT(labels(job, ArrayView::kJoined),
              ElementsAre("1001_[3-6] Pending JobArrayTaskLimit,JobHeldUser", "1001_2 Running "));
}

TEST(ArrayParts, AWordNamesAnArrayATaskOrItsNumber) {
  const ArrayPart part{1001, {2}};
  const auto names = [&](const char* word) { return is_named(*parse_job_word(word), 1003, part); };
  EXPECT_TRUE(names("1001"));
  EXPECT_TRUE(names("1003"));
  EXPECT_TRUE(names("1001_2"));
  EXPECT_TRUE(names("1001_[1-3,7]"));
  EXPECT_TRUE(names("1001_[7,2]"));
  EXPECT_FALSE(names("1001_3"));
  EXPECT_FALSE(parse_job_word("1001_x"));
  EXPECT_TRUE(is_named(*parse_job_word("7"), 7, std::nullopt));
  EXPECT_THAT(job_words("1,2_[3,5],4"), ElementsAre("1", "2_[3,5]", "4"));
}

TEST(TaskWishes, ThatAreAlikeAreOneEntry) {
  TaskWishes wishes{{{.tasks = "1-3", .hold = true}, {.tasks = "2", .hold = false}}};
  wishes.cancel[9] = true;
  wishes.cancel[8] = true;
  const auto entries = wishes.entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].tasks, "2");
  EXPECT_EQ(entries[1].tasks, "1,3");
  EXPECT_EQ(entries[2].tasks, "8-9");
  EXPECT_EQ(entries[2].cancel, true);
}

// Session array_last.
TEST(ArrayParts, TheLastTaskIsAListUntilOneWasSetApart) {
  const auto label = [](const std::string& tasks, const std::string& cancelled,
                        const std::string& failed) {
    kube::Job job;
    job.spec.array = kube::JobArray{.tasks = tasks, .parallelism = 2};
    job.status.job_id = 1001;
    job.status.array.emplace().cancelled = cancelled;
    job.status.array->failed = failed;
    const auto parts = array_parts({job}, ArrayView::kJoined, false);
    return parts.size() == 1 ? job_label(1001, parts[0].array) : "";
  };
  EXPECT_EQ(label("5", "", ""), "1001_[5%2]");
  EXPECT_EQ(label("1-3", "1,3", ""), "1001_[2%2]");
  EXPECT_EQ(label("1-3", "3", "1"), "1001_2");
}

}  // namespace
}  // namespace cli
