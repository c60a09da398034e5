// How fast gangs come to life on many nodes, beside the same pods without us. run-bench starts what
// this needs.
//
// Each shape is measured three times, one after the other on the same API server:
//   gang   our Jobs, our operator, and fake agents
//   limit  the very pods that the operator made, with their nodeName, by a plain client
//   batch  batch/v1 Jobs of the same pods, placed by kube-scheduler
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "e2e/devcluster/apply.h"
#include "e2e/kubernetes/bench/fake_agents.h"
#include "e2e/kubernetes/bench/pod_watch.h"
#include "e2e/kubernetes/bench/processes.h"
#include "kube/api/node.h"
#include "kube/http_transport.h"
#include "kube/transport_config.h"

namespace kubernetes_bench {
namespace {

using base::Duration;
using base::Status;
using kube::Method;
using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kCoresPerNode = 32;
constexpr int kCpusPerPod = 3;  // ten pods fill a node
constexpr int kPodsPerNode = kCoresPerNode / kCpusPerPod;
constexpr int kConnections = 16;  // of the plain client; the operator has as many writers
constexpr minutes kPatience{30};
constexpr const char* kMetricsAddress = "127.0.0.1:18080";
constexpr const char* kPartition = "bench";
// A namespace for each of the three.
constexpr const char* kGang = "gang";
constexpr const char* kLimit = "limit";
constexpr const char* kBatch = "batch";

struct Options {
  std::string kubeconfig;
  std::string operator_program;
  std::string state;  // pids/ and logs/ of what run-bench started
  std::string out;
  std::string network = "None";
  int nodes = 1000;
  int scale = 1;
};

struct Shape {
  int jobs = 0;
  int pods_per_job = 0;

  int pods() const { return jobs * pods_per_job; }
  std::string name() const { return std::to_string(jobs) + " x " + std::to_string(pods_per_job); }
  // A scale-th of the pods: fewer jobs, and smaller ones only when there is but one.
  Shape scaled(int scale) const {
    const int fewer = std::max(1, jobs / scale);
    return {fewer, std::max(1, pods() / scale / fewer)};
  }
};
constexpr Shape kShapes[] = {{500, 20}, {20, 500}, {1, 5000}, {5000, 1}};

std::string pods_path(const std::string& ns) {
  return "/api/v1/namespaces/" + ns + "/pods";
}
std::string our_jobs_path() {
  return "/apis/kubegang.io/v1alpha1/namespaces/gang/jobs";
}
std::string batch_jobs_path() {
  return "/apis/batch/v1/namespaces/batch/jobs";
}

json container(const json& requests) {
  json out{{"name", "main"}, {"image", "registry.e2e/none:1"}, {"command", {"work"}}};
  if (!requests.is_null()) out["resources"] = {{"requests", requests}};
  return out;
}

class Bench {
 public:
  explicit Bench(Options options) : options_{std::move(options)} {}

  Status run();

 private:
  Status connect();
  Status make_nodes();
  Status make_objects();
  Status measure(const Shape& shape, json& row);
  base::Result<json> measure_gang(const Shape& shape, std::vector<json>& pods);
  base::Result<json> measure_submission(const std::string& ns, const std::string& path,
                                        const std::vector<json>& objects, std::size_t pods_count);
  base::Result<json> times_of(PodWatch& watch, std::size_t pods_count, Duration began,
                              const std::map<std::string, double>& cpu_before);
  base::Result<std::vector<json>> made_pods();
  Status clean(const std::string& ns, const std::string& jobs_path);

  base::Result<json> call(Method method, const std::string& path, const json& body = nullptr) {
    return devcluster::call_api(*transport_, method, path, body);
  }
  // As many requests at a time as there are connections; ends with the first error.
  Status create_all(const std::string& path, const std::vector<json>& objects);
  Status wait_until(const std::string& what, const std::function<bool()>& condition);
  std::map<std::string, double> cpu_by_process() const;
  base::Result<std::map<std::string, double>> operator_metrics();

