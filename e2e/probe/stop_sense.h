// Tells whether the calling thread was stopped since it last looked: frozen with its cgroup, or by
// SIGSTOP.
//
// The clock cannot show this, since a stop looks like a busy CPU, so it is counted: the kernel
// counts how often a thread went to sleep (getrusage, ru_nvcsw). A stopped thread goes to sleep
// too; one that waits for a CPU does not. So a thread that knows how often it went to sleep by
// itself knows of every stop, however short. Another wait in the kernel (for a page that must be
// read) is taken for a stop as well: that never hides one.
//
// Not noticed is a stop that is taken back before the thread has gone to sleep for it: it did not
// stand still, it was on its way through the kernel. And one that comes just before or just after
// the system call of a sleep_until(), that is within about a microsecond, if that sleep did not
// come about either because the thread was kept from its CPU until its time was over.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace probe {

// For one thread, which makes it and calls it.
class StopSense {
 public:
  struct Look {
    base::Instant at{};        // CLOCK_REALTIME
    bool was_stopped = false;  // between the last look and this one
  };

  StopSense();  // CHECKs that the kernel can do what it needs
  StopSense(const StopSense&) = delete;
  StopSense& operator=(const StopSense&) = delete;
  ~StopSense();

  // Reads the clock at a moment after the last stop that it reports and before the next one. Two
  // system calls.
  Look look();

  // The one way to sleep that does not count as a stop. CLOCK_REALTIME.
  void sleep_until(base::Instant instant);

 private:
  void count_stops();

  unsigned long events_ = 0;  // an aio_context_t without any: to sleep on
  std::int64_t sleeps_;       // of the thread, as far as they are accounted for
  bool is_stop_due_{};        // noticed, not reported yet
};

}  // namespace probe
