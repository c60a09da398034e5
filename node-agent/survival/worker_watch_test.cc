#include "node-agent/survival/worker_watch.h"

#include <gtest/gtest.h>

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The supervisor's judgement without processes: two counters and a clock of the test.
class WorkerWatchTest : public ::testing::Test {
 protected:
  WorkerWatchTest() { start_again(); }
  void start_again() {
    main_ = switcher_ = 0;
    watch_.started(now_);
  }
  // Looks every 500 ms; returns after how long it hangs, or nothing within a minute.
  std::optional<base::Duration> hangs_after(bool main_beats, bool switcher_beats) {
    const base::Duration begin = now_;
    while (now_ - begin < seconds{60}) {
      now_ += milliseconds{500};
      if (main_beats) ++main_;
      if (switcher_beats) ++switcher_;
      if (watch_.hangs(main_, switcher_, now_)) return now_ - begin;
    }
    return std::nullopt;
  }
  WorkerWatch watch_;
  base::Duration now_ = seconds{100};
  std::uint64_t main_ = 0;
  std::uint64_t switcher_ = 0;
};

// For a minute, in which no look may call it hung.
TEST_F(WorkerWatchTest, LetsABeatingWorkerLive) {
  EXPECT_EQ(hangs_after(true, true), std::nullopt);
}

// The limit is 5 s from the last beat, and looks come every 500 ms. A worker in which one loop
// beats on is hung all the same.
TEST_F(WorkerWatchTest, NoticesThatEitherLoopHangsWithin6Seconds) {
  EXPECT_EQ(hangs_after(true, true), std::nullopt);
  EXPECT_LE(hangs_after(true, false).value(), seconds{6});
  start_again();
  EXPECT_EQ(hangs_after(true, true), std::nullopt);
  EXPECT_LE(hangs_after(false, true).value(), seconds{6});
  start_again();
  EXPECT_EQ(hangs_after(true, true), std::nullopt);
  const base::Duration both = hangs_after(false, false).value();
  EXPECT_LE(both, seconds{6});
  EXPECT_GE(both, kHangAfter);
}

// It must load, read the journal and open the cgroups of all pods before its loops begin.
TEST_F(WorkerWatchTest, GivesANewWorker30SecondsForItsFirstBeats) {
  const base::Duration none = hangs_after(false, false).value();
  EXPECT_GE(none, seconds{30});
  EXPECT_LE(none, seconds{31});
  start_again();
  // The switcher's thread is up, the main loop is not yet.
  EXPECT_GE(hangs_after(false, true).value(), seconds{30});
}

// The machine was suspended for an hour, or the supervisor was stopped: nothing beat because
// nothing ran.
TEST_F(WorkerWatchTest, DoesNotBlameTheWorkerForItsOwnSleep) {
  EXPECT_FALSE(watch_.hangs(++main_, ++switcher_, now_ += milliseconds{500}));
  EXPECT_FALSE(watch_.hangs(main_, switcher_, now_ += seconds{3600}));
  EXPECT_FALSE(watch_.hangs(++main_, ++switcher_, now_ += milliseconds{500}));
}

}  // namespace
}  // namespace agent
