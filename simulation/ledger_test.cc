// Goal: the checkers accept the consequences of a restore of etcd, and nothing else; and those of
// pods that follow one another see what no break shows.
// Method: no round is played. The test writes statuses into an API server in memory, tells the
// ledger what the programs did, and reads its finding.
#include "simulation/ledger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "api/wellknown.h"
#include "kube/testing/manual_clock.h"
#include "simulation/paths.h"
#include "translation/pod_slots.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    const base::Status loaded = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
    EXPECT_TRUE(loaded.ok());
    write(
        kube::Method::kPost, "/api/v1/namespaces",
        {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", paths::kNamespace}}}});
    const json containers = json::array({{{"name", "main"}, {"image", "busybox"}}});
    const json made = write(kube::Method::kPost, paths::kJobs,
                            {{"apiVersion", "kubegang.io/v1alpha1"},
                             {"kind", "Job"},
                             {"metadata", {{"name", "job-0"}}},
                             {"spec", {{"template", {{"spec", {{"containers", containers}}}}}}}});
    program_.job_uid = made["metadata"].value("uid", "");
    program_.name = "job-0-abcde-0";
    program_.start = 1;
  }
  // Sends a request as any client would, expects it to succeed, and lets the ledger look at the
  // result, as a round does after each change.
  json write(kube::Method method, const std::string& path, const json& body) {
    devcluster::ApiRequest request;
    request.http.method = method;
    request.http.path = path;
    request.http.body = body.dump();
    if (method == kube::Method::kPatch) request.http.content_type = "application/merge-patch+json";
    const kube::Response answer = server_.handle(request).response;
    EXPECT_LT(answer.status, 300) << answer.body;
    ledger_.look();
    return json::parse(answer.body);
  }
  // Stores a state of the job, in its first start.
  void becomes(const char* state) {
    write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
          {{"status", {{"state", state}, {"starts", 1}}}});
  }
  // Stores a start of the job, on n1.
  void runs_on_n1(int start, int tasks = 1) {
    const json share{{"hostlist", "n1"}, {"tasks", tasks}};
    write(
        kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
        {{"status",
          {{"state", "Running"},
           {"starts", start},
           {"allocation",
            {{"hostlist", "n1"}, {"nodes", 1}, {"cpus", 1}, {"shares", json::array({share})}}}}}});
  }
  // Makes the pod of its first start. Returns the pod's path.
  std::string make_pod() {
    const json owner{{"apiVersion", "kubegang.io/v1alpha1"},
                     {"kind", "Job"},
                     {"name", "job-0"},
                     {"uid", program_.job_uid},
                     {"controller", true}};
    const json labels{{std::string{kube::kLabelStart}, "1"}, {std::string{kube::kLabelTask}, "0"}};
    const json containers = json::array({{{"name", "main"}, {"image", "busybox"}}});
    write(
        kube::Method::kPost, paths::kPods,
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata",
          {{"name", program_.name}, {"labels", labels}, {"ownerReferences", json::array({owner})}}},
         {"spec", {{"containers", containers}, {"nodeName", "n1"}}}});
    return std::string{paths::kPods} + "/" + program_.name;
  }
  json stored(const std::string& path) {
    devcluster::ApiRequest request;
    request.http.path = path;
    return json::parse(server_.handle(request).response.body);
  }
  // The job's only program runs, and ends so.
  void runs_and_ends(EndedBy by) {
    becomes("Running");
    ledger_.program_started(program_);
    ledger_.program_ended(program_, by);
  }
  // Sets the store back, as World::restore() does.
  void restore(const devcluster::ApiServer::Backup& backup, Time as_of = Time{0}) {
    server_.restore(backup);
    ledger_.restored(as_of);
    ledger_.look();
  }
  std::string finding() const { return ledger_.finding() ? ledger_.finding()->text : ""; }

  Time now_{0};
  const kube::ManualClock clock_;
  devcluster::ApiServer server_{clock_};
  const Plan plan_{.jobs = {{.name = "job-0"}}};
  std::vector<Node> nodes_;
  Tally tally_;
  Ledger ledger_{server_, now_, plan_, tally_};
  Program program_;
};

// A pod is ended for an ending that is stored. One that comes when its start has been undone, as
// that a paused leader made, is of no start that goes on.
TEST_F(LedgerTest, APodIsEndedOnlyForAnEndingThatIsStored) {
  runs_on_n1(1);
  const std::string pod = make_pod();
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
        {{"status", {{"state", "Pending"}, {"allocation", nullptr}}}});
  write(kube::Method::kDelete, pod, {{"gracePeriodSeconds", 30}});
  EXPECT_EQ(finding(), "");
}

TEST_F(LedgerTest, APodOfAStartThatGoesOnIsNotEnded) {
  runs_on_n1(1);
  write(kube::Method::kDelete, make_pod(), {{"gracePeriodSeconds", 30}});
  EXPECT_EQ(finding(), "pod job-0-abcde-0 is deleted, job is Running and no ending is stored");
}

// The operator must not take a job for completed while its program still runs: the stored verdict
// is compared with what the node knows.
TEST_F(LedgerTest, AJobIsCompletedOnlyIfItsProgramsWere) {
  becomes("Running");
  ledger_.program_started(program_);
  becomes("Completed");
  EXPECT_EQ(finding(), "job job-0 is Completed, but not all of its programs were");
}

// The program ended 10 s after the backup, so the restored job is still Running. 2 min later, when
// the excuse of a restore (60 s) is over, kubelet's report arrives and the operator stores
// Completed. A ledger that had forgotten the program's end with everything else would call that
// verdict wrong.
TEST_F(LedgerTest, WhatProgramsDidARestoreOfEtcdDoesNotUndo) {
  becomes("Running");
  ledger_.program_started(program_);
  const auto backup = server_.back_up();
  now_ += seconds{10};
  ledger_.program_ended(program_, EndedBy::kItself);
  restore(*backup);
  now_ += minutes{2};
  becomes("Completed");
  EXPECT_EQ(finding(), "");
}

