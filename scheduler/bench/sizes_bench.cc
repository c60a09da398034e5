// Costs in sizes that users choose: how deep jobs are stacked, how many jobs one job lies over, how
// many users an account has.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>

#include "scheduler/bench/workload.h"

namespace bench {
namespace {

using namespace sched;  // NOLINT: a program, and everything in it is about the scheduler

// --- jobs stacked four deep ---

Setup four_deep(int nodes, bool gang, SelectType select = SelectType::kLinear) {
  Setup made = setup(nodes, select, {partition("p", OverSubscribe::kForce, 4)});
  made.configuration.cluster.gang = gang;
  return made;
}

// Four one-node jobs for each node.
void linear_start_stacked(benchmark::State& state) {
  start_all(state, four_deep(static_cast<int>(state.range(0)) / 4, false), nodes_job(1));
}
BENCHMARK(linear_start_stacked)
    ->Name("LinearStart/stacked")
    ->Arg(4000)
    ->Arg(32000)
    ->Arg(400000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// Four jobs for all cores of each node.
void cons_tres_start_stacked(benchmark::State& state) {
  start_all(state, four_deep(static_cast<int>(state.range(0)) / 4, false, SelectType::kConsTres),
            tasks_job(kCoresPerNode));
}
BENCHMARK(cons_tres_start_stacked)
    ->Name("ConsTresStart/stacked")
    ->Arg(4000)
    ->Arg(16000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// The same as the operator does it: the jobs take turns, and the timetables are made.
void linear_start_turns(benchmark::State& state) {
  const auto jobs = static_cast<int>(state.range(0));
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    Setup made = four_deep(jobs / 4, true);
    made.configuration.cluster.queue.default_queue_depth = jobs;
    World world{made, Timing::kOwn};
    for (int i = 0; i < jobs; ++i) world.submit(nodes_job(1));
    std::size_t started = 0;
    stopwatch.measure([&] { started = world.settle(); });
    if (started < static_cast<std::size_t>(jobs)) state.SkipWithError("not all jobs started");
  }
  state.SetItemsProcessed(state.iterations() * jobs);
}
BENCHMARK(linear_start_turns)
    ->Name("LinearStart/turns")
    ->Arg(4000)
    ->Arg(32000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// --- one component ---

// One-core jobs on all cores, and one job over all of them: they become one component.
void wide_start(benchmark::State& state) {
  const auto small = static_cast<int>(state.range(0));
  const int nodes = small / kCoresPerNode;
  Setup made = setup(nodes, SelectType::kConsTres, {partition("p", OverSubscribe::kForce, 2)});
  made.configuration.cluster.gang = true;
  made.configuration.cluster.queue.default_queue_depth = small;
  JobRequest wide = nodes_job(nodes);
  wide.tasks = small;
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    World world{made, Timing::kOwn};
    for (int i = 0; i < small; ++i) world.submit(tasks_job(1));
    if (world.settle() < static_cast<std::size_t>(small)) state.SkipWithError("not all started");
    world.advance(std::chrono::seconds{10});
    world.submit(wide);
    std::size_t started = 0;
    stopwatch.measure([&] { started = world.settle(); });
    if (started != 1) state.SkipWithError("the wide job did not start");
  }
}
BENCHMARK(wide_start)
    ->Name("WideStart")
    ->Arg(4096)
    ->Arg(16384)
    ->Arg(65536)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// --- fair share ---

// One period of multifactor priorities: users of one account, each with some usage, and one of them
// with a job that runs.
void fair_share_period(benchmark::State& state) {
  const auto users = static_cast<int>(state.range(0));
  Setup made = setup(users, SelectType::kLinear, {partition("p")});
  PriorityParameters& priority = made.configuration.cluster.priority;
  priority.type = PriorityType::kMultifactor;
  priority.weight_fair_share = 1000;
  priority.calc_period = std::chrono::minutes{1};
  made.configuration.cluster.queue.default_queue_depth = users;
  made.configuration.accounts.push_back({.name = "a"});
  for (int i = 0; i < users; ++i) {
    made.configuration.users.push_back({.name = "u" + std::to_string(i), .account = "a"});
  }
  World world{made, Timing::kOwn};
  for (int i = 0; i < users; ++i) {
    JobRequest request = nodes_job(1);
    request.user = "u" + std::to_string(i);
    request.account = "a";
    world.submit(std::move(request));
  }
  if (world.settle() < static_cast<std::size_t>(users)) state.SkipWithError("not all started");
  world.advance(std::chrono::minutes{1});
  world.settle();
  for (int i = 1; i < users; ++i) {
    world.step(JobGone{JobId{i}});
    world.step(Forget{JobId{i}});
  }
  world.settle();
  Stopwatch stopwatch{state};
  for (auto _ : state) {
    world.advance(std::chrono::minutes{1});
    stopwatch.measure([&] { world.settle(); });
  }
}
BENCHMARK(fair_share_period)
    ->Name("FairSharePeriod")
    ->Arg(1000)
    ->Arg(8000)
    ->Arg(64000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench
