// A Writer that carries writes out when it is told to, in an order that a seed decides, and that
// can "crash": before a write is sent, or after it was done but before its result is known.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "operator/loop/inbox.h"
#include "operator/write/actuator.h"
#include "operator/write/writer.h"

namespace control {

class ManualWriter final : public Writer {
 public:
  enum class Turn { kNothing, kDone, kCrashedBefore, kCrashedAfter };

  ManualWriter(Actuator actuator, Inbox& inbox, std::uint64_t seed)
      : actuator_{std::move(actuator)}, inbox_{inbox}, prng_{seed} {}

  void submit(Effect effect) override { queue_.push_back(std::move(effect)); }
  int at_once() const override { return 16; }

  // One write in thousand * `crash_per_mille` crashes. 0: never.
  void crash_at_random(int crash_per_mille) { crash_per_mille_ = crash_per_mille; }

  // The `count`th write of that name from now on is done, and then the process crashes.
  void crash_after(WritePoint point, int count) {
    crash_point_ = point;
    crash_count_ = count;
  }

  // Any of the queued writes.
  Turn run_one() {
    if (queue_.empty()) return Turn::kNothing;
    const auto index = static_cast<std::ptrdiff_t>(prng_.below(queue_.size()));
    const Effect effect = std::move(queue_[static_cast<std::size_t>(index)]);
    queue_.erase(queue_.begin() + index);
    const WritePoint point = point_of(effect);
    points_.push_back(point);
    const bool crash =
        crash_per_mille_ > 0 && prng_.below(1000) < static_cast<std::uint64_t>(crash_per_mille_);
    if (crash && prng_.below(2) == 0) return Turn::kCrashedBefore;
    Outcome outcome = actuator_.carry_out(effect);
    if (crash || (point == crash_point_ && --crash_count_ == 0)) return Turn::kCrashedAfter;
    inbox_.completed(std::move(outcome));
    return Turn::kDone;
  }

  std::size_t queued_count() const { return queue_.size(); }
  // What is to be done next, in the order in which it was decided.
  const std::vector<Effect>& queued() const { return queue_; }
  // All that were taken, in order.
  const std::vector<WritePoint>& points() const { return points_; }

 private:
  const Actuator actuator_;
  Inbox& inbox_;
  base::Prng prng_;
  int crash_per_mille_ = 0;
  std::optional<WritePoint> crash_point_;
  int crash_count_ = 0;
  std::vector<Effect> queue_;
  std::vector<WritePoint> points_;
};

}  // namespace control
