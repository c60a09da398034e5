// The page on a real API server, for a user of few rights: the shared one, whose Deployment asks
// who has a token and what they may list, and the user's own.
#include <algorithm>
#include <utility>
#include <vector>

#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class PageOfFewRights : public Cluster {
 protected:
  // Makes a service account with one of Kubernetes' roles in the test's namespace and nothing else.
  std::string token_with(const std::string& role) {
    const std::string base = "/api/v1/namespaces/" + ns_ + "/serviceaccounts";
    EXPECT_TRUE(call(kube::Method::kPost, base, {{"metadata", {{"name", role}}}}).ok());
    EXPECT_TRUE(
        call(
            kube::Method::kPost,
            "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns_ + "/rolebindings",
            {{"metadata", {{"name", "page-" + role}}},
             {"roleRef",
              {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", role}}},
             {"subjects", {{{"kind", "ServiceAccount"}, {"name", role}, {"namespace", ns_}}}}})
            .ok());
    return token_of(ns_, role);
  }
  // A held job of another namespace, which is made for it.
  void make_foreign_job(const std::string& other) {
    ASSERT_NO_FATAL_FAILURE(make_namespace(other));
    json foreign = get(job_path("own"));
    foreign = {{"apiVersion", "kubegang.io/v1alpha1"},
               {"kind", "Job"},
               {"metadata", {{"name", "not-for-them"}}},
               {"spec", foreign["spec"]}};
    foreign["spec"]["control"] = {{"hold", true}};
    ASSERT_TRUE(call(kube::Method::kPost,
                     "/apis/kubegang.io/v1alpha1/namespaces/" + other + "/jobs", foreign)
                    .ok());
  }
  std::string wish(const std::string& verb) {
    const json job = get(job_path("own"));
    return json{{"verb", verb}, {"ns", ns_}, {"name", "own"}, {"uid", job["metadata"]["uid"]}}
        .dump();
  }
};

class SharedPage : public PageOfFewRights {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Cluster::SetUp());
    ASSERT_NO_FATAL_FAILURE(wait_until("the page's pod", [&] {
      for (const json& pod : list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                                  "/pods?labelSelector=app.kubernetes.io/component=dashboard")) {
        address_ = pod["status"].value("podIP", "");
      }
      return !address_.empty();
    }));
  }

  // As a proxy in the cluster would ask; a stream ends after a while.
  std::string ask(const std::string& path, const std::string& token,
                  const std::string& body = "") const {
    const std::string posts =
        body.empty() ? "" : " -H 'Origin: http://localhost:8080' -d '" + body + "'";
    return on_node(1, "curl -s -i -m 8 -H 'Host: localhost:8080' -H 'Authorization: Bearer " +
                          token + "'" + posts + " http://" + address_ + ":8080" + path)
        .text;
  }

  std::string address_;
};

