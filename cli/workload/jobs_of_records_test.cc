#include "cli/workload/jobs_of_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/scenario.h"

namespace cli {
namespace {

using records::Record;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;

base::Instant at(int second) {
  return base::instant_from_micros(1'700'000'000'000'000) + seconds{second};
}

// Submitted at `submit`; ran at once, on a node of 4 CPUs.
Record ran(std::int64_t id, int submit, base::Duration elapsed) {
  Record record{.job_uid = "uid" + std::to_string(id), .job_id = id, .ns = "team-a", .user = "ann"};
  record.submit_time = record.eligible_time = record.start_time = at(submit);
  record.end_time = at(submit) + elapsed;
  record.elapsed = elapsed;
  record.state = records::RecordState::kCompleted;
  record.hostlist = "n1";
  record.allocated_nodes = 1;
  record.allocated_cpus = 4;
  return record;
}

class JobsOfRecords : public testing::Test {
 protected:
  JobsOfRecords() {
    auto scenario = read_scenario(
        "nodes:\n- {name: 'n[1-4]', cores: 4, memory: 1000}\n"
        "partitions:\n- {name: batch, Default: 'YES'}\n- {name: long}\ninputs: []\n",
        "c.yaml");
    EXPECT_TRUE(scenario.ok()) << scenario.error().message;
    scenario_ = std::move(scenario).value();
  }
  RecordedPast add(const std::vector<Record>& records) {
    auto past = add_records(records, scenario_);
    EXPECT_TRUE(past.ok()) << past.error().message;
    return std::move(past).value();
  }

  simulate::Scenario scenario_;
};

TEST_F(JobsOfRecords, AskForWhatWasAskedFor) {
  Record record = ran(7, 0, seconds{70});
  record.partition = "long";
  record.account = "physics";
  record.qos = "high";
  record.tasks = 6;
  record.cpus_per_task = 2;
  record.nodes = 3;
  record.memory_per_node = kube::Bytes{(1 << 20) + 1};
  record.time_limit = seconds{90};
  add({record});
  ASSERT_EQ(scenario_.jobs.size(), 1U);
  const simulate::Job& job = scenario_.jobs[0];
  EXPECT_EQ(job.label, "j7");
  EXPECT_EQ(job.work, seconds{70});
  EXPECT_EQ(job.request.user, "ann");
  EXPECT_THAT(job.request.partitions, ElementsAre("long"));
  EXPECT_EQ(job.request.account, "") << "the scenario has no such account";
  EXPECT_EQ(job.request.qos, "") << "nor that QOS";
  EXPECT_EQ(job.request.tasks, 6);
  EXPECT_EQ(job.request.cpus_per_task, 2);
  EXPECT_EQ(job.request.min_nodes, 3);
  EXPECT_EQ(job.request.max_nodes, 3);
  EXPECT_EQ(job.request.memory, sched::MemoryRequest{sched::MemoryPerNode{sched::MemoryMiB{2}}});
  EXPECT_EQ(job.request.time_limit, minutes{2});
}

// The wait of a job that was requeued began with its first submission; its work is that of the run
// that has done it.
TEST_F(JobsOfRecords, ARequeuedJobIsOne) {
  Record first = ran(1, 10, seconds{30});
  first.state = records::RecordState::kPreempted;
  Record second = ran(1, 100, seconds{50});
  second.restart = 1;
  const RecordedPast past = add({second, first, ran(2, 40, seconds{5})});
  ASSERT_EQ(scenario_.inputs.size(), 2U);
  EXPECT_EQ(scenario_.inputs[0].at, base::Instant{});
  EXPECT_EQ(scenario_.inputs[1].at, base::Instant{seconds{30}});
  EXPECT_EQ(scenario_.jobs[0].work, seconds{50});
  EXPECT_EQ(past.served[0].service.response, seconds{140});
  EXPECT_EQ(past.served[0].service.run, seconds{50});
  EXPECT_EQ(past.span, seconds{30});
}

// Suspended half of the time, and at work still when the last job came.
TEST_F(JobsOfRecords, TheRunTimeIsSpreadOverTheRun) {
  Record record = ran(1, 0, seconds{100});
  record.elapsed = seconds{50};
  EXPECT_EQ(add({record, ran(2, 40, seconds{5})}).used, 4 * seconds{20});
}

TEST_F(JobsOfRecords, WhatCannotBePlayedIsCounted) {
  Record waits = ran(1, 0, seconds{1});
  waits.start_time.reset();
  Record runs = ran(2, 0, seconds{1});
  runs.end_time.reset();
  Record lost = ran(3, 0, seconds{1});
  lost.state = records::RecordState::kLost;
  Record devices = ran(4, 0, seconds{1});
  devices.devices = "gpu:2";
  Record task = ran(5, 0, seconds{1});
  task.array_id = 5;
  task.task = 3;
  add({waits, runs, lost, devices, task});
  EXPECT_THAT(scenario_.warnings,
              ElementsAre("1 jobs asked for devices, which are not played",
                          "1 jobs of the records are left out: their end was not seen",
                          "1 jobs of the records are left out: they have not ended",
                          "1 jobs of the records are left out: they have not run"));
  ASSERT_EQ(scenario_.jobs.size(), 2U);
  EXPECT_EQ(scenario_.jobs[1].label, "j5_3");
  EXPECT_FALSE(add_records({}, scenario_).ok());
}

}  // namespace
}  // namespace cli
