// Jobs of the batch group with a managedBy of our own: who runs them writes their status, and the
// API server says what may follow what. On a cluster whose controllers run, its own leaves them
// alone.
#include "e2e/contract/contract_fixture.h"

namespace contract {
namespace {

// Two instants of a Job's life; the second must not replace the first as its start.
const char* const kEarly = "2026-01-01T00:00:00Z";
const char* const kLate = "2026-01-01T00:01:00Z";

// Returns a condition with the least that the API server asks for.
json condition(const char* type, const char* status = "True") {
  return {{"type", type}, {"status", status}, {"reason", "Test"}, {"message", ""}};
}
json conditions(std::initializer_list<const char*> types) {
  json list = json::array();
  for (const char* type : types) list.push_back(condition(type));
  return list;
}

// Goal: the operator writes the status of batch Jobs in steps that every API server takes. Both
// servers must agree, since the operator's own tests run against the fake one alone.
class BatchJobContract : public ApiServerContract {
 protected:
  std::string jobs(const std::string& name = "") const {
    return "/apis/batch/v1/namespaces/" + ns_ + "/jobs" + (name.empty() ? "" : "/" + name);
  }
  // Two pods by index, as most tests need.
  json batch_job(const std::string& name, const std::string& managed_by) const {
    return {{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"managedBy", managed_by},
              {"completionMode", "Indexed"},
              {"parallelism", 2},
              {"completions", 2},
              {"template",
               {{"spec",
                 {{"restartPolicy", "Never"},
                  {"containers", json::array({{{"name", "main"}, {"image", "none"}}})}}}}}}}};
  }
  // Makes the Job again with the status `before`; null: without one.
  void have(const json& before) {
    // In the background, so that the name is free at once.
    remove(jobs("x"), {{"propagationPolicy", "Background"}});
    create(jobs(), batch_job("x", "kubegang.io/job"));
    if (before.is_null()) return;
    const Reply written = patch_status(before);
    ASSERT_EQ(written.status, 200) << written.message();
  }
  Reply patch_status(const json& status) {
    return merge_patch(jobs("x") + "/status", {{"status", status}});
  }
  void suspend(bool on) {
    ASSERT_EQ(merge_patch(jobs("x"), {{"spec", {{"suspend", on}}}}).status, 200);
  }
};

