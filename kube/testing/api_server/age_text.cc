#include "kube/testing/api_server/age_text.h"

#include <cstdint>

namespace devcluster {
namespace {

// Returns "5m" and not "5m0s".
std::string pair_text(std::int64_t big, const char* big_unit, std::int64_t small,
                      const char* small_unit) {
  std::string text = std::to_string(big) + big_unit;
  if (small > 0) text += std::to_string(small) + small_unit;
  return text;
}

}  // namespace

// Takes the steps of k8s.io/apimachinery duration.HumanDuration: two units while the larger one is
// small (below 10 minutes, 8 hours, 8 days, 8 years), one unit above.
std::string age_text(base::Duration age) {
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(age).count();
  if (seconds < -1) return "<invalid>";
  // Not an error: the two clocks may differ by a little.
  if (seconds < 0) return "0s";
  if (seconds < 120) return std::to_string(seconds) + "s";
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return pair_text(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return std::to_string(minutes) + "m";
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return pair_text(hours, "h", minutes % 60, "m");
  if (hours < 48) return std::to_string(hours) + "h";
  const std::int64_t day_count = hours / 24;
  if (hours < 192) return pair_text(day_count, "d", hours % 24, "h");
  if (hours < 24 * 365 * 2) return std::to_string(day_count) + "d";
  const std::int64_t years = day_count / 365;
  if (hours < 24 * 365 * 8) return pair_text(years, "y", day_count % 365, "d");
  return std::to_string(years) + "y";
}

}  // namespace devcluster
