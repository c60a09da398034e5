// The scheduler's speed, on the work that slurmctld was timed with. Events in and decisions out are
// inside the measured time; building credentials, saving state and messages to nodes, which
// slurmctld's own figures include, are not: say so wherever the two stand side by side.
//
// real_time = one pass, tick or event, on the wall clock; cpu_us = the same in CPU time of the
// thread; items_per_second = starts per second.
#include <benchmark/benchmark.h>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "scheduler/bench/report.h"
#include "scheduler/bench/workload.h"
#include "scheduler/simulate/what_if.h"

namespace bench {
namespace {

using namespace sched;  // NOLINT: a program, and everything in it is about the scheduler

// --- told timing: the work that slurmctld was timed with ---

// Jobs are submitted while the partition is down, so that the measured pass finds all of them at
// once.
void start_all(benchmark::State& state, const Setup& made, const JobRequest& request) {
  const auto jobs = static_cast<int>(state.range(0));
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    World world{made, Timing::kTold};
    world.set_state(PartitionState::kDown);
    for (int i = 0; i < jobs; ++i) world.submit(request);
    world.take();
    world.set_state(PartitionState::kUp);
    std::size_t decisions = 0;
    stopwatch.measure([&] {
      world.pass();
      decisions = world.take();
    });
    if (decisions < static_cast<std::size_t>(jobs)) state.SkipWithError("not all jobs started");
  }
  state.SetItemsProcessed(state.iterations() * jobs);
}

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

// A full cluster of 1,000 nodes and so many waiting jobs of 4 CPUs.
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

// --- backfill ---

// A time limit of one minute to so many.
std::chrono::minutes up_to_minutes(base::Prng& prng, std::uint64_t most) {
  return std::chrono::minutes{static_cast<std::int64_t>(1 + prng.below(most))};
}

// A full cluster of so many nodes: two jobs on each, which end within a day; and waiting jobs of
// one to four nodes.
Setup planned_setup(int nodes) {
  Setup made = setup(nodes, SelectType::kConsTres, {partition("p")});
  made.configuration.cluster.scheduler = SchedulerType::kBackfill;
  return made;
}

// The same where jobs of a second partition may preempt these. There are none.
Setup preempting_setup(int nodes) {
  Setup made = planned_setup(nodes);
  made.configuration.partitions.push_back(partition("high"));
  made.configuration.partitions.back().priority_tier = 2;
  made.configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  made.configuration.cluster.preempt_mode = PreemptMode::kCancel;
  return made;
}

// The same stacked up to four deep.
Setup gang_setup(int nodes) {
  Setup made = setup(nodes, SelectType::kConsTres, {partition("p", OverSubscribe::kForce, 4)});
  made.configuration.cluster.scheduler = SchedulerType::kBackfill;
  made.configuration.cluster.gang = true;
  return made;
}

std::vector<JobId> fill_and_queue(World& world, int nodes, int waiting) {
  base::Prng prng{5};
  std::vector<JobId> running;
  for (int i = 0; i < 2 * nodes; ++i) {
    JobRequest request = tasks_job(kCoresPerNode / 2);
    request.min_nodes = 1;
    request.max_nodes = 1;
    request.time_limit = std::chrono::minutes{600} + up_to_minutes(prng, 840);
    running.push_back(world.submit(request));
  }
  world.pass();
  world.settle();
  for (int i = 0; i < waiting; ++i) {
    const int count = 1 + static_cast<int>(prng.below(4));
    JobRequest request = nodes_job(count);
    request.tasks_per_node = 1 << prng.below(5);
    request.tasks = count * *request.tasks_per_node;
    request.time_limit = up_to_minutes(prng, 240);
    world.submit(request);
  }
  return running;
}

// The same of jobs that name no nodes, only tasks, which may lie anywhere: three run for each job
// that runs, four and more are asked for by those that wait, and a core or two are free.
std::vector<JobId> fill_with_tasks_and_queue(World& world, int nodes, int waiting) {
  constexpr int kTasks = 3;
  base::Prng prng{6};
  const auto submit = [&](int tasks, std::chrono::minutes limit) {
    JobRequest request = tasks_job(tasks);
    request.time_limit = limit;
    return world.submit(request);
  };
  std::vector<JobId> running;
  for (int i = 0; i < nodes * kCoresPerNode / kTasks; ++i) {
    running.push_back(submit(kTasks, std::chrono::minutes{600} + up_to_minutes(prng, 840)));
  }
  world.pass();
  world.settle();
  for (int i = 0; i < waiting; ++i) {
    const auto more = static_cast<int>(prng.below(13));
    submit(kTasks + 1 + more, up_to_minutes(prng, 240));
  }
  return running;
}

// The same of jobs that need a node's memory rather than its cores: one in two has half of it, and
// those that wait ask for more than is left.
Setup memory_setup(int nodes) {
  Setup made = planned_setup(nodes);
  made.configuration.cluster.memory = true;
  return made;
}

Setup gang_memory_setup(int nodes) {
  Setup made = gang_setup(nodes);
  made.configuration.cluster.memory = true;
  return made;
}

std::vector<JobId> fill_memory_and_queue(World& world, int nodes, int waiting) {
  base::Prng prng{7};
  const auto submit = [&](MemoryMiB memory, std::chrono::minutes limit) {
    JobRequest request = tasks_job(1);
    request.memory = MemoryPerNode{memory};
    request.time_limit = limit;
    return world.submit(request);
  };
  std::vector<JobId> running;
  for (int i = 0; i < 2 * nodes; ++i) {
    const auto limit = std::chrono::minutes{600} + up_to_minutes(prng, 840);
    running.push_back(submit(MemoryMiB{30'000}, limit));
  }
  world.pass();
  world.settle();
  for (int i = 0; i < waiting; ++i) {
    const auto more = static_cast<std::int64_t>(prng.below(10));
    submit(MemoryMiB{31'000 + 1'000 * more}, up_to_minutes(prng, 240));
  }
  return running;
}

// A plan for 1,000 of 4,000 waiting jobs from scratch.
void backfill(benchmark::State& state) {
  constexpr int kPlanned = 1000;
  const auto nodes = static_cast<int>(state.range(0));
  Setup made = planned_setup(nodes);
  made.configuration.cluster.backfill.max_job_test = kPlanned;
  World world{made, Timing::kTold};
  fill_and_queue(world, nodes, 4 * nodes);
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    world.configure();  // so that nothing of the last pass holds
    world.take();
    stopwatch.measure([&] {
      world.step(Pass{.main = false, .backfill = true});
      benchmark::DoNotOptimize(world.take());
    });
  }
  state.SetItemsProcessed(state.iterations() * kPlanned);
}
BENCHMARK(backfill)->Name("Backfill")->Arg(1000)->UseManualTime()->Unit(benchmark::kMillisecond);

// Under its own timing, with ten jobs waiting for each node: an interval passes, and nothing has
// changed; or a job has ended early, and the plan is brought up to date.
void backfill_interval(benchmark::State& state, bool changes, auto make_setup, auto fill) {
  const auto nodes = static_cast<int>(state.range(0));
  World world{make_setup(nodes), Timing::kOwn};
  std::vector<JobId> running = fill(world, nodes, 10 * nodes);
  world.settle();
  world.advance(std::chrono::seconds{31});
  world.settle();
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    world.advance(std::chrono::seconds{31});
    if (changes) {
      world.step(JobGone{running.back()});
      running.pop_back();
    }
    stopwatch.measure([&] { world.settle(); });
    world.settle();
  }
}
BENCHMARK_CAPTURE(backfill_interval, unchanged, false, planned_setup, fill_and_queue)
    ->Name("BackfillUnchanged")
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(10)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(backfill_interval, churn, true, planned_setup, fill_and_queue)
    ->Name("BackfillChurn")
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backfill_interval, tasks, true, planned_setup, fill_with_tasks_and_queue)
    ->Name("BackfillChurn/tasks")
    ->Arg(1000)
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backfill_interval, memory, true, memory_setup, fill_memory_and_queue)
    ->Name("BackfillChurn/memory")
    ->Arg(1000)
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backfill_interval, preempt, true, preempting_setup, fill_and_queue)
    ->Name("BackfillChurn/preempt")
    ->Arg(1000)
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(10)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backfill_interval, gang, true, gang_setup, fill_and_queue)
    ->Name("BackfillChurn/gang")
    ->Arg(100)
    ->Arg(1000)
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backfill_interval, gang_memory, true, gang_memory_setup, fill_memory_and_queue)
    ->Name("BackfillChurn/gang/memory")
    ->Arg(100)
    ->Arg(1000)
    ->UseManualTime()
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);

