// The operator against the in-memory API server and nodes in virtual time.
#include "operator/operator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/testing/world.h"
#include "operator/wellknown.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Test;

json force(const std::string& nodes = "n[12-16]", const json& more = json::object()) {
  json spec{{"nodes", {{"hostlist", nodes}}},
            {"default", true},
            {"overSubscribe", {{"policy", "Force"}, {"maxShare", 4}}}};
  spec.update(more);
  return spec;
}

void expect_no_violations(const World& world) {
  const auto violations = world.violations();
  EXPECT_TRUE(violations.empty()) << testing::PrintToString(violations) << world.log_tail();
}

TEST(Operator, RunsAJobFromSubmissionToItsEnd) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("one", 3, "20s"));
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Running"; }, seconds{5}))
      << world.log_tail();
  EXPECT_EQ(world.job("one").status.allocation->node_list, "n[12-14]");
  EXPECT_EQ(world.job("one").status.job_id, 1);
  const auto pods = world.pods_of("one");
  ASSERT_EQ(pods.size(), 3U);
  EXPECT_EQ(pods[0].metadata.labels.at(std::string{kLabelPartition}), "batch");

  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Completed"; }, minutes{1}))
      << world.log_tail();
  const kube::JobStatus status = world.job("one").status;
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_TRUE(kube::is_true(status.conditions, kFinished));
  EXPECT_TRUE(status.end_time.has_value());
  expect_no_violations(world);
}

// Jobs of one file are created within a second, which is all that a creation timestamp tells apart.
TEST(Operator, JobsAreNumberedInTheOrderOfTheirCreation) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("job-" + std::to_string(i * 7 % 20));
  for (const std::string& name : names) world.apply(gang_job(name, 1, ""));
  world.run_for(seconds{5});
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(world.job(names[i]).status.job_id, static_cast<std::int64_t>(i + 1)) << names[i];
  }
}

// 14.1: two jobs that fill the nodes take turns, and nobody writes anything for it.
TEST(Operator, TwoFullSizeJobsTakeTurns) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("second", 5, ""));
  world.run_for(seconds{20});
  const auto first_before = world.ran("first");
  const auto second_before = world.ran("second");
  world.server().clear_request_log();
  const base::Instant quiet = world.clock().wall();
  world.run_for(seconds{80});
  // 80 s are 20 slices: 40 s each, a tick's width apart at most.
  EXPECT_NEAR(std::chrono::duration<double>(world.ran("first") - first_before).count(), 40, 4);
  EXPECT_NEAR(std::chrono::duration<double>(world.ran("second") - second_before).count(), 40, 4);
  for (const auto& write : world.server().writes_since(quiet)) {
    // Counts and run times may be shown; nothing else is to be said.
    EXPECT_TRUE(write.kind.resource == "jobs" || write.kind.resource == "partitions")
        << write.kind.verb << " " << write.kind.resource;
  }
  expect_no_violations(world);
}

