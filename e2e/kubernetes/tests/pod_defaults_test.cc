// The parts that a Partition adds to the pods of batch scripts, and all that authors cannot take.
#include <sys/stat.h>

#include <string>
#include <utility>

#include "e2e/devcluster/apply.h"
#include "e2e/kubernetes/tests/batch_scripts.h"

namespace kubernetes {
namespace {

// Goal: a user with nothing but a script.
TEST_F(PodDefaults, AScriptAloneIsEnough) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(give_identity());
  const Output submitted =
      submit_with("--wait -o out", "id -u; id -g; echo $USER $HOME $SITE; pwd; echo; exit 4\n");
  EXPECT_EQ(submitted.exit_code, 4) << submitted.text;
  const std::string wanted = "1000\n100\nann /home/ann here\n/home/ann\n\n";
  EXPECT_EQ(file_in_home("out"), wanted);
  const std::string id = std::to_string(
      get("/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs")["items"][0]["status"]["jobID"]
          .get<int>());
  EXPECT_EQ(run_shell(kubectl_gang("logs -n " + ns_ + " " + id)).text, wanted);
  const Output told = run_shell(kubectl_gang("explain -n " + ns_ + " " + id));
  EXPECT_NE(told.text.find("image registry.e2e/busybox:1; volumes home; variables SITE"),
            std::string::npos)
      << told.text;
}

// Reported while the job waits, which takes no room from others.
TEST_F(PodDefaults, ATemplateCannotChooseAnotherUser) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(give_identity());
  json root = plain_template();
  root["spec"]["securityContext"] = {{"runAsUser", 0}};
  ASSERT_NO_FATAL_FAILURE(submit_script("root", "id -u\n", root));
  wait_until("it is refused", [&] {
    return status_text("root").find("runAsUser: 1000 is the namespace's identity") !=
           std::string::npos;
  });
  EXPECT_TRUE(pods("root").empty());
}

// A mount of one's own could name another folder of the volume, and another path.
TEST_F(PodDefaults, ATemplateMountsNoVolumeOfThePartition) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(give_identity());
  json by_name = plain_template();
  by_name["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "home"}, {"mountPath", "/other"}, {"subPath", "of-bob"}}};
  json by_claim = plain_template();
  by_claim["spec"]["volumes"] = {
      {{"name", "mine"}, {"persistentVolumeClaim", {{"claimName", "home"}}}}};
  by_claim["spec"]["containers"][0]["volumeMounts"] = {{{"name", "mine"}, {"mountPath", "/other"}}};
  const std::pair<json, std::string> cases[] = {
      {by_name, "is a volume of partition " + own_partition()},
      {by_claim, "is one of partition " + own_partition()}};
  for (const auto& [pod_template, sentence] : cases) {
    const std::string name = pod_template == by_name ? "by-name" : "by-claim";
    ASSERT_NO_FATAL_FAILURE(submit_script(name, "ls /other\n", pod_template));
    ASSERT_NO_FATAL_FAILURE(wait_until("it is refused", [&, said = sentence] {
      return status_text(name).find(said) != std::string::npos;
    }));
    EXPECT_TRUE(pods(name).empty());
  }
}

// An image names no user, which is root, and may have programs that make their caller root.
TEST_F(PodDefaults, AnImageThatRunsAsRootRunsAsTheIdentity) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(give_identity());
  const Output ran = submit_with(
      "--wait -o out", "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.text;
  EXPECT_EQ(file_in_home("out"),
            "1000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n");
}

