#include "operator/jobs/unseen_jobs.h"

#include <gtest/gtest.h>

namespace control {
namespace {

kube::Job numbered(const std::string& uid, std::int64_t version) {
  kube::Job job;
  job.metadata.uid = uid;
  job.metadata.resource_version = std::to_string(version);
  job.status.state = kube::JobState::kPending;
  job.status.job_id = 7;
  return job;
}

// Records have stored all up to 10, and end. They come back with a list of version 40.
TEST(UnseenJobs, CountsWhatWasMadeAndDeletedMeanwhile) {
  UnseenJobs unseen;
  unseen.observe(numbered("recorded", 9), 10);
  unseen.observe(numbered("before-the-list", 12), 10);
  unseen.observe(numbered("before-the-list", 15), 10);
  unseen.observe(numbered("in-the-list", 13), 10);
  unseen.gone("recorded", 20);
  EXPECT_FALSE(unseen.awaits()) << "it has a row, which records themselves call lost";
  unseen.gone("before-the-list", 21);
  EXPECT_TRUE(unseen.awaits());
  unseen.answered({.version = 10, .since = 2});
  EXPECT_EQ(unseen.count(), 0) << "they are still away";
  EXPECT_TRUE(unseen.awaits());
  unseen.gone("in-the-list", 45);
  unseen.answered({.version = 50, .since = 40});
  EXPECT_EQ(unseen.count(), 1);
  EXPECT_FALSE(unseen.awaits());
}

// They only had more to do than to say how far they are.
TEST(UnseenJobs, WhatIsWatchedIsNotCounted) {
  UnseenJobs unseen;
  unseen.observe(numbered("short", 12), 10);
  unseen.gone("short", 14);
  unseen.answered({.version = 11, .since = 2});
  EXPECT_TRUE(unseen.awaits()) << "they may end before they have stored it";
  unseen.answered({.version = 20, .since = 2});
  EXPECT_FALSE(unseen.awaits());
  EXPECT_EQ(unseen.count(), 0);
}

// Records have no Job before an operator has given it a number.
TEST(UnseenJobs, AJobWithoutANumberIsNone) {
  UnseenJobs unseen;
  kube::Job job = numbered("new", 12);
  job.status.job_id.reset();
  unseen.observe(job, 10);
  unseen.gone("new", 13);
  unseen.answered({.version = 50, .since = 40});
  EXPECT_EQ(unseen.count(), 0);
}

// A cluster whose jobs stay asks now and then, and forgets what is recorded.
TEST(UnseenJobs, ForgetsWhatIsRecorded) {
  UnseenJobs unseen;
  for (int i = 0; i < 1'001; ++i) unseen.observe(numbered("job" + std::to_string(i), 20 + i), 10);
  EXPECT_TRUE(unseen.awaits());
  unseen.answered({.version = 2'000, .since = 2});
  EXPECT_FALSE(unseen.awaits());
  unseen.gone("job1", 2'001);
  unseen.answered({.version = 3'000, .since = 2'900});
  EXPECT_EQ(unseen.count(), 0) << "its row was there";
}

}  // namespace
}  // namespace control
