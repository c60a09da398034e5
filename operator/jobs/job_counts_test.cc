#include "operator/jobs/job_counts.h"

#include <gtest/gtest.h>

#include "operator/testing/edit_owned.h"

namespace control {
namespace {

// Returns a job of QOS "normal" in that state; it has nodes unless it is pending. `partition` may
// be a list.
JobRecord job_in(const std::string& uid, kube::JobState state, const std::string& partition) {
  JobRecord job;
  job.uid = uid;
  edit(job.wishes).submitted = true;
  auto request = std::make_shared<sched::JobRequest>();
  request->qos = "normal";
  edit(job.wishes).request = std::move(request);
  job.wanted_unmarked().state = state;
  job.wanted_unmarked().partition = partition;
  if (state != kube::JobState::kPending) job.wanted_unmarked().allocation.emplace();
  return job;
}

// One job through its life: at each step it is counted in one place only. A suspended job counts as
// running for its QOS, because it has its nodes.
TEST(JobCounts, FollowEachJobFromOneStateToTheNext) {
  JobCounts counts;
  JobRecord job = job_in("a", kube::JobState::kPending, "batch,night");
  counts.observe_job(job);
  EXPECT_TRUE(counts.take_changed());
  EXPECT_EQ(counts.of_partition("batch"), (kube::PartitionJobCounts{.pending = 1}))
      << "the first of those that it waits for";
  EXPECT_EQ(counts.of_partition("night"), kube::PartitionJobCounts{});
  EXPECT_EQ(counts.of_qos("normal"), (std::pair{0, 1}));
  counts.observe_job(job);
  EXPECT_FALSE(counts.take_changed());

  job = job_in("a", kube::JobState::kRunning, "night");
  counts.observe_job(job);
  EXPECT_EQ(counts.of_partition("batch"), kube::PartitionJobCounts{});
  EXPECT_EQ(counts.of_partition("night"), (kube::PartitionJobCounts{.running = 1}));
  EXPECT_EQ(counts.of_qos("normal"), (std::pair{1, 0}));
  job.wanted_unmarked().state = kube::JobState::kSuspended;
  counts.observe_job(job);
  EXPECT_EQ(counts.all(), (kube::PartitionJobCounts{.suspended = 1}));
  EXPECT_EQ(counts.of_qos("normal"), (std::pair{1, 0})) << "it has its nodes";

  job.wanted_unmarked().state = kube::JobState::kCompleted;
  counts.observe_job(job);
  EXPECT_EQ(counts.all(), kube::PartitionJobCounts{});
  EXPECT_TRUE(counts.take_changed());
}

// A deleted job is not in the queue, even if its record stays until its pods are gone. To be
// forgotten twice must not count below zero.
TEST(JobCounts, LeaveOutWhatIsDeletedOrNotAccepted) {
  JobCounts counts;
  JobRecord job = job_in("a", kube::JobState::kRunning, "batch");
  counts.observe_job(job);
  job.deleted = true;
  counts.observe_job(job);
  EXPECT_EQ(counts.all(), kube::PartitionJobCounts{});
  job.deleted = edit(job.wishes).submitted = false;
  counts.observe_job(job);
  EXPECT_EQ(counts.all(), kube::PartitionJobCounts{});
  edit(job.wishes).submitted = true;
  counts.observe_job(job);
  counts.drop_job("a");
  counts.drop_job("a");
  EXPECT_EQ(counts.all(), kube::PartitionJobCounts{});
}

}  // namespace
}  // namespace control
