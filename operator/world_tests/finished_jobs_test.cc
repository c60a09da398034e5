// Jobs that have ended.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// After 20 s of its 30 s it is there, after 40 s it is not.
TEST(Operator, AFinishedJobIsDeletedAfterItsTimeToLive) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("short", 1, "5s", {{"lifecycle", {{"ttlAfterFinished", "30s"}}}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("short") == "Completed"; }, minutes{1}));
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("short"), "Completed");
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("short"), "");
}

// Records are down for an hour, and the operator ends meanwhile: nothing is deleted that they have
// not stored.
TEST(Operator, AFinishedJobIsNotDeletedBeforeItIsRecorded) {
  const kube::ObjectKey key{"kubegang-system", "kubegang-records"};
  World world{{}};
  world.process().loop().wait_for_records(key);
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  kube::Lease lease;
  lease.metadata.ns = key.ns;
  lease.metadata.name = key.name;
  ASSERT_TRUE(world.client().create(lease).ok());
  world.apply(gang_job("short", 1, "5s", {{"lifecycle", {{"ttlAfterFinished", "30s"}}}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("short") == "Completed"; }, minutes{1}));
  world.run_for(minutes{30});
  EXPECT_EQ(world.state("short"), "Completed");
  EXPECT_EQ(world.process().loop().counters().jobs_unrecorded, 1);
  world.restart_operator();
  world.process().loop().wait_for_records(key);
  world.run_for(minutes{30});
  EXPECT_EQ(world.state("short"), "Completed");
  const auto acknowledge = [&](std::int64_t version) {
    const json annotations{{"kubegang.io/recorded-version", std::to_string(version)}};
    ASSERT_TRUE(world.client()
                    .patch<kube::Lease>(key, {{"metadata", {{"annotations", annotations}}}})
                    .ok());
    world.run_for(seconds{20});
  };
  const std::int64_t stored = std::stoll(world.job("short").metadata.resource_version);
  acknowledge(stored - 1);
  EXPECT_EQ(world.state("short"), "Completed");
  acknowledge(stored);
  EXPECT_EQ(world.state("short"), "");
  EXPECT_EQ(world.process().loop().counters().unrecorded_deletes, 0);
}

// Only the object of a job that has ended is kept; whatever happens to it then has its effect all
// the same, by this leader and by the next.
class FinishedJobTest : public ::testing::TestWithParam<bool> {
 protected:
  FinishedJobTest() : world_{{}} {
    world_.apply(linear_config());
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("short", 2, "5s", {{"control", {{"requeueRequest", 2}}}}));
    EXPECT_TRUE(world_.run_until([&] { return world_.state("short") == "Completed"; }, minutes{1}));
    world_.run_for(seconds{5});
    if (GetParam()) world_.restart_operator();
    world_.run_for(seconds{1});
  }
  std::int64_t finished_count() { return world_.process().loop().counters().jobs_finished; }
  World world_;
};
INSTANTIATE_TEST_SUITE_P(SameOrNextLeader, FinishedJobTest, testing::Bool());

// Clusters keep thousands of jobs that have ended. Each of them is counted, and none gets anything
// of what a job in the queue has, a number included.
TEST_P(FinishedJobTest, CostsItsObjectOnly) {
  EXPECT_EQ(finished_count(), 1) << world_.log_tail();
  world_.apply(gang_job("runs", 1, ""));
  world_.run_for(minutes{2});
  EXPECT_EQ(finished_count(), 1);
  // A new leader begins a block of a thousand numbers of its own.
  EXPECT_EQ(world_.job("runs").status.job_id, GetParam() ? 1001 : 2);
}

// The pods stay as long as the object, for their logs, and go with it: the garbage collector needs
// no word of the operator.
TEST_P(FinishedJobTest, IsDeletedWithItsPods) {
  EXPECT_EQ(world_.pods_of("short").size(), 2U) << "their logs are still of use";
  world_.remove_job("short");
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.pods_of("short").size(), 0U);
  EXPECT_EQ(finished_count(), 0);
  // Another one of that name is another one.
  world_.apply(gang_job("short", 1, "5s"));
  ASSERT_TRUE(world_.run_until([&] { return world_.state("short") == "Completed"; }, minutes{1}))
      << world_.log_tail();
  world_.run_for(seconds{5});
  EXPECT_EQ(finished_count(), 1);
  expect_no_violations(world_);
}

// Counted from the end of the job and not from the edit; a leader that comes in between must not
// begin again.
TEST_P(FinishedJobTest, GetsATimeToLiveThatIsSetLater) {
  world_.patch_job("short", {{"lifecycle", {{"ttlAfterFinished", "60s"}}}});
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("short"), "Completed");
  EXPECT_EQ(finished_count(), 1);
  const kube::Job edited = world_.job("short");
  EXPECT_EQ(edited.status.observed_generation, edited.metadata.generation);
  if (GetParam()) world_.restart_operator();
  world_.run_for(seconds{40});
  EXPECT_EQ(world_.state("short"), "");
  EXPECT_EQ(finished_count(), 0);
}

// A counter of requests may only rise.
TEST_P(FinishedJobTest, SaysWhatCannotBeTakenBack) {
  world_.patch_job("short", {{"control", {{"requeueRequest", 1}}}});
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.condition("Job", "short", "Accepted").rfind("False: ChangeRefused", 0), 0U)
      << world_.condition("Job", "short", "Accepted");
  EXPECT_EQ(world_.state("short"), "Completed");
}

// A final state is final, whatever its user asks for and whatever another client writes into the
// status.
TEST_P(FinishedJobTest, IsNotRequeuedAndKeepsItsVerdict) {
  world_.patch_job("short", {{"control", {{"requeueRequest", 3}}}});
  const json stolen{{"status", {{"state", "Pending"}, {"message", "somebody else wrote this"}}}};
  ASSERT_TRUE(world_.client().patch_status<kube::Job>({"team-a", "short"}, stolen).ok());
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.state("short"), "Completed") << world_.log_tail();
  EXPECT_EQ(world_.job("short").status.message, "");
  EXPECT_EQ(world_.job("short").status.starts, 1);
  EXPECT_EQ(finished_count(), 1);
}

}  // namespace
}  // namespace control