  const Options options_;
  const kube::SystemClock clock_;
  std::unique_ptr<kube::HttpTransport> transport_;
  std::unique_ptr<kube::HttpTransport> agents_transport_;
  std::unique_ptr<kube::HttpTransport> metrics_transport_;
  std::unique_ptr<FakeAgents> agents_;
  pid_t operator_pid_ = 0;
};

double seconds_between(Duration from, Duration to) {
  return std::chrono::duration<double>(to - from).count();
}

Status Bench::connect() {
  const auto config = kube::load_kubeconfig(options_.kubeconfig);
  if (!config.ok()) return config.error();
  const kube::TransportConfig metrics{.server = std::string{"http://"} + kMetricsAddress};
  const auto make = [this](std::unique_ptr<kube::HttpTransport>& transport,
                           const kube::TransportConfig& where) -> Status {
    auto made = kube::HttpTransport::create(where, clock_);
    if (!made.ok()) return made.error();
    transport = std::move(made).value();
    return {};
  };
  if (Status s = make(transport_, *config); !s.ok()) return s;
  if (Status s = make(agents_transport_, *config); !s.ok()) return s;
  return make(metrics_transport_, metrics);
}

Status Bench::wait_until(const std::string& what, const std::function<bool()>& condition) {
  const Duration end = clock_.monotonic() + kPatience;
  while (!condition()) {
    if (clock_.monotonic() > end) return base::Error{base::Code::kTimeout, "still not: " + what};
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  return {};
}

Status Bench::create_all(const std::string& path, const std::vector<json>& objects) {
  std::atomic<std::size_t> next = 0;
  std::mutex mu;
  Status first_error;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kConnections; ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < objects.size(); at = next++) {
          const auto made = call(Method::kPost, path, objects[at]);
          if (made.ok()) continue;
          const std::lock_guard lock{mu};
          if (first_error.ok()) first_error = made.error();
          next = objects.size();
        }
      });
    }
  }
  return first_error;
}

Status Bench::make_nodes() {
  std::vector<json> nodes;
  const json capacity{{"cpu", std::to_string(kCoresPerNode)}, {"memory", "128Gi"}, {"pods", "110"}};
  for (int n = 1; n <= options_.nodes; ++n) {
    const std::string name = "k" + std::to_string(n);
    nodes.push_back(
        {{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata",
          {{"name", name},
           {"annotations", {{"kwok.x-k8s.io/node", "fake"}}},
           {"labels", {{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}}}}},
         {"status", {{"capacity", capacity}, {"allocatable", capacity}}}});
  }
  if (Status made = create_all("/api/v1/nodes", nodes); !made.ok()) return made;
  return wait_until("all nodes are Ready", [this] {
    const auto list = call(Method::kGet, "/api/v1/nodes");
    if (!list.ok()) return false;
    return std::all_of((*list)["items"].begin(), (*list)["items"].end(), [](const json& object) {
      const auto node = kube::decode<kube::Node>(object);
      return node.ok() && kube::is_true(node->status.conditions, "Ready") &&
             node->spec.taints.empty();
    });
  });
}

Status Bench::make_objects() {
  for (const char* ns : {kGang, kLimit, kBatch}) {
    const auto made =
        call(Method::kPost, "/api/v1/namespaces",
             {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}});
    if (!made.ok()) return made.error();
    Status there = wait_until(std::string{"the service account of "} + ns, [&] {
      return call(Method::kGet,
                  std::string{"/api/v1/namespaces/"} + ns + "/serviceaccounts/default")
          .ok();
    });
    if (!there.ok()) return there;
  }
  const std::string api = "/apis/kubegang.io/v1alpha1/";
  auto made =
      call(Method::kPost, api + "schedulerconfigs",
           {{"apiVersion", "kubegang.io/v1alpha1"},
            {"kind", "SchedulerConfig"},
            {"metadata", {{"name", "default"}}},
            {"spec", {{"select", {{"type", "ConsTres"}, {"unit", "Core"}, {"memory", false}}}}}});
  if (!made.ok()) return made.error();
  made = call(Method::kPost, api + "partitions",
              {{"apiVersion", "kubegang.io/v1alpha1"},
               {"kind", "Partition"},
               {"metadata", {{"name", kPartition}}},
               {"spec",
                {{"nodes", {{"hostlist", "k[1-" + std::to_string(options_.nodes) + "]"}}},
                 {"overSubscribe", {{"policy", "Force"}, {"maxShare", 2}}}}}});
  return made.ok() ? Status{} : Status{made.error()};
}

