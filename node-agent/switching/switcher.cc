#include "node-agent/switching/switcher.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "linux/clock.h"
#include "linux/system_error.h"

// The thread's life is one loop: ask the core when it must wake, sleep until then, do one thing.
// Two facts shape it:
//
// * All nodes of a gang must switch at one instant, so the sleep is to an absolute time of the wall
//   clock. A timer that is set with TFD_TIMER_CANCEL_ON_SET wakes the thread when a person or NTP
//   sets that clock.
// * A timer wakes a thread late, by microseconds on an idle machine and by more on a busy one. The
//   thread learns how late (Lateness), asks to be woken that much earlier, prepares the switch, and
//   spins over the rest, for wake_ahead_max at most.
// The main thread hands assignments over through one atomic pointer; eventfds wake either side. The
// thread takes no lock.
namespace agent {
namespace {

// Above every normal thread; the priority that the kernel gives its own FIFO threads, among them
// threaded interrupt handlers.
constexpr int kFifoPriority = 50;
constexpr int kNiceValue = -20;
// The thread calls nothing deep; the default of 8 MiB would be address space that it never needs.
constexpr std::size_t kStackBytes = 256U << 10U;
// The heart beats at least this often.
constexpr base::Duration kWaitMax = std::chrono::milliseconds{500};
// To work out the switch before the instant, caches cold.
constexpr base::Duration kPrepareWithin = std::chrono::microseconds{30};

// An eventfd counts; its reader cares only whether it is readable.
void signal_event(const os::FileDescriptor& event) {
  const std::uint64_t one = 1;
  // Cannot fail but for an overflow, and then the reader is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof one);
}

bool clear_event(const os::FileDescriptor& event) {
  std::uint64_t count = 0;
  return ::read(event.get(), &count, sizeof count) == sizeof count;
}

}  // namespace

std::string_view to_string(ThreadPolicy policy) {
  switch (policy) {
    case ThreadPolicy::kFifo:
      return "fifo";
    case ThreadPolicy::kCfs:
      return "cfs";
  }
  return "unknown";
}

Switcher::Switcher(SwitchClock& clock, std::atomic<std::uint64_t>& beat, SwitcherOptions options)
    : clock_{clock},
      beat_{beat},
      options_{options},
      core_{clock, reports_, counters_},
      lateness_{options.wake_ahead_max} {}

Switcher::~Switcher() {
  if (!running_) return;
  stop_.store(true, std::memory_order_release);
  signal_event(wake_up_);
  ::pthread_join(thread_, nullptr);
}

// 1. make the descriptors, 2. start the thread with a small stack, 3. wait until it has found out
//    which priority it got.
base::Status Switcher::start() {
  CHECK(!running_);
  // By the wall clock, because that is what all nodes of a gang have in common.
  timer_ = os::FileDescriptor{::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC)};
  wake_up_ = os::FileDescriptor{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  news_ = os::FileDescriptor{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  if (!timer_.is_open() || !wake_up_.is_open() || !news_.is_open()) {
    return os::error_from_errno("switcher: timer and event descriptors", errno);
  }
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  const int error = ::pthread_create(&thread_, &attributes, &Switcher::thread_main, this);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) return os::error_from_errno("switcher: thread", error);
  running_ = true;
  // The caller reports the scheduling policy, which only the thread itself can find out.
  policy_known_.wait(false, std::memory_order_acquire);
  return {};
}

void Switcher::submit(Assignment assignment) {
  free_superseded();
  assignment.number = ++last_number_;
  // Handed over by pointer: the switching thread takes no lock and copies nothing. The memory is
  // freed here, when a later assignment is known to be obeyed.
  submitted_.push_back(std::make_unique<const Assignment>(std::move(assignment)));
  newest_.store(submitted_.back().get(), std::memory_order_release);
  signal_event(wake_up_);
}

// The thread may be reading the one in force and the one that it is about to take.
void Switcher::free_superseded() {
  const std::uint64_t obeyed = counters_.obeyed_assignment.load(std::memory_order_acquire);
  while (!submitted_.empty() && submitted_.front()->number < obeyed) submitted_.pop_front();
}

void Switcher::clear_news() {
  clear_event(news_);
}

void* Switcher::thread_main(void* self) {
  static_cast<Switcher*>(self)->run();
  return nullptr;
}

// Asks for SCHED_FIFO, and makes the best of a refusal.
void Switcher::take_priority() {
  ::pthread_setname_np(::pthread_self(), "switcher");
  ThreadPolicy got = ThreadPolicy::kCfs;
  const sched_param parameters{.sched_priority = kFifoPriority};
  if (options_.try_fifo &&
      ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &parameters) == 0) {
    got = ThreadPolicy::kFifo;
  } else {
    // If SCHED_FIFO is refused, this is the best that CFS offers. On Linux it applies to this
    // thread only. It helps against threads of the same CPU cgroup alone (freezer.md 2.2).
    if (options_.try_fifo) (void)::setpriority(PRIO_PROCESS, 0, kNiceValue);
    // The timer slack is 50 µs by default, which would be added to every wake-up. SCHED_FIFO
    // threads have none.
    ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  }
  policy_.store(got);
  policy_known_.store(true, std::memory_order_release);
  policy_known_.notify_all();
}

