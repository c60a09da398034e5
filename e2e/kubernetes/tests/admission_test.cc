// The requests that the chart's admission policies deny, each with its sentence, to the tokens that
// they are about (docs/reference/rights.md). Requests that are allowed are shown beside them, or by
// all other tests.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "e2e/devcluster/apply.h"
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

constexpr const char* kTimetables = "/apis/kubegang.io/v1alpha1/nodetimetables/";

// Goal: what docs/reference/rights.md promises holds against the real API server, since a policy
// that has a typing error is accepted and simply never denies. Method: requests with real tokens of
// the accounts in question.
class Admission : public Cluster {
 protected:
  // Returns the token of an operator's pod, as the operator has it: bound to that pod.
  std::string operators_token() {
    const std::vector<json> pods = operators();
    if (pods.empty()) {
      ADD_FAILURE() << "there is no operator";
      return "";
    }
    return token_of(kSystemNamespace, "kubegang-operator", pods[0]["metadata"]["name"]);
  }
  std::string jobs() const { return "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs"; }
  std::string pods_path() const { return "/api/v1/namespaces/" + ns_ + "/pods?dryRun=All"; }
  // Returns the least that the operator's policies let pass, for tests to change one field of. The
  // owner need not exist, since the pods are not stored.
  static json bare_pod(const json& spec_patch = json::object(), bool owned = true) {
    json pod{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", "bare"}}},
        {"spec",
         {{"nodeName", node(1)}, {"containers", {{{"name", "main"}, {"image", kBusyboxImage}}}}}}};
    if (owned) {
      pod["metadata"]["ownerReferences"] = {{{"apiVersion", "kubegang.io/v1alpha1"},
                                             {"kind", "Job"},
                                             {"name", "owner"},
                                             {"uid", "5ad1a1de-0000-4000-8000-000000000000"},
                                             {"controller", true}}};
    }
    // A null in the patch removes a field.
    pod["spec"].merge_patch(spec_patch);
    return pod;
  }
};

using devcluster::call_api;
using kube::Method;

// The token of an agent is bound to its pod, and so to its node. One that is taken from a node is
// worth nothing for the others.
TEST_F(Admission, AnAgentWritesOnlyItsOwnNodesTimetableStatus) {
  // The agent of the first node.
  const auto agent =
      as(token_of(kSystemNamespace, "kubegang-agent", agent_on(node(1))["metadata"]["name"]));
  const json status{{"status", {{"agentVersion", "e2e"}}}};
  expect_allowed(
      [&] { return call_api(*agent, Method::kPatch, kTimetables + node(1) + "/status", status); });
  expect_denied("of its own node, which is " + node(1), [&] {
    return call_api(*agent, Method::kPatch, kTimetables + node(2) + "/status", status);
  });
  // The same account without a pod: what a stolen right to make tokens would give.
  const auto unbound = as(token_of(kSystemNamespace, "kubegang-agent"));
  expect_denied("its token is bound to no", [&] {
    return call_api(*unbound, Method::kPatch, kTimetables + node(1) + "/status", status);
  });
}

// Not even an administrator: agents obey timetables, so who writes them decides who runs.
TEST_F(Admission, NobodyButTheOperatorWritesStatusesAndTimetables) {
  ASSERT_NO_FATAL_FAILURE(
      // Held, so that it stays as it is.
      submit({.name = "mine", .patch = {{"spec", {{"control", {{"hold", true}}}}}}}));
  const std::string sentence =
      "only the kubegang operator writes timetables, usage records and statuses";
  expect_denied(sentence, [&] {
    return call(Method::kPatch, job_path("mine") + "/status", {{"status", {{"priority", 1}}}});
  });
  expect_denied(sentence, [&] {
    return call(Method::kPatch, kTimetables + node(1), {{"spec", {{"revision", 1000}}}});
  });
  expect_denied(sentence, [&] {
    return call(Method::kPost, "/apis/kubegang.io/v1alpha1/usagerecords?dryRun=All",
                {{"apiVersion", "kubegang.io/v1alpha1"},
                 {"kind", "UsageRecord"},
                 {"metadata", {{"name", "default"}}},
                 {"spec", json::object()}});
  });
}

// An operator that was deposed cannot write over its successor's timetable (a rule of the CRD).
TEST_F(Admission, ATermNeverGoesDown) {
  const auto control = as(operators_token());
  // A term of 0 is below any that was ever used.
  expect_denied("term must not be lowered", [&] {
    return call_api(*control, Method::kPatch, kTimetables + node(1), {{"spec", {{"term", 0}}}});
  });
}

