#include "operator/publish/status_mirror.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace control {
namespace {

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

bool is_newer_version(const std::string& a, const std::string& b) {
  const auto left = number_of(a);
  const auto right = number_of(b);
  return left && right ? *left > *right : a != b;
}

base::Duration retry_delay(int failures) {
  constexpr base::Duration kFirst = std::chrono::milliseconds{50};
  constexpr base::Duration kMax = std::chrono::seconds{10};
  return std::min(kFirst * (std::int64_t{1} << std::clamp(failures - 1, 0, 20)), kMax);
}

}  // namespace control