// Start 1 is committed, its program ends well, and a restore takes back even the commit. The
// operator starts the job again and gives it number 1 once more, because the restored status does
// not have it: no finding. When the program of that second run has ended well and yet another of
// start 1 begins, after the restore, it is one.
TEST_F(LedgerTest, AStartThatARestoreTookBackIsMadeAgain) {
  const auto backup = server_.back_up();
  becomes("Running");
  ledger_.program_started(program_);
  now_ += seconds{10};
  ledger_.program_ended(program_, EndedBy::kItself);
  restore(*backup);
  now_ += minutes{2};
  becomes("Running");
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  ledger_.program_ended(program_, EndedBy::kItself);
  now_ += seconds{1};
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "job-0-abcde-0 has ended well and starts again");
}

// As before, but the program ends well only a second after the restore: its node has not heard yet
// that its pod is no longer stored. One whose pod is stored counts.
TEST_F(LedgerTest, AProgramWhosePodARestoreTookAwayDoesNotCount) {
  const auto backup = server_.back_up();
  becomes("Running");
  ledger_.program_started(program_);
  restore(*backup);
  now_ += seconds{1};
  ledger_.program_ended(program_, EndedBy::kItself);
  now_ += minutes{2};
  becomes("Running");
  program_.uid = stored(make_pod())["metadata"].value("uid", "");
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  restore(*server_.back_up());
  now_ += seconds{1};
  ledger_.program_ended(program_, EndedBy::kItself);
  now_ += minutes{2};
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "job-0-abcde-0 has ended well and starts again");
}

// The failure that a job waits for was never stored, but a restore deleted the other job, to an
// operator that knew it. Nothing says that it succeeded.
TEST_F(LedgerTest, AJobThatARestoreTookAwayWasDeleted) {
  const auto starts_after = [&](const char* kind) {
    const std::string job = std::string{paths::kJobs} + "/job-0";
    const json term{{"type", kind}, {"jobName", "job-1"}};
    write(kube::Method::kPatch, job,
          {{"spec", {{"dependency", {{"terms", json::array({term})}}}}}});
    const auto backup = server_.back_up();
    json other = stored(job);
    other["metadata"] = {{"name", "job-1"}};
    other["spec"].erase("dependency");
    other.erase("status");
    write(kube::Method::kPost, paths::kJobs, other);
    restore(*backup);
    runs_on_n1(1);
    restore(*backup);
  };
  starts_after("AfterNotOK");
  EXPECT_EQ(finding(), "");
  starts_after("AfterOK");
  EXPECT_EQ(finding(), "job job-0 starts before the AfterOK of job job-1");
}

// A verdict that something went wrong is compared with what the node knows, too.
TEST_F(LedgerTest, AJobHasFailedOnlyIfAProgramHas) {
  runs_and_ends(EndedBy::kRequest);  // as if its pod was deleted
  becomes("Failed");
  EXPECT_EQ(finding(), "job job-0 is Failed, none of its programs has failed");
}

TEST_F(LedgerTest, AProgramThatWasKilledHasFailed) {
  runs_and_ends(EndedBy::kSignal);
  becomes("Failed");
  EXPECT_EQ(finding(), "");
}

// A program that fails by itself is not lost.
TEST_F(LedgerTest, AJobHasLostItsNodeOnlyIfItHas) {
  program_.exit_code = 1;
  runs_and_ends(EndedBy::kItself);
  becomes("NodeFail");
  EXPECT_EQ(finding(), "job job-0 is NodeFail, and has lost no node and no pod");
}

TEST_F(LedgerTest, AMachineThatGoesOffLosesItsPods) {
  runs_and_ends(EndedBy::kMachine);
  becomes("NodeFail");
  EXPECT_EQ(finding(), "");
}

TEST_F(LedgerTest, AJobIsOverItsTimeOnlyIfItHasALimit) {
  becomes("Running");
  becomes("Timeout");
  EXPECT_EQ(finding(), "job job-0 is Timeout and has no limit");
}

TEST_F(LedgerTest, AJobIsOverItsTimeOnlyWhenItHasRunForThatLong) {
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0",
        {{"spec", {{"schedule", {{"timeLimit", "60s"}}}}}});
  becomes("Running");
  now_ += minutes{1};
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
        {{"status", {{"runTime", {{"elapsed", "30s"}, {"asOf", "2026-01-01T00:00:30.000000Z"}}}}}});
  becomes("Timeout");
  EXPECT_EQ(finding(), "job job-0 is Timeout after 30000 ms of 60000 ms");
}

// The end was decided by the limit that the job had then, and is carried out after the restore.
TEST_F(LedgerTest, AJobIsOverTheTimeThatItHadBeforeARestore) {
  const std::string job = std::string{paths::kJobs} + "/job-0";
  write(kube::Method::kPatch, job, {{"spec", {{"schedule", {{"timeLimit", "60s"}}}}}});
  becomes("Running");
  now_ += minutes{1};
  write(kube::Method::kPatch, job + "/status",
        {{"status", {{"runTime", {{"elapsed", "60s"}, {"asOf", "2026-01-01T00:01:00.000000Z"}}}}}});
  write(kube::Method::kPatch, job, {{"spec", {{"schedule", {{"timeLimit", "10m"}}}}}});
  restore(*server_.back_up());
  becomes("Timeout");
  EXPECT_EQ(finding(), "");
}

