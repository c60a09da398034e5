// How fast gangs come to life on many nodes, our Jobs and Jobs of the batch group, beside the same
// pods without us (launches.h), what the operator costs by the number of jobs (many_jobs.h), and
// what a queue that is watched costs the API server (queue_watch.h).
// run-bench starts what this needs.
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "e2e/kubernetes/bench/fake_cluster.h"
#include "e2e/kubernetes/bench/launches.h"
#include "e2e/kubernetes/bench/many_jobs.h"
#include "e2e/kubernetes/bench/queue_watch.h"

namespace kubernetes_bench {
namespace {

using base::Status;
using nlohmann::json;

// The shape for Jobs of the batch group that we run: jobs of one pod, in which a pod costs most.
constexpr Shape kAdoptedShape{.jobs = 5000, .pods_per_job = 1};

// Returns the conditions that the figures depend on, kept beside them. Two files of figures may
// only be compared if these are the same.
json conditions_of(const Options& options) {
  utsname machine{};
  ::uname(&machine);
  return {{"nodes", options.nodes},
          {"cpus_per_node", kCoresPerNode},
          {"cpus_per_pod", kCpusPerPod},
          {"scale", options.scale},
          {"network", options.network},
          {"connections", kConnections},
          {"machine_cpus", std::thread::hardware_concurrency()},
          {"kernel", machine.release}};
}

// After each step: what was measured is kept when a later one fails.
void write(const Options& options, const json& figures) {
  std::ofstream{options.out} << figures.dump(1) << "\n";
}

// Measures each shape on the same cluster, one after the other.
Status measure_launches(const Options& options, Launches& launches, json& figures) {
  for (const Shape& full : options.shapes) {
    const Shape shape = full.scaled(options.scale);
    // Pods that do not fit would wait forever, and the measurement with them.
    if (shape.pods() > options.nodes * kPodsPerNode) {
      return base::Error{base::Code::kInvalidArgument,
                         shape.name() + " pods do not fit on " + std::to_string(options.nodes) +
                             " nodes of " + std::to_string(kPodsPerNode) +
                             "; raise SCALE or NODES"};
    }
    json row;
    if (Status s = launches.measure(shape, row); !s.ok()) return s;
    figures["shapes"].push_back(std::move(row));
    write(options, figures);
  }
  return {};
}

// 1. connections, nodes, namespaces and the objects that all measurements share, 2. a first launch
// that does not count, 3. the parts that were asked for, each with its figures written as it ends.
// The order matters for the last part alone: its 5,000 jobs stay, so nothing is measured after it.
Status run(const Options& options) {
  const kube::SystemClock clock;
  BenchApi api{clock};
  // The fake agents have connections of their own: real agents do not share those of a client.
  BenchApi agents_api{clock};
  if (Status s = api.connect(options.kubeconfig); !s.ok()) return s;
  if (Status s = agents_api.connect(options.kubeconfig); !s.ok()) return s;
  if (Status s = make_nodes(api, options.nodes); !s.ok()) return s;
  if (Status s = make_namespaces(api); !s.ok()) return s;
  if (Status s = make_objects(api, options.nodes); !s.ok()) return s;
  FakeAgents agents{agents_api.transport(), clock, kCoresPerNode};
  json figures{{"conditions", conditions_of(options)},
               {"shapes", json::array()},
               {"adopted", json::array()},
               {"claims", json::array()},
               {"operator_by_jobs", json::array()},
               {"queue_watch", json::array()}};
  Launches launches{options, clock, api, agents};
  // `--only` names one of the parts.
  const auto wanted = [&](const char* part) {
    return options.only.empty() || options.only == part;
  };
  const bool pair = options.only == "pair";
  if (wanted("shapes") || pair || wanted("adopted") || wanted("claims")) {
    if (Status s = launches.warm_up(); !s.ok()) return s;
  }
  if (wanted("shapes") || pair) {
    if (Status s = measure_launches(options, launches, figures); !s.ok()) return s;
  }
  if (wanted("adopted")) {
    const Shape shape = kAdoptedShape.scaled(options.scale);
    json row;
    // The measurements are kept even if this step failed in the middle.
    const Status s = launches.measure_adopted(shape, row);
    figures["adopted"].push_back(std::move(row));
    write(options, figures);
    if (!s.ok()) return s;
  }
  if (wanted("claims")) {
    json row;
    const Status s = launches.measure_claims(kAdoptedShape.scaled(options.scale), row);
    figures["claims"].push_back(std::move(row));
    write(options, figures);
    if (!s.ok()) return s;
  }
  if (wanted("jobs")) {
    ManyJobs many{options, clock, api};
    const Status s = many.measure(figures["operator_by_jobs"]);
    write(options, figures);
    if (!s.ok()) return s;
  }
  if (wanted("watch")) {
    QueueWatch watch{options, clock, api};
    const Status s = watch.measure(figures["queue_watch"]);
    write(options, figures);
    if (!s.ok()) return s;
  }
  std::printf("%s\n", options.out.c_str());
  return {};
}

// Reads "5000x1": jobs, and pods of each.
std::optional<Shape> parse_shape(const std::string& text) {
  Shape shape;
  int end = 0;
  // "%n" tells how far was read, so "5x3y" is not taken for 5x3.
  const int read = std::sscanf(text.c_str(), "%dx%d%n", &shape.jobs, &shape.pods_per_job, &end);
  const bool is_whole = read == 2 && static_cast<std::size_t>(end) == text.size();
  if (!is_whole || shape.jobs < 1 || shape.pods_per_job < 1) return std::nullopt;
  return shape;
}

// As CLI11 wants it: empty if right.
std::string check_shape(const std::string& text) {
  return parse_shape(text) ? "" : "not a number of jobs, an x, a number of pods: " + text;
}

int run_program(int argc, char** argv) {
  Options options;
  CLI::App app{"gangs on fake nodes beside the same pods without us", "kubernetes_bench"};
  app.add_option("--kubeconfig", options.kubeconfig, "the administrator's")->required();
  app.add_option("--operator-kubeconfig", options.operator_kubeconfig, "the operator's")
      ->required();
  app.add_option("--operator", options.operator_program, "kubegang-operator")->required();
  app.add_option("--plugin", options.plugin, "kubectl-gang")->required();
  app.add_option("--state", options.state, "folder with pids/ and logs/")->required();
  app.add_option("--out", options.out, "JSON file")->required();
  app.add_option(
         "--only", options.only,
         "shapes, pair (two ways of each shape), adopted, claims, jobs or watch (default: all)")
      ->check(CLI::IsMember({"shapes", "pair", "adopted", "claims", "jobs", "watch"}));
  app.add_option("--nodes", options.nodes, "fake nodes")
      ->check(CLI::Range(1, 5000))
      ->capture_default_str();
  app.add_option("--scale", options.scale, "divides the number of pods and of jobs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  std::vector<std::string> shapes;
  app.add_option("--shape", shapes, "JOBSxPODS of each, to measure these only (several times)")
      ->check(CLI::Validator{check_shape, "JOBSxPODS"});
  app.add_option("--network", options.network, "spec.network of our Jobs")
      ->check(CLI::IsMember({"None", "Service"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  // The shapes of the command line stand in place of the usual ones.
  if (!shapes.empty()) options.shapes.clear();
  for (const std::string& text : shapes) options.shapes.push_back(*parse_shape(text));
  const Status done = run(options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "kubernetes_bench: %s\n", done.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace kubernetes_bench

int main(int argc, char** argv) {
  return kubernetes_bench::run_program(argc, argv);
}