TEST(Operator, AHighTierSuspendsALowOneAndGivesBack) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition(
      "low", force("n[12-16]", {{"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}}})));
  world.apply(partition("high", {{"nodes", {{"hostlist", "n[12-16]"}}},
                                 {"priorityTier", 2},
                                 {"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}}}));
  world.apply(gang_job("low-job", 5, "60s"));
  world.run_for(seconds{10});
  world.apply(gang_job("high-job", 3, "20s", {{"partitions", json::array({"high"})}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("low-job") == "Suspended"; }, seconds{20}))
      << world.log_tail();
  EXPECT_EQ(world.job("low-job").status.reason, "Preempted");
  ASSERT_TRUE(world.run_until([&] { return world.state("high-job") == "Completed"; }, minutes{1}));
  ASSERT_TRUE(world.run_until([&] { return world.state("low-job") == "Completed"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("low-job").status.restarts.value_or(0), 0);
  expect_no_violations(world);
}

TEST(Operator, AHighTierRequeuesALowOne) {
  World world{{}};
  json config = linear_config("4s");
  config["spec"]["preemptMode"] = "Requeue";
  config["spec"]["requeue"] = {{"delay", "5s"}};
  config["spec"]["killWait"] = "2s";
  world.apply(config);
  world.apply(partition("low", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  world.apply(partition("high", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"priorityTier", 2}}));
  world.apply(gang_job("low-job", 5, "30s"));
  world.run_for(seconds{10});
  world.apply(gang_job("high-job", 3, "20s", {{"partitions", json::array({"high"})}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("high-job") == "Running"; }, minutes{3}))
      << world.log_tail();
  EXPECT_EQ(world.job("low-job").status.restarts, 1);
  ASSERT_TRUE(world.run_until([&] { return world.state("low-job") == "Completed"; }, minutes{5}))
      << world.log_tail();
  EXPECT_EQ(world.job("low-job").status.starts, 2);
  EXPECT_EQ(world.state("high-job"), "Completed");
  expect_no_violations(world);
}

TEST(Operator, TheFirstFailureEndsTheGang) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("bad", 3, "5s", {}, {{"test/exit-code", "3"}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("bad") == "Failed"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("bad").status.exit_code, 3);
  world.apply(gang_job("big", 3, "5s", {}, {{"test/oom", "true"}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("big") == "OutOfMemory"; }, minutes{2}))
      << world.log_tail();
  expect_no_violations(world);
}

TEST(Operator, CancelHoldSuspendAndRequeueAreObeyed) {
  World world{{}};
  json config = linear_config("4s");
  config["spec"]["requeue"] = {{"delay", "1s"}};
  world.apply(config);
  world.apply(partition("batch", force()));
  world.apply(gang_job("held", 1, "5s", {{"hold", true}}));
  world.apply(gang_job("other", 2, ""));
  world.run_for(seconds{10});
  EXPECT_EQ(world.state("held"), "Pending");
  EXPECT_EQ(world.job("held").status.reason, "JobHeldUser");
  world.patch_job("held", {{"hold", false}});
  world.patch_job("other", {{"suspend", true}});
  ASSERT_TRUE(world.run_until([&] { return world.state("held") == "Completed"; }, minutes{1}));
  EXPECT_EQ(world.state("other"), "Suspended");
  EXPECT_EQ(world.job("other").status.reason, "User");
  const auto ran = world.ran("other");
  world.run_for(seconds{20});
  EXPECT_EQ(world.ran("other"), ran) << world.log_tail();
  world.patch_job("other", {{"suspend", false}});
  ASSERT_TRUE(world.run_until([&] { return world.state("other") == "Running"; }, seconds{30}));
  world.patch_job("other", {{"requeueRequest", 1}});
  ASSERT_TRUE(world.run_until([&] { return world.job("other").status.restarts == 1; }, minutes{1}))
      << world.log_tail();
  ASSERT_TRUE(world.run_until([&] { return world.state("other") == "Running"; }, minutes{3}))
      << world.log_tail();
  world.patch_job("other", {{"cancel", true}});
  ASSERT_TRUE(world.run_until([&] { return world.state("other") == "Cancelled"; }, minutes{1}))
      << world.log_tail();
  expect_no_violations(world);
}

TEST(Operator, ADeletedJobFreesItsNodesWhenItsPodsAreGone) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  world.apply(gang_job("gone", 5, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("next", 5, "5s"));
  world.run_for(seconds{5});
  EXPECT_EQ(world.state("next"), "Pending");
  world.remove_job("gone");
  ASSERT_TRUE(world.run_until([&] { return world.state("next") == "Completed"; }, minutes{3}))
      << world.log_tail();
  EXPECT_TRUE(world.pods_of("gone").empty());
  expect_no_violations(world);
}

TEST(Operator, AStartThatKubeletRefusesIsUndoneAndTriedElsewhere) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  world.apply(
      gang_job("moved", 2, "5s", {}, {{"test/refuse", "OutOfcpu"}, {"test/refusals", "1"}}));
  ASSERT_TRUE(world.run_until([&] { return world.job("moved").status.starts >= 2; }, minutes{3}))
      << world.log_tail();
  ASSERT_TRUE(world.run_until([&] { return world.state("moved") == "Running"; }, minutes{3}));
  EXPECT_EQ(world.job("moved").status.restarts.value_or(0), 0);
  expect_no_violations(world);
}

TEST(Operator, AnImageThatCannotBePulledIsHeld) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("typo", 2, "", {}, {{"test/waiting", "ErrImagePull"}}));
  world.run_for(seconds{50});
  EXPECT_EQ(world.state("typo"), "Running");  // it may be a passing fault
  world.run_for(seconds{40});
  const kube::JobStatus status = world.job("typo").status;
  EXPECT_EQ(kube::to_string(*status.state), "Pending");
  EXPECT_EQ(status.reason, "LaunchFailedRequeuedHeld") << world.log_tail();
  ASSERT_TRUE(status.held.has_value());
  EXPECT_NE(status.message.find("ErrImagePull"), std::string::npos) << status.message;
  EXPECT_TRUE(world.pods_of("typo").empty());
}

TEST(Operator, AJobWhoseNodeVanishesIsRequeued) {
  World world{{}};
  json config = linear_config();
  config["spec"]["requeue"] = {{"delay", "1s"}};
  world.apply(config);
  world.apply(partition("batch", force()));
  world.apply(gang_job("survivor", 2, "20s"));
  world.run_for(seconds{10});
  world.node("n12").power_off();
  world.node("n12").set_ready(false);
  world.run_for(seconds{30});
  EXPECT_EQ(world.state("survivor"), "Running");  // the node may come back
  ASSERT_TRUE(world.client().remove<kube::Node>({"", "n12"}).ok());
  ASSERT_TRUE(world.run_until([&] { return world.state("survivor") == "Completed"; }, minutes{5}))
      << world.log_tail();
  EXPECT_EQ(world.job("survivor").status.restarts, 1);
  expect_no_violations(world);
}

TEST(Operator, AFinishedJobIsDeletedAfterItsTimeToLive) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("short", 1, "5s", {{"ttlAfterFinished", "30s"}}));
  ASSERT_TRUE(world.run_until([&] { return world.state("short") == "Completed"; }, minutes{1}));
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("short"), "Completed");
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("short"), "");
}

// What is kept of a job that has ended is its object; whatever happens to it then is heeded all the
// same, by this leader and by the next.
class FinishedJobTest : public ::testing::TestWithParam<bool> {
 protected:
  FinishedJobTest() : world_{{}} {
    world_.apply(linear_config());
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("short", 2, "5s", {{"requeueRequest", 2}}));
    EXPECT_TRUE(world_.run_until([&] { return world_.state("short") == "Completed"; }, minutes{1}));
    world_.run_for(seconds{5});
    if (GetParam()) world_.restart_operator();
    world_.run_for(seconds{1});
  }
  std::int64_t finished_count() { return world_.process().loop().counters().jobs_finished; }
  World world_;
};
INSTANTIATE_TEST_SUITE_P(SameOrNextLeader, FinishedJobTest, testing::Bool());

TEST_P(FinishedJobTest, CostsItsObjectOnly) {
  EXPECT_EQ(finished_count(), 1) << world_.log_tail();
  world_.apply(gang_job("runs", 1, ""));
  world_.run_for(minutes{2});
  EXPECT_EQ(finished_count(), 1);
  EXPECT_EQ(world_.job("runs").status.job_id, GetParam() ? 1001 : 2);
}

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

TEST_P(FinishedJobTest, GetsATimeToLiveThatIsSetLater) {
  world_.patch_job("short", {{"ttlAfterFinished", "60s"}});
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("short"), "Completed");
  EXPECT_EQ(finished_count(), 1);
  if (GetParam()) world_.restart_operator();
  world_.run_for(seconds{40});
  EXPECT_EQ(world_.state("short"), "");
  EXPECT_EQ(finished_count(), 0);
}