// Whatever a clock makes of it, a job has not run for longer than there has been time since its
// start. An operator's clock that was set by a little is followed.
TEST_F(LedgerTest, AJobIsOverItsTimeOnlyWhenThatHasPassed) {
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0",
        {{"spec", {{"schedule", {{"timeLimit", "60s"}}}}}});
  now_ += minutes{10};
  becomes("Running");
  now_ += seconds{35};
  ledger_.operator_clock_stepped(seconds{10});
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
        {{"status", {{"runTime", {{"elapsed", "60s"}, {"asOf", "2026-01-01T00:10:35.000000Z"}}}}}});
  becomes("Timeout");
  EXPECT_EQ(finding(), "job job-0 is Timeout 35000 ms after its start, its limit is 60000 ms");
}

TEST_F(LedgerTest, AJobIsOverItsTimeByAClockThatMayBeFollowed) {
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0",
        {{"spec", {{"schedule", {{"timeLimit", "60s"}}}}}});
  now_ += minutes{10};
  becomes("Running");
  now_ += seconds{35};
  ledger_.operator_clock_stepped(seconds{20});
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
        {{"status", {{"runTime", {{"elapsed", "60s"}, {"asOf", "2026-01-01T00:10:35.000000Z"}}}}}});
  becomes("Timeout");
  EXPECT_EQ(finding(), "");
}

// The operator had decided the start before it heard that the partition is gone: the job has no
// queue to go back to when it is preempted. A job that starts later has one.
TEST_F(LedgerTest, AVictimWithoutAPartitionEndsPreempted) {
  ledger_.partition_goes(seconds{10});
  now_ += seconds{5};
  becomes("Running");
  becomes("Preempted");
  EXPECT_EQ(finding(), "");
}

TEST_F(LedgerTest, AVictimWithAPartitionIsRequeued) {
  ledger_.partition_goes(seconds{10});
  now_ += seconds{11};
  becomes("Running");
  becomes("Preempted");
  EXPECT_EQ(finding(), "job job-0 is Preempted, preemption requeues or suspends it");
}

// The job's only pod has succeeded, and the operator has heard of it: the job has ended, and a
// second start would do its work again. A cleaner that deletes the pod changes nothing in that.
TEST_F(LedgerTest, AJobThatIsDoneDoesNotStartAgain) {
  runs_on_n1(1);
  const std::string pod = make_pod();
  write(kube::Method::kPatch, pod + "/status", {{"status", {{"phase", "Succeeded"}}}});
  ledger_.sample(nodes_, /*operator_is_well=*/true);
  write(kube::Method::kDelete, pod, {{"gracePeriodSeconds", 0}});
  EXPECT_EQ(finding(), "");
  runs_on_n1(2);
  EXPECT_EQ(finding(), "job job-0 starts again, all its pods had succeeded");
}

// A gang may have more pods than nodes: one of two has succeeded.
TEST_F(LedgerTest, AJobThatIsDoneHasAllOfItsPodsSucceeded) {
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0",
        {{"spec", {{"podPolicy", "PerTask"}}}});
  runs_on_n1(1, 2);
  write(kube::Method::kPatch, make_pod() + "/status", {{"status", {{"phase", "Succeeded"}}}});
  ledger_.sample(nodes_, /*operator_is_well=*/true);
  runs_on_n1(2, 2);
  EXPECT_EQ(finding(), "");
}

// Until the operator has heard of it a requeue may be decided.
TEST_F(LedgerTest, AJobMayStartAgainIfNobodyKnowsThatItIsDone) {
  runs_on_n1(1);
  write(kube::Method::kPatch, make_pod() + "/status", {{"status", {{"phase", "Succeeded"}}}});
  ledger_.sample(nodes_, /*operator_is_well=*/false);
  runs_on_n1(2);
  EXPECT_EQ(finding(), "");
}

// A success whose pod was deleted while there was no leader is not counted by a later one.
TEST_F(LedgerTest, AJobIsNotDoneByASuccessThatNobodyHeardOf) {
  runs_on_n1(1);
  const std::string pod = make_pod();
  write(kube::Method::kPatch, pod + "/status", {{"status", {{"phase", "Succeeded"}}}});
  ledger_.sample(nodes_, /*operator_is_well=*/false);
  ledger_.pod_deleted(stored(pod));
  write(kube::Method::kDelete, pod, {{"gracePeriodSeconds", 0}});
  ledger_.sample(nodes_, /*operator_is_well=*/true);
  runs_on_n1(2);
  EXPECT_EQ(finding(), "");
}

// Others delete the pod of a program that has ended well, which is not stored yet: kubelet says so
// while the pod is being deleted. If no operator hears it, the program is run again (faults.md,
// limit 2).
TEST_F(LedgerTest, ASuccessThatNobodyHeardOfBeforeItsPodWentMayRunAgain) {
  for (const bool is_well : {false, true}) {
    becomes("Running");
    const std::string pod = make_pod();
    ledger_.program_started(program_);
    ledger_.program_ended(program_, EndedBy::kItself);
    now_ += seconds{10};
    ledger_.sample(nodes_, is_well);
    ledger_.pod_deleted(stored(pod));
    write(kube::Method::kDelete, pod, {{"gracePeriodSeconds", 0}});
    ledger_.program_started(program_);
    ledger_.program_ended(program_, EndedBy::kRequest);
    EXPECT_EQ(finding(), is_well ? program_.name + " has ended well and starts again" : "");
    program_.name = "job-0-abcde-1";
    program_.task = 1;
  }
}

