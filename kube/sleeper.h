// How the client library waits: for its rate limit and between retries. A test's sleeper moves the
// manual clock instead.
#pragma once

#include <stop_token>

#include "base/result.h"
#include "base/time.h"

namespace kube {

// Thread-safe.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Returns after `duration`, or kCancelled as soon as `stop` is requested.
  virtual base::Status sleep(base::Duration duration, std::stop_token stop) = 0;
};

// Blocks the calling thread.
class ThreadSleeper final : public Sleeper {
 public:
  base::Status sleep(base::Duration duration, std::stop_token stop) override;
};

}  // namespace kube