std::map<std::string, double> Bench::cpu_by_process() const {
  std::map<std::string, double> out;
  for (const auto& file : std::filesystem::directory_iterator{options_.state + "/pids"}) {
    pid_t pid = 0;
    std::ifstream{file.path()} >> pid;
    out[file.path().filename()] = cpu_seconds(pid);
  }
  if (operator_pid_ != 0) out["kubegang-operator"] = cpu_seconds(operator_pid_);
  out["benchmark"] = cpu_seconds(::getpid());
  return out;
}

base::Result<std::map<std::string, double>> Bench::operator_metrics() {
  const auto answer = metrics_transport_->send({.path = "/metrics", .accept = "text/plain"});
  if (!answer.ok()) return answer.error();
  std::map<std::string, double> out;
  std::istringstream lines{answer->body};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    if (line.starts_with("kubegang_operator_") && space != std::string::npos) {
      out[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
  }
  return out;
}

base::Result<json> Bench::times_of(PodWatch& watch, std::size_t pods_count, Duration began,
                                   const std::map<std::string, double>& cpu_before) {
  const auto times = watch.wait_for(pods_count, kPatience);
  if (!times.ok()) return times.error();
  json cpu;
  for (const auto& [name, after] : cpu_by_process()) {
    const auto before = cpu_before.find(name);
    if (before != cpu_before.end()) cpu[name] = after - before->second;
  }
  return json{{"last_bound_seconds", seconds_between(began, times->last_bound)},
              {"last_running_seconds", seconds_between(began, times->last_running)},
              {"watches_ended", times->watches_ended},
              {"cpu_seconds", cpu}};
}

base::Result<json> Bench::measure_submission(const std::string& ns, const std::string& path,
                                             const std::vector<json>& objects,
                                             std::size_t pods_count) {
  PodWatch watch{*transport_, clock_, ns};
  const auto cpu_before = cpu_by_process();
  const Duration began = clock_.monotonic();
  if (Status made = create_all(path, objects); !made.ok()) return made.error();
  const double submitted = seconds_between(began, clock_.monotonic());
  auto row = times_of(watch, pods_count, began, cpu_before);
  if (row.ok()) (*row)["submitted_seconds"] = submitted;
  return row;
}

base::Result<json> Bench::measure_gang(const Shape& shape, std::vector<json>& pods) {
  auto child = ChildProcess::start(
      {options_.operator_program, "--kubeconfig", options_.kubeconfig, "--no-leader-elect",
       "--metrics-address", kMetricsAddress, "--writers", std::to_string(kConnections)},
      options_.state + "/logs/kubegang-operator.log");
  if (!child.ok()) return child.error();
  operator_pid_ = child->pid();
  const auto ready = [this] {
    const auto answer = metrics_transport_->send({.path = "/readyz"});
    return answer.ok() && answer->status == 200 &&
           agents_->ready_nodes() == static_cast<std::size_t>(options_.nodes);
  };
  if (Status is = wait_until("operator and fake agents are ready", ready); !is.ok()) {
    return is.error();
  }
  std::this_thread::sleep_for(seconds{2});  // until it has heard of the last acknowledgement
  const auto metrics_before = operator_metrics();
  if (!metrics_before.ok()) return metrics_before.error();
  const std::int64_t acknowledged_before = agents_->acknowledgements();

  std::vector<json> jobs;
  for (int i = 0; i < shape.jobs; ++i) {
    jobs.push_back({{"apiVersion", "kubegang.io/v1alpha1"},
                    {"kind", "Job"},
                    {"metadata", {{"name", "j" + std::to_string(i)}, {"namespace", kGang}}},
                    {"spec",
                     {{"partitions", {kPartition}},
                      {"tasks", shape.pods_per_job},
                      {"cpusPerTask", kCpusPerPod},
                      {"podPolicy", "PerTask"},
                      {"network", options_.network},
                      {"template", {{"spec", {{"containers", {container(nullptr)}}}}}}}}});
  }
  auto row =
      measure_submission(kGang, our_jobs_path(), jobs, static_cast<std::size_t>(shape.pods()));
  if (!row.ok()) return row;
  const auto metrics_after = operator_metrics();
  if (!metrics_after.ok()) return metrics_after.error();
  json& counted = (*row)["operator"];
  for (const auto& [name, value] : *metrics_after) {
    const bool counts =
        name.ends_with("_total") || name.ends_with("_sum") || name.ends_with("_count");
    if (counts) counted[name] = value - metrics_before->at(name);
  }
  counted["peak_rss_mebibytes"] = peak_rss_mebibytes(operator_pid_);
  (*row)["acknowledgements"] = agents_->acknowledgements() - acknowledged_before;

  auto made = made_pods();
  if (!made.ok()) return made.error();
  pods = std::move(*made);
  operator_pid_ = 0;
  return row;
}  // ends the operator

// What the operator made, for a plain client to make again in its own namespace.
base::Result<std::vector<json>> Bench::made_pods() {
  std::vector<json> pods;
  std::string go_on;
  do {
    auto page = call(Method::kGet,
                     pods_path(kGang) + "?limit=500" + (go_on.empty() ? "" : "&continue=" + go_on));
    if (!page.ok()) return page.error();
    for (json& pod : (*page)["items"]) {
      pods.push_back({{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata",
                       {{"name", pod["metadata"]["name"]},
                        {"namespace", kLimit},
                        {"labels", pod["metadata"].value("labels", json::object())},
                        {"annotations", pod["metadata"].value("annotations", json::object())}}},
                      {"spec", std::move(pod["spec"])}});
    }
    go_on = (*page)["metadata"].value("continue", "");
  } while (!go_on.empty());
  return pods;
}

Status Bench::clean(const std::string& ns, const std::string& jobs_path) {
  const json now{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"gracePeriodSeconds", 0}};
  const json background{
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  const auto is_empty = [this](const std::string& path) {
    const auto list = call(Method::kGet, path + "?limit=1");
    return list.ok() && (*list)["items"].empty();
  };
  return wait_until("nothing is left in " + ns, [&] {
    if (!jobs_path.empty() && !is_empty(jobs_path)) {
      (void)call(Method::kDelete, jobs_path, background);
      return false;
    }
    if (is_empty(pods_path(ns))) return true;
    (void)call(Method::kDelete, pods_path(ns), now);
    return false;
  });
}

Status Bench::measure(const Shape& shape, json& row) {
  row = {{"shape", shape.name()}, {"jobs", shape.jobs}, {"pods", shape.pods()}};
  const auto keep = [&](const char* name, base::Result<json> figures) -> Status {
    if (!figures.ok()) return figures.error().with_context(shape.name() + ", " + name);
    row[name] = std::move(*figures);
    std::printf("%-10s %-6s last bound %8.2f s   last Running %8.2f s\n", shape.name().c_str(),
                name, row[name]["last_bound_seconds"].get<double>(),
                row[name]["last_running_seconds"].get<double>());
    std::fflush(stdout);
    return {};
  };
  std::vector<json> pods;
  if (Status s = keep(kGang, measure_gang(shape, pods)); !s.ok()) return s;
  if (Status s = clean(kGang, our_jobs_path()); !s.ok()) return s;
  if (Status s = keep(kLimit, measure_submission(kLimit, pods_path(kLimit), pods, pods.size()));
      !s.ok()) {
    return s;
  }
  if (Status s = clean(kLimit, ""); !s.ok()) return s;

  std::vector<json> jobs;
  for (int i = 0; i < shape.jobs; ++i) {
    const json pod_spec{{"restartPolicy", "Never"},
                        {"containers", {container({{"cpu", std::to_string(kCpusPerPod)}})}}};
    jobs.push_back({{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", {{"name", "j" + std::to_string(i)}, {"namespace", kBatch}}},
                    {"spec",
                     {{"parallelism", shape.pods_per_job},
                      {"completions", shape.pods_per_job},
                      {"backoffLimit", 0},
                      {"template", {{"spec", pod_spec}}}}}});
  }
  const auto pods_count = static_cast<std::size_t>(shape.pods());
  if (Status s = keep(kBatch, measure_submission(kBatch, batch_jobs_path(), jobs, pods_count));
      !s.ok()) {
    return s;
  }
  for (const char* what : {"last_bound_seconds", "last_running_seconds"}) {
    for (const char* other : {kLimit, kBatch}) {
      row["ratios"][std::string{"gang_to_"} + other + "_" + what] =
          row[kGang][what].get<double>() / row[other][what].get<double>();
    }
  }
  return clean(kBatch, batch_jobs_path());
}

Status Bench::run() {
  if (Status s = connect(); !s.ok()) return s;
  if (Status s = make_nodes(); !s.ok()) return s;
  if (Status s = make_objects(); !s.ok()) return s;
  agents_ = std::make_unique<FakeAgents>(*agents_transport_, clock_, kCoresPerNode);
  utsname machine{};
  ::uname(&machine);
  json figures{{"conditions",
                {{"nodes", options_.nodes},
                 {"cpus_per_node", kCoresPerNode},
                 {"cpus_per_pod", kCpusPerPod},
                 {"scale", options_.scale},
                 {"network", options_.network},
                 {"connections", kConnections},
                 {"machine_cpus", std::thread::hardware_concurrency()},
                 {"kernel", machine.release}}},
               {"shapes", json::array()}};
  for (const Shape& full : kShapes) {
    const Shape shape = full.scaled(options_.scale);
    if (shape.pods() > options_.nodes * kPodsPerNode) {
      return base::Error{base::Code::kInvalidArgument,
                         shape.name() + " pods do not fit on " + std::to_string(options_.nodes) +
                             " nodes of " + std::to_string(kPodsPerNode) +
                             "; raise SCALE or NODES"};
    }
    json row;
    if (Status s = measure(shape, row); !s.ok()) return s;
    // After each: what was measured is kept when a later shape fails.
    figures["shapes"].push_back(std::move(row));
    std::ofstream{options_.out} << figures.dump(1) << "\n";
  }
  std::printf("%s\n", options_.out.c_str());
  return {};
}

int run_program(int argc, char** argv) {
  Options options;
  CLI::App app{"gangs on fake nodes beside the same pods without us", "kubernetes_bench"};
  app.add_option("--kubeconfig", options.kubeconfig, "the administrator's")->required();
  app.add_option("--operator", options.operator_program, "kubegang-operator")->required();
  app.add_option("--state", options.state, "folder with pids/ and logs/")->required();
  app.add_option("--out", options.out, "JSON file")->required();
  app.add_option("--nodes", options.nodes, "fake nodes")
      ->check(CLI::Range(1, 5000))
      ->capture_default_str();
  app.add_option("--scale", options.scale, "divides the number of pods")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--network", options.network, "spec.network of our Jobs")
      ->check(CLI::IsMember({"None", "Service"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Status done = Bench{std::move(options)}.run();
  if (done.ok()) return 0;
  std::fprintf(stderr, "kubernetes_bench: %s\n", done.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace kubernetes_bench

int main(int argc, char** argv) {
  return kubernetes_bench::run_program(argc, argv);
}