// --- priorities ---

// Multifactor with everything that a week of a cluster changes: age, fair share, sizes.
void use_multifactor(Configuration& configuration) {
  PriorityParameters& priority = configuration.cluster.priority;
  priority.type = PriorityType::kMultifactor;
  priority.weight_age = 1000;
  priority.weight_fair_share = 10'000;
  priority.weight_job_size = 1000;
  priority.weight_partition = 1000;
  for (int account = 0; account < 10; ++account) {
    const std::string name = "a" + std::to_string(account);
    configuration.accounts.push_back({.name = name});
    for (int user = 0; user < 10; ++user) {
      configuration.users.push_back({.name = name + "u" + std::to_string(user), .account = name});
    }
  }
}

std::string user_of(std::uint64_t number) {
  return "a" + std::to_string(number / 10 % 10) + "u" + std::to_string(number % 10);
}

// So many jobs of a hundred users wait behind a full cluster of 1,000 nodes. A period ends: usage
// decays, and all priorities are worked out anew.
void priority(benchmark::State& state) {
  constexpr int kNodes = 1000;
  Setup made = setup(kNodes, SelectType::kConsTres, {partition("p")});
  use_multifactor(made.configuration);
  World world{made, Timing::kOwn};
  base::Prng prng{3};
  const auto submit = [&](int tasks) {
    JobRequest request = tasks_job(tasks);
    request.user = user_of(prng.below(100));
    world.submit(request);
  };
  for (int i = 0; i < kNodes; ++i) submit(kCoresPerNode);
  world.settle();
  for (int i = 0; i < state.range(0); ++i) {
    submit(1 + static_cast<int>(prng.below(64)));
    if (i % 100 == 0) world.advance(std::chrono::seconds{1});
  }
  world.settle();
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    world.advance(made.configuration.cluster.priority.calc_period);
    stopwatch.measure([&] { world.settle(); });
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(priority)
    ->Name("Priority")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// --- gang ---

// So many jobs, stacked four deep on a quarter as many nodes.
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
// ends: its successor starts, and run(t) of the ring's nodes is worked out anew.
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

// So many waiting jobs, half as many running on a tenth as many nodes: five on a node, side by
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

// The jobs of a busy cluster as the API server holds them.
std::vector<RestoredJob> stored_jobs(const World& world) {
  std::vector<RestoredJob> stored;
  for (const JobId id : world.scheduler().jobs()) {
    const JobView view = *world.scheduler().job(id, world.now());
    RestoredJob& job = stored.emplace_back();
    job.request = busy_job(false);
    job.request.id = id;
    job.request.submit_time = world.now();
    job.state = view.state;
    job.priority = view.priority;
    job.partition = view.partition;
    if (view.allocation != nullptr) job.allocation = *view.allocation;
    job.ready = view.ready;
    job.start_time = view.start_time;
    job.times_as_of = world.now();
  }
  return stored;
}

// Takes all jobs into the books of a new scheduler, as a new operator does.
void restore(benchmark::State& state) {
  const int waiting = static_cast<int>(state.range(0)) * 2;
  const World world = busy_cluster(waiting, false);
  const std::vector<RestoredJob> stored = stored_jobs(world);
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    World other{busy_setup(waiting, false), Timing::kOwn};
    stopwatch.measure([&] { other.scheduler().restore_from_published(world.now(), stored, {}); });
    if (other.scheduler().jobs().size() != stored.size()) state.SkipWithError("jobs are missing");
  }
}
BENCHMARK(restore)->Name("Restore")->Arg(500)->Arg(5000)->Arg(50000)->UseManualTime()->Unit(
    benchmark::kMillisecond);

