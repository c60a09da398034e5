#include "translation/cpu_set.h"

#include <algorithm>
#include <vector>

#include "base/number_list.h"
#include "translation/allocation.h"

namespace control {
namespace {

constexpr int kCpuIdMax = 65'535;

}  // namespace

// 1. A core of the scheduler is a number from 0, without holes; the kernel's CPU numbers may have
// them. The topology's list cpuIDs is the bridge: its entries from core * threads on are the
// threads of that core, and all of them go with it.
// 2. A set of all CPUs binds nothing. Whatever is odd about the topology leads to "", because a pod
// without a CPU set runs, though less well placed, whereas a binding to CPUs that do not exist
// fails.
std::string cpuset_of(const std::string& cores, const std::optional<kube::NodeTopology>& topology) {
  if (!topology || cores.empty() || topology->threads_per_core < 1) return "";
  const auto set = parse_cores(cores);
  const std::vector<int> ids =
      base::parse_number_list(topology->cpu_ids, kCpuIdMax).value_or(std::vector<int>{});
  if (!set.ok() || ids.empty()) return "";
  const int threads = topology->threads_per_core;
  std::vector<int> numbers;
  for (int core = set->next(0); core >= 0; core = set->next(core + 1)) {
    for (int thread = 0; thread < threads; ++thread) {
      const auto index = static_cast<std::size_t>(core * threads + thread);
      // The node may have fewer CPUs than when the job was placed: a CPU was taken offline.
      if (index < ids.size()) numbers.push_back(ids[index]);
    }
    // next() must not be asked for a core beyond the last possible one.
    if (core + 1 >= sched::kCoresPerNodeMax) break;
  }
  if (numbers.size() == ids.size()) return "";
  std::sort(numbers.begin(), numbers.end());
  return base::format_number_list(numbers);
}

}  // namespace control