TEST_P(FinishedJobTest, SaysWhatCannotBeTakenBack) {
  world_.patch_job("short", {{"requeueRequest", 1}});
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.condition("Job", "short", "Accepted").rfind("False: ChangeRefused", 0), 0U)
      << world_.condition("Job", "short", "Accepted");
  EXPECT_EQ(world_.state("short"), "Completed");
}

TEST_P(FinishedJobTest, IsNotRequeuedAndKeepsItsVerdict) {
  world_.patch_job("short", {{"requeueRequest", 3}});
  const json stolen{{"status", {{"state", "Pending"}, {"message", "somebody else wrote this"}}}};
  ASSERT_TRUE(world_.client().patch_status<kube::Job>({"team-a", "short"}, stolen).ok());
  world_.run_for(seconds{5});
  EXPECT_EQ(world_.state("short"), "Completed") << world_.log_tail();
  EXPECT_EQ(world_.job("short").status.message, "");
  EXPECT_EQ(world_.job("short").status.starts, 1);
  EXPECT_EQ(finished_count(), 1);
}

// The answer to the write that commits a start has the template: one request less for each job.
TEST(Operator, AStartReadsItsTemplateOnlyAfterARestart) {
  const auto reads = [](World& world) {
    const auto& points = world.process().writer().points();
    return std::count(points.begin(), points.end(), "template-read");
  };
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("one", 3, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.pods_of("one").size(), 3U) << world.log_tail();
  EXPECT_EQ(reads(world), 0);
  world.crash_after("start");
  world.apply(gang_job("two", 2, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.crashes(), 1);
  EXPECT_EQ(world.pods_of("two").size(), 2U) << world.log_tail();
  EXPECT_EQ(reads(world), 1);
  expect_no_violations(world);
}

TEST(Operator, ARefusedJobIsSubmittedOnceItIsLegal) {
  World world{{}};
  world.apply(linear_config());
  world.apply(gang_job("early", 2, "5s"));
  world.run_for(seconds{2});
  EXPECT_EQ(world.condition("Job", "early", "Accepted").rfind("False: Invalid: spec.partitions", 0),
            0U)
      << world.condition("Job", "early", "Accepted");
  world.apply(partition("batch", force()));
  ASSERT_TRUE(world.run_until([&] { return world.state("early") == "Completed"; }, minutes{1}))
      << world.log_tail();
}

// 1.2.1: what is queued may start there, what is new may not even wait there.
TEST(Operator, APartitionThatDrainsTakesNoNewJobs) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"state", "Drain"}})));
  world.run_for(seconds{2});
  world.apply(gang_job("new", 2, "5s"));
  world.run_for(seconds{5});
  EXPECT_EQ(world.condition("Job", "new", "Accepted"),
            "False: Invalid: partition batch takes no new jobs: it is draining");
  world.restart_operator();
  world.run_for(seconds{5});
  EXPECT_EQ(world.state("new"), "Pending");
  EXPECT_EQ(world.job("new").status.reason, "NotAccepted");
  world.apply(partition("batch", force("n[12-16]", {{"state", "Up"}})));
  ASSERT_TRUE(world.run_until([&] { return world.state("new") == "Completed"; }, minutes{1}))
      << world.log_tail();
  expect_no_violations(world);
}

