// The scheduler's speed, on the work that slurmctld was timed with. Events in and decisions out are
// inside the measured time; building credentials, saving state and messages to nodes, which
// slurmctld's own figures include, are not: say so wherever the two stand side by side.
//
// real_time = one pass, tick or event, on the wall clock; cpu_us = the same in CPU time of the
// thread; items_per_second = starts per second.
#include <benchmark/benchmark.h>
#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/bench/report.h"
#include "scheduler/bench/workload.h"

namespace bench {
namespace {

using namespace sched;  // NOLINT: a program, and everything in it is about the scheduler

// --- told timing: the work that slurmctld was timed with ---

void linear_start(benchmark::State& state) {
  start_all(state, setup(static_cast<int>(state.range(0)), SelectType::kLinear, {partition("p")}),
            nodes_job(1));
}
void linear_start_labelled(benchmark::State& state) {
  start_all(state,
            on_labelled_nodes(
                setup(static_cast<int>(state.range(0)), SelectType::kLinear, {partition("p")})),
            nodes_job(1));
}
BENCHMARK(linear_start)
    ->Name("LinearStart")
    ->Arg(1000)
    ->Arg(4000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void cons_tres_start(benchmark::State& state) {
  start_all(state,
            setup(static_cast<int>(state.range(0)) / 4, SelectType::kConsTres, {partition("p")}),
            tasks_job(1));
}
void cons_tres_start_labelled(benchmark::State& state) {
  start_all(state,
            on_labelled_nodes(setup(static_cast<int>(state.range(0)) / 4, SelectType::kConsTres,
                                    {partition("p")})),
            tasks_job(1));
}
BENCHMARK(cons_tres_start)
    ->Name("ConsTresStart")
    ->Arg(1000)
    ->Arg(4000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Eight GPUs of a type on each node, and jobs of one each.
void cons_tres_start_gres(benchmark::State& state) {
  const DeviceKind gpu{.name = "gpu", .type = "nvidia-a100-sxm4-80gb"};
  Setup made = setup(static_cast<int>(state.range(0)) / 8, SelectType::kConsTres, {partition("p")});
  made.devices = {{.kind = gpu, .count = 8}};
  JobRequest request = tasks_job(1);
  request.devices = {{.kind = {.name = "gpu", .type = "a100"}, .count = 1}};
  start_all(state, made, request);
}
BENCHMARK(cons_tres_start_gres)
    ->Name("ConsTresStart/gres")
    ->Arg(8000)
    ->Arg(80000)
    ->Arg(800000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK(linear_start_labelled)
    ->Name("LinearStart/labelled")
    ->Arg(1000)
    ->Arg(4000)
    ->Arg(10000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(cons_tres_start_labelled)
    ->Name("ConsTresStart/labelled")
    ->Arg(1000)
    ->Arg(4000)
    ->Arg(10000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Makes a full cluster of 1,000 nodes and `waiting` waiting jobs of 4 CPUs.
std::unique_ptr<World> blocked(int waiting) {
  auto world =
      std::make_unique<World>(setup(1000, SelectType::kConsTres, {partition("p")}), Timing::kTold);
  for (int i = 0; i < 1000; ++i) world->submit(tasks_job(kCoresPerNode));
  world->pass();
  for (int i = 0; i < waiting; ++i) world->submit(tasks_job(4));
  world->pass();
  world->take();
  return world;
}

// A pass over a queue of which nothing can start, as after an event that has nothing to do with it.
void blocked_pass(benchmark::State& state) {
  const auto world = blocked(static_cast<int>(state.range(0)));
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    world->configure();  // so that nothing of the last pass holds
    world->take();
    stopwatch.measure([&] {
      world->pass();
      benchmark::DoNotOptimize(world->take());
    });
  }
}
BENCHMARK(blocked_pass)
    ->Name("BlockedPass")
    ->Arg(1000)
    ->Arg(4000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// The same when nothing has changed since the last pass: it is left out.
void blocked_pass_unchanged(benchmark::State& state) {
  const auto world = blocked(static_cast<int>(state.range(0)));
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    stopwatch.measure([&] {
      world->pass();
      benchmark::DoNotOptimize(world->take());
    });
  }
}
BENCHMARK(blocked_pass_unchanged)
    ->Name("BlockedPassUnchanged")
    ->Arg(1000)
    ->Arg(4000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// --- gang ---

// Makes the jobs stacked four deep on a quarter as many nodes.
Setup stacked_four_deep(int jobs) {
  Setup made = setup(jobs / 4, SelectType::kConsTres, {partition("p", OverSubscribe::kForce, 4)});
  made.configuration.cluster.gang = true;
  return made;
}

// Told timing, so that the tick is really played: with its own timing the scheduler has published
// the rotation ahead and a slice costs it nothing.
void gang_tick(benchmark::State& state) {
  const auto jobs = static_cast<int>(state.range(0));
  World world{stacked_four_deep(jobs), Timing::kTold};
  for (int i = 0; i < jobs; ++i) world.submit(tasks_job(kCoresPerNode));
  world.pass();
  world.take();
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    stopwatch.measure([&] {
      world.step(SliceEnd{});
      benchmark::DoNotOptimize(world.take());
    });
  }
}
BENCHMARK(gang_tick)
    ->Name("GangTick")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// A ring of 100 nodes with four jobs over each pair of neighbors, eight deep: one component of 400
// jobs. All other nodes hold four jobs each, every node a component of its own. One job of the ring
// ends: its successor starts, and run(t) of the ring's nodes is worked out again.
void project(benchmark::State& state) {
  constexpr int kRingNodes = 100;
  const auto nodes = static_cast<int>(state.range(0));
  Setup made = setup(nodes, SelectType::kConsTres, {partition("p", OverSubscribe::kForce, 8)});
  made.configuration.cluster.gang = true;
  World world{made, Timing::kOwn};
  const auto ring_job = [](int first) {
    JobRequest request = nodes_job(2);
    request.tasks = 2 * kCoresPerNode;
    request.required_nodes = {node_name(first), node_name((first + 1) % kRingNodes)};
    return request;
  };
  std::vector<JobId> ring;
  for (int layer = 0; layer < 4; ++layer) {
    for (int i = 0; i < kRingNodes; ++i) ring.push_back(world.submit(ring_job(i)));
  }
  for (int layer = 0; layer < 4; ++layer) {
    for (int i = kRingNodes; i < nodes; ++i) {
      JobRequest request = tasks_job(kCoresPerNode);
      request.required_nodes = {node_name(i)};
      world.submit(request);
    }
  }
  const std::size_t jobs = ring.size() + 4 * static_cast<std::size_t>(nodes - kRingNodes);
  if (world.settle() != jobs) state.SkipWithError("not all jobs started");
  world.advance(std::chrono::seconds{100});  // joins that had to wait have happened
  world.settle();
  Stopwatch stopwatch{state};
  std::size_t at = 0;
  std::size_t plans = 0;
  for (auto _ : state) {
    const std::size_t before = world.plans();
    stopwatch.measure([&] {
      world.step(JobGone{ring[at]});
      world.settle();
    });
    plans += world.plans() - before;
    ring[at] = world.submit(ring_job(static_cast<int>(at) % kRingNodes));
    at = (at + 37) % ring.size();
    world.settle();
    world.advance(std::chrono::seconds{100});
    world.settle();
  }
  state.counters["plans"] =
      benchmark::Counter(static_cast<double>(plans), benchmark::Counter::kAvgIterations);
}
BENCHMARK(project)->Name("Project")->Arg(1000)->Arg(10000)->UseManualTime()->Unit(
    benchmark::kMillisecond);

// --- preemption ---

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
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    World world{made, Timing::kTold};
    for (int i = 0; i < nodes; ++i) world.submit(low);
    world.pass();
    world.take();
    std::size_t decisions = 0;
    stopwatch.measure([&] {
      world.submit(high);
      world.pass();
      decisions = world.take();
    });
    if (decisions < static_cast<std::size_t>(nodes / 10)) state.SkipWithError("nobody preempted");
  }
}
BENCHMARK_CAPTURE(preempt, suspend, PreemptMode::kSuspend)
    ->Name("Preempt")
    ->Arg(1000)
    ->Arg(5000)
    ->Arg(10000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(preempt, cancel, PreemptMode::kCancel)
    ->Name("PreemptCancel")
    ->Arg(1000)
    ->Arg(5000)
    ->Arg(10000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// --- a busy cluster under its own timing ---

// Waiting jobs, and half as many running on a tenth as many nodes: five on a node, side by
// side, or, with gang, five deep.
Setup busy_setup(int waiting, bool gang) {
  Setup made = setup(waiting / 10, SelectType::kConsTres,
                     {partition("p", gang ? OverSubscribe::kForce : OverSubscribe::kNo, 5)});
  made.configuration.cluster.gang = gang;
  return made;
}

JobRequest busy_job(bool gang) {
  return tasks_job(gang ? kCoresPerNode : 3);
}

World busy_cluster(int waiting, bool gang) {
  const int running = waiting / 2;
  World world{busy_setup(waiting, gang), Timing::kOwn};
  for (int i = 0; i < running + waiting; ++i) world.submit(busy_job(gang));
  world.settle();
  return world;
}

// One job ends, the next starts, and their nodes' timetables are made.
void churn(benchmark::State& state, bool gang) {
  const auto waiting = static_cast<int>(state.range(0));
  World world = busy_cluster(waiting, gang);
  const JobRequest request = busy_job(gang);
  Stopwatch stopwatch{state};
  std::int64_t next = 1;
  for (auto _ : state) {
    world.advance(std::chrono::milliseconds{10});
    std::size_t started = 0;
    stopwatch.measure([&] {
      world.step(JobGone{JobId{next}});
      started = world.settle();
    });
    if (started != 1) state.SkipWithError("the next job did not start");
    world.step(Forget{JobId{next}});
    ++next;
    world.submit(request);
    world.settle();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(churn, plain, false)
    ->Name("Churn")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Arg(1000000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(churn, gang, true)
    ->Name("ChurnGang")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// A graph of waiting jobs, each of which waits for the one before it: one ends, and the
// next one starts.
void pipeline(benchmark::State& state) {
  const auto waiting = static_cast<int>(state.range(0));
  World world{busy_setup(waiting, false), Timing::kOwn};
  const auto link = [&](std::int64_t before) {
    JobRequest request = busy_job(false);
    request.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = JobId{before}}};
    return request;
  };
  world.submit(busy_job(false));
  std::int64_t last = 1;
  for (int i = 0; i < waiting; ++i) last = world.submit(link(last)).number();
  world.settle();
  Stopwatch stopwatch{state};
  std::int64_t next = 1;
  for (auto _ : state) {
    world.advance(std::chrono::milliseconds{10});
    std::size_t started = 0;
    stopwatch.measure([&] {
      world.step(JobGone{JobId{next}});
      started = world.settle();
    });
    if (started != 1) state.SkipWithError("the next job did not start");
    world.step(Forget{JobId{next}});
    ++next;
    last = world.submit(link(last)).number();
    world.settle();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(pipeline)
    ->Name("Pipeline")
    ->Arg(1000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Waiting tasks in arrays of a thousand: a task ends, and the next one starts.
void arrays(benchmark::State& state) {
  constexpr int kTasks = 1000;
  const int waiting = static_cast<int>(state.range(0));
  World world{busy_setup(waiting, false), Timing::kOwn};
  JobRequest request = busy_job(false);
  request.array.emplace().tasks.insert(0, kTasks - 1);
  const auto submit = [&] { return world.submit(request); };
  JobId next = JobId::of_task(submit(), 0);
  for (int i = 0; i < waiting * 3 / 2 / kTasks; ++i) submit();  // a third of them run
  world.settle();
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    world.advance(std::chrono::milliseconds{10});
    std::size_t started = 0;
    stopwatch.measure([&] {
      world.step(JobGone{next});
      started = world.settle();
    });
    if (started != 1) state.SkipWithError("the next task did not start");
    if (*next.task() + 1 < kTasks) {
      next = JobId::of_task(next, *next.task() + 1);
      continue;
    }
    world.step(Forget{next.array()});
    next = JobId::of_task(JobId{next.number() + 1}, 0);
    submit();
    world.settle();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(arrays)->Name("Arrays")->Arg(1000)->Arg(100000)->UseManualTime()->Unit(
    benchmark::kMicrosecond);

// Returns the jobs of a busy cluster as the API server holds them.
std::vector<JobFacts> stored_jobs(const World& world) {
  std::vector<JobFacts> stored;
  for (const JobId id : world.scheduler().jobs()) {
    stored.push_back(*world.scheduler().job(id, world.now())->facts);
  }
  return stored;
}

// Takes all jobs into the books of a new scheduler, as a new operator does.
void restore(benchmark::State& state) {
  const int waiting = static_cast<int>(state.range(0)) * 2;
  const World world = busy_cluster(waiting, false);
  const std::vector<JobFacts> stored = stored_jobs(world);
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    World other{busy_setup(waiting, false), Timing::kOwn};
    stopwatch.measure([&] { other.scheduler().restore_from_published(world.now(), stored, {}); });
    if (other.scheduler().jobs().size() != stored.size()) state.SkipWithError("jobs are missing");
  }
}
BENCHMARK(restore)->Name("Restore")->Arg(500)->Arg(5000)->Arg(50000)->UseManualTime()->Unit(
    benchmark::kMillisecond);

// How long the operator's loop stands while it copies its state for a question of when a job would
// start (spec.testOnly): with a third of its jobs running.
void state_copy(benchmark::State& state) {
  const int waiting = static_cast<int>(state.range(0)) * 2 / 3;
  const World world = busy_cluster(waiting, false);
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    StateCopy copy;
    stopwatch.measure([&] { copy = world.scheduler().copy(world.now()); });
    benchmark::DoNotOptimize(copy);
  }
  state.counters["jobs"] = static_cast<double>(world.scheduler().jobs().size());
}
BENCHMARK(state_copy)
    ->Name("StateCopy")
    ->Arg(5000)
    ->Arg(50000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

double heap_mib() {
  std::uint64_t epoch = 1;  // a write of it makes jemalloc count again
  std::size_t bytes = 0, size = sizeof bytes;
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  mallctl("stats.allocated", &bytes, &size, nullptr, 0);
  return static_cast<double>(bytes) / (1 << 20);
}

// Heap in use for the whole state: waiting jobs, and half as many running ones. real_time is how
// long it took to build.
void memory(benchmark::State& state, bool gang) {
  constexpr double kMibMax = 512;
  for (auto _ : state) {
    const double before = heap_mib();
    std::optional<World> world;
    Stopwatch{state}.measure(
        [&] { world.emplace(busy_cluster(static_cast<int>(state.range(0)), gang)); });
    const double mib = heap_mib() - before;
    state.counters["mib"] = mib;
    if (mib > kMibMax) state.SkipWithError("more than 512 MiB");
  }
}
BENCHMARK_CAPTURE(memory, plain, false)
    ->Name("Memory")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(memory, gang, true)
    ->Name("MemoryGang")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// Heap for one array of tasks, of which as many run as there is room for. real_time is how
// long its submission and their starts took.
void memory_of_array(benchmark::State& state) {
  constexpr int kRoomForHalf = 2000;
  for (auto _ : state) {
    World world{busy_setup(kRoomForHalf, false), Timing::kOwn};
    JobRequest request = busy_job(false);
    request.array.emplace().tasks.insert(0, static_cast<int>(state.range(0)) - 1);
    const double before = heap_mib();
    std::size_t started = 0;
    Stopwatch{state}.measure([&] {
      world.submit(request);
      started = world.settle();
    });
    state.counters["started"] = static_cast<double>(started);
    state.counters["mib"] = heap_mib() - before;
  }
}
BENCHMARK(memory_of_array)
    ->Name("MemoryArray")
    ->Arg(1000)
    ->Arg(100000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// Heap for each edge of a graph of so many jobs that are held, each of which waits for the four
// before it, beside that of jobs that wait for none.
void memory_of_graph(benchmark::State& state) {
  constexpr int kEdges = 4;
  const auto jobs = static_cast<int>(state.range(0));
  const auto heap_of = [&](int edges) {
    const double before = heap_mib();
    World world{busy_setup(jobs, false), Timing::kOwn};
    Stopwatch stopwatch{state};
    stopwatch.measure([&] {
      for (int i = 1; i <= jobs; ++i) {
        JobRequest request = busy_job(false);
        request.hold = true;
        for (int other = std::max(1, i - edges); other < i; ++other) {
          request.dependency.terms.push_back(
              {.kind = DependencyKind::kAfterOk, .job = JobId{other}});
        }
        world.submit(std::move(request));
      }
    });
    return heap_mib() - before;
  };
  for (auto _ : state) {
    const double of_jobs = heap_of(0);
    state.counters["bytes_per_edge"] = (heap_of(kEdges) - of_jobs) * (1 << 20) / (jobs * kEdges);
  }
}
BENCHMARK(memory_of_graph)
    ->Name("MemoryGraph")
    ->Arg(100000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bool to_file = std::any_of(argv, argv + argc, [](const char* argument) {
    return std::string_view{argument}.starts_with("--benchmark_out=");
  });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  bench::Scaling scaling;
  bench::PlainNames<benchmark::ConsoleReporter> console{&scaling};
  bench::PlainNames<benchmark::JSONReporter> json;
  benchmark::RunSpecifiedBenchmarks(&console, to_file ? &json : nullptr);
  bench::print_scaling(std::cout, scaling);
  benchmark::Shutdown();
  return 0;
}
