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

}  // namespace
}  // namespace kube