// Without an identity an administrator can still refuse root: kubelet starts no such container.
TEST_F(PodDefaults, AnImageThatRunsAsRootMayBeRefused) {
  enforce("baseline");
  patch("/apis/kubegang.io/v1alpha1/partitions/" + own_partition(),
        {{"spec", {{"podDefaults", {{"securityContext", {{"runAsNonRoot", true}}}}}}}});
  ASSERT_NO_FATAL_FAILURE(submit_script("root", "id -u\n", plain_template(),
                                        {{"spec", {{"lifecycle", {{"startTimeout", "20s"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_reason("root", "LaunchFailedRequeuedHeld"));
  EXPECT_NE(status_text("root").find("runAsNonRoot"), std::string::npos) << status_text("root");
}

// Authors may submit and no more: they have the role kubegang-user.
class AuthorsOfScripts : public PodDefaults {
 protected:
  void SetUp() override {
    PodDefaults::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(give_home());
    ASSERT_NO_FATAL_FAILURE(give_identity());
    author_ = as(token_with_role("author", "kubegang-user", ns_));
    expect_allowed([&] { return create("first", json::object()); });
  }
  // By the author; `pod_spec` is merged into the template.
  base::Result<json> create(const std::string& name, const json& pod_spec) {
    json pod_template = plain_template();
    pod_template["spec"].merge_patch(pod_spec);
    return devcluster::call_api(*author_, kube::Method::kPost,
                                "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs",
                                script_job(name, "cd; touch begun; sleep 600\n", pod_template,
                                           {{"spec", {{"resources", {{"nodes", {{"min", 2}}}}}}}}));
  }
  // Waits until the first job runs, and returns one of its pods.
  json first_pod() {
    wait_until("it runs", [&] { return is_ready("first"); });
    const std::vector<json> all = pods("first");
    return all.empty() ? json::object() : all.front();
  }

  std::unique_ptr<kube::Transport> author_;
};

// The key to the steps of another job of the namespace is a Secret there, as a user's password is.
TEST_F(AuthorsOfScripts, GetNoSecretOfAnother) {
  std::string secret;
  const json pod = first_pod();
  for (const json& volume : pod["spec"]["volumes"]) {
    if (volume.contains("secret")) secret = volume["secret"]["secretName"];
  }
  ASSERT_TRUE(secret.ends_with("-steps")) << secret;
  const std::string refused = "a job that refers to Secrets needs";
  const json in_variable{
      {"name", "main"},
      {"image", kBusyboxImage},
      {"env",
       {{{"name", "KEY"}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", "key"}}}}}}}}};
  for (const json& pod_spec :
       {json{{"volumes", {{{"name", "key"}, {"secret", {{"secretName", secret}}}}}}},
        json{{"imagePullSecrets", {{{"name", secret}}}}},
        json{{"containers", json::array({in_variable})}}}) {
    expect_denied(refused, [&] { return create("thief", pod_spec); });
  }
  expect_denied("cannot get resource", [&] {
    return devcluster::get_api(*author_, "/api/v1/namespaces/" + ns_ + "/secrets/" + secret);
  });
}

// kubectl debug: a container of one's own choice in a pod that has the home.
TEST_F(AuthorsOfScripts, DebugNoPod) {
  const std::string path = "/api/v1/namespaces/" + ns_ + "/pods/" +
                           first_pod()["metadata"]["name"].get<std::string>() +
                           "/ephemeralcontainers";
  const auto debug = [&](kube::Transport& who, const json& security_context) {
    const json container{{"name", "debug"},
                         {"image", kBusyboxImage},
                         {"command", {"touch", "/home/ann/debugged"}},
                         {"volumeMounts", {{{"name", "home"}, {"mountPath", "/home/ann"}}}},
                         {"securityContext", security_context}};
    return devcluster::call_api(who, kube::Method::kPatch, path,
                                {{"spec", {{"ephemeralContainers", json::array({container})}}}});
  };
  json other{{"allowPrivilegeEscalation", false},
             {"capabilities", {{"drop", {"ALL"}}}},
             {"runAsUser", 2000}};
  expect_denied("cannot patch resource \"pods/ephemeralcontainers\"",
                [&] { return debug(*author_, other); });
  // That right lets a user choose any user, as docs/home-and-software.md says; but for root under
  // `restricted`.
  json root = other;
  root["runAsUser"] = 0;
  expect_denied("violates PodSecurity", [&] { return debug(api(), root); });
  expect_allowed([&] { return debug(api(), other); });
  ASSERT_NO_FATAL_FAILURE(wait_until("its program has run", [&] {
    struct stat found {};
    return ::stat((stamps_in_ + "/debugged").c_str(), &found) == 0 && found.st_uid == 2000;
  }));
}

TEST_F(PodDefaults, WithoutAnIdentityThereIsNoHome) {
  ASSERT_NO_FATAL_FAILURE(give_home());
  ASSERT_NO_FATAL_FAILURE(submit_script("nobody", "id -u\n", plain_template()));
  wait_until("it is refused", [&] {
    return status_text("nobody").find("ask your administrator for an identity") !=
           std::string::npos;
  });
  EXPECT_TRUE(pods("nobody").empty());
}

// A claim of one's own, and a log that is followed while the job runs.
TEST_F(PodDefaults, SubmitMountsAClaimAndLogsFollowsTheJob) {
  ASSERT_NO_FATAL_FAILURE(make_home());
  const Output submitted = submit_with(
      "--parsable --image registry.e2e/busybox:1 --env A='$B' "
      "--volume home:/home/ann:ro",
      "#SBATCH -o /dev/null\necho $A; sleep 2; touch x || echo no\n");
  ASSERT_EQ(submitted.exit_code, 0) << submitted.text;
  const std::string id = submitted.text.substr(0, submitted.text.find('\n'));
  const Output log = run_shell(kubectl_gang("logs -f -n " + ns_ + " " + id));
  EXPECT_EQ(log.text.find("$B\n"), 0U) << log.text;
  EXPECT_NE(log.text.find("no\n"), std::string::npos) << log.text;
}

}  // namespace
}  // namespace kubernetes