// A job that waits while every node is idle has been forgotten. One that is held may wait.
TEST_F(LedgerTest, NodesAreNotIdleWhileJobsWait) {
  const json accepted{{"type", "Accepted"},
                      {"status", "True"},
                      {"reason", "Accepted"},
                      {"lastTransitionTime", "2026-01-01T00:00:00Z"},
                      {"message", ""}};
  const auto waits = [&](const json& held) {
    write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
          {{"status",
            {{"state", "Pending"}, {"held", held}, {"conditions", json::array({accepted})}}}});
    for (int i = 0; i < 2; ++i) {
      ledger_.sample(nodes_, /*operator_is_well=*/true);
      now_ += minutes{2};
    }
  };
  waits({{"reason", "JobHeldUser"}});
  EXPECT_EQ(finding(), "");
  waits(nullptr);
  EXPECT_EQ(finding(), "all nodes are idle for 120000 ms: job-0 is Pending (), starts 0; ");
}

// A watch that lists again does not show a pod that was made and deleted meanwhile. The leader
// goes by the answer to its creation until it asks.
TEST_F(LedgerTest, ALeaderAsksForAPodThatNoWatchHasShown) {
  becomes("Running");
  const std::string path = make_pod();
  const auto pod = kube::decode<kube::Pod>(stored(path));
  ASSERT_TRUE(pod.ok());
  write(kube::Method::kDelete, path, {{"gracePeriodSeconds", 0}});
  ledger_.check_known_pod(*pod, /*is_unseen=*/true);
  now_ += seconds{32};
  ledger_.check_known_pod(*pod, /*is_unseen=*/true);
  EXPECT_EQ(finding(), "");
  now_ += seconds{2};
  ledger_.check_known_pod(*pod, /*is_unseen=*/true);
  EXPECT_TRUE(finding().ends_with("stored is none")) << finding();
}

// A leader's timetable, and its knowledge of a pod, are as stored. The term and
// the revision of a timetable are of its last write.
TEST_F(LedgerTest, WhatALeaderKnowsIsStored) {
  becomes("Running");
  kube::NodeTimetable table;
  table.metadata.name = "n1";
  table.spec.term = 1;
  table.spec.revision = 1;
  table.spec.timetable.slice = seconds{1};
  table.spec.timetable.cycle = {{}};
  write(kube::Method::kPost, paths::kTables, kube::encode(table));
  const auto pod = kube::decode<kube::Pod>(stored(make_pod()));
  ASSERT_TRUE(pod.ok());
  table.spec.revision = 2;
  ledger_.check_stored_table("n1", table.spec);
  ledger_.check_known_pod(*pod);
  EXPECT_EQ(finding(), "");
  write(kube::Method::kPatch, std::string{paths::kPods} + "/" + program_.name + "/status",
        {{"status", {{"phase", "Running"}}}});
  Ledger other{server_, now_, plan_, tally_};
  other.look();
  other.check_known_pod(*pod);
  EXPECT_FALSE(other.finding()) << "it hears of it soon";
  now_ += seconds{4};
  other.check_known_pod(*pod);
  ASSERT_TRUE(other.finding());
  EXPECT_TRUE(other.finding()->text.starts_with("the operator knows pod job-0-abcde-0 of version"));
  table.spec.timetable.slice = seconds{2};
  ledger_.check_stored_table("n1", table.spec);
  EXPECT_TRUE(finding().starts_with(
      "the timetable of n1 is not stored as the operator wants it: [{\"op\":\"replace\""))
      << finding();
}

// A tool that waits for a job's newest spec to be judged waits forever otherwise.
TEST_F(LedgerTest, TheNewestSpecIsObservedInTheEnd) {
  const std::string path = std::string{paths::kJobs} + "/job-0";
  write(kube::Method::kPatch, path + "/status",
        {{"status", {{"state", "Pending"}, {"observedGeneration", 1}}}});
  ledger_.check_end();
  EXPECT_EQ(finding(), "");
  write(kube::Method::kPatch, path, {{"spec", {{"schedule", {{"timeLimit", "10m"}}}}}});
  ledger_.check_end();
  EXPECT_EQ(finding(), "job job-0 has generation 2, observed is 1");
}

// The same for a node that is closed: what was decided before the operator heard of it is stored
// later.
TEST_F(LedgerTest, AJobDoesNotStartOnANodeThatIsKnownToBeClosed) {
  ledger_.node_closes("n1", /*taint=*/false, true);
  runs_on_n1(1);
  EXPECT_EQ(finding(), "");
  ledger_.sample(nodes_, /*operator_is_well=*/true);
  ledger_.node_closes("n2", /*taint=*/false, true);
  runs_on_n1(2);
  EXPECT_EQ(finding(), "job job-0 starts on n1, which is cordoned");
}

// Deletes it as no user has asked.
TEST_F(LedgerTest, AJobGoesOnlyIfItsUserDeletesIt) {
  write(kube::Method::kDelete, std::string{paths::kJobs} + "/job-0", json::object());
  EXPECT_EQ(finding(), "job job-0 was deleted by no user");
}

// A program that goes on without its job takes CPUs that are not counted.
TEST_F(LedgerTest, NoProgramIsLeftWhenAllHasEnded) {
  becomes("Running");
  ledger_.program_started(program_);
  ledger_.user_ends("job-0");
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/job-0/status",
        {{"status", {{"state", "Cancelled"}, {"observedGeneration", 1}}}});
  EXPECT_EQ(finding(), "");
  ledger_.check_end();
  EXPECT_EQ(finding(), "job-0-abcde-0 runs after its job has ended");
}

