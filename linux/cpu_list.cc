#include "linux/cpu_list.h"

#include "base/number_list.h"

namespace os {
namespace {

constexpr int kCpuIdMax = 8191;  // CONFIG_NR_CPUS' largest value

}  // namespace

// The bound keeps "0-4000000000" in an annotation from becoming four thousand million entries.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return base::parse_number_list(text, kCpuIdMax);
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  return base::format_number_list(cpus);
}

}  // namespace os
