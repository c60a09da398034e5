#include "e2e/kubernetes/tests/harness.h"

#include <cstdlib>

#include "e2e/devcluster/apply.h"
#include "kube/http_transport.h"
#include "kube/transport_config.h"

namespace kubernetes {
// Returns the connection of all tests of the program, as the cluster's administrator. Without its
// files no test can do anything, hence the exception.
kube::Transport& administrator() {
  static const kube::SystemClock clock;
  static const std::unique_ptr<kube::HttpTransport> transport = [] {
    const auto config =
        kube::load_kubeconfig(std::string{std::getenv(kStateVariable)} + "/pki/admin.kubeconfig");
    if (!config.ok()) throw std::runtime_error{config.error().message};
    auto made = kube::HttpTransport::create(*config, clock);
    if (!made.ok()) throw std::runtime_error{made.error().message};
    return std::move(made).value();
  }();
  return *transport;
}

kube::Transport& Cluster::api() {
  return administrator();
}

// Uses the same server and certificate authority, with a token in place of the administrator's key.
std::unique_ptr<kube::Transport> Cluster::as(const std::string& token) {
  auto config = kube::load_kubeconfig(state_directory() + "/pki/admin.kubeconfig");
  if (!config.ok()) return nullptr;
  config->client_certificate_pem.clear();
  config->client_key_pem.clear();
  config->bearer_token = token;
  auto made = kube::HttpTransport::create(*config, clock_);
  return made.ok() ? std::move(made).value() : nullptr;
}

// Returns a token as kubelet would mount it: bound to the pod if one is named, so that policies see
// which node it is from.
std::string Cluster::token_of(const std::string& ns, const std::string& account,
                              const std::string& pod) {
  json request{{"apiVersion", "authentication.k8s.io/v1"},
               {"kind", "TokenRequest"},
               {"spec", {{"expirationSeconds", 3600}}}};
  if (!pod.empty()) {
    request["spec"]["boundObjectRef"] = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}};
  }
  const auto answer =
      call(kube::Method::kPost,
           "/api/v1/namespaces/" + ns + "/serviceaccounts/" + account + "/token", request);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? (*answer)["status"]["token"].get<std::string>() : "";
}

std::string Cluster::token_with_role(const std::string& account, const std::string& role,
                                     const std::string& in_namespace) {
  apply({{"apiVersion", "v1"},
         {"kind", "ServiceAccount"},
         {"metadata", {{"name", account}, {"namespace", ns_}}}});
  apply({{"apiVersion", "rbac.authorization.k8s.io/v1"},
         {"kind", "RoleBinding"},
         {"metadata", {{"name", ns_ + "-" + account}, {"namespace", in_namespace}}},
         {"roleRef",
          {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", role}}},
         {"subjects", {{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", ns_}}}}});
  return token_of(ns_, account);
}

// The last answer is shown: a wrong sentence is seen in it.
void Cluster::expect_denied(const std::string& sentence,
                            const std::function<base::Result<json>()>& request) {
  std::string last = "it was allowed";
  wait_until(
      "denied with \"" + sentence + "\"",
      [&] {
        const auto answer = request();
        last = answer.ok() ? "it was allowed" : answer.error().message;
        return !answer.ok() && answer.error().message.find(sentence) != std::string::npos;
      },
      seconds{10});
  EXPECT_NE(last.find(sentence), std::string::npos) << last;
}

void Cluster::expect_allowed(const std::function<base::Result<json>()>& request) {
  std::string last;
  wait_until(
      "allowed",
      [&] {
        const auto answer = request();
        last = answer.ok() ? "" : answer.error().message;
        return answer.ok();
      },
      seconds{10});
  EXPECT_EQ(last, "");
}

// Returns a command line for run_shell().
std::string Cluster::kubectl(const std::string& arguments) {
  return "kubectl --kubeconfig " + state_directory() + "/pki/admin.kubeconfig " + arguments;
}

std::string Cluster::kubectl_gang(const std::string& arguments) {
  return "KUBECONFIG=" + state_directory() +
         "/pki/admin.kubeconfig " KUBEGANG_BINARY_DIR "/bin/kubectl-gang " + arguments;
}

// Returns when pods can be made in it.
void Cluster::make_namespace(const std::string& name, const json& labels) {
  // One of the same name may still be on its way out (a test that is repeated).
  ASSERT_NO_FATAL_FAILURE(wait_until("the namespace " + name + " can be made", [&] {
    return call(kube::Method::kPost, "/api/v1/namespaces",
                {{"apiVersion", "v1"},
                 {"kind", "Namespace"},
                 {"metadata", {{"name", name}, {"labels", labels}}}})
        .ok();
  }));
  ASSERT_NO_FATAL_FAILURE(wait_until("the service account of " + name, [&] {
    return get("/api/v1/namespaces/" + name + "/serviceaccounts/default").is_object();
  }));
}

void Cluster::make_lane_partition(const std::string& name, const json& spec_patch) {
  json spec{{"nodes", {{"hostlist", nodes(1, kNodesCount)}}},
            {"overSubscribe", {{"policy", "Force"}, {"maxShare", 4}}}};
  spec.merge_patch(spec_patch);
  ASSERT_NO_FATAL_FAILURE(make_partition(name, spec));
}

// Mounts a folder of the machine that holds all nodes into each pod, so the test reads stamps
// as files.
json Cluster::pod_spec_of(const JobOptions& options) const {
  const bool is_probe = options.command.empty() && options.image.empty();
  json container{
      {"name", "main"},
      {"image", !options.image.empty() ? options.image
                : is_probe             ? std::string{kProbeImage}
                                       : std::string{kBusyboxImage}},
      {"imagePullPolicy", "IfNotPresent"},
      {"env",
       {{{"name", "NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}},
        {{"name", "POD"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
        {{"name", "KUBEGANG_STAMP_FILE"}, {"value", "/stamps/$(NODE)/$(POD).stamps"}}}},
      {"volumeMounts", {{{"name", "stamps"}, {"mountPath", "/stamps"}}}}};
  if (!options.command.empty()) container["command"] = options.command;
  // All lanes' probes share this machine's CPUs.
  if (is_probe) container["args"] = json::array({"--work-micros=20"});
  return {{"automountServiceAccountToken", false},
          {"containers", json::array({container})},
          {"volumes", {{{"name", "stamps"}, {"hostPath", {{"path", stamps_in_}}}}}}};
}

// Returns the pods of all replicas, the leader's among them.
std::vector<json> Cluster::operators() {
  return list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
              "/pods?labelSelector=app.kubernetes.io/component=operator");
}

// null while kubelet is making a new one.
json Cluster::agent_on(const std::string& node_name) {
  for (const json& pod : list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                              "/pods?labelSelector=app.kubernetes.io/component=agent")) {
    if (pod["spec"].value("nodeName", "") == node_name) return pod;
  }
  return nullptr;
}

}  // namespace kubernetes