TEST_F(LedgerTest, NumbersOfJobsAreUnique) {
  const auto has_number = [&](const char* name, int number) {
    write(kube::Method::kPatch, std::string{paths::kJobs} + "/" + name + "/status",
          {{"status", {{"state", "Pending"}, {"observedGeneration", 1}, {"jobID", number}}}});
  };
  json other = stored(std::string{paths::kJobs} + "/job-0");
  other["metadata"] = {{"name", "job-1"}};
  other.erase("status");
  write(kube::Method::kPost, paths::kJobs, other);
  has_number("job-0", 7);
  has_number("job-1", 8);
  ledger_.check_end();
  EXPECT_EQ(finding(), "");
  has_number("job-1", 7);
  ledger_.check_end();
  EXPECT_EQ(finding(), "two jobs have the number 7");
}

// Puts pods of two jobs into one slot; those of one job may be in it.
TEST_F(LedgerTest, OneGangHasASlotOfANode) {
  kube::NodeTimetable table;
  table.metadata.name = "n1";
  table.spec.term = 1;
  table.spec.timetable.slice = seconds{1};
  table.spec.timetable.pods_count = 3;
  table.spec.pods = {{.ns = paths::kNamespace, .name = "a-0", .job_uid = "a"},
                     {.ns = paths::kNamespace, .name = "a-1", .job_uid = "a"},
                     {.ns = paths::kNamespace, .name = "b-0", .job_uid = "b"}};
  table.spec.timetable.cycle = {{0, 1}, {2}};
  write(kube::Method::kPost, paths::kTables, kube::encode(table));
  EXPECT_EQ(finding(), "");
  table.spec.timetable.cycle = {{0, 1}, {1, 2}};
  write(kube::Method::kPatch, std::string{paths::kTables} + "/n1",
        {{"spec", kube::encode(table)["spec"]}});
  EXPECT_EQ(finding(), "two gangs in one slot of n1");
}

// A job whose partition was deleted runs on without turns. A restore of etcd to a state of after
// that changes nothing in it; one of before brings the partition back, and the job takes turns.
TEST_F(LedgerTest, AJobWithoutAPartitionTakesNoTurnsAfterARestoreToThen) {
  runs_on_n1(1);
  const auto before = server_.back_up();
  now_ += seconds{1};
  ledger_.partition_goes(seconds{0});
  kube::NodeTimetable table;
  table.metadata.name = "n1";
  table.spec.term = 1;
  table.spec.timetable.slice = seconds{1};
  table.spec.timetable.pods_count = 2;
  const std::string pod = control::pod_name("job-0", program_.job_uid, 1, 0);
  table.spec.pods = {{.ns = paths::kNamespace, .name = pod, .job_uid = program_.job_uid},
                     {.ns = paths::kNamespace, .name = "b-0", .job_uid = "b"}};
  table.spec.timetable.cycle = {{0, 1}};
  const json object = kube::encode(table);
  write(kube::Method::kPost, paths::kTables, object);
  const auto after = server_.back_up();
  const Time as_of = now_;
  now_ += seconds{5};
  restore(*after, as_of);
  EXPECT_EQ(finding(), "");
  restore(*before, as_of - seconds{1});
  now_ += minutes{2};
  write(kube::Method::kPost, paths::kTables, object);
  EXPECT_EQ(finding(), "two gangs in one slot of n1");
}

// The name of a pod tells its start; only the first of two starts is stored.
TEST_F(LedgerTest, ATimetableListsOnlyPodsOfStartsThatAreStored) {
  becomes("Running");
  kube::NodeTimetable table;
  table.metadata.name = "n1";
  table.spec.term = 1;
  table.spec.timetable.slice = seconds{1};
  table.spec.timetable.pods_count = 1;
  table.spec.timetable.cycle = {{0}};
  const auto put = [&](std::int64_t revision, std::int64_t start) {
    table.spec.revision = revision;
    table.spec.pods = {{.ns = paths::kNamespace,
                        .name = control::pod_name("job-0", program_.job_uid, start, 0),
                        .job_uid = program_.job_uid}};
    const json object = kube::encode(table);
    return revision == 1 ? write(kube::Method::kPost, paths::kTables, object)
                         : write(kube::Method::kPatch, std::string{paths::kTables} + "/n1",
                                 {{"spec", object["spec"]}});
  };
  put(1, 1);
  EXPECT_EQ(finding(), "");
  put(2, 2);
  EXPECT_EQ(finding(), "the timetable of n1 lists " +
                           control::pod_name("job-0", program_.job_uid, 2, 0) +
                           ", stored are 1 starts");
}

