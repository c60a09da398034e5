// The cost of the control loop beside jobs that wait: a new leader, an idle minute, the lives of 50
// other jobs; and, last, jobs whose templates select nodes, on many nodes. CPU time of
// ControlLoop::step alone, in virtual time, against an API server that answers at once; the writes
// are counted, since each costs its encoding and a request as well.
//
//   build/bin/operator_bench [waiting jobs...]     default: 0 1000 5000 20000
#include <jemalloc/jemalloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/api/codec.h"
#include "kube/testing/manual_clock.h"
#include "operator/bench/instant_server.h"
#include "operator/loop/control_loop.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// Enough that a step which looked at all nodes would show.
constexpr int kNodes = 100;
constexpr int kLives = 50;
constexpr base::Duration kTick = std::chrono::milliseconds{1};  // between two steps, at least

// Returns the CPU time of this thread, which is the only one.
double cpu_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

// Returns what is in use of the heap.
double memory_mb() {
  std::uint64_t epoch = 1;  // a write of it makes jemalloc count
  std::size_t bytes = 0, size = sizeof bytes;
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  mallctl("stats.allocated", &bytes, &size, nullptr, 0);
  return static_cast<double>(bytes) / 1e6;
}

// Manifests are written as JSON and decoded as the informers do.
template <typename T>
T object_of(const json& value) {
  auto object = kube::decode<T>(value);
  if (!object.ok()) {
    std::fprintf(stderr, "operator_bench: %s\n", object.error().message.c_str());
    std::exit(1);
  }
  return std::move(*object);
}

// Four digits each, so that their order is that of their numbers.
std::string node_name(int i) {
  return "n" + std::to_string(1000 + i);
}

// A leader and what it leads. The first node is a partition of its own, taken by one job, for which
// all that wait do.
class Bench {
 public:
  explicit Bench(int nodes_count = kNodes) {
    for (int i = 0; i < nodes_count; ++i) put_node(i, i % 3);
    server_.put(object_of<kube::SchedulerConfig>(
        {{"metadata", {{"name", "default"}}},
         {"spec", {{"select", {{"type", "Linear"}, {"memory", false}}}}}}));
    put_partition("narrow", node_name(0));
    put_partition("wide", "n[1001-" + std::to_string(1000 + nodes_count - 1) + "]");
    lead();
    put_job("blocks", "narrow");
    // Until "blocks" runs: from here on every other job of the narrow partition waits.
    run_for(seconds{10});
  }