TEST_F(SharedPage, AUserOfFewRightsSeesAndDoesWhatTheyMay) {
  const std::string other = ns_ + "-other";
  ASSERT_NO_FATAL_FAILURE(submit({.name = "own"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("own"));
  ASSERT_NO_FATAL_FAILURE(make_foreign_job(other));

  const std::string viewer = token_with("view");
  const std::string editor = token_with("edit");
  std::string seen;
  ASSERT_NO_FATAL_FAILURE(wait_until("their own job on the page", [&] {
    seen = ask("/events", viewer);
    return seen.find("\"name\":\"own\"") != std::string::npos;
  }));
  EXPECT_EQ(seen.find("not-for-them"), std::string::npos);
  EXPECT_NE(seen.find("\"partitions\""), std::string::npos) << "all may look at partitions";
  EXPECT_NE(ask("/events", "nobody").find("HTTP/1.1 401"), std::string::npos);

  // The API server decides what they may do.
  const std::string question = json{{"ns", ns_}, {"nodes", "1"}, {"partition", ns_}}.dump();
  EXPECT_NE(ask("/control", viewer, wish("cancel")).find("HTTP/1.1 403"), std::string::npos);
  const std::string refused = ask("/whatif", viewer, question);
  EXPECT_NE(refused.find("to ask takes the right to create jobs in namespace " + ns_),
            std::string::npos)
      << refused;
  const std::string answer = ask("/whatif", editor, question);
  EXPECT_NE(answer.find("\"partition\":\"" + ns_ + "\""), std::string::npos) << answer;
  EXPECT_NE(ask("/control", editor, wish("cancel")).find("HTTP/1.1 200"), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(wait_until("it has ended", [&] { return has_ended("own"); }));
  remove("/api/v1/namespaces/" + other);
}

// Goal: what one's own page shows and does is what the API server allows its user. Method: the
// program runs on this machine with the token of an account that may view one namespace, and is
// asked as a browser asks it.
class OwnPage : public PageOfFewRights {
 protected:
  // Starts the page with the options, signs in, asks for the paths and ends it. Bodies are posted.
  std::string ask_page(const std::string& token, const std::string& options,
                       const std::vector<std::pair<std::string, std::string>>& asked) {
    std::string script = R"(
folder=$(mktemp -d); cd $folder
sed 's|^users:.*|users: [{name: user, user: {token: "'$token'"}}]|' $admin >config
$program dashboard --kubeconfig config $options >log 2>&1 & pid=$!
trap 'kill $pid; rm -r $folder' EXIT
for i in $(seq 100); do url=$(grep -m1 -o 'http://.*' log) && break; sleep 0.1; done
page=${url%/#*}
ask() { curl -s -i -m 6 -b jar -c jar -H "Origin: $page" "$@"; }
ask -d "${url##*#}" $page/session >/dev/null
)";
    script = "token=" + token + " options='" + options +
             "' program=" KUBEGANG_BINARY_DIR "/bin/kubectl-gang admin=" + state_directory() +
             "/pki/admin.kubeconfig" + script;
    for (const auto& [path, body] : asked) {
      script += "echo '== " + path + "'; ask " + (body.empty() ? "" : "-d '" + body + "' ") +
                "$page" + path + "\n";
    }
    return run_shell(script).text;
  }
};

TEST_F(OwnPage, ShowsAndDoesWhatItsUserMay) {
  const std::string other = ns_ + "-other";
  ASSERT_NO_FATAL_FAILURE(submit({.name = "own"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("own"));
  ASSERT_NO_FATAL_FAILURE(make_foreign_job(other));
  const std::string viewer = token_with("view");
  const std::string question = json{{"ns", ns_}, {"nodes", "1"}, {"partition", ns_}}.dump();
  const std::string seen = ask_page(
      viewer, "-n " + ns_, {{"/events", ""}, {"/control", wish("cancel")}, {"/whatif", question}});
  EXPECT_NE(seen.find("\"name\":\"own\""), std::string::npos) << seen;
  EXPECT_NE(seen.find("\"partitions\""), std::string::npos) << "all may look at partitions";
  EXPECT_EQ(seen.find("not-for-them"), std::string::npos);
  const std::string control = seen.substr(std::min(seen.find("== /control"), seen.size()));
  EXPECT_NE(control.find("HTTP/1.1 403"), std::string::npos) << control;
  EXPECT_NE(control.find("to ask takes the right to create jobs in namespace " + ns_),
            std::string::npos)
      << control;
  EXPECT_FALSE(has_ended("own"));
  // All namespaces: the page says that it may not, and shows nothing of them.
  const std::string all = ask_page(viewer, "-A", {{"/events", ""}});
  EXPECT_NE(all.find("\"refused\":true"), std::string::npos) << all;
  EXPECT_EQ(all.find("not-for-them"), std::string::npos);
  // An editor acts.
  EXPECT_NE(ask_page(token_with("edit"), "-n " + ns_, {{"/control", wish("cancel")}})
                .find("HTTP/1.1 200"),
            std::string::npos);
  ASSERT_NO_FATAL_FAILURE(wait_until("it has ended", [&] { return has_ended("own"); }));
  remove("/api/v1/namespaces/" + other);
}

}  // namespace
}  // namespace kubernetes
