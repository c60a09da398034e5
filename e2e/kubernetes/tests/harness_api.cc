#include "e2e/kubernetes/tests/harness.h"

#include <cstdlib>

#include "e2e/devcluster/apply.h"
#include "kube/http_transport.h"
#include "kube/transport_config.h"

namespace kubernetes {
namespace {

// One connection for all tests of the program.
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

}  // namespace

kube::Transport& Cluster::api() {
  return administrator();
}

base::Result<json> Cluster::call(kube::Method method, const std::string& path, const json& body) {
  return devcluster::call_api(api(), method, path, body);
}

json Cluster::get(const std::string& path) {
  json found;
  const auto is_answered = [&] {
    const auto answer = call(kube::Method::kGet, path);
    if (answer.ok()) found = *answer;
    return answer.ok() || answer.error().code == base::Code::kNotFound;
  };
  EXPECT_TRUE(eventually(is_answered, kPatience)) << "the API server says nothing of " << path;
  return found;
}

std::vector<json> Cluster::list(const std::string& path) {
  const json found = get(path);
  if (found.is_null()) return {};
  return {found["items"].begin(), found["items"].end()};
}

void Cluster::apply(const json& object) {
  const auto status = devcluster::apply_object(api(), object);
  ASSERT_TRUE(status.ok()) << status.error().message << "\n" << object.dump(1);
}

void Cluster::patch(const std::string& path, const json& merge_patch) {
  const auto answer = call(kube::Method::kPatch, path, merge_patch);
  ASSERT_TRUE(answer.ok()) << path << ": " << answer.error().message;
}

void Cluster::remove(const std::string& path, const json& options) {
  const auto answer = call(kube::Method::kDelete, path, options);
  ASSERT_TRUE(answer.ok()) << path << ": " << answer.error().message;
}

std::unique_ptr<kube::Transport> Cluster::as(const std::string& token) {
  auto config = kube::load_kubeconfig(state_directory() + "/pki/admin.kubeconfig");
  if (!config.ok()) return nullptr;
  config->client_certificate_pem.clear();
  config->client_key_pem.clear();
  config->bearer_token = token;
  auto made = kube::HttpTransport::create(*config, clock_);
  return made.ok() ? std::move(made).value() : nullptr;
}

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

std::string Cluster::kubectl(const std::string& arguments) {
  return "kubectl --kubeconfig " + state_directory() + "/pki/admin.kubeconfig " + arguments;
}

std::string Cluster::kubectl_gang(const std::string& arguments) {
  return "KUBECONFIG=" + state_directory() +
         "/pki/admin.kubeconfig " KUBEGANG_BINARY_DIR "/bin/kubectl-gang " + arguments;
}

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

void Cluster::make_partition(const std::string& name, const json& spec_patch) {
  json spec{{"nodes", {{"hostlist", nodes(1, kNodesCount)}}},
            {"overSubscribe", {{"policy", "Force"}, {"maxShare", 4}}}};
  spec.merge_patch(spec_patch);
  ASSERT_NO_FATAL_FAILURE(apply({{"apiVersion", "kubegang.io/v1alpha1"},
                                 {"kind", "Partition"},
                                 {"metadata", {{"name", name}}},
                                 {"spec", spec}}));
}

json Cluster::job_object(const JobOptions& options) const {
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
  json object{
      {"apiVersion", "kubegang.io/v1alpha1"},
      {"kind", "Job"},
      {"metadata", {{"name", options.name}, {"namespace", ns_}}},
      {"spec",
       {{"partitions", {options.partition.empty() ? ns_ : options.partition}},
        {"resources", {{"nodes", {{"min", options.nodes_count}}}}},
        {"template",
         {{"spec",
           {{"automountServiceAccountToken", false},
            {"containers", json::array({container})},
            {"volumes", {{{"name", "stamps"}, {"hostPath", {{"path", stamps_in_}}}}}}}}}}}}};
  object.merge_patch(options.patch);
  return object;
}

void Cluster::submit(const JobOptions& options) {
  ASSERT_NO_FATAL_FAILURE(apply(job_object(options)));
}

std::string Cluster::job_path(const std::string& name) const {
  return "/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs/" + name;
}

kube::Job Cluster::job(const std::string& name) {
  const auto found = kube::decode<kube::Job>(get(job_path(name)));
  return found.ok() ? *found : kube::Job{};
}

std::string Cluster::state(const std::string& name) {
  const kube::Job found = job(name);
  return found.status.state ? std::string{to_string(*found.status.state)} : std::string{};
}

bool Cluster::has_ended(const std::string& name) {
  const kube::Job found = job(name);
  return found.status.state && kube::is_final(*found.status.state);
}

std::string Cluster::status_text(const std::string& name) {
  const json object = get(job_path(name));
  return object.is_object() ? object.value("status", json::object()).dump(1) : "no such job";
}

std::vector<json> Cluster::pods(const std::string& job_name) {
  return list("/api/v1/namespaces/" + ns_ + "/pods?labelSelector=kubegang.io/job=" + job_name);
}

json Cluster::pod_on(const std::string& job_name, const std::string& node_name) {
  for (const json& pod : pods(job_name)) {
    if (pod["spec"]["nodeName"] == node_name) return pod;
  }
  return nullptr;
}

std::vector<kube::NodeTimetable> Cluster::timetables() {
  std::vector<kube::NodeTimetable> found;
  for (int n = 1; n <= kNodesCount; ++n) {
    const auto one = kube::decode<kube::NodeTimetable>(
        get("/apis/kubegang.io/v1alpha1/nodetimetables/" + node(n)));
    if (one.ok()) found.push_back(*one);
  }
  return found;
}

std::vector<json> Cluster::operators() {
  return list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
              "/pods?labelSelector=app.kubernetes.io/component=operator");
}

json Cluster::agent_on(const std::string& node_name) {
  for (const json& pod : list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                              "/pods?labelSelector=app.kubernetes.io/component=agent")) {
    if (pod["spec"].value("nodeName", "") == node_name) return pod;
  }
  return nullptr;
}

}  // namespace kubernetes