  // In a zone, with one more label.
  void put_node(int i, int zone, const std::string& more = "x") {
    server_.put(object_of<kube::Node>(
        {{"metadata",
          {{"name", node_name(i)},
           {"labels",
            {{"kubernetes.io/hostname", node_name(i)},
             {"zone", "z" + std::to_string(zone)},
             {"more", more}}}}},
         {"status",
          {{"allocatable", {{"cpu", "8"}, {"memory", "16Gi"}, {"pods", "110"}}},
           {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}));
  }

  // `zone`: the one that its template selects, and then it is held; "" = any, and it is not.
  void put_job(const std::string& name, const std::string& partition,
               const std::string& zone = "") {
    json pod{{"containers", {{{"name", "main"}, {"image", "busybox"}}}}};
    if (!zone.empty()) pod["nodeSelector"] = {{"zone", zone}};
    kube::Job job = object_of<kube::Job>(
        {{"metadata", {{"name", name}, {"namespace", "bench"}, {"generation", 1}}},
         {"spec",
          {{"partitions", {partition}},
           {"resources", {{"nodes", {{"min", 1}}}}},
           {"control", {{"hold", !zone.empty()}}},
           {"template", {{"spec", pod}}}}}});
    job.metadata.uid = "uid-" + name;
    templates_.learn(job.metadata.uid, job.spec.pod_template);  // as the informer does
    server_.put(std::move(job));
  }
  // Held, and waits for as many jobs as `edges` says: those with the numbers before its own.
  void put_dependant(int i, int edges) {
    const json pod{{"containers", {{{"name", "main"}, {"image", "busybox"}}}}};
    const std::string name = "waits-" + std::to_string(i);
    json spec{{"partitions", {"narrow"}},
              {"resources", {{"nodes", {{"min", 1}}}}},
              {"control", {{"hold", true}}},
              {"template", {{"spec", pod}}}};
    for (int before = std::max(0, i - edges); before < i; ++before) {
      // The first job is that which blocks.
      spec["dependency"]["terms"].push_back({{"type", "AfterOK"}, {"jobID", before + 1}});
    }
    kube::Job job = object_of<kube::Job>(
        {{"metadata", {{"name", name}, {"namespace", "bench"}, {"generation", 1}}},
         {"spec", spec}});
    job.metadata.uid = "uid-" + name;
    templates_.learn(job.metadata.uid, job.spec.pod_template);
    server_.put(std::move(job));
  }
  void remove_job(const std::string& name) {
    templates_.forget("uid-" + name);
    server_.remove<kube::Job>({"bench", name});
  }

  // Tasks 0 to 99,999, for a node each; what its user asks for is in `control`.
  void put_array(const json& control) {
    const std::string name = "sweep";
    const json pod{{"containers", {{{"name", "main"}, {"image", "busybox"}}}}};
    kube::Job job = object_of<kube::Job>({{"metadata", {{"name", name}, {"namespace", "bench"}}},
                                          {"spec",
                                           {{"partitions", {"wide"}},
                                            {"resources", {{"nodes", {{"min", 1}}}}},
                                            {"array", {{"tasks", "0-99999"}}},
                                            {"control", control},
                                            {"template", {{"spec", pod}}}}}});
    job.metadata.uid = "uid-" + name;
    job.metadata.generation = ++array_generation_;
    if (array_generation_ > 1) job.status = server_.job({"bench", name}).status;
    templates_.learn(job.metadata.uid, job.spec.pod_template);
    server_.put(std::move(job));
  }

  // Runs a new leader, until it has nothing left to do at once. Returns its CPU time.
  double lead() {
    // The last leader's news is not the next one's.
    (void)inbox_.take();
    server_.list();
    loop_ = std::make_unique<ControlLoop>(clock_, inbox_, server_, templates_, LoopHooks{});
    loop_->lead(transitions_++);
    return run_for(base::Duration{0});
  }

  // Steps as the program does, without its rests. Returns the CPU time.
  double run_for(base::Duration duration) {
    const base::Instant end = clock_.wall() + duration;
    const double began = cpu_seconds();
    for (;;) {
      base::Instant due = loop_->step();
      while (server_.take_arrived()) due = loop_->step();
      // Time jumps to the next instant at which anything is due.
      const base::Instant next = std::max(due, clock_.wall() + kTick);
      if (next > end) break;
      clock_.advance(next - clock_.wall());
    }
    if (end > clock_.wall()) clock_.advance(end - clock_.wall());
    return cpu_seconds() - began;
  }

  InstantServer& server() { return server_; }
  // Returns what the operator and its scheduler have. An object that the server shares with them
  // counts as the operator's.
  double memory_without_server_mb() {
    server_.drop();
    return memory_mb();
  }
  const LoopCounters& counters() const { return loop_->counters(); }

 private:
  void put_partition(const std::string& name, const std::string& nodes) {
    server_.put(object_of<kube::Partition>(
        {{"metadata", {{"name", name}}}, {"spec", {{"nodes", {{"hostlist", nodes}}}}}}));
  }

  kube::ManualClock clock_;
  kube::Waker waker_;
  Inbox inbox_{waker_};
  TemplateBook templates_;
  InstantServer server_{inbox_, clock_};
  std::unique_ptr<ControlLoop> loop_;
  std::int32_t transitions_ = 0;
  std::int64_t array_generation_ = 0;
};

std::string text(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += " " + name + "=" + std::to_string(count);
  return text;
}

void report(const char* what, double cpu, Bench& bench) {
  std::printf("  %-34s %8.3f s CPU %s\n", what, cpu, text(bench.server().take_counts()).c_str());
  std::fflush(stdout);
}

// In the order in which a cluster would see it: jobs come, wait and are shown; others live beside
// them; the leader changes.
void measure(int waiting) {
  std::printf("%d waiting jobs\n", waiting);
  Bench bench;
  (void)bench.server().take_counts();
  for (int i = 0; i < waiting; ++i) bench.put_job("waits-" + std::to_string(i), "narrow");
  report("they are submitted", bench.run_for(seconds{1}), bench);
  report("the twenty minutes after that", bench.run_for(minutes{20}), bench);
  report("an idle minute", bench.run_for(minutes{1}), bench);
  for (int i = 0; i < kLives; ++i) bench.put_job("lives-" + std::to_string(i), "wide");
  double cpu = bench.run_for(seconds{30});
  for (int i = 0; i < kLives; ++i) bench.remove_job("lives-" + std::to_string(i));
  cpu += bench.run_for(seconds{30});
  report("50 lives of others", cpu, bench);
  report("a new leader", bench.lead(), bench);
  report("its first minute", bench.run_for(minutes{1}), bench);
  report("the twenty minutes after that", bench.run_for(minutes{20}), bench);
}

// 2,000 nodes in three zones, and jobs that select one of them.
void measure_selectors(int waiting) {
  constexpr int kManyNodes = 2'000;
  std::printf("%d waiting jobs that select a third of %d nodes\n", waiting, kManyNodes);
  Bench bench{kManyNodes};
  (void)bench.server().take_counts();
  const double before = memory_mb();
  for (int i = 0; i < waiting; ++i) bench.put_job("waits-" + std::to_string(i), "wide", "z1");
  report("they are submitted", bench.run_for(seconds{1}), bench);
  std::printf("  %-34s %8.0f MB, %.0f MB before\n", "memory", memory_mb(), before);
  bench.put_node(7, 7 % 3, "y");
  report("a label that none selects", bench.run_for(seconds{1}), bench);
  bench.put_node(7, 2);
  report("a node that changes its zone", bench.run_for(seconds{1}), bench);
}

// Between two minutes, and when one is over: the run times of all jobs are written then.
constexpr base::Duration kBetweenMinutes = minutes{3} + seconds{30};
constexpr base::Duration kAtAMinute = minutes{3};

// Returns what operator and scheduler have beside a cluster of `nodes_count` nodes, so long after
// `put` has put what it does into it.
double memory_beside(int nodes_count, void (*put)(Bench&), base::Duration after) {
  const double before = memory_mb();
  Bench bench{nodes_count};
  put(bench);
  (void)bench.run_for(after);
  return bench.memory_without_server_mb() - before;
}

void measure_array_memory() {
  const auto beside = [](void (*put)(Bench&), base::Duration after = kBetweenMinutes) {
    return memory_beside(1'001, put, after);
  };
  const auto put_array = [](Bench& bench) { bench.put_array({{"hold", false}}); };
  const double idle = beside([](Bench&) {});
  const double array = beside(put_array);
  const double written = beside(put_array, kAtAMinute);
  const double jobs = beside([](Bench& bench) {
    for (int i = 0; i < 1'000; ++i) bench.put_job("runs-" + std::to_string(i), "wide");
  });
  std::printf("memory of operator and scheduler beside 1000 nodes, which take %.2f MB\n", idle);
  std::printf("  %-34s %8.2f MB\n", "100000 tasks of which 1000 run", array - idle);
  std::printf("  %-34s %8.2f MB\n", "the same while run times are written", written - idle);
  std::printf("  %-34s %8.2f MB\n", "1000 jobs that run", jobs - idle);
  std::fflush(stdout);
}

void measure_graph_memory() {
  constexpr int kJobs = 20'000;
  constexpr int kEdges = 4;
  const auto beside = [](void (*put)(Bench&)) { return memory_beside(2, put, kBetweenMinutes); };
  const double none = beside([](Bench& bench) {
    for (int i = 1; i <= kJobs; ++i) bench.put_dependant(i, 0);
  });
  const double graph = beside([](Bench& bench) {
    for (int i = 1; i <= kJobs; ++i) bench.put_dependant(i, kEdges);
  });
  std::printf("a graph of %d jobs\n", kJobs);
  std::printf("  %-34s %8.0f bytes\n", "each edge, of operator and scheduler",
              (graph - none) * 1e6 / (kJobs * kEdges));
  std::printf("  %-34s %8.0f bytes\n", "each job that waits", none * 1e6 / kJobs);
  std::fflush(stdout);
}

// One array of 100,000 tasks, of which as many run as may: 1,000. A request of its user for all of
// them is one write of the Job.
void measure_array() {
  constexpr int kArrayNodes = 1'000;
  std::printf("an array of 100000 tasks on %d nodes\n", kArrayNodes);
  Bench bench{kArrayNodes + 1};
  (void)bench.server().take_counts();
  const double before = memory_mb();
  const auto measured = [&](const char* what, const json& control, base::Duration duration) {
    if (!control.is_null()) bench.put_array(control);
    report(what, bench.run_for(duration), bench);
    std::printf("  %-34s %8.1f MB more than before the array\n", "memory", memory_mb() - before);
  };
  measured("it is submitted, held", {{"hold", true}}, seconds{0});
  measured("it is released, without its starts", {{"hold", false}}, seconds{0});
  measured("its first minute", nullptr, minutes{1});
  measured("it is held", {{"hold", true}}, seconds{0});
  measured("an idle minute", nullptr, minutes{1});
  measured("200 tasks get another limit",
           {{"hold", true}, {"tasks", {{{"tasks", "400-599"}, {"timeLimit", "2h"}}}}}, seconds{0});
  report("a new leader", bench.lead(), bench);
  measured("it is canceled", {{"hold", true}, {"cancel", true}}, seconds{0});
  measured("the minute after that", nullptr, minutes{1});
}

}  // namespace
}  // namespace control

int main(int argc, char** argv) {
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) counts = {0, 1000, 5000, 20'000};
  control::measure_array_memory();
  control::measure_graph_memory();
  control::measure_array();
  for (const int count : counts) control::measure(count);
  control::measure_selectors(6'000);
  return 0;
}
