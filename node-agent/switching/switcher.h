// The switcher's thread: sleeps to absolute wall-clock instants, steps the SwitchCore, and is the
// one writer of freeze files while it lives.
//
// SCHED_FIFO where the kernel allows it, and it says which policy it got: under load a thread of
// normal priority needs milliseconds for what takes this one microseconds (freezer.md 2.2).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "linux/file_descriptor.h"
#include "node-agent/switching/assignment.h"
#include "node-agent/switching/switch_clock.h"
#include "node-agent/switching/switch_core.h"
#include "node-agent/switching/switch_report.h"

namespace agent {

// SCHED_FIFO, or the kernel's class for all threads. With the latter the thread asks for the best
// nice value, which helps within its own CPU cgroup only.
enum class ThreadPolicy : std::uint8_t { kFifo, kCfs };
std::string_view to_string(ThreadPolicy policy);

struct SwitcherOptions {
  bool try_fifo = true;
  // How long before a boundary the thread wakes up and spins, so that a late timer does no harm: as
  // late as timers were lately and a bit more, at most this. A task may want the CPU meanwhile.
  base::Duration wake_ahead_max = std::chrono::microseconds{200};
};

// How late timers are: goes up at once, and down slowly.
class Lateness {
 public:
  explicit Lateness(base::Duration at_first) : lateness_{at_first} {}
  void saw(base::Duration late) {
    lateness_ = late > lateness_ ? late : lateness_ - (lateness_ - late) / kForgetPart;
  }
  base::Duration value() const { return lateness_; }

 private:
  static constexpr int kForgetPart = 8;
  base::Duration lateness_;
};

// submit(), the counters, take_report() and the policy may be used by one thread, the main one.
class Switcher final : public AssignmentSink {
 public:
  // `beat` is counted up at least once a second while the thread lives (the supervisor watches it).
  Switcher(SwitchClock& clock, std::atomic<std::uint64_t>& beat, SwitcherOptions options);
  // Stops the thread. Frozen pods stay as they are: submit everything_runs first.
  ~Switcher() override;
  Switcher(const Switcher&) = delete;
  Switcher& operator=(const Switcher&) = delete;

  // Makes the descriptors and the thread. kUnavailable: the kernel refuses them.
  base::Status start();

  // The newest is obeyed at once.
  void submit(Assignment assignment) override;
  bool caught_up() const override {
    return counters_.obeyed_assignment.load(std::memory_order_acquire) >= last_number_;
  }

  // Readable when there is something new to take: reports, states of pods.
  int news_fd() const { return news_.get(); }
  void clear_news();
  std::optional<SwitchReport> take_report() { return reports_.pop(); }
  const SwitchCounters& counters() const { return counters_; }
  // As of the last step of the thread.
  bool everything_runs() const { return everything_runs_.load(std::memory_order_acquire); }
  // Known after start().
  ThreadPolicy policy() const { return policy_.load(); }

 private:
  static void* thread_main(void* self);
  void run();
  void take_priority();
  void wait_for(const SwitchWake& wake);
  void spin_until(base::Instant boundary);
  base::Duration wake_ahead() const;
  void free_superseded();

  SwitchClock& clock_;
  std::atomic<std::uint64_t>& beat_;
  const SwitcherOptions options_;

  os::FileDescriptor timer_;    // wall clock, canceled when it is set
  os::FileDescriptor wake_up_;  // eventfd: a submission or the stop
  os::FileDescriptor news_;     // eventfd: the other way

  SwitchCounters counters_;
  ReportRing reports_;
  SwitchCore core_;
  Lateness lateness_;
  std::atomic<const Assignment*> newest_{
      nullptr};  // not yet seen by the thread; owned by submitted_
  std::deque<std::unique_ptr<const Assignment>>
      submitted_;  // the main thread's: alive until superseded
  std::uint64_t last_number_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<bool> everything_runs_{true};
  std::atomic<ThreadPolicy> policy_{ThreadPolicy::kCfs};
  std::atomic<bool> policy_known_{false};
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace agent
