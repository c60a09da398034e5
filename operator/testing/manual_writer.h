// A Writer that carries writes out when it is told to, in an order that a seed decides, and that
// can "crash": before a write is sent, or after it was done but before its result is known.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "operator/loop/inbox.h"
#include "operator/write/writer.h"

namespace control {

class ManualWriter final : public Writer {
 public:
  enum class Outcome { kNothing, kDone, kCrashedBefore, kCrashedAfter };

  ManualWriter(Inbox& inbox, std::uint64_t seed) : inbox_{inbox}, prng_{seed} {}

  void submit(Write write) override { queue_.push_back(std::move(write)); }
  int at_once() const override { return 16; }

  // One write in thousand * `crash_per_mille` crashes. 0: never.
  void crash_at_random(int crash_per_mille) { crash_per_mille_ = crash_per_mille; }

  // The next write of that name is done, and then the process crashes.
  void crash_after(std::string point) { crash_point_ = std::move(point); }

  // Any of the queued writes.
  Outcome run_one() {
    if (queue_.empty()) return Outcome::kNothing;
    const auto index = static_cast<std::ptrdiff_t>(prng_.below(queue_.size()));
    Write write = std::move(queue_[static_cast<std::size_t>(index)]);
    queue_.erase(queue_.begin() + index);
    points_.push_back(write.point);
    const bool crash =
        crash_per_mille_ > 0 && prng_.below(1000) < static_cast<std::uint64_t>(crash_per_mille_);
    if (crash && prng_.below(2) == 0) return Outcome::kCrashedBefore;
    auto done = write.run();
    if (crash || write.point == crash_point_) return Outcome::kCrashedAfter;
    inbox_.completed(std::move(done));
    return Outcome::kDone;
  }

  std::size_t queued_count() const { return queue_.size(); }
  const std::vector<std::string>& points() const {
    return points_;
  }  // all that were taken, in order

 private:
  Inbox& inbox_;
  base::Prng prng_;
  int crash_per_mille_ = 0;
  std::string crash_point_;
  std::vector<Write> queue_;
  std::vector<std::string> points_;
};

}  // namespace control
