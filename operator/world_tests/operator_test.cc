// The life of jobs, from submission to the end: the operator against the in-memory API server and
// nodes in virtual time.
#include "operator/loop/control_loop.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "api/wellknown.h"
#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// Every field of the status that an ended job has, in one place: number, exit code, verdict by our
// conditions and by those of the batch group, and the generation that they are about.
TEST(Operator, RunsAJobFromSubmissionToItsEnd) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("one", 3, "20s"));
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Running"; }, seconds{5}))
      << world.log_tail();
  // Five equal nodes: the first three by name.
  EXPECT_EQ(world.job("one").status.allocation->hostlist, "n[12-14]");
  EXPECT_EQ(world.job("one").status.job_id, 1);
  const auto pods = world.pods_of("one");
  ASSERT_EQ(pods.size(), 3U);
  EXPECT_EQ(pods[0].metadata.labels.at(std::string{kube::kLabelPartition}), "batch");

  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Completed"; }, minutes{1}))
      << world.log_tail();
  const kube::JobStatus status = world.job("one").status;
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_TRUE(kube::is_true(status.conditions, kube::kFinished));
  EXPECT_TRUE(kube::is_true(status.conditions, kube::kJobComplete));
  EXPECT_EQ(kube::find_condition(status.conditions, kube::kJobFailed), nullptr);
  EXPECT_EQ(kube::find_condition(status.conditions, kube::kReady), nullptr);
  const kube::Condition* completing = kube::find_condition(status.conditions, kube::kCompleting);
  ASSERT_NE(completing, nullptr);
  EXPECT_EQ(completing->status, kube::ConditionStatus::kFalse);
  EXPECT_EQ(completing->reason, "Completed");
  EXPECT_EQ(status.observed_generation, 1);
  for (const kube::Condition& condition : status.conditions) {
    EXPECT_EQ(condition.observed_generation, 1) << condition.type;
  }
  EXPECT_TRUE(status.end_time.has_value());
  expect_no_violations(world);
}

// The time as of the end, not as of the last refresh of what runs. Turns of other jobs would make
// it shorter than the time between the two stamps, and only what it ran before it was ready longer:
// 3 s, settle and the whole second of startedAt.
TEST(Operator, AJobThatHasEndedSaysHowLongItRan) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  world.apply(gang_job("well", 2, "20s"));
  world.apply(gang_job("badly", 1, "20s", nullptr, {{"test/exit-code", "3"}}));
  const auto ended = [&](const char* job, const char* state) {
    return world.run_until([&] { return world.state(job) == state; }, seconds{60});
  };
  ASSERT_TRUE(ended("well", "Completed") && ended("badly", "Failed")) << world.log_tail();
  for (const char* name : {"well", "badly"}) {
    const kube::JobStatus status = world.job(name).status;
    ASSERT_TRUE(status.run_time && status.end_time && status.start_time) << name;
    EXPECT_GT(status.run_time->elapsed, seconds{10}) << name;
    EXPECT_LE(status.run_time->elapsed, *status.end_time - *status.start_time + seconds{3}) << name;
  }
}

// Jobs of one file are created within a second, which is all that a creation timestamp tells apart.
// The names are shuffled (7 and 20 have no common divisor), so that an order by name would be seen.
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

// Two jobs that fill the nodes take turns, and nothing is written for it (14.1). Turns follow from
// the timetables that the agents have: with a write for each turn the API server would set the
// limit for how short a slice can be.
// API servers select by it; a job that does not say who has submitted it has its namespace's.
TEST(Operator, SaysWhoHasSubmittedAJob) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  json said = gang_job("said", 1, "");
  said["metadata"]["annotations"]["kubegang.io/user"] = "ann@example.org";
  world.apply(said);
  world.apply(gang_job("unsaid", 1, ""));
  world.run_for(seconds{5});
  EXPECT_EQ(world.job("said").status.user, "ann@example.org");
  EXPECT_EQ(world.job("unsaid").status.user, "team-a");
}

TEST(Operator, TwoFullSizeJobsTakeTurns) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, ""));
  world.run_for(seconds{6});
  world.apply(gang_job("second", 5, ""));
  world.run_for(seconds{20});
  // Both have settled and had their first turns by now; what is measured are turns alone.
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

