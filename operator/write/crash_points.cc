#include "operator/write/crash_points.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string>

namespace control {

// Reads "before:start" or "after:pod-create:3": the third creation of a pod is carried out, and the
// process ends before its answer is heard. An empty text crashes nowhere. A wrong text is an error
// and not ignored, because a test that never crashes would pass.
base::Result<CrashPoints> CrashPoints::parse(std::string_view text) {
  CrashPoints points;
  if (text.empty()) return points;
  const std::string name = "KUBEGANG_CRASH_AT: \"" + std::string{text} + "\"";
  const auto wrong = [&] {
    return base::invalid_argument(name + " is not before:POINT[:N] or after:POINT[:N]");
  };
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return wrong();
  const std::string_view when = text.substr(0, first);
  if (when != "before" && when != "after") return wrong();
  points.when_ = when == "before" ? When::kBefore : When::kAfter;
  std::string_view rest = text.substr(first + 1);
  // Without a number the first time counts.
  int count = 1;
  if (const std::size_t second = rest.find(':'); second != std::string_view::npos) {
    const std::string_view number = rest.substr(second + 1);
    const char* const end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, count);
    if (parsed.ec != std::errc{} || parsed.ptr != end || count < 1) return wrong();
    rest = rest.substr(0, second);
  }
  const auto point = parse_write_point(rest);
  if (!point) {
    return base::invalid_argument(name + ": no write is called \"" + std::string{rest} +
                                  "\"; the names are " + write_point_names());
  }
  points.point_ = *point;
  points.left_ = count;
  return points;
}

// Moved only before the threads that count begin.
CrashPoints::CrashPoints(CrashPoints&& other) noexcept
    : when_{other.when_}, point_{other.point_}, left_{other.left_.load()} {}

CrashPoints& CrashPoints::operator=(CrashPoints&& other) noexcept {
  when_ = other.when_;
  point_ = other.point_;
  left_ = other.left_.load();
  return *this;
}

// Called by all writers, before and after each write.
void CrashPoints::reach(When when, WritePoint point) {
  if (left_.load() == 0 || when != when_ || point != point_) return;
  // Several writers may come here at once: exactly one of them sees the last count.
  // The count goes on below 0 if another writer comes in the moment before the signal arrives; that
  // is harmless, since the process ends.
  if (left_.fetch_sub(1) != 1) return;
  std::fprintf(stderr, "KUBEGANG_CRASH_AT: ending %s %s\n",
               when == When::kBefore ? "before" : "after", std::string{to_string(point)}.c_str());
  // SIGKILL and not exit(): a crash runs no destructors, closes no connection in order and releases
  // no Lease.
  ::kill(::getpid(), SIGKILL);
  // The signal may take a moment; no write must follow until then.
  ::pause();
}

}  // namespace control
