#include "scheduler/bench/report.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace bench {
namespace {

std::string text_of(double seconds) {
  const char* unit = "us";
  double value = seconds * 1e6;
  if (value >= 1e6) {
    value /= 1e6;
    unit = "s";
  } else if (value >= 1e3) {
    value /= 1e3;
    unit = "ms";
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", value, unit);
  return text;
}

}  // namespace

void note(Scaling& scaling, const benchmark::BenchmarkReporter::Run& run) {
  if (run.error_occurred || run.run_name.args.empty() || run.iterations == 0) return;
  const std::int64_t size = std::strtoll(run.run_name.args.c_str(), nullptr, 10);
  scaling[run.run_name.function_name][size] =
      run.real_accumulated_time / static_cast<double>(run.iterations);
}

void print_scaling(std::ostream& out, const Scaling& scaling) {
  out << "\nGrowth of the cost: time per iteration at each size, and between neighbouring sizes "
         "the\n"
         "exponent e of time ~ size^e.\n";
  for (const auto& [name, by_size] : scaling) {
    if (by_size.size() < 2) continue;
    out << name << std::string(name.size() < 24 ? 24 - name.size() : 1, ' ');
    std::optional<std::pair<std::int64_t, double>> before;
    for (const auto& [size, seconds] : by_size) {
      if (before && before->second > 0 && seconds > 0) {
        char exponent[32];
        std::snprintf(exponent, sizeof exponent, "  e=%.2f  ",
                      std::log(seconds / before->second) /
                          std::log(static_cast<double>(size) / static_cast<double>(before->first)));
        out << exponent;
      }
      out << size << ": " << text_of(seconds);
      before = {size, seconds};
    }
    out << "\n";
  }
}

}  // namespace bench
