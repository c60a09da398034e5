// Goal: the checkers accept the consequences of a restore of etcd, and nothing else.
// Method: no round is played. The test writes statuses into an API server in memory, tells the
// ledger what the programs did, and reads its finding.
#include "simulation/ledger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/testing/manual_clock.h"
#include "simulation/paths.h"

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
  // Sets the store back, as World::restore() does.
  void restore(const devcluster::ApiServer::Backup& backup) {
    server_.restore(backup);
    ledger_.restored();
    ledger_.look();
  }
  std::string finding() const { return ledger_.finding() ? ledger_.finding()->text : ""; }

  Time now_{0};
  const kube::ManualClock clock_;
  devcluster::ApiServer server_{clock_};
  const Plan plan_;
  Tally tally_;
  Ledger ledger_{server_, now_, plan_, tally_};
  Program program_;
};

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
  ledger_.program_ended(program_, true);
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
  ledger_.program_ended(program_, true);
  restore(*backup);
  now_ += minutes{2};
  becomes("Running");
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "");
  ledger_.program_ended(program_, true);
  now_ += seconds{1};
  ledger_.program_started(program_);
  EXPECT_EQ(finding(), "job-0-abcde-0 has ended well and starts again");
}

}  // namespace
}  // namespace simulation
