#include "operator/translate/cpu_set.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/translate/allocation.h"

namespace control {
namespace {

// "0-3,8" in the order in which it is written.
std::vector<int> expand_numbers(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc{}) return {};
    int last = first;
    at = parsed.ptr;
    if (at < end && *at == '-') {
      parsed = std::from_chars(at + 1, end, last);
      if (parsed.ec != std::errc{}) return {};
      at = parsed.ptr;
    }
    for (int n = first; n <= last && numbers.size() < 65'536; ++n) numbers.push_back(n);
    if (at < end && *at++ != ',') return {};
  }
  return numbers;
}

std::string join_ranges(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[first]);
    if (last > first) text += "-" + std::to_string(numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

std::string cpuset_of(const std::string& cores, const std::optional<kube::NodeTopology>& topology) {
  if (!topology || cores.empty() || topology->threads_per_core < 1) return "";
  const auto set = parse_cores(cores);
  const std::vector<int> ids = expand_numbers(topology->cpu_ids);
  if (!set.ok() || ids.empty()) return "";
  const int threads = topology->threads_per_core;
  std::vector<int> numbers;
  for (int core = set->next(0); core >= 0; core = set->next(core + 1)) {
    for (int thread = 0; thread < threads; ++thread) {
      const auto index = static_cast<std::size_t>(core * threads + thread);
      if (index < ids.size()) numbers.push_back(ids[index]);
    }
    if (core + 1 >= sched::kCoresPerNodeMax) break;
  }
  if (numbers.size() == ids.size()) return "";
  return join_ranges(std::move(numbers));
}

}  // namespace control
