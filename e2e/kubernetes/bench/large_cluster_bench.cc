// Measures a large cluster with few jobs, and what it costs to look at many jobs:
//
// 1. the operator beside other nodes and pods: CPU time and memory until it is ready, CPU time of a
//    minute in which other pods start and end all the time
// 2. `kubectl gang queue`: one call, with what it asks for
//
//   build/bin/large_cluster_bench [pods NODES PODS PER_SECOND] [queue NODES JOBS] [up NODES JOBS]
//       default: pods 10000 50000 100 queue 5000 20000
//
// "up" measures nothing: it prints a kubeconfig when jobs of two nodes run in turns on all nodes
// and the others wait, and holds that cluster until its standard input ends.
//
// Against the in-memory API server (bench_server.h). OPERATOR=PROGRAM measures another operator.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "e2e/devcluster/apply.h"
#include "e2e/kubernetes/bench/bench_server.h"
#include "e2e/kubernetes/bench/fake_agents.h"
#include "e2e/kubernetes/bench/fake_cluster.h"
#include "e2e/kubernetes/bench/fake_kubelets.h"
#include "e2e/kubernetes/bench/operator_run.h"
#include "e2e/kubernetes/bench/processes.h"
#include "e2e/kubernetes/bench/shape.h"
#include "kube/api/time_format.h"

namespace kubernetes_bench {
namespace {

using base::Status;
using kube::Method;
using nlohmann::json;
using std::chrono::seconds;

constexpr const char* kOthers = "others";
constexpr seconds kMeasured{60};
constexpr int kQueueCalls = 5;

double seconds_of(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Returns the CPU time of this process, which is the server, or of its children that have ended.
double cpu_seconds_of(int whom) {
  rusage spent{};
  ::getrusage(whom, &spent);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(spent.ru_utime) + of(spent.ru_stime);
}

// Returns a pod as a Deployment makes it, on the node that its scheduler has chosen.
json pod_of_others(int number, int nodes) {
  json owner{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"},
             {"name", "web-7d4b9c6f5"}, {"uid", "6d1f0a52-6c1e-4bb5-9a44-0a5f2c7d9e11"},
             {"controller", true},      {"blockOwnerDeletion", true}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", "web-7d4b9c6f5-" + std::to_string(number)},
            {"namespace", kOthers},
            {"labels", {{"app", "web"}, {"pod-template-hash", "7d4b9c6f5"}}},
            {"ownerReferences", {std::move(owner)}}}},
          {"spec",
           {{"nodeName", "k" + std::to_string(number % nodes + 1)},
            {"containers", {container({{"cpu", "500m"}, {"memory", "256Mi"}})}}}}};
}

// Returns a job that runs, or one that waits, as the operator has written it.
json status_of_job(int number, int nodes, const std::string& now) {
  const bool runs = number < nodes;
  json status{{"observedGeneration", 1},
              {"jobID", number + 1},
              {"state", runs ? "Running" : "Pending"},
              {"partition", kPartition},
              {"priority", 4294901759 - number},
              {"submitTime", now},
              {"eligibleTime", now},
              {"conditions",
               {{{"type", "Accepted"},
                 {"status", "True"},
                 {"reason", "Accepted"},
                 {"message", "the job is in the queue"},
                 {"observedGeneration", 1},
                 {"lastTransitionTime", now}}}}};
  if (!runs) {
    status["reason"] = "Priority";
    return status;
  }
  const std::string node = "k" + std::to_string(number + 1);
  const json share{{"cores", "0-31"}, {"cpus", 32}, {"hostlist", node}, {"tasks", 1}};
  status["allocation"] = {{"cpus", 32}, {"hostlist", node}, {"nodes", 1}, {"shares", {share}}};
  status["startTime"] = now;
  status["starts"] = 1;
  status["term"] = 1;
  status["runTime"] = {{"asOf", now}, {"elapsed", "0s"}};
  return status;
}

class LargeCluster {
 public:
  LargeCluster(const kube::Clock& clock, const Options& options)
      : clock_{clock}, options_{options}, server_{clock, options.state} {}

  Status prepare(int nodes) {
    nodes_ = nodes;
    if (Status s = server_.start(); !s.ok()) return s;
    if (Status s = make_nodes(server_.api(), nodes); !s.ok()) return s;
    for (const char* name : {kOthers, kGang}) {
      if (Status s = server_.make_namespace(name); !s.ok()) return s;
    }
    return make_objects(server_.api(), nodes);
  }

