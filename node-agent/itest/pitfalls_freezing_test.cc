// Pitfalls: whatever tasks do, and however many there are, they stop and go on.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "node-agent/itest/pitfalls_fixture.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::eventually;
using testing::moves;
using testing::Progress;
using testing::stands_still;

// One task that computes all the time and one that sleeps most of it: the kernel stops them in
// different ways.
TEST_P(PitfallsTest, BusyAndSleepingTasksStopAndGoOn) {
  const std::string pod = add_pod();
  Progress& busy = cgroups_->spawn_counter(pod);
  Progress& sleeping = cgroups_->spawn_counter(pod, milliseconds{1});
  expect_freeze_and_thaw(busy);
  EXPECT_TRUE(moves(sleeping));
}

// The promise itself: users measure their programs under it. A switch that thaws one gang before
// the other has stopped would be seen here.
TEST_P(PitfallsTest, TwoGangsNeverRunAtTheSameTime) {
  // Method: each counter's moves between two looks 5 ms apart, in the middle of the slots; in no
  // pair of looks may both have moved, but in one that a boundary lies in.
  const std::string a = add_pod();
  const std::string b = add_pod();
  Progress& of_a = cgroups_->spawn_counter(a, milliseconds{1});
  Progress& of_b = cgroups_->spawn_counter(b, milliseconds{1});
  constexpr base::Duration kSlice = milliseconds{100};
  // A busy machine may take longer than 20 ms to let a task stop; how long it takes is a
  // benchmark's affair.
  Assignment turns = assignment({{0}, {1}}, kSlice);
  turns.barrier = milliseconds{90};
  submit(std::move(turns));
  std::this_thread::sleep_for(kSlice);
  int turns_of_a = 0;
  int turns_of_b = 0;
  const base::Instant end = clock_.wall() + seconds{3};
  while (clock_.wall() < end) {
    const base::Instant before = clock_.wall();
    const std::uint64_t a_before = of_a.count.load();
    const std::uint64_t b_before = of_b.count.load();
    std::this_thread::sleep_for(milliseconds{5});
    const bool a_moved = of_a.count.load() != a_before;
    const bool b_moved = of_b.count.load() != b_before;
    const base::Instant after = clock_.wall();
    if (base::slot_of(before, kSlice) != base::slot_of(after, kSlice)) continue;
    if (before - base::slot_begin(base::slot_of(before, kSlice), kSlice) < milliseconds{20}) {
      continue;  // The switch itself may be going on on a loaded machine.
    }
    const bool even = base::slot_of(before, kSlice) % 2 == 0;
    EXPECT_FALSE(even ? b_moved : a_moved);
    if (even && a_moved) ++turns_of_a;
    if (!even && b_moved) ++turns_of_b;
  }
  // Both did run: two gangs that stand still forever do not run at the same time either. Three
  // seconds have 15 slots of each.
  EXPECT_GT(turns_of_a, 20);
  EXPECT_GT(turns_of_b, 20);
  EXPECT_EQ(switcher_->counters().overlap_micros.load(), 0U);
}

// The cost of a freeze is linear in the tasks (freezer.md 2.1): a thousand take milliseconds, and
// all of them stop.
TEST_P(PitfallsTest, AThousandTasksFreeze) {
  const std::string pod = add_pod();
  for (int i = 0; i < 20; ++i) {
    // Twenty with 49 children each, a thousand in all.
    cgroups_->spawn(pod, [] {
      for (int child = 0; child < 49; ++child) {
        if (::fork() == 0) break;
      }
      for (;;) ::usleep(50'000);
    });
  }
  ASSERT_TRUE(eventually([&] { return cgroups_->processes_count(pod) >= 1000; }));
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  expect_freeze_and_thaw(progress);
}

// On v1 processes that keep entering the cgroup delay the freeze, so it is written again
// (freezer.md 3).
TEST_P(PitfallsTest, AForkBombFreezes) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  for (int i = 0; i < 4; ++i) {
    cgroups_->spawn(pod, [] {
      ::signal(SIGCHLD, SIG_IGN);
      for (;;) {  // each child forks on for a while: always about 60 of them
        for (int generation = 0; ::fork() == 0; ++generation) {
          if (generation == 15) ::_exit(0);
        }
        ::usleep(1'000);
        if (::getppid() == 1) ::_exit(0);
        ::waitpid(-1, nullptr, 0);
      }
    });
  }
  for (int round = 0; round < 5; ++round) expect_freeze_and_thaw(progress);
}

// The other pod's turn begins after the barrier, not when the slow freeze is done.
TEST_P(PitfallsTest, TasksInLongSystemCallsAreLateAndNothingElseIs) {
  // Two processes that populate 256 MiB again and again: a freeze waits for the call to end.
  const std::string slow = add_pod();
  const std::string quick = add_pod();
  for (int i = 0; i < 2; ++i) {
    cgroups_->spawn(slow, [] {
      constexpr std::size_t kBytes = 256U << 20U;
      for (;;) {
        void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory != MAP_FAILED) ::munmap(memory, kBytes);
      }
    });
  }
  Progress& progress = cgroups_->spawn_counter(quick, milliseconds{1});
  std::this_thread::sleep_for(milliseconds{200});
  submit(assignment({{1}}));
  EXPECT_TRUE(moves(progress, seconds{1}));  // the barrier ends after 20 ms
  EXPECT_TRUE(has_state(0, FreezeState::kFrozen, seconds{10}));
}

// As many as a large node may have. Only a few of them have a task, since the switch writes to all.
TEST_P(PitfallsTest, TwoHundredPodsTakeTurns) {
  std::vector<Progress*> progress;
  timetable::PodSet even;
  timetable::PodSet odd;
  for (std::uint16_t i = 0; i < 200; ++i) {
    const std::string pod = add_pod();
    (i % 2 == 0 ? even : odd).push_back(i);
    if (i < 8) progress.push_back(&cgroups_->spawn_counter(pod, milliseconds{5}));
  }
  submit(assignment({even, odd}, milliseconds{200}));
  std::this_thread::sleep_for(milliseconds{1500});
  // In the middle of whatever turn it was: from here on, one half runs and the other stands.
  submit(assignment({even}, milliseconds{200}));
  EXPECT_TRUE(eventually([&] {
    for (std::size_t i = 0; i < 200; ++i) {
      if (cgroups_->is_asked_frozen(controls_[i]->identity.path) != (i % 2 == 1)) return false;
    }
    return true;
  }));
  EXPECT_TRUE(stands_still(*progress[1]));
  EXPECT_TRUE(moves(*progress[0]));
}

// The kernel keeps a freeze whatever becomes of the writer. That is why supervisor and guard exist.
TEST_P(PitfallsTest, ADeadSwitcherLeavesPodsAsTheyAre) {
  const std::string pod = add_pod();
  Progress& progress = cgroups_->spawn_counter(pod, milliseconds{1});
  freeze_all();
  ASSERT_TRUE(has_state(0, FreezeState::kFrozen));
  // The thread ends without thawing anything, as with a crash.
  switcher_.reset();
  EXPECT_TRUE(stands_still(progress));
  EXPECT_TRUE(cgroups_->is_frozen(pod));
}

}  // namespace
}  // namespace agent
