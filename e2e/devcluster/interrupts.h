// Ctrl-C and friends as something to wait for, so that a program ends in order.
#pragma once

#include <signal.h>

#include "base/time.h"

namespace devcluster {

// Blocks SIGINT, SIGTERM and SIGHUP in the calling thread and in those that it starts, and ignores
// SIGPIPE. Make it first in main().
class Interrupts {
 public:
  Interrupts() {
    ::sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals_, number);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Waits that long. Returns true if a signal asked to stop, now or earlier.
  bool wait(base::Duration time) {
    if (stopped_) return true;
    const timespec duration{time.count() / 1'000'000, time.count() % 1'000'000 * 1000};
    stopped_ = ::sigtimedwait(&signals_, nullptr, &duration) > 0;
    return stopped_;
  }
  bool stopped() const { return stopped_; }

 private:
  sigset_t signals_{};
  bool stopped_ = false;
};

}  // namespace devcluster
