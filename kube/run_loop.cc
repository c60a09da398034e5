#include "kube/run_loop.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace kube {

// May be called from any thread; several calls before the next wait are one.
void Waker::wake() {
  {
    const std::lock_guard lock{mu_};
    // Kept until the next wait: a loop that is woken while it works does not sleep afterwards.
    woken_ = true;
  }
  changed_.notify_all();
}

// Only the first delay since the last wait counts: a later one ends later.
void Waker::wake_within(base::Duration delay) {
  {
    const std::lock_guard lock{mu_};
    const Time at = std::chrono::steady_clock::now() + delay;
    if (woken_ || (wakes_at_ && *wakes_at_ <= at)) return;
    wakes_at_ = at;
  }
  changed_.notify_all();
}

// Returns after `duration`, when woken, or when stop is requested, whichever comes first. A delay
// that begins during the wait makes it shorter.
void Waker::wait_for(base::Duration duration, std::stop_token stop) {
  // A day: kNever and its like would overflow in the wait.
  constexpr base::Duration kWaitMax = std::chrono::hours{24};
  const Time end = std::chrono::steady_clock::now() + std::min(duration, kWaitMax);
  std::unique_lock lock{mu_};
  while (!woken_ && !stop.stop_requested()) {
    const Time until = wakes_at_ ? std::min(end, *wakes_at_) : end;
    if (std::chrono::steady_clock::now() >= until) break;
    (void)changed_.wait_until(lock, stop, until, [&] {
      return woken_ || (wakes_at_ && *wakes_at_ < until);
    });
  }
  woken_ = false;
  wakes_at_.reset();
}

// Steps see the stop by their token; one that ignores it holds this up.
RunLoop::~RunLoop() {
  request_stop();
  join();
}

// `waker` null: the loop sleeps for as long as its step asked, and only a stop ends that early.
void RunLoop::start(const std::string& name, Step step, Waker* waker) {
  threads_.emplace_back([step = std::move(step), waker, stop = stop_.get_token(), name] {
    constexpr std::size_t kThreadNameMax = 15;  // pthread_setname_np(3)
    pthread_setname_np(pthread_self(), name.substr(0, kThreadNameMax).c_str());
    Waker own;
    Waker& used = waker == nullptr ? own : *waker;
    while (!stop.stop_requested()) {
      // A step that has more to do asks for no wait, and comes again at once.
      const base::Duration wait = step(stop);
      if (wait > base::Duration{}) used.wait_for(wait, stop);
    }
  });
}

// Waits until each step has returned.
void RunLoop::join() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  threads_.clear();
}

}  // namespace kube
