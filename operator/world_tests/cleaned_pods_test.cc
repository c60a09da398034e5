// Ended pods are deleted by people with kubectl, by a CronJob that cleans up, by the garbage
// collector of pods above its threshold. The work of these pods still counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/testing/batch_job_fixture.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::vector<kube::Pod> succeeded(const World& world) {
  std::vector<kube::Pod> pods = world.pods();
  std::erase_if(
      pods, [](const kube::Pod& pod) { return pod.status.phase != kube::PodPhase::kSucceeded; });
  return pods;
}

// Lets time pass until `count` pods have succeeded, and deletes them as `kubectl delete pods
// --field-selector=status.phase==Succeeded` does.
void clean_up_when_succeeded(World& world, std::size_t count) {
  ASSERT_TRUE(world.run_until([&] { return succeeded(world).size() == count; }, minutes{2}))
      << world.log_tail();
  for (const kube::Pod& pod : succeeded(world)) {
    ASSERT_TRUE(world.client().remove<kube::Pod>(kube::key_of(pod.metadata)).ok());
    EXPECT_FALSE(world.client().get<kube::Pod>(kube::key_of(pod.metadata)).ok());
  }
}

// BatchJobFixture for a World of a test's own.
struct BatchJobs : BatchJobFixture {
  using BatchJobFixture::create;
  using BatchJobFixture::furnish;
  using BatchJobFixture::get;
};

class CleanedPodsTest : public testing::Test {
 protected:
  CleanedPodsTest() {
    world_.apply(linear_config());
    world_.apply(partition("batch", force()));
  }
  // A gang of two: pod 0 works for 40 s, pod 1 for 8 s.
  void submit_pair() {
    world_.apply(gang_job("pair", 2, "40s", {}, {{"test/work-of-others", "8s"}}));
  }
  // The program of this process is slow: it sees all of that in one look.
  void goes_on(OperatorProcess& process) {
    for (int ticks = 0; ticks < 400; ++ticks) {
      (void)process.pump();
      world_.run_for(world_.tick);
    }
  }
  void expect_completed_at_once(const std::string& name) {
    EXPECT_EQ(world_.state(name), "Completed") << world_.log_tail();
    EXPECT_EQ(world_.job(name).status.starts, 1);
    EXPECT_EQ(world_.job(name).status.restarts.value_or(0), 0);
    expect_no_violations(world_);
  }

  World world_{{}};
};

// The gang goes on, and is complete with its last pod.
TEST_F(CleanedPodsTest, AGangGoesOnWithoutAPodThatHasSucceeded) {
  submit_pair();
  clean_up_when_succeeded(world_, 1);
  world_.run_for(minutes{2});
  expect_completed_at_once("pair");
  EXPECT_EQ(world_.job("pair").status.succeeded_indexes, "0-1");
}

// The loop never sees the pod as succeeded, only that it is gone: the event of its deletion tells.
TEST_F(CleanedPodsTest, ASuccessCountsThoughItIsSeenOnlyWithItsDeletion) {
  submit_pair();
  world_.apply(gang_job("single", 1, "8s"));
  world_.run_for(seconds{5});
  const auto process = world_.take_process();
  clean_up_when_succeeded(world_, 2);
  goes_on(*process);
  expect_completed_at_once("pair");
  expect_completed_at_once("single");
}

// A success whose pod is gone is stored at once: after that no leader needs the pod.
TEST_F(CleanedPodsTest, ANewLeaderKnowsWhatWasDeletedBeforeIt) {
  submit_pair();
  clean_up_when_succeeded(world_, 1);
  world_.run_for(world_.tick);
  EXPECT_EQ(world_.job("pair").status.succeeded_indexes, "1") << world_.log_tail();
  world_.restart_operator();
  world_.run_for(minutes{2});
  expect_completed_at_once("pair");
}

// While its pods are there, a success costs no write; the next status that is written has it. Then
// the pod may go even while no operator runs.
TEST_F(CleanedPodsTest, TheNextStatusHasTheSuccessesAndNoneIsWrittenForThem) {
  submit_pair();
  const auto is_ready = [&] {
    return world_.condition("Job", "pair", "Ready").starts_with("True");
  };
  ASSERT_TRUE(world_.run_until(is_ready, minutes{1}));
  const std::string version = world_.job("pair").metadata.resource_version;
  world_.run_for(seconds{15});
  EXPECT_EQ(world_.job("pair").metadata.resource_version, version);
  world_.patch_job("pair", {{"schedule", {{"timeLimit", "1h"}}}});
  world_.run_for(seconds{2});
  EXPECT_EQ(world_.job("pair").status.succeeded_indexes, "1") << world_.log_tail();
  world_.take_process().reset();
  clean_up_when_succeeded(world_, 1);
  world_.restart_operator();
  world_.run_for(minutes{2});
  expect_completed_at_once("pair");
}

// The attempt of a batch Job is such a gang: no attempt is counted as failed, and none is made.
TEST(CleanedPods, ABatchJobGoesOnWithoutAPodThatHasSucceeded) {
  World world{{}};
  BatchJobs::furnish(world);
  BatchJobs::create(world, make_batch_job("pair", {.parallelism = 2, .completions = 2}, "40s",
                                          nullptr, {{"test/work-of-others", "8s"}}));
  clean_up_when_succeeded(world, 1);
  world.run_for(minutes{2});
  const kube::BatchJobStatus status = BatchJobs::get(world, "pair").status;
  EXPECT_TRUE(kube::is_true(status.conditions, kube::kBatchComplete)) << world.log_tail();
  EXPECT_EQ(status.succeeded, 2);
  EXPECT_EQ(status.completed_indexes, "0,1");
  EXPECT_EQ(world.job("pair").status.starts, 1);
}

// An end that no operator has seen is unknown. The job says so, and not that its pod was lost.
TEST_F(CleanedPodsTest, APodThatWentWhileNoOperatorRanIsToldApart) {
  submit_pair();
  world_.run_for(seconds{5});
  world_.take_process().reset();
  clean_up_when_succeeded(world_, 1);
  world_.restart_operator();
  world_.run_for(seconds{1});
  EXPECT_THAT(world_.job("pair").status.message, HasSubstr("was deleted while no operator ran"))
      << world_.log_tail();
  EXPECT_EQ(world_.job("pair").status.restarts, 1);
}

// One that runs is a member, by whatever deletion, and however its program takes SIGTERM: the
// tests' kubelet reports 143. The operator sees the failed pod and its deletion together.
TEST_F(CleanedPodsTest, ADeletedPodThatIsSeenFailedIsNoFailure) {
  json job = gang_job("pair", 2, "");
  job["spec"]["lifecycle"] = {{"requeue", false}};
  world_.apply(job);
  world_.run_for(seconds{10});
  const auto process = world_.take_process();
  const kube::Pod pod = world_.pods_of("pair").front();
  ASSERT_TRUE(world_.client().remove<kube::Pod>(kube::key_of(pod.metadata)).ok());
  // The kubelet has reported the end, and has not deleted the object yet.
  world_.node(*pod.spec.node_name).step(world_.server().resource_version());
  const auto ended = world_.client().get<kube::Pod>(kube::key_of(pod.metadata));
  ASSERT_TRUE(ended.ok());
  ASSERT_EQ(ended->status.phase, kube::PodPhase::kFailed);
  process->pump_without_writes();
  goes_on(*process);
  EXPECT_EQ(world_.state("pair"), "NodeFail") << world_.log_tail();
  EXPECT_THAT(world_.job("pair").status.message, HasSubstr("was deleted by another client"));
}

}  // namespace
}  // namespace control