// Both partitions have all nodes and one share. The higher tier takes three of the low job's five
// nodes, which suspends the low job as a whole; it is not restarted, since nothing of it was ended.
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

// The same with PreemptMode Requeue: the low job is ended and starts a second time when its nodes
// are free again. It begins again, so its work of the first start is lost: two starts, one restart.
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

// The exit code is that of the failed container; a kill for memory is a state of its own, since
// such a job would fail again wherever it runs. The other pods would wait for the failed one
// forever, and keep their nodes.
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

// Writes that only inform may take a minute; a user who edits a job looks at it at once.
TEST(Operator, AnEditOfAWaitingJobIsShownAtOnce) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  world.apply(gang_job("wide", 5, "10m"));
  world.run_for(seconds{10});
  world.apply(gang_job("job", 1, "5s"));
  world.run_for(seconds{10});
  const auto shows = [&](const json& spec, const std::string& reason, int priority) {
    world.patch_job("job", spec);
    world.run_for(seconds{2});
    const kube::Job job = world.job("job");
    EXPECT_EQ(job.status.observed_generation, job.metadata.generation) << spec;
    EXPECT_EQ(job.status.reason, reason) << spec;
    if (priority >= 0) {
      EXPECT_EQ(job.status.priority, priority) << spec;
    }
  };
  const std::string waits = world.job("job").status.reason;
  EXPECT_EQ(waits, "Resources");
  shows({{"control", {{"hold", true}}}}, "JobHeldUser", 0);
  shows({{"control", {{"hold", false}}}}, waits, -1);
  shows({{"schedule", {{"priority", 7}}}}, waits, 7);
  shows({{"schedule", {{"timeLimit", "1h"}}}}, waits, 7);
  shows({{"control", {{"hold", true}}}}, "JobHeldUser", 0);
}

