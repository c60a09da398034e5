#include "operator/write/thread_writer.h"

#include <optional>

namespace control {

void ThreadWriter::submit(Effect effect) {
  {
    const std::lock_guard lock{mu_};
    queue_.push_back(std::move(effect));
  }
  changed_.notify_one();
}

void ThreadWriter::work(std::stop_token stop) {
  for (;;) {
    std::optional<Effect> effect;
    {
      std::unique_lock lock{mu_};
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      effect = std::move(queue_.front());
      queue_.pop_front();
    }
    // The Lease is lost and the process about to end: what is still in the queue must not be
    // written.
    if (!may_write_()) continue;
    const WritePoint point = point_of(*effect);
    crash_points_.reach(CrashPoints::When::kBefore, point);
    Outcome outcome = actuator_.carry_out(*effect, stop);
    crash_points_.reach(CrashPoints::When::kAfter, point);
    // A crash between the write and this line loses the answer only: the next leader reads what was
    // stored.
    inbox_.completed(std::move(outcome));
  }
}

}  // namespace control
