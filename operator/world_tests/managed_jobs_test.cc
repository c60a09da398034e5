// Jobs of the batch group that say managedBy: kubegang.io/job. The in-memory API server refuses
// statuses as a real one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "kube/api/batch_job.h"
#include "operator/testing/batch_job_fixture.h"
#include "translation/batch_job_translation.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

json batch_job(const std::string& name, int pods, const std::string& work,
               const json& more = nullptr, const json& annotations = nullptr) {
  return make_batch_job(name, {.parallelism = pods, .completions = pods}, work, more, annotations);
}

// Goal: a Job of the batch group whose managedBy names kubegang has the life, the status and the
// pods that it would have under Kubernetes' own controller, while a kubegang Job runs it as a gang.
// Method: create the batch Job as a user does, let time pass, and read its status; conditions are
// compared as "True: Reason: message".
class ManagedJobTest : public BatchJobFixture {
 protected:
  // Kubernetes' own suspend, which ends the pods.
  void suspend(const std::string& name, bool on) {
    const auto patched =
        world_.client().patch<kube::BatchJob>({kTeam, name}, {{"spec", {{"suspend", on}}}});
    ASSERT_TRUE(patched.ok()) << patched.error().message;
  }
  // Returns the pods that are not finished.
  std::size_t live_pods() {
    std::size_t count = 0;
    for (const kube::Pod& pod : world_.pods()) {
      const bool over = pod.status.phase == kube::PodPhase::kSucceeded ||
                        pod.status.phase == kube::PodPhase::kFailed;
      if (!over) ++count;
    }
    return count;
  }
};

// Labels, annotations, host names and owner as of Indexed Jobs: programs and tools find a pod's
// index in any of these places.
TEST_F(ManagedJobTest, RunsAsAGangAndIsComplete) {
  create(batch_job("train", 4, "20s"));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 4; }, minutes{1}))
      << world_.log_tail();
  const kube::BatchJobStatus running = get("train").status;
  EXPECT_TRUE(running.start_time.has_value());
  EXPECT_EQ(running.succeeded, 0);
  for (const auto& pod : world_.pods()) {
    const std::string index = pod.metadata.labels.at("kubegang.io/task");
    EXPECT_EQ(pod.metadata.labels.at("batch.kubernetes.io/job-name"), "train");
    EXPECT_EQ(pod.metadata.labels.at("batch.kubernetes.io/job-completion-index"), index);
    EXPECT_EQ(pod.metadata.annotations.at("batch.kubernetes.io/job-completion-index"), index);
    EXPECT_EQ(pod.spec.hostname, "train-" + index);
    EXPECT_TRUE(kube::controller_of(pod.metadata)->block_owner_deletion);
  }
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  const kube::BatchJobStatus done = get("train").status;
  EXPECT_TRUE(kube::is_true(done.conditions, kube::kBatchComplete));
  EXPECT_EQ(done.succeeded, 4);
  EXPECT_EQ(done.completed_indexes, "0-3");
  EXPECT_EQ(done.active, 0);
  EXPECT_EQ(done.failed, 0);
  EXPECT_GE(done.completion_time, done.start_time);
  EXPECT_EQ(world_.state("train"), "Completed");
}