// T5 and api.md: a cancel cannot be taken back, least of all by a requeue that is under way.
TEST(Operator, ACancelDuringARequeueStands) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  json job = gang_job("both", 2, "");
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("both") == "Running"; }, minutes{1}));
  job["spec"]["requeueRequest"] = 1;
  world.apply(job);
  world.run_for(base::Duration{1'000});
  job["spec"]["cancel"] = true;
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("both") == "Cancelled"; }, minutes{3}))
      << world.log_tail();
  expect_no_violations(world);
}

// T10: spec.suspend stands, whatever else happens to the job.
TEST(Operator, ASuspendedJobDoesNotStartAgainAfterItsRequeue) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  json job = gang_job("kept", 2, "");
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("kept") == "Running"; }, minutes{1}));
  job["spec"]["suspend"] = true;
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("kept") == "Suspended"; }, minutes{1}));
  job["spec"]["requeueRequest"] = 1;
  world.apply(job);
  world.run_for(minutes{10});
  EXPECT_EQ(world.state("kept"), "Pending") << world.log_tail();
  EXPECT_EQ(world.job("kept").status.reason, "JobHeldUser");
  job["spec"]["suspend"] = false;
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("kept") == "Running"; }, minutes{2}))
      << world.log_tail();
  expect_no_violations(world);
}