// Heap in use for the whole state: so many waiting and half as many running jobs. real_time is how
// long it took to build.
void memory(benchmark::State& state, bool gang) {
  constexpr double kMibMax = 512;
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
  };
  for (auto _ : state) {
    const double before = in_use();
    std::optional<World> world;
    Stopwatch{state}.measure(
        [&] { world.emplace(busy_cluster(static_cast<int>(state.range(0)), gang)); });
    const double mib = in_use() - before;
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

// --- the simulator ---

// A week of so many jobs on 64 nodes whose partition is stacked up to four deep, every tenth job in
// a higher tier over it. The work is the same share of the cluster at each size.
simulate::Scenario week(int jobs) {
  constexpr int kNodes = 64;
  constexpr std::int64_t kWeekSeconds = 7 * 24 * 3600;
  simulate::Scenario scenario;
  scenario.configuration = setup(kNodes, SelectType::kConsTres,
                                 {partition("low", OverSubscribe::kForce, 4, 1),
                                  partition("high", OverSubscribe::kForce, 1, 2)})
                               .configuration;
  ClusterParameters& cluster = scenario.configuration.cluster;
  cluster.gang = true;
  cluster.preempt_type = PreemptType::kPartitionPriority;
  cluster.preempt_mode = PreemptMode::kSuspend;
  for (int i = 0; i < kNodes; ++i) scenario.nodes.push_back(node(i));
  base::Prng prng{7};
  constexpr std::array<int, 7> kNodesOfJobs = {1, 1, 1, 2, 2, 4, 8};
  constexpr std::array<int, 3> kTasksPerNode = {4, 8, 16};
  std::vector<std::int64_t> submitted;
  for (int i = 0; i < jobs; ++i) {
    submitted.push_back(static_cast<std::int64_t>(prng.below(kWeekSeconds)));
  }
  std::sort(submitted.begin(), submitted.end());
  for (int i = 0; i < jobs; ++i) {
    const int count = kNodesOfJobs[prng.below(kNodesOfJobs.size())];
    JobRequest request = nodes_job(count);
    request.id = JobId{i + 1};
    request.tasks = count * kTasksPerNode[prng.below(kTasksPerNode.size())];
    request.partitions = {prng.below(10) == 0 ? "high" : "low"};
    const auto work = static_cast<std::int64_t>(30 + prng.below(3'900)) * 10'000 / jobs;
    scenario.jobs.push_back(
        {.label = "j" + std::to_string(i), .request = request, .work = std::chrono::seconds{work}});
    simulate::Input& input = scenario.inputs.emplace_back();
    input.at = base::Instant{std::chrono::seconds{submitted[static_cast<std::size_t>(i)]}};
    input.happening.emplace(simulate::SubmitJob{request.id});
  }
  return scenario;
}

// `plans`: with the backfill, and with priorities that change.
void simulated_week(benchmark::State& state, bool plans) {
  simulate::Scenario scenario = week(static_cast<int>(state.range(0)));
  if (plans) {
    scenario.configuration.cluster.scheduler = SchedulerType::kBackfill;
    use_multifactor(scenario.configuration);
    std::uint64_t number = 0;
    for (auto& job : scenario.jobs) {
      job.request.user = user_of(number++ * 7919);
      job.request.time_limit = 4 * job.work.value();
    }
  }
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    stopwatch.measure([&] {
      const base::Result<simulate::WhatIf> result = simulate::run_what_if(scenario);
      if (!result.ok() || result->totals.finished != state.range(0)) {
        state.SkipWithError("not all jobs ended");
      }
    });
  }
}
BENCHMARK_CAPTURE(simulated_week, plain, false)
    ->Name("SimulatedWeek")
    ->Arg(1000)
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulated_week, planned, true)
    ->Name("SimulatedWeek/planned")
    ->Arg(1000)
    ->Arg(10000)
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