// A batch Job of four indexes, two at a time, and kubegang Jobs that run it.
class LedgerIndexTest : public LedgerTest {
 protected:
  LedgerIndexTest() {
    const json made = write(
        kube::Method::kPost, paths::kBatchJobs,
        {{"apiVersion", "batch/v1"},
         {"kind", "Job"},
         {"metadata", {{"name", "sweep"}}},
         {"spec",
          {{"managedBy", "kubegang.io/job"},
           {"completionMode", "Indexed"},
           {"parallelism", 2},
           {"completions", 4},
           {"template", {{"spec", {{"restartPolicy", "Never"}, {"containers", containers_}}}}}}}});
    batch_uid_ = made["metadata"].value("uid", "");
    make("sweep");
  }
  // Makes a kubegang Job that runs it, of which program_ is from then on.
  void make(const std::string& name) {
    const json spec{{"podPolicy", "PerTask"},
                    {"completions", 4},
                    {"resources", {{"tasks", 2}}},
                    {"template", {{"spec", {{"containers", containers_}}}}}};
    const json owner{{"apiVersion", "batch/v1"},
                     {"kind", "Job"},
                     {"name", "sweep"},
                     {"uid", batch_uid_},
                     {"controller", true}};
    const json metadata{{"name", name}, {"ownerReferences", json::array({owner})}};
    const json made = write(kube::Method::kPost, paths::kJobs,
                            {{"apiVersion", "kubegang.io/v1alpha1"},
                             {"kind", "Job"},
                             {"metadata", metadata},
                             {"spec", spec}});
    program_.job_uid = made["metadata"].value("uid", "");
    program_.name = name + "-abcde-0";
  }
  // Stores the first start of a Job, its places and what has succeeded.
  void runs(const std::string& name, const std::string& members, const std::string& succeeded) {
    json status{{"state", "Running"},
                {"starts", 1},
                {"memberIndexes", members},
                {"allocation",
                 {{"hostlist", "n1"},
                  {"nodes", 1},
                  {"cpus", 2},
                  {"shares", json::array({{{"hostlist", "n1"}, {"tasks", 2}}})}}}};
    if (!succeeded.empty()) status["succeededIndexes"] = succeeded;
    write(kube::Method::kPatch, std::string{paths::kJobs} + "/" + name + "/status",
          {{"status", status}});
  }
  // Creates the pod of an index, of the first start.
  void make_pod(const std::string& index) {
    const json owner{{"apiVersion", "kubegang.io/v1alpha1"},
                     {"kind", "Job"},
                     {"name", "sweep"},
                     {"uid", program_.job_uid},
                     {"controller", true}};
    const json labels{{std::string{kube::kLabelStart}, "1"},
                      {std::string{kube::kLabelTask}, index}};
    const json metadata{{"name", "sweep-abcde-" + index},
                        {"labels", labels},
                        {"ownerReferences", json::array({owner})}};
    write(kube::Method::kPost, paths::kPods,
          {{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata", metadata},
           {"spec", {{"containers", containers_}}}});
  }
  void tell(const json& status) {
    write(kube::Method::kPatch, std::string{paths::kBatchJobs} + "/sweep/status",
          {{"status", status}});
  }

  const json containers_ = json::array({{{"name", "main"}, {"image", "busybox"}}});
  std::string batch_uid_;
};

// Index 1 may come late: it had a place, and has succeeded.
TEST_F(LedgerIndexTest, APodIsMadeOnlyWhenItsPlaceIsStored) {
  runs("sweep", "0,2", "1");
  for (const char* index : {"0", "1", "2"}) make_pod(index);
  EXPECT_EQ(finding(), "");
  make_pod("3");
  EXPECT_EQ(finding(), "pod sweep-abcde-3 exists, places have 0,2");
}

// One kubegang Job after another runs a batch Job (a retry). Index 0 has succeeded in the first
// one; the second one may run index 1, which has not.
TEST_F(LedgerIndexTest, AnIndexThatHasSucceededRunsInNoLaterAttempt) {
  runs("sweep", "0-1", "");
  ledger_.program_started(program_);
  ledger_.program_ended(program_, EndedBy::kItself);
  runs("sweep", "1-2", "0");
  make("second");
  program_.task = 1;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  program_.task = 0;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "second-abcde-0 starts, its index has succeeded");
}

// A success in its status counts even if the Job that brought it is gone.
TEST_F(LedgerIndexTest, AnIndexThatIsCountedDoesNotRunAgain) {
  tell({{"succeeded", 1}, {"completedIndexes", "0"}});
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "sweep-abcde-0 starts, its index has succeeded");
}

// The Job is deleted, and so its programs must end. That excuses other indexes only.
TEST_F(LedgerIndexTest, AnIndexDoesNotRunBesideItself) {
  runs("sweep", "0-1", "");
  ledger_.program_started(program_);
  ledger_.user_deletes("sweep");
  write(kube::Method::kDelete, std::string{paths::kJobs} + "/sweep", json::object());
  make("second");
  program_.task = 1;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  program_.task = 0;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "second-abcde-0 starts while sweep-abcde-0 runs for it");
}

// A user may read a result as soon as its index is counted. An operator that computed the set again
// from the pods it sees would lose the index of a pod that was deleted.
TEST_F(LedgerIndexTest, NoSuccessIsTakenBack) {
  runs("sweep", "2-3", "0-1");
  runs("sweep", "1,3", "0,2");
  EXPECT_EQ(finding(), "index 1 of job sweep had succeeded and no longer has");
}

// If there are two leaders for a moment after a restore, one writes over what the other stored. The
// index runs again, since no stored object has its success.
TEST_F(LedgerIndexTest, ASuccessThatTwoLeadersLostMayRunAgain) {
  runs("sweep", "0-1", "");
  restore(*server_.back_up());
  runs("sweep", "2-3", "0-1");
  runs("sweep", "1-2", "0");
  EXPECT_EQ(finding(), "");
  now_ += minutes{2};
  program_.task = 1;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  program_.task = 0;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "sweep-abcde-0 starts, its index has succeeded");
}

// After a restore the leader of before counts the index 0, which the Job no longer has. That index
// runs again, also when the batch Job is written later. One that the backup has does not.
TEST_F(LedgerIndexTest, ASuccessThatOnlyTheLeaderBeforeARestoreCountedMayRunAgain) {
  runs("sweep", "0-1", "");
  tell({{"succeeded", 1}, {"completedIndexes", "3"}});
  const auto backup = server_.back_up();
  runs("sweep", "1-2", "0");
  restore(*backup);
  now_ += seconds{1};
  tell({{"succeeded", 2}, {"completedIndexes", "0,3"}});
  now_ += minutes{2};
  tell({{"succeeded", 3}, {"completedIndexes", "0,2-3"}});
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  program_.task = 3;
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "sweep-abcde-0 starts, its index has succeeded");
}

TEST_F(LedgerIndexTest, ASuccessThatTheJobHasAfterARestoreDoesNotRunAgain) {
  runs("sweep", "0-1", "");
  restore(*server_.back_up());
  tell({{"succeeded", 1}, {"completedIndexes", "0"}});
  runs("sweep", "1-2", "0");
  now_ += minutes{2};
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "sweep-abcde-0 starts, its index has succeeded");
}

