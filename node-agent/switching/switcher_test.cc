// The switcher with its thread, on the real clock and a freezer that any thread may look at.
#include "node-agent/switching/switcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A pod's cgroup that the switcher's thread writes and the test reads.
class SharedFreezer final : public Freezer {
 public:
  IoResult request(FreezeRequest wanted) override {
    asked_.store(wanted);
    return IoResult::kOk;
  }
  Observation observe() override {
    return {.result = IoResult::kOk,
            .frozen = asked_.load() == FreezeRequest::kFrozen && !stuck_.load()};
  }
  // Sets that the pod's tasks do not stop.
  void be_stuck(bool stuck) { stuck_.store(stuck); }
  AskedState asked() override { return {.result = IoResult::kOk, .request = asked_.load()}; }
  std::optional<int> changes_fd() const override { return std::nullopt; }
  bool kill_works_while_frozen() const override { return true; }
  bool runs() const { return asked_.load() == FreezeRequest::kThawed; }

 private:
  std::atomic<FreezeRequest> asked_{FreezeRequest::kThawed};
  std::atomic<bool> stuck_{false};
};

class SwitcherTest : public ::testing::Test {
 protected:
  SwitcherTest() : switcher_{clock_, beat_, SwitcherOptions{}} {
    for (int i = 0; i < 2; ++i) {
      freezers_.push_back(std::make_shared<SharedFreezer>());
      controls_.push_back(std::make_shared<PodControl>(PodIdentity{.uid = std::to_string(i)},
                                                       freezers_.back(), FoundAs::kRunning));
    }
  }
  Assignment assignment(std::vector<timetable::PodSet> cycle) {
    Assignment assignment;
    assignment.table = std::make_shared<const timetable::Timetable>(timetable::Timetable{
        .slice = milliseconds{100}, .pods_count = 2, .cycle = std::move(cycle)});
    for (std::uint16_t i = 0; i < 2; ++i) {
      assignment.pods.push_back(
          {.control = controls_[i], .index = i, .rule = ControlRule::kTimetable});
    }
    return assignment;
  }
  // Waits on the real world, the other thread.
  template <typename Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 10'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds{1});
    }
    return false;
  }
  bool obeyed() {
    return eventually([&] { return switcher_.caught_up(); });
  }

  RealSwitchClock clock_;
  std::atomic<std::uint64_t> beat_{0};
  Switcher switcher_;
  std::vector<std::shared_ptr<SharedFreezer>> freezers_;
  std::vector<std::shared_ptr<PodControl>> controls_;
};

// Two pods and slices of 100 ms: three more switches come within half a second on an idle machine,
// and eventually() waits for ten.
TEST_F(SwitcherTest, ObeysAndTakesTurnsAndBeats) {
  ASSERT_TRUE(switcher_.start().ok());
  switcher_.submit(assignment({{0}, {1}}));
  ASSERT_TRUE(obeyed());
  EXPECT_NE(freezers_[0]->runs(), freezers_[1]->runs());
  const std::uint64_t before = switcher_.counters().switches.load();
  EXPECT_TRUE(eventually([&] { return switcher_.counters().switches.load() >= before + 3; }));
  EXPECT_GT(beat_.load(), 0U);
  std::optional<SwitchReport> boundary;
  while (auto report = switcher_.take_report()) {
    if (report->cause == SwitchCause::kBoundary) boundary = report;
  }
  ASSERT_TRUE(boundary.has_value());
  EXPECT_GE(boundary->first_write, boundary->due);
  EXPECT_GE(boundary->last_write, boundary->first_write);
}

// Assignments are handed over by a pointer, without a lock.
TEST_F(SwitcherTest, TheNewestOfManySubmissionsWins) {
  ASSERT_TRUE(switcher_.start().ok());
  // Most are replaced before the thread sees them, and their memory must live until then.
  for (int i = 0; i < 2000; ++i) switcher_.submit(assignment({{}}));
  Assignment all = assignment({{}});
  all.everything_runs = true;
  switcher_.submit(std::move(all));
  ASSERT_TRUE(obeyed());
  EXPECT_TRUE(freezers_[0]->runs() && freezers_[1]->runs());
  EXPECT_TRUE(eventually([&] { return switcher_.everything_runs(); }));
}

// For example the kill switch. It comes while the thread waits for a task that does not stop; it
// must not be lost.
TEST_F(SwitcherTest, WhatIsSubmittedWhileItWaitsForAFreezeIsObeyedAfterwards) {
  ASSERT_TRUE(switcher_.start().ok());
  switcher_.submit(assignment({{0}}));
  ASSERT_TRUE(obeyed());
  freezers_[0]->be_stuck(true);
  Assignment other_way = assignment({{1}});
  // Much longer than the test: only the end of the freeze can end the wait.
  other_way.barrier = seconds{60};
  const std::uint64_t before = switcher_.counters().obeyed_assignment.load();
  switcher_.submit(std::move(other_way));
  ASSERT_TRUE(eventually([&] { return !freezers_[0]->runs(); }));
  Assignment all = assignment({{}});
  all.everything_runs = true;
  switcher_.submit(std::move(all));
  EXPECT_EQ(switcher_.counters().obeyed_assignment.load(), before);
  freezers_[0]->be_stuck(false);
  ASSERT_TRUE(obeyed());
  EXPECT_TRUE(freezers_[0]->runs() && freezers_[1]->runs());
  EXPECT_TRUE(eventually([&] { return switcher_.everything_runs(); }));
}

// The destructor joins the thread: a thread that missed the stop would hang the test.
TEST_F(SwitcherTest, StopsWhileItIsSpinningAndSleeping) {
  for (int round = 0; round < 10; ++round) {
    Switcher other{clock_, beat_, SwitcherOptions{.try_fifo = round % 2 == 0}};
    ASSERT_TRUE(other.start().ok());
    other.submit(assignment({{0}, {1}}));
    // 0 to 63 ms: the end comes at different points of a slice of 100 ms, and with both scheduling
    // policies.
    std::this_thread::sleep_for(milliseconds{round * 7});
  }
}

// How long before a boundary the thread wakes. One late wake-up must count at once; an early one
// does not justify trust in the next.
TEST(Lateness, GoesUpAtOnceAndDownSlowly) {
  Lateness lateness{milliseconds{100}};
  lateness.saw(milliseconds{20});
  // 100 - (100 - 20) / 8.
  EXPECT_EQ(lateness.value(), milliseconds{90});
  lateness.saw(milliseconds{300});
  EXPECT_EQ(lateness.value(), milliseconds{300});
  for (int i = 0; i < 100; ++i) lateness.saw(milliseconds{20});
  EXPECT_NEAR(static_cast<double>(lateness.value().count()), 20'000, 10);
}

// Not asked for SCHED_FIFO, it must not claim it.
TEST_F(SwitcherTest, SaysWhichPolicyItGot) {
  Switcher modest{clock_, beat_, SwitcherOptions{.try_fifo = false}};
  ASSERT_TRUE(modest.start().ok());
  EXPECT_EQ(modest.policy(), ThreadPolicy::kCfs);
  EXPECT_EQ(to_string(ThreadPolicy::kCfs), "cfs");
  EXPECT_EQ(to_string(ThreadPolicy::kFifo), "fifo");
}

}  // namespace
}  // namespace agent