// The operator keeps only the judged part of its template (faults.md 5).
TEST_F(ManagedJobTest, ItsPodsHaveTheWholeTemplate) {
  json job = batch_job("train", 2, "20s");
  json& container = job["spec"]["template"]["spec"]["containers"][0];
  container["args"] = json::array({std::string(100'000, 'x')});
  container["env"] = json::array({{{"name", "A"}, {"value", "b"}}});
  job["spec"]["template"]["metadata"]["labels"]["app"] = "train";
  create(job);
  ASSERT_TRUE(world_.run_until([&] { return world_.pods().size() == 2; }, minutes{1}))
      << world_.log_tail();
  for (const kube::Pod& pod : world_.pods()) {
    ASSERT_THAT(pod.spec.containers, SizeIs(1));
    EXPECT_THAT(pod.spec.containers[0].args, ElementsAre(std::string(100'000, 'x')));
    EXPECT_THAT(pod.spec.containers[0].env, Contains(Field(&kube::EnvVar::name, "A")));
    EXPECT_EQ(pod.metadata.labels.at("app"), "train");
  }
}

// Three requests more than a kubegang Job: that one is made, it has started, it has ended.
TEST_F(ManagedJobTest, ThatStartsAtOnceIsWrittenTwice) {
  create(batch_job("train", 4, "60s"));
  std::vector<std::string> versions{get("train").metadata.resource_version};
  const bool ended = world_.run_until(
      [&] {
        const kube::BatchJob job = get("train");
        if (job.metadata.resource_version != versions.back()) {
          versions.push_back(job.metadata.resource_version);
        }
        return kube::is_finished(job.status);
      },
      minutes{5});
  ASSERT_TRUE(ended);
  world_.run_for(minutes{2});
  EXPECT_EQ(get("train").metadata.resource_version, versions.back());
  EXPECT_THAT(versions, SizeIs(1 + 2));
}

// Two minutes are longer than the minute in which an object gets one write that only informs: the
// last reason must have arrived.
TEST_F(ManagedJobTest, SaysWhyItWaits) {
  world_.apply(gang_job("before", 5, ""));
  world_.run_for(seconds{5});
  create(batch_job("train", 2, "5s"));
  ASSERT_TRUE(world_.run_until([&] { return !condition("train", kube::kBatchWaiting).empty(); },
                               minutes{1}));
  world_.run_for(minutes{2});
  EXPECT_THAT(condition("train", kube::kBatchWaiting), HasSubstr("True: Resources"));
  EXPECT_EQ(get("train").status.active, 0);
  EXPECT_FALSE(get("train").status.start_time.has_value());
  world_.remove_job("before");
  ASSERT_TRUE(ends("train"));
  EXPECT_THAT(condition("train", kube::kBatchWaiting), HasSubstr("False: Started"));
}

// backoffLimit 1 allows one retry, so the second failure is the last.
TEST_F(ManagedJobTest, IsRestartedAsAWholeUpToItsBackoffLimit) {
  create(batch_job("broken", 2, "5s", {{"backoffLimit", 1}}, {{"test/exit-code", "3"}}));
  ASSERT_TRUE(world_.run_until([&] { return get("broken").status.failed == 1; }, minutes{2}));
  EXPECT_FALSE(kube::is_finished(get("broken").status));
  ASSERT_TRUE(ends("broken")) << world_.log_tail();
  EXPECT_EQ(get("broken").status.failed, 2);
  EXPECT_THAT(condition("broken", kube::kBatchFailed), HasSubstr("True: BackoffLimitExceeded"));
  EXPECT_THAT(condition("broken", kube::kBatchFailureTarget), HasSubstr("True"));
  EXPECT_EQ(ours().size(), 2U) << "each attempt is a Job";
  EXPECT_EQ(live_pods(), 0U);
}

// backoffLimit 0: the first failed attempt is the last, and counts once however many of its pods
// failed.
TEST_F(ManagedJobTest, OfNoRetriesFailsAtOnce) {
  create(batch_job("broken", 2, "5s", {{"backoffLimit", 0}}, {{"test/exit-code", "3"}}));
  ASSERT_TRUE(ends("broken"));
  EXPECT_EQ(get("broken").status.failed, 1);
}

// Returns a podFailurePolicy of one rule.
json on_exit_code(int code, const char* action) {
  const json rule{{"action", action},
                  {"onExitCodes", {{"operator", "In"}, {"values", json::array({code})}}}};
  return {{"podFailurePolicy", {{"rules", json::array({rule})}}}};
}

// backoffLimit is the default, 6.
TEST_F(ManagedJobTest, AnExitCodeMayFailItHoweverManyRetriesAreLeft) {
  create(batch_job("broken", 2, "5s", on_exit_code(3, "FailJob"), {{"test/exit-code", "3"}}));
  ASSERT_TRUE(ends("broken")) << world_.log_tail();
  EXPECT_EQ(get("broken").status.failed, 1);
  EXPECT_THAT(condition("broken", kube::kBatchFailed),
              AllOf(HasSubstr("True: PodFailurePolicy: pod broken-"),
                    HasSubstr("failed with exit code 3 matching FailJob rule at index 0")));
  EXPECT_THAT(ours(), SizeIs(1));
}

// With backoffLimit 0 a single failure that counts would end it. A new leader finds the attempts by
// their labels: it goes on with the fourth and does not begin again.
TEST_F(ManagedJobTest, AFailureThatIsIgnoredIsTriedAgainAndDoesNotCount) {
  json more = on_exit_code(3, "Ignore");
  more["backoffLimit"] = 0;
  create(batch_job("broken", 2, "5s", more, {{"test/exit-code", "3"}}));
  ASSERT_TRUE(world_.run_until([&] { return ours().size() == 3; }, minutes{3}))
      << world_.log_tail();
  EXPECT_EQ(get("broken").status.failed, 0);
  EXPECT_FALSE(kube::is_finished(get("broken").status));
  world_.restart_operator();
  ASSERT_TRUE(world_.run_until([&] { return ours().size() == 4; }, minutes{3}));
  EXPECT_EQ(get("broken").status.failed, 0);
}

// The driver is done, and its workers would run forever.
TEST_F(ManagedJobTest, IsCompleteWhenItsSuccessPolicyIsMet) {
  const json policy{{"rules", json::array({{{"succeededIndexes", "0"}}})}};
  create(batch_job("train", 3, "10s", {{"successPolicy", policy}}, {{"test/only-pod", "0"}}));
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  EXPECT_THAT(condition("train", kube::kBatchComplete), HasSubstr("True: SuccessPolicy"));
  EXPECT_EQ(get("train").status.succeeded, 1);
  EXPECT_EQ(get("train").status.completed_indexes, "0");
  EXPECT_EQ(get("train").status.failed, 0);
  EXPECT_EQ(live_pods(), 0U);
  EXPECT_THAT(ours(), ElementsAre(Field(&kube::Job::status, Field(&kube::JobStatus::state,
                                                                  kube::JobState::kCompleted))));
}

// A program that would run forever, and a deadline of 10 s. Both controllers count a deadline as
// one reason to fail, not as a failed attempt.
TEST_F(ManagedJobTest, ItsDeadlineIsItsTimeLimit) {
  create(batch_job("long", 2, "", {{"activeDeadlineSeconds", 10}}));
  ASSERT_TRUE(ends("long")) << world_.log_tail();
  EXPECT_THAT(condition("long", kube::kBatchFailed), HasSubstr("True: DeadlineExceeded"));
  EXPECT_EQ(live_pods(), 0U);
}

// Queueing systems create Jobs suspended: nothing may exist for one before it is resumed.
TEST_F(ManagedJobTest, IsMadeWhenItIsResumed) {
  create(batch_job("train", 2, "5s", {{"suspend", true}}));
  world_.run_for(seconds{10});
  EXPECT_EQ(ours().size(), 0U);
  EXPECT_THAT(condition("train", kube::kBatchSuspended), HasSubstr("True: JobSuspended"));
  suspend("train", false);
  ASSERT_TRUE(ends("train"));
  EXPECT_THAT(condition("train", kube::kBatchSuspended), HasSubstr("False: JobResumed"));
  EXPECT_EQ(get("train").status.succeeded, 2);
}

// As in batch/v1, suspension deletes the pods and resets startTime, and is not a failure. Our own
// suspension, which keeps pods frozen, is another thing.
TEST_F(ManagedJobTest, HasNoPodsWhileItIsSuspended) {
  create(batch_job("train", 2, "30s"));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  suspend("train", true);
  ASSERT_TRUE(world_.run_until(
      [&] { return condition("train", kube::kBatchSuspended).starts_with("True"); }, minutes{1}))
      << world_.log_tail();
  EXPECT_EQ(live_pods(), 0U);
  EXPECT_EQ(get("train").status.active, 0);
  EXPECT_FALSE(get("train").status.start_time.has_value());
  EXPECT_EQ(get("train").status.failed, 0);
  world_.run_for(minutes{2});
  EXPECT_EQ(live_pods(), 0U);
  suspend("train", false);
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  EXPECT_EQ(get("train").status.succeeded, 2);
}

// The machine of one pod hangs, so the pod cannot end, and its kubegang Job is gone when a new
// leader comes: only the pod shows that the batch Job has not stopped. Otherwise its status would
// say that no pod runs, and when it is resumed an index would run twice.
TEST_F(ManagedJobTest, IsNotSuspendedBeforeANewLeaderSeesItsPodsGone) {
  json train = batch_job("train", 2, "");
  train["metadata"]["annotations"]["kubegang.io/nodes"] = "2";
  create(train);
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  world_.node(*world_.pods().front().spec.node_name).power_off();
  suspend("train", true);
  ASSERT_TRUE(world_.run_until([&] { return ours().empty(); }, minutes{1})) << world_.log_tail();
  world_.restart_operator();
  world_.run_for(seconds{30});
  ASSERT_EQ(live_pods(), 1U);
  EXPECT_THAT(condition("train", kube::kBatchSuspended), Not(HasSubstr("True")));
  EXPECT_EQ(get("train").status.terminating, 1);
  suspend("train", false);
  world_.run_for(seconds{30});
  EXPECT_THAT(ours(), SizeIs(0));
  const kube::ObjectKey left = kube::key_of(world_.pods().front().metadata);
  ASSERT_TRUE(world_.client().remove<kube::Pod>(left, {.grace_period = seconds{0}}).ok());
  EXPECT_TRUE(world_.run_until([&] { return ours().size() == 1; }, minutes{1}))
      << world_.log_tail();
}

// The end is being stored when it is suspended. The kubegang Job stays: after a crash nothing else
// would show that the batch Job has ended, and it would begin again.
TEST_F(ManagedJobTest, IsCompleteIfItWasSuspendedTooLate) {
  create(batch_job("train", 2, "10s"));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  ASSERT_TRUE(world_.run_until([&] { return world_.ran("train") >= seconds{9}; }, minutes{1}));
  world_.process().writer().be_slow(world_.clock(), seconds{2});
  ASSERT_TRUE(world_.run_until([&] { return live_pods() == 0; }, minutes{1}));
  world_.run_for(world_.tick);
  suspend("train", true);
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  EXPECT_EQ(get("train").status.succeeded, 2);
  EXPECT_THAT(ours(), SizeIs(1));
  EXPECT_EQ(world_.state("train"), "Completed");
}

// As Kubernetes' TestNodeSelectorUpdate has it, and queueing systems do it: the template of a
// suspended Job may get a selector with the write that resumes it.
TEST_F(ManagedJobTest, TakesItsTemplateFromWhenItIsResumed) {
  create(batch_job("train", 1, "5s", {{"suspend", true}}));
  ASSERT_TRUE(world_.run_until(
      [&] { return condition("train", kube::kBatchSuspended).starts_with("True"); }, minutes{1}));
  const json spec{
      {"suspend", false},
      {"template", {{"spec", {{"nodeSelector", {{"kubernetes.io/hostname", "n14"}}}}}}}};
  ASSERT_TRUE(world_.client().patch<kube::BatchJob>({kTeam, "train"}, {{"spec", spec}}).ok());
  ASSERT_TRUE(world_.run_until([&] { return ours().size() == 1; }, minutes{1}));
  const json made = ours().front().spec.pod_template.json();
  EXPECT_EQ(made["spec"].value("nodeSelector", json()), json({{"kubernetes.io/hostname", "n14"}}));
}

// As Kubernetes' TestImmediateJobRecreation: one that is deleted and made again at once is another
// Job.
TEST_F(ManagedJobTest, IsMadeAnewUnderItsNameAtOnce) {
  for (int round = 0; round < 2; ++round) {
    if (round > 0) {
      ASSERT_TRUE(world_.client().remove<kube::BatchJob>({kTeam, "train"}).ok());
    }
    create(batch_job("train", 2, "5s"));
    ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{2}))
        << world_.log_tail();
  }
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  EXPECT_EQ(get("train").status.succeeded, 2);
  EXPECT_EQ(get("train").status.failed, 0);
}

// The first is refused by the translation, before any kubegang Job; the second by the operator's
// check of the Job that was made for it.
TEST_F(ManagedJobTest, ThatCannotBeRunSaysSoAndHasNoPods) {
  create(batch_job("single", 2, "5s", {{"backoffLimitPerIndex", 1}}));
  world_.run_for(seconds{5});
  EXPECT_THAT(condition("single", kube::kBatchAccepted),
              HasSubstr("False: NotSupported: spec.backoffLimitPerIndex: is not supported"));
  EXPECT_EQ(ours().size(), 0U);
  json elsewhere = batch_job("elsewhere", 2, "5s");
  elsewhere["metadata"]["annotations"]["kubegang.io/partition"] = "nowhere";
  create(elsewhere);
  world_.run_for(seconds{5});
  EXPECT_THAT(condition("elsewhere", kube::kBatchAccepted),
              HasSubstr("there is no partition \"nowhere\""));
  EXPECT_EQ(live_pods(), 0U);
}

// Not even its status is written: the built-in controller owns a Job without managedBy.
TEST_F(ManagedJobTest, OfAnotherControllerIsLeftAlone) {
  create(batch_job("theirs", 2, "5s", {{"managedBy", "example.com/other"}}));
  json builtin = batch_job("builtin", 2, "5s");
  builtin["spec"].erase("managedBy");
  create(builtin);
  world_.run_for(minutes{1});
  EXPECT_EQ(ours().size(), 0U);
  EXPECT_EQ(get("theirs").status, kube::BatchJobStatus{});
  EXPECT_EQ(get("builtin").status, kube::BatchJobStatus{});
}

// Our Job for it usually has its name. A user's own Job has that name here, so it gets another one,
// and both run.
TEST_F(ManagedJobTest, IsCalledOtherwiseIfItsNameIsTaken) {
  world_.apply(gang_job("train", 1, "5s"));
  create(batch_job("train", 2, "5s"));
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  EXPECT_EQ(ours().size(), 2U);
  EXPECT_EQ(get("train").status.succeeded, 2);
}

// By garbage collection through the owner references: the operator deletes nothing here.
TEST_F(ManagedJobTest, GoesWithItsJobAndPods) {
  create(batch_job("train", 2, ""));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  EXPECT_TRUE(world_.client().remove<kube::BatchJob>({kTeam, "train"}).ok());
  world_.run_for(minutes{1});
  EXPECT_EQ(ours().size(), 0U);
  EXPECT_EQ(world_.pods().size(), 0U);
}

// `kubectl delete --cascade=orphan` removes the owner reference, so what is left is a plain
// kubegang Job.
TEST_F(ManagedJobTest, GoesOnAsAJobOfOursWhenItIsOrphaned) {
  create(batch_job("train", 2, "20s"));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  EXPECT_TRUE(
      world_.client()
          .remove<kube::BatchJob>({kTeam, "train"}, {.propagation = kube::Propagation::kOrphan})
          .ok());
  EXPECT_TRUE(world_.run_until([&] { return world_.state("train") == "Completed"; }, minutes{2}))
      << world_.log_tail();
}

// A user cancels the kubegang Job: that is an end for good, not a failure to be tried again.
TEST_F(ManagedJobTest, IsCancelledByItsJob) {
  create(batch_job("train", 2, ""));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  world_.patch_job("train", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(ends("train"));
  EXPECT_THAT(condition("train", kube::kBatchFailed), HasSubstr("True: kubegang.io/Cancelled"));
  EXPECT_EQ(get("train").status.failed, 0);
}

// A kubegang Job that is deleted by hand is made again: the batch Job still wants it.
TEST_F(ManagedJobTest, IsMadeAgain) {
  create(batch_job("train", 2, "10s"));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  world_.remove_job("train");
  ASSERT_TRUE(ends("train")) << world_.log_tail();
  EXPECT_EQ(get("train").status.succeeded, 2);
  EXPECT_EQ(get("train").status.failed, 0);
}

// The end was stored, by a leader that remembers more than a restored etcd. It cannot be taken
// back, so the kubegang Job beside it goes, and it gets no more writes.
TEST_F(ManagedJobTest, ThatHasEndedDoesNotRunOn) {
  create(batch_job("train", 2, ""));
  ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 2; }, minutes{1}));
  const kube::BatchJob before = get("train");
  kube::BatchJob after = before;
  const base::Instant now = world_.clock().wall();
  after.status = batch_status_after(before.spec, before.status,
                                    {.phase = BatchView::Phase::kComplete, .since = now}, now);
  const auto told = world_.client().patch_status_from(before, after);
  ASSERT_TRUE(told.ok()) << told.error().message;
  const std::string version = get("train").metadata.resource_version;
  EXPECT_TRUE(world_.run_until([&] { return ours().empty() && live_pods() == 0; }, minutes{1}))
      << world_.log_tail();
  world_.restart_operator();
  world_.run_for(minutes{1});
  EXPECT_THAT(ours(), SizeIs(0));
  EXPECT_EQ(get("train").metadata.resource_version, version);
  expect_no_violations(world_);
}

// How a preemption looks from outside.
class PreemptedManagedJobTest : public ManagedJobTest {
 protected:
  // A batch Job on all nodes, and then a job of a higher tier that needs all of them.
  void preempt(const std::string& mode) {
    json config = linear_config("4s");
    config["spec"]["preemptMode"] = mode;
    config["spec"]["gang"] = mode == "Suspend";
    config["spec"]["requeue"] = {{"delay", "2s"}, {"maxBatch", 100}};
    config["spec"]["killWait"] = "2s";
    world_.apply(config);
    world_.apply(partition("high", {{"nodes", {{"hostlist", "n[12-16]"}}},
                                    {"priorityTier", 2},
                                    {"overSubscribe", {{"policy", "Never"}}}}));
    json train = batch_job("train", 5, "30s", {{"backoffLimit", 0}});
    train["metadata"]["annotations"]["kubegang.io/nodes"] = "5";
    create(train);
    ASSERT_TRUE(world_.run_until([&] { return get("train").status.active == 5; }, minutes{1}));
    world_.apply(gang_job("above", 5, "10s", {{"partitions", json::array({"high"})}}));
    world_.run_for(seconds{12});
  }
};

// Suspended pods are frozen, and frozen pods are active to Kubernetes.
TEST_F(PreemptedManagedJobTest, BySuspensionShowsNothing) {
  preempt("Suspend");
  EXPECT_EQ(world_.state("train"), "Suspended") << world_.log_tail();
  EXPECT_EQ(get("train").status.active, 5);
  ASSERT_TRUE(ends("train"));
  EXPECT_EQ(get("train").status.succeeded, 5);
}

// The attempt goes back to the queue and starts again: no retry is used up, although backoffLimit
// is 0.
TEST_F(PreemptedManagedJobTest, ByARequeueWaitsAgainAndHasNotFailed) {
  preempt("Requeue");
  EXPECT_EQ(get("train").status.active, 0) << world_.log_tail();
  EXPECT_TRUE(get("train").status.start_time.has_value());
  ASSERT_TRUE(ends("train"));
  EXPECT_EQ(get("train").status.succeeded, 5);
  EXPECT_EQ(get("train").status.failed, 0);
}

// A canceled victim is not tried again; what ended it is the condition's reason.
TEST_F(PreemptedManagedJobTest, ByCancellationHasFailedForGood) {
  preempt("Cancel");
  ASSERT_TRUE(ends("train"));
  EXPECT_THAT(condition("train", kube::kBatchFailed), HasSubstr("True: kubegang.io/Preempted"));
  EXPECT_EQ(get("train").status.failed, 0);
}

// Whatever the operator was about to write when it crashed: each attempt runs once, and the batch
// Jobs end as they would have.
TEST(ManagedJobCrashes, AtAnyWriteChangeNothing) {
  struct Rounds : ManagedJobTest {
    using ManagedJobTest::create;
    using ManagedJobTest::furnish;
    using ManagedJobTest::get;
    void TestBody() override {}
  };
  int crashes = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{{.seed = seed, .crash_per_mille = 80}};
    Rounds::furnish(world);
    Rounds::create(world, batch_job("good", 3, "9s"));
    Rounds::create(world,
                   batch_job("bad", 2, "5s", {{"backoffLimit", 1}}, {{"test/exit-code", "1"}}));
    Rounds::create(world, batch_job("hopeless", 1, "5s", on_exit_code(7, "FailJob"),
                                    {{"test/exit-code", "7"}}));
    Rounds::create(
        world,
        batch_job("driven", 2, "9s",
                  {{"successPolicy", {{"rules", json::array({{{"succeededIndexes", "0"}}})}}}},
                  {{"test/only-pod", "0"}}));
    Rounds::create(world, batch_job("late", 5, "", {{"activeDeadlineSeconds", 8}}));
    world.run_for(seconds{90});
    crashes += world.crashes();
    world.set_crash_per_mille(0);
    const auto over = [&](const char* name) {
      return kube::is_finished(Rounds::get(world, name).status);
    };
    EXPECT_TRUE(world.run_until(
        [&] {
          return over("good") && over("bad") && over("late") && over("hopeless") && over("driven");
        },
        minutes{10}))
        << world.log_tail();
    EXPECT_EQ(Rounds::get(world, "good").status.succeeded, 3);
    EXPECT_EQ(Rounds::get(world, "good").status.failed, 0);
    EXPECT_EQ(Rounds::get(world, "bad").status.failed, 2);
    EXPECT_EQ(Rounds::get(world, "hopeless").status.failed, 1);
    EXPECT_EQ(Rounds::get(world, "driven").status.completed_indexes, "0");
    EXPECT_EQ(Rounds::get(world, "late").status.failed, 0);
    const auto made = world.client().list<kube::Job>();
    // good, hopeless, driven and late have one attempt each, bad has two.
    EXPECT_THAT(made->items, SizeIs(6)) << "one for each attempt";
    expect_no_violations(world);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(crashes, 0);
}

}  // namespace
}  // namespace control
