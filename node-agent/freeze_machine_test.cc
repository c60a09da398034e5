#include "node-agent/freeze_machine.h"

#include <gtest/gtest.h>

namespace agent {
namespace {

using Action = FreezeMachine::Action;
using base::Duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kT0 = std::chrono::hours{5};
constexpr Requested kAskedFrozen{.result = IoResult::kOk, .wish = Wish::kFrozen};
constexpr Requested kAskedThawed{.result = IoResult::kOk, .wish = Wish::kThawed};
constexpr Observation kFrozen{.result = IoResult::kOk, .frozen = true};
constexpr Observation kRunning{.result = IoResult::kOk, .frozen = false};

TEST(FreezeMachine, IsFrozenWhenALookConfirmsTheWrite) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  EXPECT_TRUE(machine.needs_write(Wish::kFrozen));
  EXPECT_FALSE(machine.needs_write(Wish::kThawed));  // A pod that we never froze is not written.
  machine.wrote(Wish::kFrozen, IoResult::kOk, kT0);
  EXPECT_EQ(machine.state(), FreezeState::kFreezing);
  EXPECT_FALSE(machine.needs_write(Wish::kFrozen));
  EXPECT_EQ(machine.due(kT0), Action::kNothing);
  EXPECT_EQ(machine.due(kT0 + milliseconds{1}), Action::kLook);
  machine.looked(kAskedFrozen, kFrozen, kT0 + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kFrozen);
  EXPECT_EQ(machine.confirmed_after(), milliseconds{1});
}

TEST(FreezeMachine, LooksAtLateFreezesLessAndLessOftenAndCallsThemStuckAfterTwoSeconds) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.wrote(Wish::kFrozen, IoResult::kOk, kT0);
  int looks = 0;
  Duration now = kT0;
  while (machine.state() == FreezeState::kFreezing) {
    now = *machine.next_due();
    if (machine.due(now) == Action::kFreezeAgain) {
      machine.wrote(Wish::kFrozen, IoResult::kOk, now);
    } else {
      machine.looked(kAskedFrozen, kRunning, now);
      ++looks;
    }
    ASSERT_LE(now, kT0 + seconds{3});
  }
  EXPECT_EQ(machine.state(), FreezeState::kStuck);
  EXPECT_GE(now, kT0 + kStuckAfter);
  EXPECT_LE(looks, 40);
  // It stays asked for, and a late success counts.
  machine.looked(kAskedFrozen, kFrozen, now + seconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kFrozen);
}

TEST(FreezeMachine, ThawsAStuckPodAtItsOwnSlotAsUsual) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.wrote(Wish::kFrozen, IoResult::kOk, kT0);
  machine.looked(kAskedFrozen, kRunning, kT0 + seconds{2});
  ASSERT_EQ(machine.state(), FreezeState::kStuck);
  EXPECT_TRUE(machine.needs_write(Wish::kThawed));
  machine.wrote(Wish::kThawed, IoResult::kOk, kT0 + seconds{3});
  machine.looked(kAskedThawed, kRunning, kT0 + seconds{3} + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kThawed);
}

TEST(FreezeMachine, TreatsMissingCgroupAsGoneNotError) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.wrote(Wish::kFrozen, IoResult::kGone, kT0);
  EXPECT_EQ(machine.state(), FreezeState::kGone);
  EXPECT_EQ(machine.next_due(), std::nullopt);
  EXPECT_FALSE(machine.needs_write(Wish::kThawed));
}

TEST(FreezeMachine, WritesAgainWhenSomebodyElseThawedWhatWeFroze) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.wrote(Wish::kFrozen, IoResult::kOk, kT0);
  machine.looked(kAskedFrozen, kFrozen, kT0);
  const Duration audit = *machine.next_due();
  EXPECT_LE(audit, kT0 + seconds{2});
  machine.looked(kAskedThawed, kRunning, audit);
  EXPECT_EQ(machine.due(audit), Action::kFreezeAgain);
}

TEST(FreezeMachine, LeavesAForeignFreezeAloneUntilItsOwnerThawsIt) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.looked(kAskedFrozen, kFrozen, kT0 + seconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kForeign);
  EXPECT_FALSE(machine.needs_write(Wish::kFrozen));
  EXPECT_FALSE(machine.needs_write(Wish::kThawed));
  machine.looked(kAskedThawed, kRunning, kT0 + seconds{2});
  EXPECT_EQ(machine.state(), FreezeState::kThawed);
  EXPECT_TRUE(machine.needs_write(Wish::kFrozen));
}

TEST(FreezeMachine, ThawsADeletedPodTwiceAndVerifies) {
  FreezeMachine machine = FreezeMachine::found_foreign(kT0);
  machine.wrote_thaw_of_deleted(IoResult::kOk, kT0);
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  machine.looked(kAskedThawed, kRunning, kT0 + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  EXPECT_EQ(machine.due(kT0 + milliseconds{99}), Action::kNothing);
  EXPECT_EQ(machine.due(kT0 + milliseconds{100}), Action::kThawAgain);
  machine.wrote(Wish::kThawed, IoResult::kOk, kT0 + milliseconds{100});
  machine.looked(kAskedThawed, kRunning, *machine.next_due());
  EXPECT_EQ(machine.state(), FreezeState::kThawed);
}

TEST(FreezeMachine, AFreezeThatSomebodyElseAsksForRightAfterOurThawIsForeign) {
  FreezeMachine machine = FreezeMachine::found_frozen_by_us(kT0);
  machine.wrote(Wish::kThawed, IoResult::kOk, kT0);
  machine.looked(kAskedThawed, kFrozen, kT0);  // an ancestor's, as long as nobody asked for ours
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  machine.looked(kAskedFrozen, kFrozen, kT0 + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kForeign);
  EXPECT_NE(machine.due(*machine.next_due()), Action::kThawAgain);
  // Of a deleted pod it is undone, once (rule 5).
  machine.wrote_thaw_of_deleted(IoResult::kOk, kT0 + seconds{1});
  machine.looked(kAskedFrozen, kFrozen, kT0 + seconds{1} + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  EXPECT_EQ(machine.due(kT0 + seconds{1} + milliseconds{100}), Action::kThawAgain);
}

TEST(FreezeMachine, TriesARefusedWriteAgainAndReportsIt) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.wrote(Wish::kFrozen, IoResult::kDenied, kT0);
  EXPECT_TRUE(machine.denied());
  Duration now = kT0;
  while (now < kT0 + seconds{2}) {
    now = *machine.next_due();
    ASSERT_EQ(machine.due(now), Action::kFreezeAgain);
    machine.wrote(Wish::kFrozen, IoResult::kDenied, now);
  }
  EXPECT_EQ(machine.state(), FreezeState::kStuck);
  machine.wrote(Wish::kFrozen, IoResult::kOk, now + seconds{1});
  EXPECT_FALSE(machine.denied());
}

TEST(FreezeMachine, AnAncestorsFreezeThatOurThawCannotEndIsForeign) {
  FreezeMachine machine = FreezeMachine::found_frozen_by_us(kT0);
  machine.wrote(Wish::kThawed, IoResult::kOk, kT0);
  Duration now = kT0;
  while (machine.state() == FreezeState::kThawing && now < kT0 + seconds{5}) {
    now = *machine.next_due();
    if (machine.due(now) == Action::kThawAgain) {
      machine.wrote(Wish::kThawed, IoResult::kOk, now);
    } else {
      machine.looked(kAskedThawed, kFrozen, now);
    }
  }
  EXPECT_EQ(machine.state(), FreezeState::kForeign);
}

}  // namespace
}  // namespace agent
