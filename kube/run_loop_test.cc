#include "kube/run_loop.h"

#include <gtest/gtest.h>

#include <atomic>

namespace kube {
namespace {

// A step that asks for no wait is called again at once, and never after the stop.
TEST(RunLoop, StepsUntilStopped) {
  std::atomic<int> steps{0};
  RunLoop loop;
  loop.start("steps", [&](std::stop_token) {
    if (++steps == 3) loop.request_stop();
    return base::Duration{};
  });
  loop.join();
  EXPECT_EQ(steps, 3);
}

// The longest possible wait; the test hangs if the stop does not end it. It is also the sum that
// overflows if "now + wait" is computed without care.
TEST(RunLoop, StopEndsAWaitAtOnce) {
  std::atomic<bool> stepped{false};
  RunLoop loop;
  loop.start("waits", [&](std::stop_token) {
    stepped = true;
    return base::Duration::max();
  });
  while (!stepped) std::this_thread::yield();
  loop.request_stop();
  loop.join();
}

// Each step asks for an hour. The wake may come before the loop waits, and must count then, too. A
// wake that were lost would let a change wait for the next regular step.
TEST(RunLoop, WakeEndsAWait) {
  std::atomic<int> steps{0};
  Waker waker;
  RunLoop loop;
  loop.start(
      "woken",
      [&](std::stop_token) {
        ++steps;
        return base::Duration{std::chrono::hours{1}};
      },
      &waker);
  for (int want = 1; want <= 3; ++want) {
    while (steps < want) std::this_thread::yield();
    waker.wake();
  }
  while (steps < 4) std::this_thread::yield();
}

// A loop that would wait for an hour comes back after the delay, whether that began before its wait
// or during it.
TEST(Waker, ADelayEndsAWaitThatIsLonger) {
  Waker waker;
  waker.wake_within(std::chrono::milliseconds{1});
  waker.wait_for(std::chrono::hours{1}, {});
  std::jthread other{[&] { waker.wake_within(std::chrono::milliseconds{1}); }};
  waker.wait_for(std::chrono::hours{1}, {});
}

// Urgent work does not wait for other work: the test hangs if it does.
TEST(Waker, AWakeEndsAWaitDuringADelay) {
  Waker waker;
  waker.wake_within(std::chrono::hours{1});
  std::jthread other{[&] { waker.wake(); }};
  waker.wait_for(std::chrono::hours{2}, {});
}

// The delay of what the loop has looked at by now must not end a later wait: only the wake() does.
TEST(Waker, AWaitEndsAllDelaysBeforeIt) {
  Waker waker;
  waker.wake_within(std::chrono::milliseconds{50});
  waker.wake();
  waker.wait_for(std::chrono::hours{1}, {});
  const auto began = std::chrono::steady_clock::now();
  waker.wait_for(std::chrono::milliseconds{100}, {});
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds{100});
}

}  // namespace
}  // namespace kube