// Each round waits once and then does one thing. A new assignment goes before a boundary, since
// obeying it switches to run(now) anyway. An assignment that was replaced before the thread woke is
// never seen here: exchange() takes the newest only.
void Switcher::run() {
  take_priority();
  while (!stop_.load(std::memory_order_acquire)) {
    const SwitchWake wake = core_.next_wake();
    wait_for(wake);
    // After the wait and before the system calls: a write that hangs in the kernel stops the beat,
    // and supervisor and guard notice (freezer.md 5.4).
    beat_.fetch_add(1, std::memory_order_relaxed);
    if (const Assignment* assignment = newest_.exchange(nullptr, std::memory_order_acq_rel)) {
      core_.obey(*assignment);
    } else {
      if (wake.boundary) spin_until(*wake.boundary);
      core_.step();
    }
    everything_runs_.store(core_.everything_runs(), std::memory_order_release);
    if (core_.take_changed()) signal_event(news_);
  }
}

// Until shortly before the boundary, the next look, a submission, or a step of the clock.
void Switcher::wait_for(const SwitchWake& wake) {
  // Far in the future when there is no boundary: the timer still tells when the clock is set.
  const base::Instant now_wall = clock_.wall();
  const base::Instant at =
      wake.boundary ? *wake.boundary - wake_ahead() : now_wall + std::chrono::hours{1};
  base::Duration timeout = kWaitMax;
  if (wake.look) timeout = std::min(timeout, *wake.look - clock_.monotonic());
  // Something is due already. The eventfd stays readable, so a submission is not lost.
  if (at <= now_wall || timeout <= base::Duration{0}) return;
  const itimerspec setting{
      .it_interval = {},
      .it_value = os::to_timespec(std::max(base::Duration{1}, at.time_since_epoch()))};
  // CANCEL_ON_SET wakes the thread when the clock is set, instead of letting it sleep until an
  // instant that lies elsewhere now.
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &setting, nullptr);
  std::array<pollfd, 2> wait{pollfd{.fd = timer_.get(), .events = POLLIN, .revents = 0},
                             pollfd{.fd = wake_up_.get(), .events = POLLIN, .revents = 0}};
  const timespec relative = os::to_timespec(timeout);
  ::ppoll(wait.data(), wait.size(), &relative, nullptr);
  if (wait[0].revents != 0) {
    // If the clock was set, the timer is canceled and the read fails with ECANCELED; the
    // core sees the new time by itself.
    // The clock may be set back between the two reads: lateness below 0 would move all timers back.
    if (clear_event(timer_)) {
      lateness_.saw(std::clamp(clock_.wall() - at, base::Duration{0}, options_.wake_ahead_max));
    }
  }
  if (wait[1].revents != 0) clear_event(wake_up_);
}

base::Duration Switcher::wake_ahead() const {
  // As early as this machine has woken it late so far, and then some for the work: so the spin is
  // short and still in time.
  return std::min(options_.wake_ahead_max, lateness_.value() + kPrepareWithin);
}

// Spins over the last microseconds: a sleep would be late by more than what is left.
void Switcher::spin_until(base::Instant boundary) {
  const base::Duration left = boundary - clock_.wall();
  // More is left if another descriptor or a look ended the wait: the next round waits again.
  if (left <= base::Duration{0} || left > options_.wake_ahead_max) return;
  core_.prepare(boundary);
  // Bounded by wake_ahead_max on the monotonic clock too: the wall clock may be set back meanwhile.
  const base::Duration give_up = clock_.monotonic() + options_.wake_ahead_max;
  while (clock_.wall() < boundary && clock_.monotonic() < give_up) {
  }
}

}  // namespace agent