  // `per_second` pods start and as many end, on a cluster that has `pods` of them.
  Status measure_operator(int pods, int per_second) {
    for (; pods_ < pods; ++pods_) {
      const json pod = pod_of_others(pods_, nodes_);
      if (Status s = call(Method::kPost, pods_path(kOthers), pod); !s.ok()) return s;
    }
    const auto all_run = [&] { return kubelets_.running() == static_cast<std::size_t>(pods); };
    if (Status s = server_.api().wait_until("all pods run", all_run); !s.ok()) return s;
    server_.wait_until_quiet();
    auto run = OperatorRun::start(options_, clock_);
    if (!run.ok()) return run.error();
    if (Status s = server_.api().wait_until("operator is ready", [&] { return run->is_ready(); });
        !s.ok()) {
      return s;
    }
    server_.wait_until_quiet();
    std::printf("operator, %d nodes, %d pods of others\n", nodes_, pods);
    report("until it is ready", {}, run->pid());
    ThreadTimes before = thread_times(run->pid());
    std::this_thread::sleep_for(kMeasured);
    report("an idle minute", before, run->pid());
    before = thread_times(run->pid());
    const base::Duration began = clock_.monotonic();
    int lives = 0;
    for (base::Duration spent{0}; spent < kMeasured; spent = clock_.monotonic() - began) {
      for (; lives < static_cast<int>(seconds_of(spent) * per_second); ++lives) {
        if (Status s = one_comes_and_one_goes(pods); !s.ok()) return s;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    const std::string what = "a minute, " + std::to_string(lives) + " start and end";
    report(what.c_str(), before, run->pid());
    return {};
  }

  Status measure_queue(int jobs) {
    const std::string now = kube::format_time(clock_.wall());
    for (int i = 0; i < jobs; ++i) {
      const std::string name = "j" + std::to_string(i);
      const json job = gang_job(kGang, name,
                                {{"partitions", {kPartition}},
                                 {"resources", {{"tasks", 1}, {"cpusPerTask", kCoresPerNode}}}});
      if (Status s = call(Method::kPost, gang_jobs_path(kGang), job); !s.ok()) return s;
      const json status{{"status", status_of_job(i, nodes_, now)}};
      const std::string path = gang_jobs_path(kGang) + "/" + name + "/status";
      if (Status s = call(Method::kPatch, path, status); !s.ok()) return s;
    }
    std::printf("kubectl gang queue, %d nodes, %d jobs\n", nodes_, jobs);
    const std::string program =
        std::filesystem::path{options_.operator_program}.parent_path() / "kubectl-gang";
    const std::string command = program + " queue -A --kubeconfig " + server_.admin_kubeconfig() +
                                " > " + options_.state + "/queue.txt";
    for (int i = 0; i < kQueueCalls; ++i) {
      server_.server().clear_request_log();
      const base::Duration began = clock_.monotonic();
      const double cpu_before = cpu_seconds_of(RUSAGE_CHILDREN);
      const double server_before = cpu_seconds_of(RUSAGE_SELF);
      if (std::system(command.c_str()) != 0) {
        return base::Error{base::Code::kInternal, "kubectl-gang queue failed"};
      }
      std::printf("  %-34s %8.3f s CPU of %.3f s, the server's %.3f s;", "one call",
                  cpu_seconds_of(RUSAGE_CHILDREN) - cpu_before,
                  seconds_of(clock_.monotonic() - began),
                  cpu_seconds_of(RUSAGE_SELF) - server_before);
      for (const auto& [kind, count] : server_.server().request_counts()) {
        std::printf(" %s %s=%ld", kind.verb.c_str(), kind.resource.c_str(),
                    static_cast<long>(count));
      }
      std::printf("\n");
    }
    return {};
  }

  // Two jobs take turns on each core; each has two nodes.
  Status hold(int jobs) {
    FakeAgents agents{server_.transport(), clock_, kCoresPerNode};
    if (Status s = allow_turns(server_.api(), true); !s.ok()) return s;
    auto run = OperatorRun::start(options_, clock_);
    if (!run.ok()) return run.error();
    const auto is_ready = [&] {
      return run->is_ready() && agents.ready_nodes() == static_cast<std::size_t>(nodes_);
    };
    if (Status s = server_.api().wait_until("operator and agents are ready", is_ready); !s.ok()) {
      return s;
    }
    std::vector<json> objects;
    for (int i = 0; i < jobs; ++i) {
      const std::string limit = std::to_string(30 + i % 600) + "m";
      objects.push_back(gang_job(kGang, "train-model-" + std::to_string(i),
                                 {{"partitions", {kPartition}},
                                  {"resources", {{"tasks", 2}, {"cpusPerTask", kCoresPerNode}}},
                                  {"schedule", {{"timeLimit", limit}}}}));
    }
    if (Status s = server_.api().create_all(gang_jobs_path(kGang), objects); !s.ok()) return s;
    const std::size_t pods =
        std::min(2 * static_cast<std::size_t>(jobs), 2 * static_cast<std::size_t>(nodes_));
    const auto all_run = [&] { return kubelets_.running() == pods; };
    if (Status s = server_.api().wait_until("all nodes have jobs", all_run); !s.ok()) return s;
    std::cout << "kubeconfig: " << server_.admin_kubeconfig() << "\noperator: " << run->pid()
              << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
    }
    return {};
  }

 private:
  // Prints the CPU time of all threads, and of each that took a part that shows.
  static void report(const char* what, const ThreadTimes& before, pid_t pid) {
    constexpr double kShows = 0.02;  // seconds
    double all = 0;
    std::string parts;
    for (const auto& [name, now] : thread_times(pid)) {
      const auto then = before.find(name);
      const auto nanoseconds = now - (then == before.end() ? 0 : then->second);
      const double spent = 1e-9 * static_cast<double>(nanoseconds);
      all += spent;
      char part[64] = "";
      std::snprintf(part, sizeof part, " %s %.2f", name.c_str(), spent);
      if (spent >= kShows) parts += part;
    }
    std::printf("  %-34s %8.3f s CPU:%s  %.1f MiB now, %.1f MiB at most\n", what, all,
                parts.c_str(), rss_mebibytes(pid), peak_rss_mebibytes(pid));
    std::fflush(stdout);
  }

  Status call(Method method, const std::string& path, const json& body) {
    return devcluster::call_api(server_.transport(), method, path, body).status();
  }

  // The oldest goes.
  Status one_comes_and_one_goes(int pods) {
    const json pod = pod_of_others(pods_, nodes_);
    if (Status s = call(Method::kPost, pods_path(kOthers), pod); !s.ok()) return s;
    const std::string oldest = "/web-7d4b9c6f5-" + std::to_string(pods_++ - pods);
    return call(Method::kDelete, pods_path(kOthers) + oldest, {{"gracePeriodSeconds", 0}});
  }

  const kube::Clock& clock_;
  const Options& options_;
  BenchServer server_;
  FakeKubelets kubelets_{server_.transport(), clock_};
  int nodes_ = 0;
  int pods_ = 0;  // that were ever made
};

// "pods" with three numbers, or one of the others with two.
struct Measurement {
  std::string what;
  int nodes = 0;
  int count = 0;  // of pods or jobs
  int per_second = 0;
};

// Returns nullopt if the words are not a list of measurements.
std::optional<std::vector<Measurement>> parse(const std::vector<std::string>& words) {
  std::vector<Measurement> out;
  for (std::size_t i = 0; i < words.size();) {
    Measurement one{.what = words[i]};
    const bool is_of_pods = one.what == "pods";
    if (!is_of_pods && one.what != "queue" && one.what != "up") return std::nullopt;
    ++i;
    for (int* number : {&one.nodes, &one.count, &one.per_second}) {
      if (number == &one.per_second && !is_of_pods) continue;
      *number = i < words.size() ? std::atoi(words[i++].c_str()) : 0;
      if (*number < 1) return std::nullopt;
    }
    out.push_back(one);
  }
  return out;
}

// A cluster of its own for each.
Status run(const std::vector<Measurement>& measurements, const Options& options) {
  const kube::SystemClock clock;
  for (const Measurement& one : measurements) {
    LargeCluster cluster{clock, options};
    if (Status s = cluster.prepare(one.nodes); !s.ok()) return s;
    const Status done = one.what == "pods"    ? cluster.measure_operator(one.count, one.per_second)
                        : one.what == "queue" ? cluster.measure_queue(one.count)
                                              : cluster.hold(one.count);
    if (!done.ok()) return done;
  }
  return {};
}

int run_program(int argc, char** argv) {
  std::vector<std::string> words{argv + 1, argv + argc};
  if (words.empty()) words = {"pods", "10000", "50000", "100", "queue", "5000", "20000"};
  const auto measurements = parse(words);
  if (!measurements) {
    std::fprintf(stderr,
                 "usage: %s [pods NODES PODS PER_SECOND] [queue NODES JOBS] [up NODES JOBS]\n",
                 argv[0]);
    return 2;
  }
  return run_measurement("large_cluster_bench",
                         [&](const Options& options) { return run(*measurements, options); });
}

}  // namespace
}  // namespace kubernetes_bench

int main(int argc, char** argv) {
  return kubernetes_bench::run_program(argc, argv);
}