// Each wish of a user in turn on two jobs that do not disturb each other.
TEST(Operator, CancelHoldSuspendAndRequeueAreObeyed) {
  World world{{}};
  json config = linear_config("4s");
  config["spec"]["requeue"] = {{"delay", "1s"}};
  world.apply(config);
  world.apply(partition("batch", force()));
  world.apply(gang_job("held", 1, "5s", {{"control", {{"hold", true}}}}));
  world.apply(gang_job("other", 2, ""));
  world.run_for(seconds{10});
  EXPECT_EQ(world.state("held"), "Pending");
  EXPECT_EQ(world.job("held").status.reason, "JobHeldUser");
  world.patch_job("held", {{"control", {{"hold", false}}}});
  world.patch_job("other", {{"control", {{"suspend", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("held") == "Completed"; }, minutes{1}));
  EXPECT_EQ(world.state("other"), "Suspended");
  EXPECT_EQ(world.job("other").status.reason, "User");
  // Suspended by its user: not a single slice of run time is added.
  const auto ran = world.ran("other");
  world.run_for(seconds{20});
  EXPECT_EQ(world.ran("other"), ran) << world.log_tail();
  world.patch_job("other", {{"control", {{"suspend", false}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("other") == "Running"; }, seconds{30}));
  world.patch_job("other", {{"control", {{"requeueRequest", 1}}}});
  ASSERT_TRUE(world.run_until([&] { return world.job("other").status.restarts == 1; }, minutes{1}))
      << world.log_tail();
  ASSERT_TRUE(world.run_until([&] { return world.state("other") == "Running"; }, minutes{3}))
      << world.log_tail();
  world.patch_job("other", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("other") == "Cancelled"; }, minutes{1}))
      << world.log_tail();
  expect_no_violations(world);
}

// The next job needs all nodes. It must not start while pods of the deleted one may still run. The
// partition does not share its nodes, so "next" has no other way to start.
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

// Nothing of the job changes: the partition that it needs comes later, and that alone must make the
// operator judge it again.
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

// It never was in the queue: the operator ends it without the scheduler, for good. Three reasons
// why a job can be outside the queue: no such partition, a partition that drains, a size that no
// partition has. They could run later, and this must not bring them back.
TEST(Operator, ARefusedJobThatIsCancelledEnds) {
  World world{{}};
  world.apply(linear_config());
  json drained = force();
  drained["state"] = "Drain";
  world.apply(partition("drained", drained));
  world.apply(gang_job("lost", 2, "5s", {{"partitions", json::array({"gone"})}}));
  world.apply(gang_job("early", 2, "5s", {{"partitions", json::array({"drained"})}}));
  world.apply(gang_job("large", 99, "5s", {{"partitions", json::array({"drained"})}}));
  world.run_for(seconds{2});
  world.patch_job("lost", {{"control", {{"cancel", true}}}});
  world.run_for(seconds{1});
  EXPECT_EQ(world.state("lost"), "Cancelled") << world.log_tail();
  // The other two are canceled under a new leader, which has not refused them itself.
  world.restart_operator();
  for (const char* name : {"early", "large"}) {
    EXPECT_EQ(world.job(name).status.reason, "NotAccepted");
    world.patch_job(name, {{"control", {{"cancel", true}}}});
  }
  world.run_for(seconds{1});
  world.apply(partition("gone", force()));
  world.apply(partition("drained", force()));
  world.run_for(seconds{10});
  for (const char* name : {"lost", "early", "large"}) {
    EXPECT_EQ(world.state(name), "Cancelled") << name << world.log_tail();
    EXPECT_EQ(world.condition("Job", name, "Finished").rfind("True: Cancelled", 0), 0U) << name;
    EXPECT_TRUE(world.pods_of(name).empty());
  }
  expect_no_violations(world);
}

// A job that the scheduler turns away waits outside the queue and is submitted when that may
// change.
TEST(Operator, AJobThatTheSchedulerTurnsAwayIsSubmittedAgainOnceItsPartitionTakesJobs) {
  World world{{}};
  world.apply(linear_config());
  json spec = force();
  spec["state"] = "Drain";
  world.apply(partition("batch", spec));
  world.apply(gang_job("early", 1, "5s"));
  world.run_for(seconds{2});
  EXPECT_EQ(world.condition("Job", "early", "Accepted"),
            "False: Invalid: partition batch takes no new jobs: it is draining");
  EXPECT_EQ(world.job("early").status.reason, "NotAccepted");
  spec["state"] = "Up";
  world.apply(partition("batch", spec));
  ASSERT_TRUE(world.run_until([&] { return world.state("early") == "Completed"; }, minutes{1}))
      << world.log_tail();
}

// A command that cannot be obeyed is answered in the status, and the job goes on as it was. The
// number of the request is noted as observed, so the request is not repeated when the job runs.
TEST(Operator, ACommandThatTheSchedulerRefusesIsAnsweredAndChangesNothing) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  world.apply(gang_job("runs", 5, ""));
  world.apply(gang_job("waits", 5, ""));
  world.run_for(seconds{6});
  ASSERT_EQ(world.state("waits"), "Pending");
  const std::string reason = world.job("waits").status.reason;
  world.patch_job("waits", {{"control", {{"requeueRequest", 1}}}});
  world.run_for(minutes{2});
  EXPECT_EQ(world.job("waits").status.message, "the job is pending already") << world.log_tail();
  EXPECT_EQ(world.job("waits").status.reason, reason);
  EXPECT_EQ(world.job("waits").status.observed->requeue_request, 1);
  EXPECT_EQ(world.job("waits").status.restarts.value_or(0), 0);
  world.patch_job("runs", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("waits") == "Running"; }, minutes{1}));
}

// T5 and api.md: a cancel cannot be taken back, least of all by a requeue that is under way.
TEST(Operator, ACancelDuringARequeueStands) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force()));
  json job = gang_job("both", 2, "");
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("both") == "Running"; }, minutes{1}));
  job["spec"]["control"]["requeueRequest"] = 1;
  world.apply(job);
  // A millisecond: the requeue has begun, and its pods have their grace time.
  world.run_for(base::Duration{1'000});
  job["spec"]["control"]["cancel"] = true;
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("both") == "Cancelled"; }, minutes{3}))
      << world.log_tail();
  expect_no_violations(world);
}

