// What a launch costs the operator: CPU time per pod of the real program, by its threads, against
// the in-memory API server of the tests on the loopback (TLS, a service account's token, pods with
// the defaults and managedFields of a real server). That server answers at once and in a process of
// its own, so no other load of a control plane is in the figures.
//
//   build/bin/operator_launch_bench [JOBSxPODS...]     default: 500x1 50x20 2x500
//
// OPERATOR=PROGRAM measures another one, for example a script that runs it under callgrind.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "e2e/kubernetes/bench/fake_agents.h"
#include "e2e/kubernetes/bench/fake_cluster.h"
#include "e2e/kubernetes/bench/fake_kubelets.h"
#include "e2e/kubernetes/bench/operator_run.h"
#include "e2e/kubernetes/bench/shape.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"
#include "kube/testing/api_server/in_process_transport.h"

namespace kubernetes_bench {
namespace {

using base::Status;
using kube::Method;
using nlohmann::json;

// The same for small launches, so that the difference of two is that of their pods alone.
constexpr int kNodesMin = 100;
// A token of a service account has about this length.
constexpr std::size_t kTokenBytes = 1100;
// Nothing was written for so long: everything that follows from the last pod is done.
constexpr base::Duration kQuiet = std::chrono::milliseconds{700};
constexpr base::Duration kLook = std::chrono::milliseconds{50};

// What a real server adds to each pod: defaults, and a service account's token.
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

// CPU time of each thread by its name, in nanoseconds; those of one name together.
using ThreadTimes = std::map<std::string, std::int64_t>;

ThreadTimes thread_times(pid_t pid) {
  ThreadTimes out;
  std::error_code error;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  // Threads may begin and end meanwhile; the time of those that ended is lost, so it is read while
  // all run.
  for (const auto& task : std::filesystem::directory_iterator{tasks, error}) {
    std::string name;
    std::int64_t nanoseconds = 0;
    std::getline(std::ifstream{task.path() / "comm"}, name);
    // Nanoseconds on a CPU, far finer than the ticks of /proc/<pid>/stat.
    std::ifstream{task.path() / "schedstat"} >> nanoseconds;
    // The main thread has the program's name.
    if (std::to_string(pid) == task.path().filename()) name = "loop";
    out[name] += nanoseconds;
  }
  return out;
}

// A cluster of its own for each shape.
class Launch {
 public:
  Launch(const kube::Clock& clock, std::string folder)
      : clock_{clock}, folder_{std::move(folder)}, api_{clock} {}

