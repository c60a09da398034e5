// The cost of plans: passes of the backfill over a long queue, priorities that change with time,
// and weeks of a cluster in the simulator, which has both.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"
#include "scheduler/bench/workload.h"
#include "scheduler/forecast/forecast.h"
#include "scheduler/simulate/what_if.h"

namespace bench {
namespace {

using namespace sched;  // NOLINT: a program, and everything in it is about the scheduler

// --- backfill ---

// Draws a time limit of one minute up to `most`.
std::chrono::minutes up_to_minutes(base::Prng& prng, std::uint64_t most) {
  return std::chrono::minutes{static_cast<std::int64_t>(1 + prng.below(most))};
}

// Makes a full cluster of `nodes` nodes: two jobs on each, which end within a day; and waiting jobs
// of one to four nodes.
Setup planned_setup(int nodes) {
  Setup made = setup(nodes, SelectType::kConsTres, {partition("p")});
  made.configuration.cluster.scheduler = SchedulerType::kBackfill;
  return made;
}

// Makes the same where jobs of a second partition may preempt these. There are none.
Setup preempting_setup(int nodes) {
  Setup made = planned_setup(nodes);
  made.configuration.partitions.push_back(partition("high"));
  made.configuration.partitions.back().priority_tier = 2;
  made.configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  made.configuration.cluster.preempt_mode = PreemptMode::kCancel;
  return made;
}

// Makes the same where a node takes no more pods than those of its two jobs, so that each question
// looks whose pods are gone by then.
Setup few_pods_setup(int nodes) {
  Setup made = planned_setup(nodes);
  made.pods_max = 2;
  return made;
}

// Makes the same stacked up to four deep.
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
  world.start_waiting();
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

// Makes the same of jobs that name no nodes, only tasks, which may lie anywhere: three run for each
// job that runs, four and more are asked for by those that wait, and a core or two are free.
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
  world.start_waiting();
  for (int i = 0; i < waiting; ++i) {
    const auto more = static_cast<int>(prng.below(13));
    submit(kTasks + 1 + more, up_to_minutes(prng, 240));
  }
  return running;
}

// Makes the same of jobs that need a node's memory rather than its cores: one in two has half of
// it, and those that wait ask for more than is left.
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
  world.start_waiting();
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

// Two jobs take turns on each core.
Setup turns_setup(int nodes) {
  Setup made = setup(nodes, SelectType::kConsTres, {partition("p", OverSubscribe::kForce, 2)});
  made.configuration.cluster.scheduler = SchedulerType::kBackfill;
  made.configuration.cluster.gang = true;
  made.configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  made.configuration.cluster.preempt_mode = PreemptMode::kSuspend;
  return made;
}

// All jobs have two whole nodes.
std::vector<JobId> fill_with_pairs_and_queue(World& world, int nodes, int waiting) {
  std::vector<JobId> jobs;
  for (int i = 0; i < nodes + waiting; ++i) {
    JobRequest request = nodes_job(2);
    request.tasks = 2;
    request.cpus_per_task = kCoresPerNode;
    request.time_limit = std::chrono::minutes{30 + i % 600};
    jobs.push_back(world.submit(request));
  }
  world.start_waiting();
  return jobs;
}

// When a job would start behind 4,000 that wait.
void foretell(benchmark::State& state, auto make_setup, auto fill) {
  constexpr int kWaiting = 4'000;
  const auto nodes = static_cast<int>(state.range(0));
  const Setup made = make_setup(nodes);
  World world{made, Timing::kOwn};
  fill(world, nodes, kWaiting);
  world.settle();
  ForecastQuestion question;
  question.request = nodes_job(4);
  question.request.id = JobId{1'000'000};
  question.request.time_limit = std::chrono::minutes{60};
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    Forecast answer;
    stopwatch.measure([&] {
      question.state = world.scheduler().copy(world.now());
      question.state.configuration = std::make_shared<const Configuration>(made.configuration);
      answer = forecast(question);
    });
    if (answer.outcome != Forecast::Outcome::kStarts) state.SkipWithError("it does not start");
    state.counters["minutes"] =
        std::chrono::duration<double, std::ratio<60>>{answer.start - world.now()}.count();
  }
}
BENCHMARK_CAPTURE(foretell, nodes, planned_setup, fill_and_queue)
    ->Name("Forecast")
    ->Arg(1000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(foretell, turns, turns_setup, fill_with_pairs_and_queue)
    ->Name("Forecast/turns")
    ->Arg(1000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

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
BENCHMARK_CAPTURE(backfill_interval, pods, true, few_pods_setup, fill_and_queue)
    ->Name("BackfillChurn/pods")
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

// Jobs of a hundred users wait behind a full cluster of 1,000 nodes. A period ends: usage decays,
// and all priorities are worked out again. longest_step_us: CPU time of the longest wake.
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
  double longest = 0;
  for (auto _ : state) {
    world.advance(made.configuration.cluster.priority.calc_period);
    stopwatch.measure([&] {
      for (bool is_due = true; is_due;) {
        const double before = Stopwatch::cpu_now();
        is_due = world.wake();
        longest = std::max(longest, Stopwatch::cpu_now() - before);
      }
    });
    world.settle();
  }
  state.counters["longest_step_us"] = longest * 1e6;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(priority)
    ->Name("Priority")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Arg(1000000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// --- the simulator ---

// Makes a week of `jobs` jobs on 64 nodes whose partition is stacked up to four deep, every tenth
// job in a higher tier over it. The work is the same share of the cluster at each size.
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
    ->Arg(3000)
    ->Arg(10000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench
