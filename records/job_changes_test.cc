#include "records/job_changes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/annotations.h"
#include "api/array_status.h"
#include "records/testing/history.h"

namespace records {
namespace {

using testing::at;
using testing::job_named;
using testing::kCluster;
using testing::on;

template <typename Kind>
std::vector<Record> records_in(const std::vector<Change>& changes) {
  std::vector<Record> found;
  for (const Change& change : changes) {
    if (const auto* one = std::get_if<Kind>(&change)) found.push_back(one->record);
  }
  return found;
}

TEST(JobChanges, SayOfAJobWhoWhereAndWhen) {
  kube::Job job = job_named("a", 7);
  job.metadata.annotations[std::string{kube::kAnnotationUser}] = "ann";
  job.spec.schedule.account = "physics";
  job.spec.resources.tasks = 4;
  job.spec.resources.devices = {{.name = "gpu", .type = "a100", .count = 2}};
  job.status.state = kube::JobState::kTimeout;
  job.status.allocation = on("n[1-2]");
  job.status.allocation->shares = {{.hostlist = "n[1-2]", .memory = kube::Bytes{1'000}}};
  job.status.start_time = at(10);
  job.status.end_time = at(70);
  job.status.run_time = kube::RunTime{.elapsed = std::chrono::seconds{50}, .as_of = at(70)};
  job.status.suspend_time = kube::RunTime{.elapsed = std::chrono::seconds{10}, .as_of = at(70)};
  const std::vector<Change> changes = changes_of(nullptr, job, kCluster, at(100));
  Record want{.cluster = kCluster, .job_uid = "uid-a"};
  want.job_id = 7;
  want.ns = "team-a";
  want.object = "a";
  want.name = "a";
  want.user = "ann";
  want.account = "physics";
  want.tasks = 4;
  want.devices = "gpu:a100:2";
  want.hostlist = "n[1-2]";
  want.allocated_nodes = 2;
  want.allocated_cpus = 8;
  want.allocated_memory = kube::Bytes{2'000};
  want.submit_time = at(0);
  want.eligible_time = at(0);
  want.start_time = at(10);
  want.end_time = at(70);
  want.elapsed = std::chrono::seconds{50};
  want.elapsed_as_of = at(70);
  want.suspended = std::chrono::seconds{10};
  want.state = RecordState::kTimeout;
  EXPECT_EQ(records_in<Written>(changes), std::vector{want});
  EXPECT_EQ(*decode_record(encode(want)), want);
  EXPECT_TRUE(changes_of(&job, job, kCluster, at(101)).empty()) << "nothing has changed";
}

TEST(JobChanges, SayNothingBeforeAnOperatorHasSeenTheJob) {
  kube::Job job = job_named("a", 7);
  job.status = {};
  EXPECT_TRUE(changes_of(nullptr, job, kCluster, at(1)).empty());
}

TEST(JobChanges, OfAnObjectMadeAnewEndTheOldOne) {
  const kube::Job before = job_named("a", 7);
  kube::Job now = job_named("a", 8);
  now.metadata.uid = "uid-new";
  const std::vector<Change> changes = changes_of(&before, now, kCluster, at(5));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(std::get<JobGone>(changes[0]).job_uid, "uid-a");
  EXPECT_EQ(std::get<Written>(changes[1]).record.job_uid, "uid-new");
}

class ArrayChangesTest : public ::testing::Test {
 protected:
  ArrayChangesTest() {
    array_.spec.array = kube::JobArray{.tasks = "0-3"};
    array_.status.array.emplace();
  }

  void start(int task, base::Instant when) {
    kube::ArrayTask entry{.task = task, .job_id = 100 + task};
    entry.state = kube::JobState::kRunning;
    entry.starts = 1;
    entry.allocation = on("n1");
    entry.start_time = when;
    array_.status.array->tasks.push_back(entry);
  }
  void end(int task, kube::TaskOutcome outcome) {
    kube::TaskOutcomes outcomes{*array_.status.array};
    outcomes.set(task, outcome);
    outcomes.show(*array_.status.array);
    std::erase_if(array_.status.array->tasks, [&](const auto& one) { return one.task == task; });
  }

  kube::Job array_ = job_named("sweep", 100);
};

TEST_F(ArrayChangesTest, ATaskIsARecordFromItsFirstStartOn) {
  kube::Job before = array_;
  start(2, at(5));
  const auto changes = changes_of(&before, array_, kCluster, at(6));
  const std::vector<Record> records = records_in<Written>(changes);
  ASSERT_EQ(changes.size(), 1U);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].task, 2);
  EXPECT_EQ(records[0].job_id, 102);
  EXPECT_EQ(records[0].array_id, 100);
  EXPECT_EQ(records[0].hostlist, "n1");
  before = array_;
  start(3, at(7));
  EXPECT_EQ(records_in<Written>(changes_of(&before, array_, kCluster, at(8))).size(), 1U)
      << "task 2 has not changed";
}

TEST_F(ArrayChangesTest, TheEndOfATaskIsAsItsEndingSaid) {
  start(1, at(5));
  array_.status.array->tasks[0].ending =
      kube::JobEnding{.verdict = kube::EndingVerdict::kTimeout, .exit_code = 3};
  const kube::Job before = array_;
  end(1, kube::TaskOutcome::kFailed);
  const std::vector<Record> ended =
      records_in<TaskEnded>(changes_of(&before, array_, kCluster, at(9)));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].state, RecordState::kTimeout);
  EXPECT_EQ(ended[0].exit_code, 3);
  EXPECT_EQ(ended[0].end_time, at(9));
}

// With the end that its array keeps the record is whole, whatever was seen before.
TEST_F(ArrayChangesTest, TheEndThatAnArrayKeepsIsAllOfATask) {
  kube::TaskEnd told{.task = 2, .job_id = 102};
  told.state = kube::JobState::kOutOfMemory;
  told.allocation = on("n1");
  told.partition = "long";
  told.start_time = at(5);
  told.end_time = at(8);
  told.run_time = kube::RunTime{.elapsed = std::chrono::seconds{3}, .as_of = at(8)};
  told.exit_code = 137;
  told.usage = {.user_cpu = std::chrono::seconds{3}, .max_rss = kube::Bytes{4'096}};
  end(2, kube::TaskOutcome::kFailed);
  array_.status.array->ended = {told};
  const auto changes = changes_of(nullptr, array_, kCluster, at(99));
  ASSERT_EQ(changes.size(), 1U);
  const Record record = std::get<Written>(changes[0]).record;
  EXPECT_EQ(record.task, 2);
  EXPECT_EQ(record.array_id, 100);
  EXPECT_EQ(record.job_id, 102);
  EXPECT_EQ(record.state, RecordState::kOutOfMemory);
  EXPECT_EQ(record.partition, "long");
  EXPECT_EQ(record.hostlist, "n1");
  EXPECT_EQ(record.submit_time, at(0)) << "the array's";
  EXPECT_EQ(record.start_time, at(5));
  EXPECT_EQ(record.end_time, at(8));
  EXPECT_EQ(record.elapsed, std::chrono::seconds{3});
  EXPECT_EQ(record.exit_code, 137);
  EXPECT_EQ(record.user_cpu, std::chrono::seconds{3});
  EXPECT_EQ(record.max_rss, kube::Bytes{4'096});
  const kube::Job before = array_;
  array_.status.array->ended.clear();
  EXPECT_TRUE(changes_of(&before, array_, kCluster, at(100)).empty()) << "it was told";
}

TEST_F(ArrayChangesTest, ATaskThatWaitsAgainSaysWhatItsRunUsed) {
  start(2, at(5));
  const kube::Job before = array_;
  kube::ArrayTask& entry = array_.status.array->tasks[0];
  entry.state = kube::JobState::kPending;
  entry.restarts = 1;
  entry.allocation.reset();
  entry.usage = kube::JobUsage{.user_cpu = std::chrono::seconds{3}};
  const auto changes = changes_of(&before, array_, kCluster, at(6));
  ASSERT_EQ(changes.size(), 1U);
  const Written written = std::get<Written>(changes[0]);
  EXPECT_EQ(written.record.restart, 1);
  EXPECT_EQ(written.record.user_cpu, std::nullopt) << "of the run to come";
  ASSERT_TRUE(written.used_before);
  EXPECT_EQ(written.used_before->user_cpu, std::chrono::seconds{3});
}

TEST_F(ArrayChangesTest, TasksThatEndedBeforeTheFirstLookAreRecords) {
  end(0, kube::TaskOutcome::kSucceeded);
  end(3, kube::TaskOutcome::kCancelled);
  const std::vector<Record> ended =
      records_in<TaskEnded>(changes_of(nullptr, array_, kCluster, at(9)));
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].state, RecordState::kCompleted);
  EXPECT_EQ(ended[0].exit_code, 0);
  EXPECT_EQ(ended[1].state, RecordState::kCancelled);
  EXPECT_TRUE(changes_of(&array_, array_, kCluster, at(10)).empty());
}

}  // namespace
}  // namespace records