std::vector<std::string> taints_of(World& world, const std::string& name) {
  const auto node = world.client().get<kube::Node>({.ns = "", .name = name});
  std::vector<std::string> taints;
  if (!node.ok()) return {node.error().message};
  for (const kube::Taint& taint : node->spec.taints) {
    taints.push_back(taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" +
                     taint.effect);
  }
  return taints;
}

// architecture.md 4: taintNodes keeps other pods off; our own job runs there all the same.
TEST(Operator, TaintsTheNodesOfAPartitionThatSaysSo) {
  using Taints = std::vector<std::string>;
  World world{{.nodes = {"n1", "n2", "n3"}}};
  ASSERT_TRUE(
      world.client()
          .patch<kube::Node>(
              {"", "n1"},
              {{"spec",
                {{"taints", {{{"key", "team"}, {"value", "a"}, {"effect", "PreferNoSchedule"}}}}}}})
          .ok());
  world.apply(linear_config());
  world.apply(partition("batch", force("n[1-2]", {{"taintNodes", true}})));
  world.apply(gang_job("one", 2, ""));
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Running"; }, seconds{5}))
      << world.log_tail();
  EXPECT_EQ(taints_of(world, "n1"),
            (Taints{"team=a:PreferNoSchedule", "kubegang.io/managed:NoSchedule"}));
  EXPECT_EQ(taints_of(world, "n2"), (Taints{"kubegang.io/managed:NoSchedule"}));
  EXPECT_EQ(taints_of(world, "n3"), Taints{});

  world.apply(partition("batch", force("n[1-2]", {{"taintNodes", false}})));
  world.run_for(seconds{15});
  EXPECT_EQ(taints_of(world, "n1"), (Taints{"team=a:PreferNoSchedule"})) << world.log_tail();
  EXPECT_EQ(taints_of(world, "n2"), Taints{});

  world.apply(partition("batch", force("n[1-2]", {{"taintNodes", true}})));
  world.run_for(seconds{15});
  EXPECT_EQ(taints_of(world, "n2"), (Taints{"kubegang.io/managed:NoSchedule"}));
  ASSERT_TRUE(world.client().remove<kube::Partition>({"", "batch"}).ok());
  world.run_for(seconds{15});
  EXPECT_EQ(taints_of(world, "n2"), Taints{}) << world.log_tail();
  expect_no_violations(world);
}

// architecture.md 5: what refuses its pods is said while the job waits.
TEST(Operator, AJobThatWaitsSaysThatItsPodsWouldBeRefused) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("welcome", 1, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.condition("Job", "welcome", "Accepted"),
            "True: Accepted: the job is in the queue");
  world.server().inject({.verb = "create", .resource = "pods", .code = 403});
  world.apply(gang_job("unwelcome", 1, ""));
  world.run_for(minutes{2});
  EXPECT_EQ(world.state("unwelcome"), "Pending");
  const std::string accepted = world.condition("Job", "unwelcome", "Accepted");
  EXPECT_TRUE(
      accepted.starts_with("True: AcceptedWithWarning: the job is in the queue; the API "
                           "server would refuse its pods now: "))
      << accepted << world.log_tail();
  world.patch_job("runs", {{"cancel", true}});
  ASSERT_TRUE(world.run_until([&] { return world.state("unwelcome") == "Running"; }, minutes{2}))
      << world.log_tail();
  world.run_for(minutes{2});
  EXPECT_EQ(world.condition("Job", "unwelcome", "Accepted"),
            "True: Accepted: the job is in the queue");
  expect_no_violations(world);
}

