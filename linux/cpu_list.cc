#include "linux/cpu_list.h"

#include <charconv>

namespace os {
namespace {

constexpr int kCpuIdMax = 8191;  // CONFIG_NR_CPUS' largest value

std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > kCpuIdMax) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::optional<int> first = parse_number(range.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : parse_number(range.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    if (cpus.size() > kCpuIdMax) return std::nullopt;  // It names CPUs more than once.
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  if (cpus.empty()) return std::nullopt;
  return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[first]);
    if (last > first) text += "-" + std::to_string(cpus[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace os
