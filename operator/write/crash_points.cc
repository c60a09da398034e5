#include "operator/write/crash_points.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

namespace control {

base::Result<CrashPoints> CrashPoints::parse(std::string_view text) {
  CrashPoints points;
  if (text.empty()) return points;
  const auto wrong = [&] {
    return base::invalid_argument("KUBEGANG_CRASH_AT: \"" + std::string{text} +
                                  "\" is not before:POINT[:N] or after:POINT[:N]");
  };
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return wrong();
  points.when_ = text.substr(0, first);
  if (points.when_ != "before" && points.when_ != "after") return wrong();
  std::string_view rest = text.substr(first + 1);
  int count = 1;
  if (const std::size_t second = rest.find(':'); second != std::string_view::npos) {
    const std::string_view number = rest.substr(second + 1);
    const char* const end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, count);
    if (parsed.ec != std::errc{} || parsed.ptr != end || count < 1) return wrong();
    rest = rest.substr(0, second);
  }
  if (rest.empty()) return wrong();
  points.point_ = rest;
  points.left_ = count;
  return points;
}

CrashPoints::CrashPoints(CrashPoints&& other) noexcept
    : when_{std::move(other.when_)}, point_{std::move(other.point_)}, left_{other.left_.load()} {}

CrashPoints& CrashPoints::operator=(CrashPoints&& other) noexcept {
  when_ = std::move(other.when_);
  point_ = std::move(other.point_);
  left_ = other.left_.load();
  return *this;
}

void CrashPoints::reach(std::string_view when, std::string_view point) {
  if (left_.load() == 0 || when != when_ || point != point_) return;
  if (left_.fetch_sub(1) != 1) return;
  std::fprintf(stderr, "KUBEGANG_CRASH_AT: ending at %s:%s\n", when_.c_str(), point_.c_str());
  ::kill(::getpid(), SIGKILL);
  ::pause();
}

}  // namespace control
