// The cost of changes of nodes, on nodes as Kubernetes has them: labels of their own, and memory
// that follows what other pods request there.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/bench/workload.h"

namespace bench {
namespace {

using namespace sched;  // NOLINT: a program, and everything in it is about the scheduler

// Makes jobs of two whole nodes each: on all nodes they run, and twice as many wait for nodes that
// have a label.
std::unique_ptr<World> full_of_pairs(int nodes) {
  Setup made = on_labelled_nodes(setup(nodes, SelectType::kConsTres, {partition("p")}));
  auto world = std::make_unique<World>(made, Timing::kOwn);
  JobRequest pair = nodes_job(2);
  pair.tasks = 2 * kCoresPerNode;
  pair.constraint = "kubernetes.io/os=linux";
  for (int i = 0; i < nodes / 2 + nodes; ++i) world->submit(pair);
  world->settle();
  return world;
}

// `change` is given the node's description and a count, and changes it.
template <typename Change>
void change_nodes(benchmark::State& state, const Change& change) {
  const auto nodes = static_cast<int>(state.range(0));
  const std::unique_ptr<World> world = full_of_pairs(nodes);
  Stopwatch stopwatch{state};
  int count = 0;
  std::size_t started = 0;
  for (auto _ : state) {
    NodeSpec spec = labelled_node(static_cast<int>(std::int64_t{count / 4} * 7919 % nodes));
    change(spec, count % 4);
    ++count;
    world->advance(std::chrono::milliseconds{10});
    stopwatch.measure([&] {
      world->step(NodeUpdate{std::move(spec)});
      started += world->settle();
    });
  }
  if (started > 0) state.SkipWithError("a job started");
}

// Another pod starts on a node or ends there.
void foreign_pod(benchmark::State& state) {
  change_nodes(state, [](NodeSpec& spec, int step) {
    const int pods = step < 2 ? step + 1 : 3 - step;  // 1, 2, 1, 0
    spec.memory -= MemoryMiB{500 * pods};
    spec.pods_max = *spec.pods_max - pods;
  });
}
BENCHMARK(foreign_pod)
    ->Name("ForeignPod")
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// A node is cordoned, gets another label, is lost, and comes back.
void node_change(benchmark::State& state) {
  change_nodes(state, [](NodeSpec& spec, int step) {
    if (step == 1) spec.features.push_back("rack=7");
    if (step < 2) spec.state = NodeState::kDrain;
    if (step == 2) spec.state = NodeState::kDown;
  });
}
BENCHMARK(node_change)
    ->Name("NodeChange")
    ->Arg(1000)
    ->Arg(10000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bench