TEST_F(LedgerIndexTest, ASuccessThatIsCountedWhenThereIsOneLeaderDoesNotRunAgain) {
  runs("sweep", "0-1", "");
  restore(*server_.back_up());
  now_ += minutes{2};
  tell({{"succeeded", 1}, {"completedIndexes", "0"}});
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "sweep-abcde-0 starts, its index has succeeded");
}

// The number of successes stays the same, so only the set of indexes shows the loss.
TEST_F(LedgerIndexTest, NoSuccessOfABatchJobIsTakenBack) {
  tell({{"succeeded", 2}, {"completedIndexes", "0,1"}});
  tell({{"succeeded", 2}, {"completedIndexes", "0,2"}});
  EXPECT_EQ(finding(), "index 1 of batch Job sweep had succeeded and no longer has");
}

// Three of the four indexes are done. The API server takes these conditions as they are, so nothing
// but the ledger notices.
TEST_F(LedgerIndexTest, ABatchJobIsCompleteWithAllOfItsSuccesses) {
  const auto is_true = [](const char* type) { return json{{"type", type}, {"status", "True"}}; };
  const std::string at = "2026-01-01T00:00:00Z";
  tell({{"succeeded", 3},
        {"completedIndexes", "0-2"},
        {"startTime", at},
        {"completionTime", at},
        {"conditions", json::array({is_true("SuccessCriteriaMet"), is_true("Complete")})}});
  EXPECT_EQ(finding(), "batch Job sweep is Complete with 3 of 4 successes");
}

// Cancels the Job that ran it, so it has failed.
TEST_F(LedgerIndexTest, ABatchJobThatHasEndedStartsNoProgram) {
  runs("sweep", "0-1", "");
  ledger_.user_ends("sweep");
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/sweep/status",
        {{"status", {{"state", "Cancelled"}}}});
  const auto is_true = [](const char* type) { return json{{"type", type}, {"status", "True"}}; };
  tell({{"startTime", "2026-01-01T00:00:00Z"},
        {"conditions", json::array({is_true("FailureTarget"), is_true("Failed")})}});
  make("second");
  EXPECT_EQ(finding(), "");
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "second-abcde-0 starts, its batch Job has ended");
}

// One of its Jobs has failed, and backoffLimit allows that (the batch group's default, 6).
TEST_F(LedgerIndexTest, ABatchJobHasFailedOnlyIfItsJobsHave) {
  runs("sweep", "0-1", "");
  ledger_.program_started(program_);
  ledger_.program_ended(program_, EndedBy::kSignal);
  write(kube::Method::kPatch, std::string{paths::kJobs} + "/sweep/status",
        {{"status", {{"state", "Failed"}}}});
  EXPECT_EQ(finding(), "");
  const auto is_true = [](const char* type) { return json{{"type", type}, {"status", "True"}}; };
  tell({{"startTime", "2026-01-01T00:00:00Z"},
        {"conditions", json::array({is_true("FailureTarget"), is_true("Failed")})}});
  EXPECT_EQ(finding(), "batch Job sweep is Failed, 1 Jobs of it have failed");
}

// An array of three tasks, of which two may run at once.
class LedgerArrayTest : public LedgerTest {
 protected:
  LedgerArrayTest() {
    const json containers = json::array({{{"name", "main"}, {"image", "busybox"}}});
    const json made = write(kube::Method::kPost, paths::kJobs,
                            {{"apiVersion", "kubegang.io/v1alpha1"},
                             {"kind", "Job"},
                             {"metadata", {{"name", "sweep"}}},
                             {"spec",
                              {{"array", {{"tasks", "0-4:2"}, {"parallelism", 2}}},
                               {"template", {{"spec", {{"containers", containers}}}}}}}});
    uid_ = made["metadata"].value("uid", "");
  }
  // Returns a task as it is stored, in that start.
  static json entry(int task, int start = 1) {
    const json share{{"hostlist", "n1"}, {"tasks", 1}};
    return {{"task", task},
            {"state", "Running"},
            {"starts", start},
            {"allocation",
             {{"hostlist", "n1"}, {"nodes", 1}, {"cpus", 1}, {"shares", json::array({share})}}}};
  }
  // Stores these entries and outcomes, with the counts that follow from them.
  void store(const std::vector<json>& entries, const std::string& succeeded, int count_succeeded,
             const std::string& failed = "", int count_failed = 0, json more = json::object()) {
    const int waiting = 3 - static_cast<int>(entries.size()) - count_succeeded - count_failed;
    more["array"] = {{"tasks", json(entries)},
                     {"succeeded", succeeded},
                     {"failed", failed},
                     {"counts",
                      {{"waiting", waiting},
                       {"running", entries.size()},
                       {"succeeded", count_succeeded},
                       {"failed", count_failed},
                       {"cancelled", 0}}}};
    write(kube::Method::kPatch, std::string{paths::kJobs} + "/sweep/status", {{"status", more}});
  }
  void edit(const json& spec) {
    write(kube::Method::kPatch, std::string{paths::kJobs} + "/sweep", {{"spec", spec}});
  }
  // The program of a task runs, and ends by itself.
  void runs_and_ends(int task, int start = 1, int exit_code = 0) {
    Program program;
    program.job_uid = uid_ + "/" + std::to_string(task);
    program.name = "sweep-" + std::to_string(task);
    program.uid = program.name + std::to_string(start);
    program.start = start;
    program.exit_code = exit_code;
    ledger_.program_started(program);
    ledger_.program_ended(program, EndedBy::kItself);
  }

  std::string uid_;
};

