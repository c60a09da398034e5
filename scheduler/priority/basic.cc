#include "scheduler/priority/basic.h"

#include <algorithm>

namespace sched {
namespace {

constexpr std::int64_t kPriorityMax = 0xffffffffLL;

Priority clamped(std::int64_t value) {
  return Priority{static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 1, kPriorityMax))};
}

}  // namespace

Priority BasicPriorities::next(const JobRequest& request) {
  if (request.priority) return *request.priority;
  lowest_ = clamped(std::int64_t{lowest_.value()} - 1);
  return clamped(std::int64_t{lowest_.value()} - request.nice);
}

void BasicPriorities::restore(const JobRequest& request, Priority priority) {
  if (!request.priority) lowest_ = std::min(lowest_, priority);
}

Priority BasicPriorities::with_nice(Priority priority, int before, int after) {
  if (before == after || priority.value() == 0) return priority;
  return clamped(std::int64_t{priority.value()} + before - after);
}

}  // namespace sched
