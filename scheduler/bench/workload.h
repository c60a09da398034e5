// The parts of the benchmarks: clusters of equal or of labeled nodes, jobs, a scheduler with the
// clock of a benchmark, and the measuring of one piece of work.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/replay/replay.h"
#include "scheduler/scheduler.h"

namespace bench {

inline constexpr int kCoresPerNode = 16;

struct Setup {
  int nodes = 0;
  sched::Configuration configuration;
  bool labelled = false;          // nodes as Kubernetes has them: see labelled_node()
  std::optional<int> pods_max{};  // of each node
  sched::Devices devices{};       // likewise
};

inline std::string node_name(int index) {
  return "n" + std::to_string(index);
}

inline sched::NodeSpec node(int index) {
  sched::NodeSpec spec;
  spec.name = node_name(index);
  spec.cores_per_socket = spec.cpus = kCoresPerNode;
  spec.memory = sched::MemoryMiB{64'000};
  return spec;
}

// Each node of Kubernetes has labels, one of them with its own name, and what its other pods
// request is not free for jobs: a tenth of the nodes has another size.
inline sched::NodeSpec labelled_node(int index) {
  sched::NodeSpec spec = node(index);
  spec.features = {"kubernetes.io/arch=amd64", "kubernetes.io/hostname=" + spec.name,
                   "kubernetes.io/os=linux"};
  spec.pods_max = 110;
  if (index % 10 == 9) spec.memory = sched::MemoryMiB{128'000};
  return spec;
}

inline sched::PartitionConfig partition(const std::string& name,
                                        sched::OverSubscribe over = sched::OverSubscribe::kNo,
                                        int share = 1, std::uint16_t tier = 1) {
  sched::PartitionConfig config;
  config.name = name;
  config.over_subscribe = over;
  config.max_share = share;
  config.priority_tier = tier;
  return config;
}

// Returns all partitions over all nodes; the first is the default one.
inline Setup setup(int nodes, sched::SelectType select,
                   std::vector<sched::PartitionConfig> partitions) {
  Setup made{.nodes = nodes, .configuration = {}};
  sched::ClusterParameters& cluster = made.configuration.cluster;
  cluster.select = select;
  cluster.memory = false;
  cluster.scheduler = sched::SchedulerType::kBuiltin;
  partitions.front().is_default = true;
  for (sched::PartitionConfig& config : partitions) {
    for (int i = 0; i < nodes; ++i) config.nodes.push_back(node_name(i));
  }
  made.configuration.partitions = std::move(partitions);
  return made;
}

// Returns the same on nodes as Kubernetes has them, where jobs get memory: 1,000 MiB for each CPU.
inline Setup on_labelled_nodes(Setup made) {
  made.labelled = true;
  made.configuration.cluster.memory = true;
  made.configuration.cluster.default_memory.per_cpu = sched::MemoryMiB{1000};
  return made;
}

inline sched::JobRequest nodes_job(int count) {
  sched::JobRequest request;
  request.min_nodes = count;
  request.max_nodes = count;
  request.nodes_given = true;
  return request;
}

inline sched::JobRequest tasks_job(int count) {
  sched::JobRequest request;
  request.tasks = count;
  return request;
}

// The timing: told ticks and passes, as slurmctld was measured, or the scheduler's own.
enum class Timing { kTold, kOwn };

class World {
 public:
  World(const Setup& setup, Timing timing)
      : timing_{timing},
        configuration_{setup.configuration},
        scheduler_{timing == Timing::kTold ? sched::make_replay()
                                           : sched::Scheduler{sched::Options{}}} {
    if (timing == Timing::kTold) configuration_.cluster.timetable_lead = base::Duration{0};
    configure();
    for (int i = 0; i < setup.nodes; ++i) {
      sched::NodeSpec spec = setup.labelled ? labelled_node(i) : node(i);
      if (setup.pods_max) spec.pods_max = setup.pods_max;
      spec.devices = setup.devices;
      step(sched::NodeUpdate{std::move(spec)});
    }
  }

  void step(const sched::Event& event) { scheduler_.step(now_, event); }
  void advance(base::Duration by) { now_ += by; }
  // Decisions since the last call. With told timing what started is ready at once.
  std::size_t take() { return scheduler_.take_decisions().size(); }
  void pass() { step(sched::Pass{.main = true, .backfill = false}); }

  // Starts all jobs that fit. With own timing a pass over the whole queue comes once a minute.
  void start_waiting() {
    if (timing_ == Timing::kTold) {
      pass();
    } else {
      advance(std::chrono::minutes{1});
    }
    settle();
  }

  // Own timing: everything that is due now, as the operator does it: wakes, decisions out, JobReady
  // of what started, new timetables. Returns how many jobs started.
  std::size_t settle() {
    std::size_t started = 0;
    while (true) {
      for (const sched::Decision& decision : scheduler_.take_decisions()) {
        if (const auto* start = std::get_if<sched::Start>(&decision)) {
          ++started;
          step(sched::JobReady{start->job});
        }
      }
      if (!wake()) break;
    }
    plans_ += scheduler_.take_plans(now_).size();
    benchmark::DoNotOptimize(scheduler_.take_decisions());
    return started;
  }

  // Makes one step of what is due now; false if nothing is.
  bool wake() {
    const std::optional<base::Instant> due = scheduler_.next_due();
    if (!due || *due > now_) return false;
    step(sched::Wake{});
    plans_ += scheduler_.take_plans(now_).size();
    return true;
  }

  sched::JobId submit(sched::JobRequest request) {
    request.id = sched::JobId{++last_id_};
    request.submit_time = now_;
    const sched::JobId id = request.id;
    step(sched::Submit{std::move(request)});
    return id;
  }
  void set_state(sched::PartitionState state) {
    for (sched::PartitionConfig& config : configuration_.partitions) config.state = state;
    configure();
  }
  void configure() {
    step(sched::Configure{std::make_shared<const sched::Configuration>(configuration_)});
  }
  std::size_t plans() const { return plans_; }
  base::Instant now() const { return now_; }
  sched::Scheduler& scheduler() { return scheduler_; }
  const sched::Scheduler& scheduler() const { return scheduler_; }

 private:
  const Timing timing_;
  sched::Configuration configuration_;
  sched::Scheduler scheduler_;
  // A boundary of no slice, so that nothing happens by chance at the first instant.
  base::Instant now_{base::Duration{1'000'001}};
  std::int64_t last_id_ = 0;
  std::size_t plans_ = 0;
};

// Measures pieces of work of one benchmark run: the wall clock is what is reported as real_time;
// the thread's CPU time of the same pieces stands beside it as `cpu_us`, since it is not disturbed
// by what else the machine does.
class Stopwatch {
 public:
  explicit Stopwatch(benchmark::State& state) : state_{state} {}
  ~Stopwatch() {
    state_.counters["cpu_us"] =
        benchmark::Counter(cpu_seconds_ * 1e6, benchmark::Counter::kAvgIterations);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Not inlined, so that callgrind can count this alone: --toggle-collect='*Stopwatch*measure*'.
  template <typename Work>
  [[gnu::noinline]] void measure(const Work& work) {
    const double cpu_before = cpu_now();
    const auto begin = std::chrono::steady_clock::now();
    work();
    const auto end = std::chrono::steady_clock::now();
    cpu_seconds_ += cpu_now() - cpu_before;
    state_.SetIterationTime(std::chrono::duration<double>(end - begin).count());
  }
  // Returns the thread's CPU time in seconds.
  static double cpu_now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }

 private:
  benchmark::State& state_;
  double cpu_seconds_ = 0;
};

// Measures a pass that starts as many jobs as the first argument says. They are submitted while the
// partition is down, so that the pass finds all of them at once.
inline void start_all(benchmark::State& state, const Setup& made,
                      const sched::JobRequest& request) {
  const auto jobs = static_cast<int>(state.range(0));
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    World world{made, Timing::kTold};
    world.set_state(sched::PartitionState::kDown);
    for (int i = 0; i < jobs; ++i) world.submit(request);
    world.take();
    world.set_state(sched::PartitionState::kUp);
    std::size_t decisions = 0;
    stopwatch.measure([&] {
      world.pass();
      decisions = world.take();
    });
    if (decisions < static_cast<std::size_t>(jobs)) state.SkipWithError("not all jobs started");
  }
  state.SetItemsProcessed(state.iterations() * jobs);
}

}  // namespace bench