// kubelet would refuse it with OutOfpods (architecture.md 4, "Pod count likewise").
TEST(Operator, AJobIsNotPlacedWhereNoPodFits) {
  World world{{.nodes = {"n12", "n13"}, .pods_per_node = 1}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-13]")));
  const json foreign{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", "foreign"}}},
      {"spec", {{"nodeName", "n12"}, {"containers", {{{"name", "main"}, {"image", "none"}}}}}}};
  ASSERT_TRUE(world.client().create_json<kube::Pod>("default", foreign).ok());
  world.run_for(seconds{5});
  world.apply(gang_job("fits", 1, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("waits", 1, ""));
  world.run_for(minutes{2});
  EXPECT_EQ(world.state("fits"), "Running") << world.log_tail();
  EXPECT_EQ(world.job("fits").status.allocation->node_list, "n13");
  EXPECT_EQ(world.state("waits"), "Pending") << world.log_tail();
  EXPECT_EQ(world.job("waits").status.reason, "Resources");
  EXPECT_NE(world.job("waits").status.message.find("2 have no room for another pod"),
            std::string::npos)
      << world.job("waits").status.message;
  ASSERT_TRUE(world.client().remove<kube::Pod>({"default", "foreign"}).ok());
  ASSERT_TRUE(world.run_until([&] { return world.state("waits") == "Running"; }, minutes{1}))
      << world.log_tail();
  EXPECT_EQ(world.job("waits").status.allocation->node_list, "n12");
  expect_no_violations(world);
}

// architecture.md 4: a mutating webhook gives its pods what a template may not have.
TEST(Operator, AJobWhosePodsAWebhookGaveAProbeIsNeverFrozenAndSaysSo) {
  World world{{}};
  bool injects = true;
  world.server().set_pod_webhook([&](json& pod) {
    if (!injects || pod["metadata"]["labels"].value(std::string{kLabelJob}, "") != "probed") return;
    pod["spec"]["containers"][0]["livenessProbe"] = {{"tcpSocket", {{"port", 80}}}};
  });
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("plain", 5, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("probed", 5, ""));
  const auto is_alone_in_the_list = [&](const std::string& job) {
    const auto pods = world.timetable("n14").spec.pods;
    return std::all_of(pods.begin(), pods.end(), [&](const kube::TimetablePod& pod) {
      return pod.name.starts_with(job + "-");
    });
  };
  const auto expect_runs_always = [&] {
    const auto probed_before = world.ran("probed");
    const auto plain_before = world.ran("plain");
    world.run_for(seconds{40});  // ten slices
    EXPECT_NEAR(std::chrono::duration<double>(world.ran("probed") - probed_before).count(), 40, 1);
    EXPECT_NEAR(std::chrono::duration<double>(world.ran("plain") - plain_before).count(), 20, 4);
    EXPECT_FALSE(world.timetable("n14").spec.pods.empty());
    EXPECT_TRUE(is_alone_in_the_list("plain")) << world.log_tail();
    const std::string said = world.condition("Job", "probed", "NeverFrozen");
    EXPECT_TRUE(said.starts_with("True: ChangedByWebhook: pod probed-")) << said;
    EXPECT_NE(said.find("container main has a livenessProbe (a frozen pod"), std::string::npos)
        << said;
    EXPECT_EQ(world.condition("Job", "plain", "NeverFrozen"), "");
  };
  world.run_for(seconds{20});
  expect_runs_always();
  world.restart_operator();
  world.run_for(seconds{10});
  expect_runs_always();

  // The next start is judged by its own pods.
  injects = false;
  world.patch_job("probed", {{"requeueRequest", 1}});
  ASSERT_TRUE(world.run_until([&] { return world.job("probed").status.starts == 2; }, minutes{5}))
      << world.log_tail();
  world.run_for(seconds{20});
  EXPECT_EQ(world.condition("Job", "probed", "NeverFrozen"), "");
  EXPECT_FALSE(is_alone_in_the_list("plain")) << world.log_tail();
  // What is meant to be: the two on the same nodes at the same time.
  for (const std::string& violation : world.violations()) {
    EXPECT_NE(violation.find("ran together"), std::string::npos) << violation;
  }
}

// Jobs that have ended stay until their time to live is over: many of them.
TEST(Operator, AJobsLifeTakesTheSameRequestsBesideThousandsOfFinishedJobs) {
  const auto requests_of_a_life = [](int finished_count) {
    World world{{}};
    world.apply(linear_config());
    world.apply(partition("batch", force()));
    for (int i = 0; i < finished_count; ++i) {
      json finished = gang_job("old-" + std::to_string(i), 1, "");
      finished["status"] = {{"state", "Completed"}, {"jobID", i + 1}, {"exitCode", 0}};
      world.apply(finished);
    }
    world.restart_operator();
    world.run_for(minutes{3});
    world.server().clear_request_log();
    world.apply(gang_job("new", 2, "20s"));
    world.run_for(minutes{3});
    EXPECT_EQ(world.state("new"), "Completed") << world.log_tail();
    return world.server().request_counts();
  };
  const auto counts_as_text = [](const auto& counts) {
    std::string text;
    for (const auto& [kind, count] : counts) {
      if (kind.verb == "list") continue;  // this world's own, in pages
      text += kind.verb + " " + kind.resource + "/" + kind.subresource + " " +
              std::to_string(count) + "\n";
    }
    return text;
  };
  EXPECT_EQ(counts_as_text(requests_of_a_life(1)), counts_as_text(requests_of_a_life(2000)));
}

// The reasons of 60 jobs change while 40 others are submitted and the API server takes its time.
TEST(Operator, WhatOnlyInformsGivesWayToWhatHasToBeWritten) {
  World world{{}};
  world.apply(linear_config());
  const json alone = {{"overSubscribe", {{"policy", "Never"}}}};
  world.apply(partition("batch", force("n[12-16]", alone)));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  const auto name = [](const char* kind, int i) { return kind + std::to_string(i); };
  for (int i = 0; i < 60; ++i) world.apply(gang_job(name("waits-", i), 5, ""));
  world.run_for(minutes{3});
  for (int i = 0; i < 40; ++i) world.apply(gang_job(name("new-", i), 5, ""));
  json down = force("n[12-16]", alone);
  down["state"] = "Down";
  world.apply(partition("batch", down));
  OperatorProcess& process = world.process();
  process.pump_without_writes();
  const std::size_t at_once = process.writer().queued_count();
  EXPECT_GE(at_once, 40U);
  for (int i = 0; i < 5; ++i) {
    world.clock().advance(seconds{1});
    process.pump_without_writes();
  }
  EXPECT_LE(process.writer().queued_count(), at_once + 11) << "two per second";
  world.run_for(minutes{3});
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(world.job(name("waits-", i)).status.reason, "PartitionDown") << i;
  }
}