  // Everything that a real server does before the first job is in place: defaults by the webhook,
  // CRDs, the operator's token, nodes that are ready.
  Status prepare(int nodes) {
    server_.set_pod_webhook(add_defaults);
    if (Status s = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds"); !s.ok()) return s;
    auto front = devcluster::HttpsFrontEnd::start(server_, clock_);
    if (!front.ok()) return front.error();
    front_ = std::move(*front);
    const std::string admin = folder_ + "/admin.kubeconfig";
    if (Status s = front_->write_kubeconfig(admin); !s.ok()) return s;
    if (Status s = write_operator_kubeconfig(); !s.ok()) return s;
    if (Status s = api_.connect(admin); !s.ok()) return s;
    if (Status s = make_nodes(api_, nodes); !s.ok()) return s;
    const json ns{
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", kGang}}}};
    if (auto made = api_.call(Method::kPost, "/api/v1/namespaces", ns); !made.ok()) {
      return made.error();
    }
    return make_objects(api_, nodes);
  }

  // Prints one line.
  Status measure(const Shape& shape, int nodes, const Options& options) {
    auto run = OperatorRun::start(options, clock_);
    if (!run.ok()) return run.error();
    const auto ready = [&] {
      return run->is_ready() && agents_.ready_nodes() == static_cast<std::size_t>(nodes);
    };
    if (Status s = api_.wait_until("operator and agents are ready", ready); !s.ok()) return s;
    // The start of the operator and the agents' first reports are not part of a launch.
    wait_until_quiet();
    server_.clear_request_log();
    const auto metrics_before = run->metrics();
    const ThreadTimes before = thread_times(run->pid());
    if (Status s = api_.create_all(gang_jobs_path(kGang), jobs(shape)); !s.ok()) return s;
    const auto all_run = [&] {
      return kubelets_.running() == static_cast<std::size_t>(shape.pods());
    };
    if (Status s = api_.wait_until("all pods run", all_run); !s.ok()) return s;
    // What follows from the last pod, such as its job's status, is part of it.
    wait_until_quiet();
    const ThreadTimes after = thread_times(run->pid());
    const auto metrics_after = run->metrics();
    report(shape, before, after);
    if (metrics_before.ok() && metrics_after.ok()) {
      const json grown = OperatorRun::growth(*metrics_before, *metrics_after);
      const double count = grown.value("kubegang_operator_step_seconds_count", 0.0);
      std::printf("           %.0f steps", count);
    }
    for (const auto& [kind, count] : server_.request_counts()) {
      // Those of kubelets and agents come in this process.
      if (kind.user_agent == "kubegang" && kind.verb != "watch") {
        std::printf(", %s %s/%s %ld", kind.verb.c_str(), kind.resource.c_str(),
                    kind.subresource.c_str(), static_cast<long>(count));
      }
    }
    std::printf("\n");
    return {};
  }

 private:
  // Parts below 5 microseconds are left out of the line, but not of the sum.
  static void report(const Shape& shape, const ThreadTimes& before, const ThreadTimes& after) {
    const auto grown = [&](const std::string& name, std::int64_t now) {
      const auto then = before.find(name);
      return static_cast<double>(now - (then == before.end() ? 0 : then->second)) * 1e-6 /
             static_cast<double>(shape.pods());
    };
    double all = 0;
    for (const auto& [name, now] : after) all += grown(name, now);
    std::printf("%-10s %6.3f ms per pod:", shape.name().c_str(), all);
    for (const auto& [name, now] : after) {
      if (const double part = grown(name, now); part >= 0.005) {
        std::printf(" %s %.3f", name.c_str(), part);
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  std::vector<json> jobs(const Shape& shape) const {
    std::vector<json> out;
    for (int i = 0; i < shape.jobs; ++i) {
      out.push_back(gang_job(
          kGang, "j" + std::to_string(i),
          {{"partitions", {kPartition}},
           {"resources", {{"tasks", shape.pods_per_job}, {"cpusPerTask", kCpusPerPod}}},
           {"podPolicy", "PerTask"},
           {"network", "None"}}));
    }
    return out;
  }

  // By the server's version, which every write raises.
  void wait_until_quiet() {
    std::int64_t version = server_.resource_version();
    base::Duration since = clock_.monotonic();
    while (clock_.monotonic() - since < kQuiet) {
      std::this_thread::sleep_for(kLook);
      if (std::exchange(version, server_.resource_version()) != version) {
        since = clock_.monotonic();
      }
    }
  }

  // As the chart's operator has it: a token and no certificate.
  Status write_operator_kubeconfig() {
    const std::string token(kTokenBytes, 't');
    front_->add_token(token, {.name = "system:serviceaccount:kubegang-system:kubegang-operator",
                              .groups = {"system:serviceaccounts"}});
    auto text = front_->kubeconfig();
    if (!text.ok()) return text.error();
    const std::size_t from = text->find("    client-certificate-data:");
    const std::size_t to = text->find("contexts:\n");
    // The administrator's certificate is taken out, and the token put in its place.
    text->replace(from, to - from, "    token: " + token + "\n");
    std::ofstream{folder_ + "/operator.kubeconfig"} << *text;
    return {};
  }

  const kube::Clock& clock_;
  const std::string folder_;
  devcluster::ApiServer server_{clock_, {.managed_fields = true}};
  devcluster::InProcessTransport transport_{server_};
  std::unique_ptr<devcluster::HttpsFrontEnd> front_;
  BenchApi api_;
  FakeKubelets kubelets_{transport_, clock_};
  FakeAgents agents_{transport_, clock_, kCoresPerNode};
};

Status run(const std::vector<Shape>& shapes, const Options& options) {
  const kube::SystemClock clock;
  // A cluster of its own for each shape: objects of the last one would be in its lists and watches.
  for (const Shape& shape : shapes) {
    const int nodes = std::max(kNodesMin, (shape.pods() + kPodsPerNode - 1) / kPodsPerNode);
    Launch launch{clock, options.state};
    if (Status s = launch.prepare(nodes); !s.ok()) return s;
    if (Status s = launch.measure(shape, nodes, options); !s.ok()) return s;
  }
  return {};
}

int run_program(int argc, char** argv) {
  std::vector<Shape> shapes;
  for (int i = 1; i < argc; ++i) {
    Shape shape;
    if (std::sscanf(argv[i], "%dx%d", &shape.jobs, &shape.pods_per_job) != 2 || shape.pods() < 1) {
      std::fprintf(stderr, "usage: %s [JOBSxPODS...]\n", argv[0]);
      return 2;
    }
    shapes.push_back(shape);
  }
  if (shapes.empty()) shapes = {{500, 1}, {50, 20}, {2, 500}};
  const char* program = std::getenv("OPERATOR");
  Options options;
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.operator_program = program == nullptr ? (bin / "kubegang-operator").string() : program;
  std::string folder = (std::filesystem::temp_directory_path() / "launch-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  std::filesystem::create_directories(folder + "/logs");
  options.state = folder;
  options.operator_kubeconfig = folder + "/operator.kubeconfig";
  const Status done = run(shapes, options);
  // The folder stays after a failure, for its logs.
  if (done.ok()) {
    std::filesystem::remove_all(folder);
    return 0;
  }
  std::fprintf(stderr, "operator_launch_bench: %s (logs are in %s)\n",
               done.error().message.c_str(), folder.c_str());
  return 1;
}

}  // namespace
}  // namespace kubernetes_bench

int main(int argc, char** argv) {
  return kubernetes_bench::run_program(argc, argv);
}
