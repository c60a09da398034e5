// InformBudget: writes that only inform (a reason, an expected start, run times) share a budget, so
// that thousands of jobs that wait cost no more than twenty writes per second, and two while starts
// and ends wait for their turn. The head of the queue goes first. A job is written once a minute;
// partitions and the like, few and what administrators look at, are each written once in 5 s.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/time.h"
#include "scheduler/model/job.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of what is queued for each call.
class InformBudget {
 public:
  static constexpr base::Duration kObjectPeriod = std::chrono::minutes{1};  // of one job
  static constexpr base::Duration kPolicyPeriod = std::chrono::seconds{5};  // of a partition, …
  static constexpr base::Duration kLookAgain = std::chrono::milliseconds{50};

  struct Order {
    std::int64_t priority = 0;
    sched::JobId id{};
    std::string uid;
    bool operator<(const Order& other) const {
      return std::tuple{-priority, id, uid} < std::tuple{-other.priority, other.id, other.uid};
    }
  };

  // Begins empty.
  void restore(base::Instant now) { filled_at_ = now; }
  // Adds the tokens of the time since the last call. `busy`: more important writes wait.
  void refill(base::Instant now, bool busy);
  bool has_one() const { return tokens_ >= 1; }
  // Returns the last argument of refill().
  bool is_busy() const { return is_busy_; }
  void spend_one() { tokens_ -= 1; }
  double tokens() const { return tokens_; }

  // Queues the job: its turn comes in that order, not before `at`. Whether there is still something
  // to say is for the caller to see then.
  void queue(const Order& order, base::Instant at, base::Instant now);
  // Returns the name whose turn it is, and ends that turn.
  std::optional<std::string> take_first();
  // Takes one whose `at` has come; it must be queued again, since its priority may be another now.
  std::optional<std::string> take_later(base::Instant now);

  base::Instant next_due(base::Instant now) const;

 private:
  double tokens_ = 0;
  bool is_busy_ = false;
  base::Instant filled_at_{};
  std::set<Order> queue_;
  std::set<std::pair<base::Instant, std::string>> later_;  // UIDs
};

}  // namespace control