TEST_F(LedgerArrayTest, TasksRunAndEnd) {
  store({entry(0), entry(2)}, "", 0);
  runs_and_ends(0);
  runs_and_ends(2, 1, 3);
  store({entry(4)}, "0", 1, "2", 1);
  runs_and_ends(4);
  store({}, "0,4", 2, "2", 1, {{"state", "Failed"}, {"exitCode", 3}});
  EXPECT_EQ(finding(), "");
  EXPECT_EQ(tally_.looked["task at the end"], 3);
}

TEST_F(LedgerArrayTest, ATaskHasSucceededOnlyIfItsProgramsHave) {
  store({entry(0), entry(2)}, "", 0);
  store({entry(2)}, "0", 1);
  EXPECT_EQ(finding(), "task sweep_0 has succeeded, but not all of its programs have");
}

TEST_F(LedgerArrayTest, ATaskHasFailedOnlyIfSomethingOfItHas) {
  store({entry(0), entry(2)}, "", 0);
  store({entry(2)}, "", 0, "0", 1);
  EXPECT_EQ(finding(), "task sweep_0 has failed, and nothing of it has");
}

TEST_F(LedgerArrayTest, AnOutcomeStays) {
  store({entry(0)}, "", 0);
  runs_and_ends(0);
  store({}, "0", 1);
  store({entry(0, 2)}, "", 0);
  EXPECT_EQ(finding(), "task sweep_0 had ended, its outcome is another one");
}

TEST_F(LedgerArrayTest, ATaskThatHasStartedHasAnEntry) {
  store({entry(0)}, "", 0);
  store({}, "", 0);
  EXPECT_EQ(finding(), "task sweep_0 has started and has no entry");
}

TEST_F(LedgerArrayTest, ATaskThatHasSucceededIsNotRunAgain) {
  store({entry(0)}, "", 0);
  runs_and_ends(0);
  store({entry(0, 2)}, "", 0);
  runs_and_ends(0, 2);
  store({}, "0", 1);
  EXPECT_EQ(finding(), "task sweep_0 has succeeded in its starts 1 and 2");
}

TEST_F(LedgerArrayTest, NoMoreRunThanTheThrottleAllows) {
  store({entry(0), entry(2)}, "", 0);
  store({entry(0), entry(2), entry(4)}, "", 0);
  EXPECT_EQ(finding(), "3 tasks of sweep run, 2 may");
}

// One that was looser counts until the operator has heard of the change.
TEST_F(LedgerArrayTest, AThrottleThatIsChangedIsHeardLater) {
  ledger_.sample(nodes_, true);
  now_ += seconds{2};
  ledger_.sample(nodes_, true);
  edit({{"array", {{"parallelism", 1}}}});
  store({entry(0), entry(2)}, "", 0);
  EXPECT_EQ(finding(), "");
  now_ += seconds{2};
  ledger_.sample(nodes_, true);
  store({entry(0), entry(2), entry(4)}, "", 0);
  EXPECT_EQ(finding(), "3 tasks of sweep run, 1 may");
}

TEST_F(LedgerArrayTest, OfEntriesThatNameATaskTheLastOneCounts) {
  const json held{{"tasks", "2-4"}, {"hold", true}};
  const json released{{"tasks", "4"}, {"hold", false}};
  edit({{"control", {{"tasks", json::array({held, released})}}}});
  now_ += seconds{2};
  ledger_.sample(nodes_, true);
  store({entry(0), entry(4)}, "", 0);
  EXPECT_EQ(finding(), "");
}

TEST_F(LedgerArrayTest, ATaskThatIsKnownToBeHeldDoesNotStart) {
  const json held{{"tasks", "2"}, {"hold", true}};
  edit({{"control", {{"tasks", json::array({held})}}}});
  now_ += seconds{2};
  ledger_.sample(nodes_, true);
  store({entry(0), entry(2)}, "", 0);
  EXPECT_EQ(finding(), "task sweep_2 starts, its user holds it");
}

TEST_F(LedgerArrayTest, AnArrayHasEndedWhenAllItsTasksHave) {
  store({entry(0)}, "", 0);
  runs_and_ends(0);
  store({}, "0", 1, "", 0, {{"state", "Completed"}});
  EXPECT_EQ(finding(), "array sweep is Completed, 1 of 3 tasks have ended");
}

TEST_F(LedgerArrayTest, AnArrayHasFailedIfATaskHas) {
  for (const int task : {0, 2, 4}) {
    store({entry(task)}, task == 0 ? "" : task == 2 ? "0" : "0,2", task / 2);
    runs_and_ends(task, 1, task == 4 ? 3 : 0);
  }
  store({}, "0,2", 2, "4", 1, {{"state", "Completed"}});
  EXPECT_EQ(finding(), "array sweep is Completed, its tasks say Failed");
}

TEST_F(LedgerArrayTest, AnArrayHasTheHighestExitCode) {
  for (const int task : {0, 2, 4}) {
    store({entry(task)}, task == 0 ? "" : task == 2 ? "0" : "0,2", task / 2);
    runs_and_ends(task, 1, task == 4 ? 3 : 0);
  }
  store({}, "0,2", 2, "4", 1, {{"state", "Failed"}, {"exitCode", 1}});
  EXPECT_EQ(finding(), "array sweep is Failed with exit code 1, task 4 ended with 3");
}

TEST_F(LedgerArrayTest, TheEntryOfATaskIsAsTheOperatorWantsIt) {
  store({entry(0)}, "", 0);
  kube::JobStatus wanted;
  wanted.state = kube::JobState::kRunning;
  wanted.starts = 2;
  ledger_.check_stored(uid_ + "/0", wanted);
  EXPECT_NE(finding().find("the entry of task sweep_0 is not stored"), std::string::npos);
}

}  // namespace
}  // namespace simulation
