// A Writer that carries writes out on demand, in an order that a seed decides, and that
// can "crash": before a write is sent, or after it was done but before its result is known. Or one
// whose API server is slow: it writes in the order in which it was asked, as the program's does.
#pragma once

#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "kube/clock.h"
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

  // Makes each write take `each` from now on, at_once() of them at a time. It does not crash then.
  void be_slow(const kube::Clock& clock, base::Duration each) {
    clock_ = &clock;
    each_ = each;
  }

  // From now on the answers to writes of that name do not arrive before release_answers().
  void hold_answers_to(WritePoint point) { held_point_ = point; }
  void release_answers() {
    held_point_.reset();
    for (Outcome& outcome : held_) inbox_.completed(std::move(outcome));
    held_.clear();
  }

  // Any of the queued writes; of a slow API server, one that has taken its time.
  Turn run_one() {
    if (clock_ != nullptr) return run_one_slowly();
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
    if (point == held_point_) {
      held_.push_back(std::move(outcome));
    } else {
      inbox_.completed(std::move(outcome));
    }
    return Turn::kDone;
  }

  // Without those that a slow API server is working on.
  std::size_t queued_count() const { return queue_.size(); }
  // Returns the effects to be carried out, in the order in which they were decided.
  const std::vector<Effect>& queued() const { return queue_; }
  // Returns all that were taken, in order.
  const std::vector<WritePoint>& points() const { return points_; }

 private:
  Turn run_one_slowly() {
    const base::Instant now = clock_->wall();
    while (!queue_.empty() && std::ssize(under_way_) < at_once()) {
      under_way_.emplace_back(now + each_, std::move(queue_.front()));
      queue_.erase(queue_.begin());
    }
    if (under_way_.empty() || under_way_.front().first > now) return Turn::kNothing;
    const Effect effect = std::move(under_way_.front().second);
    under_way_.pop_front();
    points_.push_back(point_of(effect));
    inbox_.completed(actuator_.carry_out(effect));
    return Turn::kDone;
  }

  const kube::Clock* clock_ = nullptr;  // null: writes take no time
  base::Duration each_{};
  std::deque<std::pair<base::Instant, Effect>> under_way_;  // with when each is done
  const Actuator actuator_;
  Inbox& inbox_;
  base::Prng prng_;
  int crash_per_mille_ = 0;
  std::optional<WritePoint> crash_point_;
  std::optional<WritePoint> held_point_;
  std::vector<Outcome> held_;
  int crash_count_ = 0;
  std::vector<Effect> queue_;
  std::vector<WritePoint> points_;
};

}  // namespace control