// api.md, Partition: "Deleted with jobs: running ones finish unsliced".
TEST(Operator, RunningJobsOfADeletedPartitionFinishUnsliced) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, "60s"));
  world.apply(gang_job("second", 5, "60s"));
  world.run_for(seconds{30});
  ASSERT_FALSE(world.timetable("n12").spec.pods.empty());
  ASSERT_TRUE(world.client().remove<kube::Partition>({"", "batch"}).ok());
  world.run_for(seconds{10});
  EXPECT_TRUE(world.timetable("n12").spec.pods.empty()) << world.log_tail();
  EXPECT_EQ(world.state("first"), "Running");
  EXPECT_EQ(world.state("second"), "Running");
  ASSERT_TRUE(world.run_until([&] { return world.state("second") == "Completed"; }, minutes{2}))
      << world.log_tail();
}

// Slurm's word for a job whose partition cannot start it; it waits, the running one goes on.
TEST(Operator, JobsOfADeletedPartitionWait) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("waits", 1, ""));
  world.run_for(seconds{5});
  ASSERT_TRUE(world.client().remove<kube::Partition>({"", "batch"}).ok());
  world.run_for(seconds{90});
  EXPECT_EQ(world.state("runs"), "Running") << world.log_tail();
  EXPECT_EQ(world.state("waits"), "Pending") << world.log_tail();
  EXPECT_EQ(world.job("waits").status.reason, "PartitionInactive");
  world.restart_operator();
  world.run_for(seconds{90});
  EXPECT_EQ(world.state("runs"), "Running") << world.log_tail();
  EXPECT_EQ(world.job("runs").status.starts, 1);
  EXPECT_EQ(world.job("waits").status.reason, "PartitionInactive");
  world.patch_job("runs", {{"cancel", true}});
  world.run_for(seconds{30});
  EXPECT_EQ(world.state("runs"), "Cancelled") << world.log_tail();
  world.apply(partition("batch", force("n[12-16]")));
  world.run_for(seconds{90});
  EXPECT_EQ(world.state("waits"), "Running") << world.log_tail();
  expect_no_violations(world);
}

