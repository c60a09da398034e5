// Measures what a launch costs the operator: CPU time per pod of the real program, by its threads,
// against the in-memory API server of the tests on the loopback (TLS, a service account's token,
// pods with the defaults and managedFields of a real server). That server answers at once and in a
// process of its own, so no other load of a control plane is in the figures.
//
//   build/bin/operator_launch_bench [JOBSxPODS...]     default: 500x1 50x20 2x500
//
// OPERATOR=PROGRAM measures another one, for example a script that runs it under callgrind.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "e2e/kubernetes/bench/bench_server.h"
#include "e2e/kubernetes/bench/fake_agents.h"
#include "e2e/kubernetes/bench/fake_cluster.h"
#include "e2e/kubernetes/bench/fake_kubelets.h"
#include "e2e/kubernetes/bench/operator_run.h"
#include "e2e/kubernetes/bench/processes.h"
#include "e2e/kubernetes/bench/shape.h"

namespace kubernetes_bench {
namespace {

using base::Status;
using nlohmann::json;

// The same for small launches, so that the difference of two is that of their pods alone.
constexpr int kNodesMin = 100;

// A cluster of its own for each shape.
class Launch {
 public:
  Launch(const kube::Clock& clock, const std::string& folder)
      : clock_{clock}, server_{clock, folder} {}

  Status prepare(int nodes) {
    if (Status s = server_.start(); !s.ok()) return s;
    if (Status s = make_nodes(server_.api(), nodes); !s.ok()) return s;
    if (Status s = server_.make_namespace(kGang); !s.ok()) return s;
    return make_objects(server_.api(), nodes);
  }

  // Prints one line.
  Status measure(const Shape& shape, int nodes, const Options& options) {
    auto run = OperatorRun::start(options, clock_);
    if (!run.ok()) return run.error();
    const auto ready = [&] {
      return run->is_ready() && agents_.ready_nodes() == static_cast<std::size_t>(nodes);
    };
    if (Status s = server_.api().wait_until("operator and agents are ready", ready); !s.ok()) {
      return s;
    }
    // The start of the operator and the agents' first reports are not part of a launch.
    server_.wait_until_quiet();
    server_.server().clear_request_log();
    const auto metrics_before = run->metrics();
    const ThreadTimes before = thread_times(run->pid());
    if (Status s = server_.api().create_all(gang_jobs_path(kGang), jobs(shape)); !s.ok()) return s;
    const auto all_run = [&] {
      return kubelets_.running() == static_cast<std::size_t>(shape.pods());
    };
    if (Status s = server_.api().wait_until("all pods run", all_run); !s.ok()) return s;
    // Consequences of the last pod, such as its job's status, are part of it.
    server_.wait_until_quiet();
    const ThreadTimes after = thread_times(run->pid());
    const auto metrics_after = run->metrics();
    report(shape, before, after);
    if (metrics_before.ok() && metrics_after.ok()) {
      const json grown = OperatorRun::growth(*metrics_before, *metrics_after);
      const double count = grown.value("kubegang_operator_step_seconds_count", 0.0);
      std::printf("           %.0f steps", count);
    }
    for (const auto& [kind, count] : server_.server().request_counts()) {
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

  const kube::Clock& clock_;
  BenchServer server_;
  FakeKubelets kubelets_{server_.transport(), clock_};
  FakeAgents agents_{server_.transport(), clock_, kCoresPerNode};
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
  return run_measurement("operator_launch_bench",
                         [&](const Options& options) { return run(shapes, options); });
}

}  // namespace
}  // namespace kubernetes_bench

int main(int argc, char** argv) {
  return kubernetes_bench::run_program(argc, argv);
}
