// The one place of the client library that has threads: a loop calls step() of an object again and
// again, waiting in between as long as step() says; a single call may be made on another thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"

namespace kube {

// Ends a loop's waiting. Thread-safe. A wake() while no thread waits ends the next wait.
class Waker {
 public:
  void wake();
  // Ends a wait `delay` from now at the latest, for what may gather until then: many of these cost
  // the loop one wake-up.
  void wake_within(base::Duration delay);
  // Returns after `duration`, at wake(), at the end of the first delay, or when `stop` is
  // requested.
  void wait_for(base::Duration duration, std::stop_token stop);

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::mutex mu_;
  std::condition_variable_any changed_;
  bool woken_ = false;              // guarded by mu_
  std::optional<Time> wakes_at_{};  // guarded by mu_
};

// Makes one call on a thread of its own. The future waits for its end when it is destroyed.
template <typename Call>
auto on_other_thread(Call call) {
  return std::async(std::launch::async, std::move(call));
}

// start() and join() belong to one thread; request_stop() may be called from any.
class RunLoop {
 public:
  // Returns how long to wait until it is called again. Must return soon after `stop` is requested.
  using Step = std::function<base::Duration(std::stop_token stop)>;

  RunLoop() = default;
  ~RunLoop();  // stops and joins
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  // Starts a thread of its own, named for `top` (15 characters count). `waker`, if any, must live
  // until join() and be given to no second loop.
  void start(const std::string& name, Step step, Waker* waker = nullptr);

  void request_stop() { stop_.request_stop(); }
  std::stop_token stop_token() const { return stop_.get_token(); }
  // Waits until all threads have ended. REQUIRES: request_stop() has been or will be called.
  void join();

 private:
  std::stop_source stop_;
  std::vector<std::thread> threads_;
};

}  // namespace kube
