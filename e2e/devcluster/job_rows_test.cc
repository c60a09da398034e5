#include "e2e/devcluster/job_rows.h"

#include <gtest/gtest.h>

namespace devcluster {
namespace {

using std::chrono::seconds;

constexpr base::Duration kSlice = seconds{30};
constexpr base::Instant kStart = base::slot_begin(1000, kSlice);  // slot 0 of two

// Returns a job of some tasks that has run for 40 s, alone on n1, when the first slot of turns()
// begins.
kube::Job running() {
  kube::Job job;
  job.metadata.name = "first";
  job.metadata.uid = "uid-1";
  job.status.state = kube::JobState::kRunning;
  job.status.partition = "batch";
  job.status.allocation = kube::Allocation{.hostlist = "n1", .nodes = 1};
  job.status.start_time = kStart - seconds{40};
  job.status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
  return job;
}

// Returns the timetable in which it and another one take turns on n1: its slots are the even ones.
std::vector<kube::NodeTimetable> turns() {
  kube::NodeTimetable timetable;
  timetable.metadata.name = "n1";
  timetable.spec.as_of = kStart;
  timetable.spec.pods = {{.job_uid = "uid-1", .ran = seconds{40}}, {.job_uid = "uid-2"}};
  timetable.spec.timetable.slice = kSlice;
  timetable.spec.timetable.pods_count = 2;
  timetable.spec.timetable.cycle = {{0}, {1}};
  return {timetable};
}

// After 10 s in its slot it has run for 50 s. 42 s after the start of the slot its turn of 30 s is
// over: it has run for 70 s and stood still for 12 s.
TEST(JobRows, SayHowLongAJobRanAndWasSuspended) {
  const auto at = [](base::Duration since) {
    return job_rows({running()}, turns(), kStart + since).at(0);
  };
  JobRow row{.name = "first",
             .partition = "batch",
             .state = "R",
             .run_time = seconds{50},
             .nodes_count = 1,
             .nodes_or_reason = "n1"};
  EXPECT_EQ(at(seconds{10}), row);
  row.state = "S";
  row.run_time = seconds{70};
  row.suspended_time = seconds{12};
  EXPECT_EQ(at(seconds{42}), row);
}

// The row of a job that is done must not go on counting.
TEST(JobRows, AJobThatEndedIsSuspendedNoMore) {
  kube::Job job = running();
  job.status.state = kube::JobState::kCompleted;
  job.status.run_time = kube::RunTime{seconds{40}, kStart};
  const JobRow row = job_rows({job}, {}, kStart + seconds{100}).at(0);
  EXPECT_EQ(row.state, "CD");
  EXPECT_EQ(row.run_time, seconds{40});
  EXPECT_EQ(row.suspended_time, seconds{0});
}

}  // namespace
}  // namespace devcluster
