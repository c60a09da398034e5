#include "operator/publish/inform_budget.h"

#include <algorithm>

namespace control {
namespace {

// Writes per second. Twenty keep the reasons of a thousand waiting jobs fresh within a minute; two
// keep them moving while commit points wait for their turn.
constexpr double kPerSecond = 20;
constexpr double kPerSecondWhenBusy = 2;

}  // namespace

// A bucket of one second: what is not spent within a second is lost, so that a quiet hour does not
// end in a burst.
void InformBudget::refill(base::Instant now, bool busy) {
  const auto passed = std::chrono::duration<double>(now - filled_at_).count();
  const double rate = busy ? kPerSecondWhenBusy : kPerSecond;
  tokens_ = std::min(rate, tokens_ + passed * rate);
  filled_at_ = now;
  is_busy_ = busy;
}

// The queue is in the order of priority; an object that was written less than a minute ago waits in
// `later_` first, and enters the queue with the priority that it has then.
void InformBudget::queue(const Order& order, base::Instant at, base::Instant now) {
  if (at <= now) {
    queue_.insert(order);
  } else {
    later_.emplace(at, order.uid);
  }
}

std::optional<std::string> InformBudget::take_first() {
  if (queue_.empty()) return std::nullopt;
  return queue_.extract(queue_.begin()).value().uid;
}

std::optional<std::string> InformBudget::take_later(base::Instant now) {
  if (later_.empty() || later_.begin()->first > now) return std::nullopt;
  return later_.extract(later_.begin()).value().second;
}

base::Instant InformBudget::next_due(base::Instant now) const {
  // The queue may be non-empty only because the budget is: asked again soon, rather than at the
  // exact instant at which the next token is there.
  if (!queue_.empty()) return now + kLookAgain;
  if (later_.empty()) return base::kNever;
  return std::max(now + kLookAgain, later_.begin()->first);
}

}  // namespace control