// As in Slurm, where only an operator raises a priority or a running job's limit. Lowering is free.
TEST_F(Admission, PrivilegedFieldsOfAJobNeedTheVerbOperate) {
  const auto author = as(token_with_role("author", "edit", ns_));
  // The author has the role "edit" as a user of a namespace has it; the jobs are held and never
  // start.
  const auto create = [&](const std::string& name, const json& spec) {
    json object = job_object({.name = name, .patch = {{"spec", {{"control", {{"hold", true}}}}}}});
    object["spec"].merge_patch(spec);
    return call_api(*author, Method::kPost, jobs(), object);
  };
  expect_allowed([&] { return create("plain", json::object()); });
  expect_denied("spec.schedule.priority needs the verb operate", [&] {
    return create("first-in-line", {{"schedule", {{"priority", 100000}}}});
  });
  expect_denied("a negative spec.schedule.nice needs the verb operate", [&] {
    return create("not-nice", {{"schedule", {{"nice", -5}}}});
  });
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "limited", .patch = {{"spec", {{"schedule", {{"timeLimit", "1h"}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("limited"));
  expect_denied("a longer spec.schedule.timeLimit of a running job needs the verb operate", [&] {
    return call_api(*author, Method::kPatch, job_path("limited"),
                    {{"spec", {{"schedule", {{"timeLimit", "2h"}}}}}});
  });
  // Lowering is the user's own business.
  expect_allowed([&] {
    return call_api(*author, Method::kPatch, job_path("limited"),
                    {{"spec", {{"schedule", {{"timeLimit", "30m"}}}}}});
  });
}

// The binding that gives the verb to all users is taken away for a moment and put back.
TEST_F(Admission, APartitionNeedsTheVerbUse) {
  const auto author = as(token_with_role("author", "edit", ns_));
  const std::string binding =
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubegang-use-all-partitions";
  json kept = get(binding);
  ASSERT_TRUE(kept.is_object());
  // Those belong to the object that is about to be deleted; with them it could not be created
  // again.
  kept["metadata"].erase("resourceVersion");
  kept["metadata"].erase("uid");
  ASSERT_NO_FATAL_FAILURE(remove(binding));
  // The policy may come into force after a first try was allowed, so each try has a new name.
  int number = 0;
  expect_denied("you lack the verb use on one of the partitions " + ns_, [&] {
    return call_api(*author, Method::kPost, jobs(),
                    job_object({.name = "j" + std::to_string(++number),
                                .patch = {{"spec", {{"control", {{"hold", true}}}}}}}));
  });
  // Put back before anything can fail: all other tests need it.
  apply(kept);
  expect_allowed([&] {
    return call_api(
        *author, Method::kPost, jobs(),
        job_object({.name = "allowed", .patch = {{"spec", {{"control", {{"hold", true}}}}}}}));
  });
}

// If the operator's token is stolen, it still creates no pod that could take over a node.
TEST_F(Admission, TheOperatorCreatesOnlyPodsOfJobsWithoutRightsOverANode) {
  ASSERT_NO_FATAL_FAILURE(
      // Pod Security would refuse such pods of any client. Without it in this namespace the
      // policies are seen alone.
      patch("/api/v1/namespaces/" + ns_,
            {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", nullptr}}}}}}));
  const auto control = as(operators_token());
  const auto create = [&](const std::string& path, const json& pod) {
    return [&control, path, pod] { return call_api(*control, Method::kPost, path, pod); };
  };
  expect_allowed(create(pods_path(), bare_pod()));
  expect_denied("only pods that are controlled by a kubegang Job",
                create(pods_path(), bare_pod(json::object(), false)));
  expect_denied("only pods that name their node",
                create(pods_path(), bare_pod({{"nodeName", nullptr}})));
  // A pod in either could take over the cluster: it may be given a service account with all rights.
  for (const char* closed : {"kube-system", kSystemNamespace}) {
    expect_denied(
        "no pods in kube-system and in its own namespace",
        create(std::string{"/api/v1/namespaces/"} + closed + "/pods?dryRun=All", bare_pod()));
  }
  // From here on pods that reach the node itself: its network, its processes, its files, its
  // kernel.
  const std::string rights = "need a namespace whose Pod Security level is privileged";
  expect_denied(rights, create(pods_path(), bare_pod({{"hostNetwork", true}})));
  expect_denied(rights, create(pods_path(), bare_pod({{"hostPID", true}})));
  expect_denied(
      rights, create(pods_path(),
                     bare_pod({{"volumes", {{{"name", "root"}, {"hostPath", {{"path", "/"}}}}}}})));
  expect_denied(rights,
                create(pods_path(), bare_pod({{"containers",
                                               {{{"name", "main"},
                                                 {"image", kBusyboxImage},
                                                 {"securityContext", {{"privileged", true}}}}}}})));
}

// A user who may impersonate the operator, or make a token for it, has no pod of the operator's, so
// even these tokens write nothing.
TEST_F(Admission, TheOperatorWritesWithTheTokenOfItsPodOnly) {
  const auto with_its_own = as(operators_token());
  const auto with_another = as(token_of(kSystemNamespace, "kubegang-operator"));
  expect_allowed([&] { return call_api(*with_its_own, Method::kPost, pods_path(), bare_pod()); });
  expect_denied("with the tokens of their pods only",
                [&] { return call_api(*with_another, Method::kPost, pods_path(), bare_pod()); });
}

// An administrator of the namespace is not one of the cluster: a pod there, or a token of the
// operator, would make one.
TEST_F(Admission, KubegangsNamespaceIsClosedForOtherPeoplesPodsAndTokens) {
  // "admin" in kubegang's namespace alone.
  const auto guest = as(token_with_role("guest", "admin", kSystemNamespace));
  const std::string system = std::string{"/api/v1/namespaces/"} + kSystemNamespace;
  expect_denied("are for its administrators", [&] {
    return call_api(*guest, Method::kPost, system + "/pods?dryRun=All",
                    bare_pod(json::object(), false));
  });
  expect_denied("are for its administrators", [&] {
    return call_api(*guest, Method::kPost, system + "/serviceaccounts/kubegang-operator/token",
                    {{"apiVersion", "authentication.k8s.io/v1"},
                     {"kind", "TokenRequest"},
                     {"spec", {{"expirationSeconds", 3600}}}});
  });
  // The binding is in another namespace than the test's and would stay.
  (void)call(Method::kDelete, std::string{"/apis/rbac.authorization.k8s.io/v1/namespaces/"} +
                                  kSystemNamespace + "/rolebindings/" + ns_ + "-guest");
}

// Checks the sentences of docs/security.md about the agent at the processes that run.
TEST_F(Admission, TheAgentsProcessesHaveOnlyWhatTheyNeed) {
  // The two capabilities that docs/security.md allows; their numbers are the kernel's.
  constexpr std::uint64_t kSysNice = 1ULL << 23U, kIpcLock = 1ULL << 14U;
  const std::vector<int> processes = processes_of(agent_on(node(1)));
  ASSERT_FALSE(processes.empty());
  for (const int pid : processes) {
    const std::string proc = "/proc/" + std::to_string(pid);
    std::map<std::string, std::string> status;
    std::ifstream lines{proc + "/status"};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields{line};
      std::string name, value;
      fields >> name >> value;
      status[name] = value;
    }
    // Effective, permitted, bounding and ambient set: none may have any other.
    for (const char* set : {"CapEff:", "CapPrm:", "CapBnd:", "CapAmb:"}) {
      EXPECT_EQ(std::stoull(status.at(set), nullptr, 16) & ~(kSysNice | kIpcLock), 0U) << set;
    }
    EXPECT_EQ(status.at("NoNewPrivs:"), "1");
    // 2: a filter is in force.
    EXPECT_EQ(status.at("Seccomp:"), "2");
    // It can write only the cgroups of pods.
    std::ifstream mounts{proc + "/mountinfo"};
    int writable_cgroups = 0;
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream fields{line};
      std::string id, parent, device, root, place, options;
      fields >> id >> parent >> device >> root >> place >> options;
      // The container's file system is read-only.
      if (place == "/") {
        EXPECT_TRUE(options.starts_with("ro")) << line;
      }
      // Other mounts, and read-only ones, do no harm.
      if (line.find(" - cgroup") == std::string::npos || options.starts_with("ro")) continue;
      ++writable_cgroups;
      EXPECT_TRUE(root.ends_with("/kubepods")) << line;
    }
    EXPECT_GE(writable_cgroups, 1);
  }
}

// Schemas, CEL rules and policies of the real API server about what we tell users to apply.
TEST_F(Admission, TheExamplesAreAccepted) {
  const std::filesystem::path examples{KUBEGANG_SOURCE_DIR "/examples"};
  std::string files;
  for (const auto& file : std::filesystem::recursive_directory_iterator{examples}) {
    if (file.path().extension() != ".yaml") continue;
    if (file.path().filename() == "cluster.yaml") continue;    // kind's own
    if (file.path().filename() == "kueue.yaml") continue;      // Kueue.RunsTheExample applies it
    if (file.path().filename() == "login-pod.yaml") continue;  // its namespace; run-examples has it
    if (file.path().filename() == "argo-workflow.yaml") continue;  // no Argo here; BatchJobs has it
    files += " -f " + file.path().string();
  }
  const Output applied = run_shell(kubectl("apply --dry-run=server" + files));
  EXPECT_EQ(applied.exit_code, 0) << applied.text;
  // Shows that files were found at all.
  EXPECT_NE(applied.text.find("job.kubegang.io/second created"), std::string::npos) << applied.text;
}

}  // namespace
}  // namespace kubernetes
