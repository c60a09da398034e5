// The scheduler's speed, on the work that slurmctld was timed with. Events in and decisions out are
// inside the measured time; building credentials, saving state and messages to nodes, which slurmctld's
// own figures include, are not: say so wherever the two stand side by side.
//
// real_time = one pass, tick or event; items_per_second = starts per second.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"

namespace {

using namespace sched;  // NOLINT: a program, and everything in it is about the scheduler

constexpr int kCoresPerNode = 16;

struct Setup {
  int nodes = 0;
  Configuration configuration;
};

PartitionConfig partition(const std::string& name, OverSubscribe over = OverSubscribe::kNo,
                          int share = 1, std::uint16_t tier = 1) {
  PartitionConfig config;
  config.name = name;
  config.over_subscribe = over;
  config.max_share = share;
  config.priority_tier = tier;
  return config;
}

Setup setup(int nodes, SelectType select, std::vector<PartitionConfig> partitions) {
  Setup made{.nodes = nodes, .configuration = {}};
  ClusterParameters& cluster = made.configuration.cluster;
  cluster.select = select;
  cluster.memory = false;
  cluster.timetable_lead = base::Duration{0};
  cluster.scheduler = SchedulerType::kBuiltin;
  partitions.front().is_default = true;
  for (PartitionConfig& config : partitions) {
    for (int i = 0; i < nodes; ++i) config.nodes.push_back("n" + std::to_string(i));
  }
  made.configuration.partitions = std::move(partitions);
  return made;
}

// A scheduler with told timing, and the clock of a benchmark.
class Bench {
 public:
  explicit Bench(const Setup& setup) : configuration_{setup.configuration}, scheduler_{{.told_timing = true}} {
    configure();
    for (int i = 0; i < setup.nodes; ++i) {
      NodeSpec spec;
      spec.name = "n" + std::to_string(i);
      spec.cores_per_socket = spec.cpus = kCoresPerNode;
      spec.memory = MemoryMiB{64'000};
      step(NodeUpdate{spec});
    }
  }

  void step(const Event& event) { scheduler_.step(now_, event); }
  // Decisions of one step; what started is ready at once (told timing).
  std::size_t take() { return scheduler_.take_decisions().size(); }
  void pass() { step(Pass{.main = true, .backfill = false}); }
  void submit(JobRequest request) {
    request.id = JobId{++last_id_};
    request.submit_time = now_;
    step(Submit{std::move(request)});
  }
  void set_state(PartitionState state) {
    for (PartitionConfig& config : configuration_.partitions) config.state = state;
    configure();
  }
  void configure() { step(Configure{std::make_shared<const Configuration>(configuration_)}); }
  std::int64_t last_id() const { return last_id_; }
  Scheduler& scheduler() { return scheduler_; }

  // Seconds that `work` takes.
  template <typename Work>
  static double seconds(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  Configuration configuration_;
  Scheduler scheduler_;
  base::Instant now_{};
  std::int64_t last_id_ = 0;
};

JobRequest nodes_job(int count) {
  JobRequest request;
  request.min_nodes = count;
  request.max_nodes = count;
  request.nodes_given = true;
  return request;
}

JobRequest tasks_job(int count) {
  JobRequest request;
  request.tasks = count;
  return request;
}

void start_all(benchmark::State& state, const Setup& made, const JobRequest& request) {
  const auto jobs = static_cast<int>(state.range(0));
  for (auto _ : state) {
    Bench bench{made};
    bench.set_state(PartitionState::kDown);
    for (int i = 0; i < jobs; ++i) bench.submit(request);
    bench.take();
    bench.set_state(PartitionState::kUp);
    std::size_t decisions = 0;
    state.SetIterationTime(Bench::seconds([&] {
      bench.pass();
      decisions = bench.take();
    }));
    if (decisions < static_cast<std::size_t>(jobs)) state.SkipWithError("not all jobs started");
  }
  state.SetItemsProcessed(state.iterations() * jobs);
}

void linear_start(benchmark::State& state) {
  start_all(state,
            setup(static_cast<int>(state.range(0)), SelectType::kLinear, {partition("p")}),
            nodes_job(1));
}
BENCHMARK(linear_start)->Name("LinearStart")->Arg(1000)->Arg(4000)->Arg(16000)->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void cons_tres_start(benchmark::State& state) {
  start_all(state,
            setup(static_cast<int>(state.range(0)) / 4, SelectType::kConsTres, {partition("p")}),
            tasks_job(1));
}
BENCHMARK(cons_tres_start)->Name("ConsTresStart")->Arg(1000)->Arg(4000)->Arg(16000)
    ->UseManualTime()->Unit(benchmark::kMillisecond);

// A full cluster of 1,000 nodes and so many waiting jobs of 4 CPUs.
std::unique_ptr<Bench> blocked(int waiting) {
  auto bench = std::make_unique<Bench>(setup(1000, SelectType::kConsTres, {partition("p")}));
  for (int i = 0; i < 1000; ++i) bench->submit(tasks_job(kCoresPerNode));
  bench->pass();
  for (int i = 0; i < waiting; ++i) bench->submit(tasks_job(4));
  bench->pass();
  bench->take();
  return bench;
}

void blocked_pass(benchmark::State& state) {
  const auto bench = blocked(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    bench->submit(tasks_job(4));  // so that nothing of the last pass holds
    bench->step(Cancel{JobId{bench->last_id()}});
    bench->configure();
    bench->take();
    state.SetIterationTime(Bench::seconds([&] {
      bench->pass();
      benchmark::DoNotOptimize(bench->take());
    }));
  }
}
BENCHMARK(blocked_pass)->Name("BlockedPass")->Arg(1000)->Arg(4000)->Arg(16000)->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void blocked_pass_unchanged(benchmark::State& state) {
  const auto bench = blocked(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.SetIterationTime(Bench::seconds([&] {
      bench->pass();
      benchmark::DoNotOptimize(bench->take());
    }));
  }
}
BENCHMARK(blocked_pass_unchanged)->Name("BlockedPassUnchanged")->Arg(1000)->Arg(4000)->Arg(16000)
    ->UseManualTime()->Unit(benchmark::kMicrosecond);

void gang_tick(benchmark::State& state) {
  const auto jobs = static_cast<int>(state.range(0));
  Setup made = setup(jobs / 4, SelectType::kConsTres, {partition("p", OverSubscribe::kForce, 4)});
  made.configuration.cluster.gang = true;
  Bench bench{made};
  for (int i = 0; i < jobs; ++i) bench.submit(tasks_job(kCoresPerNode));
  bench.pass();
  bench.take();
  for (auto _ : state) {
    state.SetIterationTime(Bench::seconds([&] {
      bench.step(SliceEnd{});
      benchmark::DoNotOptimize(bench.take());
    }));
  }
}
BENCHMARK(gang_tick)->Name("GangTick")->Arg(1000)->Arg(10000)->Arg(40000)->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// A cluster full of 1-node jobs of tier 1; a tier-2 job of a tenth of the nodes arrives.
void preempt(benchmark::State& state, PreemptMode mode) {
  const auto nodes = static_cast<int>(state.range(0));
  const bool gang = mode == PreemptMode::kSuspend;
  const OverSubscribe over = gang ? OverSubscribe::kForce : OverSubscribe::kNo;
  Setup made = setup(nodes, SelectType::kConsTres,
                     {partition("low", over, 1, 1), partition("high", over, 1, 2)});
  made.configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  made.configuration.cluster.preempt_mode = mode;
  made.configuration.cluster.gang = gang;
  JobRequest low = nodes_job(1);
  low.tasks = kCoresPerNode;
  JobRequest high = nodes_job(nodes / 10);
  high.tasks = nodes / 10 * kCoresPerNode;
  high.partitions = {"high"};
  for (auto _ : state) {
    Bench bench{made};
    for (int i = 0; i < nodes; ++i) bench.submit(low);
    bench.pass();
    bench.take();
    std::size_t decisions = 0;
    state.SetIterationTime(Bench::seconds([&] {
      bench.submit(high);
      bench.pass();
      decisions = bench.take();
    }));
    if (decisions < static_cast<std::size_t>(nodes / 10)) state.SkipWithError("nobody preempted");
  }
}
BENCHMARK_CAPTURE(preempt, cancel, PreemptMode::kCancel)->Name("PreemptCancel")->Arg(1000)
    ->Arg(5000)->Arg(10000)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(preempt, suspend, PreemptMode::kSuspend)->Name("Preempt")->Arg(1000)->Arg(5000)
    ->Arg(10000)->UseManualTime()->Unit(benchmark::kMillisecond);

// So many waiting jobs, half as many running on a tenth as many nodes: one ends, the next starts.
void churn(benchmark::State& state) {
  const auto waiting = static_cast<int>(state.range(0));
  const int nodes = waiting / 10, running = waiting / 2;
  Bench bench{setup(nodes, SelectType::kConsTres, {partition("p")})};
  const JobRequest request = tasks_job(3);  // five on a node
  for (int i = 0; i < running + waiting; ++i) bench.submit(request);
  bench.pass();
  bench.take();
  std::int64_t next = 1;
  for (auto _ : state) {
    state.SetIterationTime(Bench::seconds([&] {
      bench.step(JobGone{JobId{next}});
      bench.pass();
      benchmark::DoNotOptimize(bench.take());
    }));
    ++next;
    bench.submit(request);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(churn)->Name("Churn")->Arg(1000)->Arg(10000)->Arg(100000)->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