// The timetable is from before it was ready. The new leader finds the job resumed, needs no
// timetable there and withdraws the old one, which keeps the pod frozen. If the old timetable
// stayed, the pod would be frozen forever, and no state would say so.
TEST(Operator, AJobThatWasSuspendedBeforeItWasReadyIsResumedByANewLeader) {
  World world{{.nodes = {"n12"}}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n12")));
  world.apply(gang_job("job", 1, "5s"));
  ASSERT_TRUE(world.run_until([&] { return world.job("job").status.starts == 1; }, minutes{1}));
  world.patch_job("job", {{"control", {{"suspend", true}}}});
  ASSERT_TRUE(world.run_until(
      [&] { return kube::is_true(world.job("job").status.conditions, kube::kReady); }, minutes{1}));
  world.run_for(seconds{5});
  ASSERT_EQ(world.state("job"), "Suspended");
  ASSERT_FALSE(world.timetable("n12").spec.pods.empty());
  world.patch_job("job", {{"control", {{"suspend", false}}}});
  world.restart_operator();
  EXPECT_TRUE(world.run_until([&] { return world.state("job") == "Completed"; }, minutes{2}))
      << world.log_tail();
  EXPECT_TRUE(world.timetable("n12").spec.pods.empty());
  expect_no_violations(world);
}

// Run time and suspended time are the time since the start, which is when the job became ready, and
// the 3 s that its container had run by then: also if its user suspended it before, and if another
// leader comes while it is suspended.
TEST(Operator, SuspendedTimeIsTheSameWithAnyLeader) {
  World world{{.nodes = {"n12"}}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n12")));
  world.apply(gang_job("job", 1, "5s"));
  ASSERT_TRUE(world.run_until([&] { return world.job("job").status.starts == 1; }, minutes{1}));
  world.patch_job("job", {{"control", {{"suspend", true}}}});
  ASSERT_TRUE(world.run_until(
      [&] { return kube::is_true(world.job("job").status.conditions, kube::kReady); }, minutes{1}));
  world.run_for(seconds{15});
  world.restart_operator();
  world.run_for(seconds{15});
  world.patch_job("job", {{"control", {{"suspend", false}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("job") == "Completed"; }, minutes{2}))
      << world.log_tail();
  const kube::JobStatus status = world.job("job").status;
  ASSERT_TRUE(status.start_time && status.run_time && status.suspend_time);
  EXPECT_GE(status.suspend_time->elapsed, seconds{30});
  EXPECT_EQ(status.suspend_time->elapsed + status.run_time->elapsed,
            status.run_time->as_of - *status.start_time + seconds{3});
}

// etcd was restored to before kubegang was installed again, and numbers had begun again: two jobs
// have one number. A leader that took both for the same job would never come up.
TEST(Operator, OfTwoJobsWithOneNumberOneGetsAnother) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  for (const char* name : {"first", "second", "third"}) world.apply(gang_job(name, 2, "40s"));
  ASSERT_TRUE(world.run_until([&] { return world.state("second") == "Running"; }, minutes{1}));
  world.run_for(seconds{5});
  world.take_process().reset();
  const std::int64_t number = world.job("first").status.job_id.value_or(0);
  for (const char* name : {"second", "third"}) {
    ASSERT_TRUE(world.client()
                    .patch_status<kube::Job>(kube::key_of(world.job(name).metadata),
                                             {{"status", {{"jobID", number}}}})
                    .ok());
  }
  world.restart_operator();
  for (const char* name : {"first", "second", "third"}) {
    EXPECT_TRUE(world.run_until([&] { return world.state(name) == "Completed"; }, minutes{5}))
        << world.log_tail();
  }
  std::set<std::int64_t> numbers;
  for (const char* name : {"first", "second", "third"}) {
    numbers.insert(world.job(name).status.job_id.value_or(0));
    EXPECT_EQ(world.job(name).status.starts, 1) << name;
  }
  EXPECT_EQ(numbers.size(), 3U);
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
  job["spec"]["control"]["suspend"] = true;
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("kept") == "Suspended"; }, minutes{1}));
  job["spec"]["control"]["requeueRequest"] = 1;
  world.apply(job);
  // Far longer than the delay of a requeue (2 min): it would have started again.
  world.run_for(minutes{10});
  EXPECT_EQ(world.state("kept"), "Pending") << world.log_tail();
  EXPECT_EQ(world.job("kept").status.reason, "JobHeldUser");
  job["spec"]["control"]["suspend"] = false;
  world.apply(job);
  ASSERT_TRUE(world.run_until([&] { return world.state("kept") == "Running"; }, minutes{2}))
      << world.log_tail();
  expect_no_violations(world);
}

}  // namespace
}  // namespace control
