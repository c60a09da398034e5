#include "kube/sleeper.h"

#include <condition_variable>
#include <mutex>

namespace kube {

// Waits on a condition that never comes true, because std::this_thread::sleep_for() cannot be
// ended by a stop token. Mutex and variable belong to this call, so any number of threads may
// sleep.
base::Status ThreadSleeper::sleep(base::Duration duration, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any nobody_notifies;
  std::unique_lock lock{mutex};
  (void)nobody_notifies.wait_for(lock, stop, duration, [] { return false; });
  if (stop.stop_requested()) return base::Error{base::Code::kCancelled, "stopped while waiting"};
  return {};
}

}  // namespace kube
