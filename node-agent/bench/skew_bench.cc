#include "node-agent/bench/skew_bench.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/check.h"
#include "node-agent/bench/bench_pods.h"

namespace agent::bench {
namespace {

constexpr base::Duration kSkewSlice = std::chrono::milliseconds{100};
constexpr int kNodes = 2;

// In memory that the agents' processes share with this one: the policy that each got.
struct Shared {
  std::atomic<int> policy[kNodes];
};

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

// Runs one agent, until it is killed.
[[noreturn]] void be_agent(const BenchPods& pods, int node, bool fifo, pid_t parent,
                           Shared& shared) {
  testing::end_with_parent(parent);
  pin_to(node);
  Driver driver{{.try_fifo = fifo}};
  shared.policy[node].store(static_cast<int>(driver.switcher().policy()));
  // Two of the four pods are the other node's; it ignores them.
  Assignment mine = pods.assignment({{0, 2}, {1, 3}}, kSkewSlice);
  std::erase_if(mine.pods, [&](const ControlledPod& pod) { return pod.index / 2 != node; });
  driver.submit(std::move(mine));
  for (;;) {
    ::pause();
  }
}

// First run after each boundary, by slot, on a node: the earliest instant at which a task of the
// gang whose turn it is ran.
std::map<std::int64_t, std::int64_t> first_runs(BenchPods& pods, int node, std::int64_t from) {
  const std::int64_t slice = std::chrono::nanoseconds{kSkewSlice}.count();
  std::map<std::int64_t, std::int64_t> first;
  for (int gang = 0; gang < 2; ++gang) {
    const auto pod = static_cast<std::uint16_t>(2 * node + gang);
    for (const Run& run : pods.spinners_of(pod).front().runs_since(from)) {
      const std::int64_t slot = run.begin / slice;
      if (slot % 2 != gang) continue;  // The rest of its turn before.
      const auto [known, fresh] = first.try_emplace(slot, run.begin);
      if (!fresh) known->second = std::min(known->second, run.begin);
    }
  }
  return first;
}

}  // namespace

// Two "nodes" are two CPUs of this machine, each with an agent of its own, so that their clocks are
// one and the difference is the agents' alone.
// 1. Two pods on each, one of each gang, spin.
nlohmann::ordered_json measure_skew(const std::string& name, bool fifo, int rounds) {
  if (std::thread::hardware_concurrency() < kNodes) {
    return {{"name", name}, {"skipped", "needs two CPUs"}};
  }
  BenchPods pods;
  for (int i = 0; i < 2 * kNodes; ++i) {
    const std::uint16_t pod = pods.add_pod();  // 0 and 1 are of node 0, 2 and 3 of node 1
    pods.spin(pod, {.cpu = i / 2});
  }
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  auto* shared = static_cast<Shared*>(memory);
  // 2. An agent for each node, in a process of its own.
  std::vector<pid_t> agents;
  const pid_t parent = ::getpid();
  for (int node = 0; node < kNodes; ++node) {
    agents.push_back(::fork());
    CHECK(agents.back() >= 0);
    if (agents.back() == 0) be_agent(pods, node, fifo, parent, *shared);
  }
  // 3. A few slices until both are in step, then the measurement.
  std::this_thread::sleep_for(kSkewSlice * 4);
  const std::int64_t from = wall_nanos();
  std::this_thread::sleep_for(kSkewSlice * rounds);
  // 4. The skew of a slot: how far apart the gang's first instructions were on both.
  std::vector<double> skews;
  const auto left = first_runs(pods, 0, from);
  const auto right = first_runs(pods, 1, from);
  for (const auto& [slot, begin] : left) {
    const auto other = right.find(slot);
    if (other == right.end()) continue;
    skews.push_back(std::abs(static_cast<double>(begin - other->second)) / 1000);
  }
  const auto policy = static_cast<ThreadPolicy>(shared->policy[0].load());
  for (const pid_t agent : agents) {
    ::kill(agent, SIGKILL);
    ::waitpid(agent, nullptr, 0);
  }
  ::munmap(memory, sizeof(Shared));
  return {{"name", name},
          {"p50_us", percentile(skews, 50)},
          {"p99_us", percentile(skews, 99)},
          {"policy", to_string(policy)}};
}

}  // namespace agent::bench