// The API server's defaults: the operator takes them out of the template again, so it must know
// exactly these (translation/batch_job_translation.cc).
TEST_P(BatchJobContract, TheTemplateHasTheLabelsOfItsPods) {
  const json made = create(jobs(), batch_job("x", "kubegang.io/job"));
  EXPECT_EQ(made["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "x");
  EXPECT_EQ(made["spec"]["template"]["spec"]["schedulerName"], "default-scheduler");
  EXPECT_EQ(made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ(made["spec"]["backoffLimit"], 6);
}

// So a Job never passes from one controller to another while pods of the first run.
TEST_P(BatchJobContract, ManagedByCannotChange) {
  create(jobs(), batch_job("x", "kubegang.io/job"));
  const Reply changed =
      merge_patch(jobs("x"), {{"spec", {{"managedBy", "kubernetes.io/job-controller"}}}});
  EXPECT_EQ(changed.status, 422) << changed.message();
}

// Since others may run a Job (managedBy), the API server checks each change of its status, so that
// no controller can tell the end of a Job in a way that its users would misread. The operator has
// to know what is allowed in one write; each row of the two tables is one such question.
TEST_P(BatchJobContract, AStatusThatMayFollowIsTaken) {
  struct Case {
    const char* what;
    json before, after;
  };
  const Case cases[] = {
      {"pods run", nullptr, {{"active", 2}, {"ready", 1}, {"startTime", kEarly}}},
      {"one has succeeded while another runs",
       {{"active", 2}, {"ready", 2}, {"startTime", kEarly}},
       {{"active", 1}, {"ready", 1}, {"succeeded", 1}, {"completedIndexes", "1"}}},
      {"the other is requeued",
       {{"active", 1}, {"succeeded", 1}, {"completedIndexes", "1"}, {"startTime", kEarly}},
       {{"active", 0}, {"ready", 0}}},
      {"pods terminate",
       {{"active", 2}, {"ready", 2}, {"startTime", kEarly}},
       {{"active", 0}, {"ready", 0}, {"terminating", 2}}},
      {"complete in one write",
       {{"active", 2}, {"startTime", kEarly}},
       {{"active", 0},
        {"succeeded", 2},
        {"completedIndexes", "0,1"},
        {"completionTime", kLate},
        {"conditions", conditions({"SuccessCriteriaMet", "Complete"})}}},
      // A short gang may be over before the operator has written anything about it.
      {"complete before its start was told",
       nullptr,
       {{"startTime", kEarly},
        {"succeeded", 2},
        {"completedIndexes", "0,1"},
        {"completionTime", kLate},
        {"conditions", conditions({"SuccessCriteriaMet", "Complete"})}}},
      {"failed in one write",
       {{"active", 2}, {"startTime", kEarly}},
       {{"active", 0}, {"failed", 1}, {"conditions", conditions({"FailureTarget", "Failed"})}}},
      {"failed before it was started",
       nullptr,
       {{"startTime", kEarly}, {"conditions", conditions({"FailureTarget", "Failed"})}}},
      // Conditions of other names are not checked, so they may say what Kubernetes has no word for.
      {"a condition of our own", nullptr, {{"conditions", conditions({"kubegang.io/Waiting"})}}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    have(each.before);
    const Reply reply = patch_status(each.after);
    EXPECT_EQ(reply.status, 200) << reply.message();
  }
}

TEST_P(BatchJobContract, AStatusThatMayNotFollowIsRefused) {
  const json running{{"active", 2}, {"ready", 1}, {"failed", 1}, {"startTime", kEarly}};
  const json done{{"startTime", kEarly},
                  {"succeeded", 2},
                  {"completionTime", kLate},
                  {"conditions", conditions({"SuccessCriteriaMet", "Complete"})}};
  struct Case {
    const char* what;
    json before, after;
  };
  const Case cases[] = {
      {"more ready than active", nullptr, {{"active", 1}, {"ready", 2}}},
      // Counters of ends only grow: another controller's write that came late must not take one
      // back.
      {"fewer failures", running, {{"failed", 0}}},
      {"another start", running, {{"startTime", kLate}}},
      {"no start any more", running, {{"startTime", nullptr}}},
      {"complete without the criteria",
       running,
       {{"active", 0},
        {"ready", 0},
        {"completionTime", kLate},
        {"conditions", conditions({"Complete"})}}},
      {"complete without a time",
       running,
       {{"active", 0},
        {"ready", 0},
        {"conditions", conditions({"SuccessCriteriaMet", "Complete"})}}},
      {"a time without complete", running, {{"completionTime", kLate}}},
      {"failed without the target",
       running,
       {{"active", 0}, {"ready", 0}, {"conditions", conditions({"Failed"})}}},
      // Users may start the next step when a Job has failed; pods that still run would be in its
      // way.
      {"failed with active pods",
       running,
       {{"conditions", conditions({"FailureTarget", "Failed"})}}},
      {"failed with terminating pods",
       running,
       {{"active", 0},
        {"ready", 0},
        {"terminating", 1},
        {"conditions", conditions({"FailureTarget", "Failed"})}}},
      {"failed without a start",
       nullptr,
       {{"conditions", conditions({"FailureTarget", "Failed"})}}},
      {"not complete any more", done, {{"completionTime", nullptr}, {"conditions", json::array()}}},
      {"both ends",
       done,
       {{"conditions", conditions({"SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"})}}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    have(each.before);
    const Reply reply = patch_status(each.after);
    EXPECT_EQ(reply.status, 422) << reply.message();
  }
}

// A suspended Job has no start time; after it was resumed it starts again, and from then on its
// time stays.
TEST_P(BatchJobContract, TheStartTimeGoesWithTheSuspensionAndMayChangeWithTheResumption) {
  have({{"active", 2}, {"startTime", kEarly}});
  suspend(true);
  EXPECT_EQ(patch_status({{"active", 0},
                          {"startTime", nullptr},
                          {"conditions", json::array({condition("Suspended")})}})
                .status,
            200);
  suspend(false);
  EXPECT_EQ(patch_status({{"startTime", kLate},
                          {"conditions", json::array({condition("Suspended", "False")})}})
                .status,
            200);
  EXPECT_EQ(patch_status({{"startTime", kEarly}}).status, 422);
}

// The other Job shows that the controller runs.
TEST_P(BatchJobContract, TheBuiltInControllerLeavesItAlone) {
  if (!is_real()) GTEST_SKIP() << "no controllers here";
  create(jobs(), batch_job("ours", "kubegang.io/job"));
  create(jobs(), batch_job("theirs", "kubernetes.io/job-controller"));
  const auto pods_of = [&](const std::string& job) {
    // By the label that Kubernetes' controller gives its pods.
    return get(core("pods") + "?labelSelector=batch.kubernetes.io%2Fjob-name%3D" + job)
        .body["items"]
        .size();
  };
  ASSERT_TRUE(eventually([&] { return pods_of("theirs") == 2U; }));
  EXPECT_EQ(pods_of("ours"), 0U);
  EXPECT_EQ(get(jobs("ours")).body["status"], json::object());
}

INSTANTIATE_TEST_SUITE_P(Servers, BatchJobContract,
                         testing::Values(ServerKind::kInProcess, ServerKind::kReal),
                         [](const auto& server) -> std::string {
                           return server.param == ServerKind::kReal ? "Real" : "InProcess";
                         });

}  // namespace
}  // namespace contract
