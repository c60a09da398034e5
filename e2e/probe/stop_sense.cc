#include "e2e/probe/stop_sense.h"

#include <linux/aio_abi.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace probe {
namespace {

// If less than this is left, the end could come before the thread sleeps: it looks at the clock
// instead.
constexpr base::Duration kSleepMin = std::chrono::microseconds{50};

base::Instant wall() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return base::instant_from_micros(std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000);
}

// Returns the number of voluntary context switches. The freezer stops a thread by letting it sleep
// in the kernel, so a stop adds one; being preempted counts elsewhere (ru_nivcsw) and does not.
std::int64_t sleeps_of_this_thread() {
  rusage usage{};
  CHECK(::getrusage(RUSAGE_THREAD, &usage) == 0);
  return usage.ru_nvcsw;
}

}  // namespace

StopSense::StopSense() : sleeps_{sleeps_of_this_thread()} {
  CHECK(::syscall(SYS_io_setup, 1L, &events_) == 0);
}

StopSense::~StopSense() {
  ::syscall(SYS_io_destroy, events_);
}

// Counts sleeps that this class has not caused as stops, which are kept until reported.
void StopSense::count_stops() {
  const std::int64_t sleeps = sleeps_of_this_thread();
  is_stop_due_ = is_stop_due_ || sleeps != sleeps_;
  sleeps_ = sleeps;
}

StopSense::Look StopSense::look() {
  for (;;) {
    count_stops();
    const base::Instant at = wall();
    // Stopped just now, so this may be an instant from before it.
    if (sleeps_of_this_thread() != sleeps_) continue;
    return {at, std::exchange(is_stop_due_, false)};
  }
}

void StopSense::sleep_until(base::Instant instant) {
  for (base::Duration left = instant - wall(); left > base::Duration{}; left = instant - wall()) {
    if (left < kSleepMin) continue;
    count_stops();
    const timespec time{left.count() / 1'000'000, left.count() % 1'000'000 * 1000};
    // Undisturbed it goes to sleep exactly once. A stop before it adds one, since all of the time
    // is still to be slept; a stop in it ends it (EINTR, by all freezers: freezer.md 2.5), where
    // clock_nanosleep would go on, and is not even woken by the freezer of cgroup v1. A thread that
    // is kept from its CPU until its time is over does not sleep at all; a stop meanwhile would be
    // its only sleep and look like its own. Unlike epoll_pwait, io_getevents says EINTR then too:
    // it looks last of all whether it was disturbed.
    io_event none{};
    const bool undisturbed = ::syscall(SYS_io_getevents, events_, 1L, 1L, &none, &time) == 0;
    CHECK(undisturbed || errno == EINTR);
    const std::int64_t sleeps = sleeps_of_this_thread();
    is_stop_due_ = is_stop_due_ || !undisturbed || sleeps > sleeps_ + 1;
    sleeps_ = sleeps;
  }
}

}  // namespace probe
