#include "operator/write/thread_writer.h"

namespace control {

void ThreadWriter::submit(Write write) {
  {
    const std::lock_guard lock{mu_};
    queue_.push_back(std::move(write));
  }
  changed_.notify_one();
}

void ThreadWriter::work(std::stop_token stop) {
  for (;;) {
    Write write;
    {
      std::unique_lock lock{mu_};
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      write = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!may_write_()) continue;
    crash_points_.reach("before", write.point);
    auto done = write.run();
    crash_points_.reach("after", write.point);
    inbox_.completed(std::move(done));
  }
}

}  // namespace control