// Two full-size jobs that take turns of 4 s, and their nodes.
class UnslicedTest : public ::testing::Test {
 protected:
  UnslicedTest() : world_{{}} {
    world_.apply(linear_config("4s"));
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("first", 5, ""));
    world_.run_for(seconds{6});
    world_.apply(gang_job("second", 5, "", {{"timeLimit", "300s"}}));
    world_.run_for(seconds{24});
  }
  void open_nodes(const std::string& reason) {
    for (const char* node : {"n12", "n13", "n14", "n15", "n16"}) world_.node(node).open(reason);
  }
  // As its status says, which lags behind by a minute or so.
  struct Times {
    double suspended = 0;
    double since_start = 0;  // as of the same instant
  };
  Times times(const std::string& job) {
    world_.run_for(seconds{130});
    const kube::JobStatus status = world_.job(job).status;
    EXPECT_TRUE(status.suspend_time && status.suspend_time->as_of && status.start_time);
    if (!status.suspend_time || !status.suspend_time->as_of || !status.start_time) return {};
    const auto in_seconds = [](base::Duration d) {
      return std::chrono::duration<double>(d).count();
    };
    return {in_seconds(status.suspend_time->elapsed),
            in_seconds(*status.suspend_time->as_of - *status.start_time)};
  }
  World world_;
};

TEST_F(UnslicedTest, TimeInWhichNodesDoNotSliceCountsAsRunTime) {
  open_nodes("KillSwitch");
  const Times open = times("second");
  EXPECT_GT(open.since_start, 60);
  EXPECT_NEAR(open.suspended, 12, 8) << world_.log_tail();  // of the 24 s before, and a turn
  open_nodes("");
  const Times before = times("second");
  const Times after = times("second");
  EXPECT_NEAR(after.suspended - before.suspended, (after.since_start - before.since_start) / 2, 8)
      << world_.log_tail();
}

TEST_F(UnslicedTest, AnotherReasonIsNone) {
  open_nodes("JournalUnwritable");
  const Times then = times("second");
  EXPECT_NEAR(then.suspended, then.since_start / 2, 8) << world_.log_tail();
}

TEST_F(UnslicedTest, ATimeLimitHoldsMeanwhile) {
  open_nodes("KillSwitch");
  // 12 s of its 300 s are over, and half as much of the time would be without.
  EXPECT_TRUE(world_.run_until([&] { return world_.state("second") == "Timeout"; }, seconds{310}))
      << world_.log_tail();
}

TEST_F(UnslicedTest, ANewLeaderCountsTheTimeWithoutOne) {
  world_.take_process().reset();
  open_nodes("FailedOpen");
  world_.run_for(seconds{150});
  world_.restart_operator();
  world_.run_for(seconds{5});
  open_nodes("");
  const Times then = times("second");
  EXPECT_GT(then.since_start, 180);
  EXPECT_NEAR(then.suspended, (then.since_start - 155) / 2, 12) << world_.log_tail();
}

}  // namespace
}  // namespace control
