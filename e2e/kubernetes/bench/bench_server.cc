#include "e2e/kubernetes/bench/bench_server.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace kubernetes_bench {
namespace {

using base::Status;
using kube::Method;
using nlohmann::json;

// A token of a service account has about this length.
constexpr std::size_t kTokenBytes = 1100;
// After this time without a write everything that follows from the last one is done.
constexpr base::Duration kQuiet = std::chrono::milliseconds{700};
constexpr base::Duration kLook = std::chrono::milliseconds{50};

// Adds what a real server adds to each pod: defaults, and a service account's token.
void add_defaults(json& pod) {
  json& spec = pod["spec"];
  // As the server's defaulting does: what is there stays.
  const auto missing = [](json& object, const char* name, json value) {
    if (!object.contains(name)) object[name] = std::move(value);
  };
  missing(spec, "dnsPolicy", "ClusterFirst");
  missing(spec, "enableServiceLinks", true);
  missing(spec, "preemptionPolicy", "PreemptLowerPriority");
  missing(spec, "priority", 0);
  missing(spec, "schedulerName", "default-scheduler");
  missing(spec, "securityContext", json::object());
  missing(spec, "serviceAccount", "default");
  missing(spec, "serviceAccountName", "default");
  missing(spec, "terminationGracePeriodSeconds", 30);
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    spec["tolerations"].push_back({{"effect", "NoExecute"},
                                   {"key", key},
                                   {"operator", "Exists"},
                                   {"tolerationSeconds", 300}});
  }
  // The name has the suffix that the server would draw; it costs bytes like any other.
  const char* volume = "kube-api-access-x7k2p";
  spec["volumes"].push_back(
      {{"name", volume},
       {"projected",
        {{"defaultMode", 420},
         {"sources",
          {{{"serviceAccountToken", {{"expirationSeconds", 3607}, {"path", "token"}}}},
           {{"configMap",
             {{"items", {{{"key", "ca.crt"}, {"path", "ca.crt"}}}}, {"name", "kube-root-ca.crt"}}}},
           {{"downwardAPI",
             {{"items",
               {{{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}}},
                 {"path", "namespace"}}}}}}}}}}}});
  for (json& container : spec["containers"]) {
    missing(container, "imagePullPolicy", "IfNotPresent");
    missing(container, "terminationMessagePath", "/dev/termination-log");
    missing(container, "terminationMessagePolicy", "File");
    container["volumeMounts"].push_back(
        {{"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"},
         {"name", volume},
         {"readOnly", true}});
  }
}

}  // namespace

Status BenchServer::start() {
  server_.set_pod_webhook(add_defaults);
  if (Status s = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds"); !s.ok()) return s;
  auto front = devcluster::HttpsFrontEnd::start(server_, clock_);
  if (!front.ok()) return front.error();
  front_ = std::move(*front);
  if (Status s = front_->write_kubeconfig(admin_kubeconfig()); !s.ok()) return s;
  if (Status s = write_operator_kubeconfig(); !s.ok()) return s;
  return api_.connect(admin_kubeconfig());
}

Status BenchServer::make_namespace(const std::string& name) {
  const json object{
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
  return api_.call(Method::kPost, "/api/v1/namespaces", object).status();
}

// By the server's version, which every write raises.
void BenchServer::wait_until_quiet() const {
  std::int64_t version = server_.resource_version();
  base::Duration since = clock_.monotonic();
  while (clock_.monotonic() - since < kQuiet) {
    std::this_thread::sleep_for(kLook);
    if (std::exchange(version, server_.resource_version()) != version) since = clock_.monotonic();
  }
}

// As the chart's operator has it: a token and no certificate.
Status BenchServer::write_operator_kubeconfig() {
  const std::string token(kTokenBytes, 't');
  front_->add_token(token, {.name = "system:serviceaccount:kubegang-system:kubegang-operator",
                            .groups = {"system:serviceaccounts"}});
  auto text = front_->kubeconfig();
  if (!text.ok()) return text.error();
  const std::size_t from = text->find("    client-certificate-data:");
  const std::size_t to = text->find("contexts:\n");
  // The administrator's certificate is taken out, and the token put in its place.
  text->replace(from, to - from, "    token: " + token + "\n");
  std::ofstream{operator_kubeconfig()} << *text;
  return {};
}

int run_measurement(const char* name, const std::function<Status(const Options&)>& measure) {
  const char* program = std::getenv("OPERATOR");
  Options options;
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.operator_program = program == nullptr ? (bin / "kubegang-operator").string() : program;
  std::string folder = (std::filesystem::temp_directory_path() / "bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  std::filesystem::create_directories(folder + "/logs");
  options.state = folder;
  options.operator_kubeconfig = folder + "/operator.kubeconfig";
  const Status done = measure(options);
  if (done.ok()) {
    std::filesystem::remove_all(folder);
    return 0;
  }
  std::fprintf(stderr, "%s: %s (logs are in %s)\n", name, done.error().message.c_str(),
               folder.c_str());
  return 1;
}

}  // namespace kubernetes_bench
