#include "node-agent/switching/freeze_machine.h"

#include <gtest/gtest.h>

#include <optional>

namespace agent {
namespace {

using Action = FreezeMachine::Action;
using base::Duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kT0 = std::chrono::hours{5};
// The two things that a look reads: what the cgroup was asked for last, by any program, and what
// its tasks do.
constexpr AskedState kAskedFrozen{.result = IoResult::kOk, .request = FreezeRequest::kFrozen};
constexpr AskedState kAskedThawed{.result = IoResult::kOk, .request = FreezeRequest::kThawed};
constexpr Observation kFrozen{.result = IoResult::kOk, .frozen = true};
constexpr Observation kRunning{.result = IoResult::kOk, .frozen = false};

// A write that succeeds only says that the kernel has begun. Calling the pod frozen before a look
// has seen it would let gangs overlap unnoticed.
TEST(FreezeMachine, IsFrozenWhenALookConfirmsTheWrite) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  EXPECT_TRUE(machine.needs_write(FreezeRequest::kFrozen));
  EXPECT_FALSE(
      machine.needs_write(FreezeRequest::kThawed));  // A pod that we never froze is not written.
  machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, kT0);
  EXPECT_EQ(machine.state(), FreezeState::kFreezing);
  EXPECT_FALSE(machine.needs_write(FreezeRequest::kFrozen));
  EXPECT_EQ(machine.due(kT0), Action::kNothing);
  EXPECT_EQ(machine.due(kT0 + milliseconds{1}), Action::kLook);
  machine.on_look(kAskedFrozen, kFrozen, kT0 + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kFrozen);
  EXPECT_EQ(machine.confirmed_after(), milliseconds{1});
}

// The first looks come after milliseconds, since most freezes take no longer; later ones must not
// load the node.
TEST(FreezeMachine, LooksAtLateFreezesLessAndLessOftenAndCallsThemStuckAfterTwoSeconds) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, kT0);
  int looks = 0;
  Duration now = kT0;
  while (machine.state() == FreezeState::kFreezing) {
    now = *machine.next_due();
    if (machine.due(now) == Action::kFreezeAgain) {
      machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, now);
    } else {
      machine.on_look(kAskedFrozen, kRunning, now);
      ++looks;
    }
    ASSERT_LE(now, kT0 + seconds{3});
  }
  EXPECT_EQ(machine.state(), FreezeState::kStuck);
  EXPECT_GE(now, kT0 + kStuckAfter);
  // Five early looks, then one each 100 ms of the 2 s: about 25.
  EXPECT_LE(looks, 40);
  // It stays asked for, and a late success counts.
  machine.on_look(kAskedFrozen, kFrozen, now + seconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kFrozen);
}

// A stuck pod keeps its turns: the task that does not stop must be able to go on and end its call.
TEST(FreezeMachine, ThawsAStuckPodAtItsOwnSlotAsUsual) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, kT0);
  machine.on_look(kAskedFrozen, kRunning, kT0 + seconds{2});
  ASSERT_EQ(machine.state(), FreezeState::kStuck);
  EXPECT_TRUE(machine.needs_write(FreezeRequest::kThawed));
  machine.on_write(FreezeRequest::kThawed, IoResult::kOk, kT0 + seconds{3});
  machine.on_look(kAskedThawed, kRunning, kT0 + seconds{3} + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kThawed);
}

// A pod that has ended is not a fault, and nothing may be tried again.
TEST(FreezeMachine, TreatsMissingCgroupAsGoneNotError) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.on_write(FreezeRequest::kFrozen, IoResult::kGone, kT0);
  EXPECT_EQ(machine.state(), FreezeState::kGone);
  EXPECT_EQ(machine.next_due(), std::nullopt);
  EXPECT_FALSE(machine.needs_write(FreezeRequest::kThawed));
}

// The look finds that the cgroup is asked to run, which we did not ask.
TEST(FreezeMachine, WritesAgainWhenSomebodyElseThawedWhatWeFroze) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, kT0);
  machine.on_look(kAskedFrozen, kFrozen, kT0);
  // Another program's thaw is not announced, so the longest time until it is noticed is the audit's
  // period.
  const Duration audit = *machine.next_due();
  EXPECT_LE(audit, kT0 + seconds{2});
  machine.on_look(kAskedThawed, kRunning, audit);
  EXPECT_EQ(machine.due(audit), Action::kFreezeAgain);
}

// The pod ran when the machine began, and then stands still without a write of the agent.
TEST(FreezeMachine, LeavesAForeignFreezeAloneUntilItsOwnerThawsIt) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.on_look(kAskedFrozen, kFrozen, kT0 + seconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kForeign);
  EXPECT_FALSE(machine.needs_write(FreezeRequest::kFrozen));
  EXPECT_FALSE(machine.needs_write(FreezeRequest::kThawed));
  machine.on_look(kAskedThawed, kRunning, kT0 + seconds{2});
  EXPECT_EQ(machine.state(), FreezeState::kThawed);
  EXPECT_TRUE(machine.needs_write(FreezeRequest::kFrozen));
}

// A task may enter, or another program may freeze, right after the first thaw; the second one, 100
// ms later, ends that as well (freezer.md 4 rule 5).
TEST(FreezeMachine, ThawsADeletedPodTwiceAndVerifies) {
  FreezeMachine machine = FreezeMachine::found_foreign(kT0);
  machine.on_thaw_of_deleted(IoResult::kOk, kT0);
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  machine.on_look(kAskedThawed, kRunning, kT0 + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  EXPECT_EQ(machine.due(kT0 + milliseconds{99}), Action::kNothing);
  EXPECT_EQ(machine.due(kT0 + milliseconds{100}), Action::kThawAgain);
  machine.on_write(FreezeRequest::kThawed, IoResult::kOk, kT0 + milliseconds{100});
  machine.on_look(kAskedThawed, kRunning, *machine.next_due());
  EXPECT_EQ(machine.state(), FreezeState::kThawed);
}

// Both looks find the pod standing still after our thaw. The request tells the two cases apart:
// still thawed means that the kernel, or an ancestor, holds it up; frozen means that another
// program has asked.
TEST(FreezeMachine, AFreezeThatSomebodyElseAsksForRightAfterOurThawIsForeign) {
  FreezeMachine machine = FreezeMachine::found_frozen_by_us(kT0);
  machine.on_write(FreezeRequest::kThawed, IoResult::kOk, kT0);
  machine.on_look(kAskedThawed, kFrozen, kT0);  // an ancestor's, as long as none was asked for
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  machine.on_look(kAskedFrozen, kFrozen, kT0 + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kForeign);
  EXPECT_NE(machine.due(*machine.next_due()), Action::kThawAgain);
  // For a deleted pod it is undone, once (rule 5).
  machine.on_thaw_of_deleted(IoResult::kOk, kT0 + seconds{1});
  machine.on_look(kAskedFrozen, kFrozen, kT0 + seconds{1} + milliseconds{1});
  EXPECT_EQ(machine.state(), FreezeState::kThawing);
  EXPECT_EQ(machine.due(kT0 + seconds{1} + milliseconds{100}), Action::kThawAgain);
}

// A refused freeze must not end the attempts: the right may come back, for example after a remount.
TEST(FreezeMachine, TriesARefusedWriteAgainAndReportsIt) {
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  machine.on_write(FreezeRequest::kFrozen, IoResult::kDenied, kT0);
  EXPECT_TRUE(machine.denied());
  Duration now = kT0;
  // Refused each time, until it has taken so long that it counts as stuck.
  while (now < kT0 + seconds{2}) {
    now = *machine.next_due();
    ASSERT_EQ(machine.due(now), Action::kFreezeAgain);
    machine.on_write(FreezeRequest::kFrozen, IoResult::kDenied, now);
  }
  EXPECT_EQ(machine.state(), FreezeState::kStuck);
  machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, now + seconds{1});
  EXPECT_FALSE(machine.denied());
}

// The pod's file says thawed and the pod stands still all the same: only a freeze above it explains
// both, and the agent may not end that.
TEST(FreezeMachine, AnAncestorsFreezeThatOurThawCannotEndIsForeign) {
  FreezeMachine machine = FreezeMachine::found_frozen_by_us(kT0);
  machine.on_write(FreezeRequest::kThawed, IoResult::kOk, kT0);
  Duration now = kT0;
  while (machine.state() == FreezeState::kThawing && now < kT0 + seconds{5}) {
    now = *machine.next_due();
    if (machine.due(now) == Action::kThawAgain) {
      machine.on_write(FreezeRequest::kThawed, IoResult::kOk, now);
    } else {
      machine.on_look(kAskedThawed, kFrozen, now);
    }
  }
  EXPECT_EQ(machine.state(), FreezeState::kForeign);
}

// Returns a machine in this state, brought there by the shortest way.
FreezeMachine machine_in(FreezeState state) {
  if (state == FreezeState::kForeign) return FreezeMachine::found_foreign(kT0);
  FreezeMachine machine = FreezeMachine::found_running(kT0);
  if (state == FreezeState::kThawed) return machine;
  if (state == FreezeState::kGone) {
    machine.on_write(FreezeRequest::kFrozen, IoResult::kGone, kT0);
    return machine;
  }
  machine.on_write(FreezeRequest::kFrozen, IoResult::kOk, kT0);
  if (state == FreezeState::kFrozen) machine.on_look(kAskedFrozen, kFrozen, kT0);
  if (state == FreezeState::kStuck) machine.on_look(kAskedFrozen, kRunning, kT0 + kStuckAfter);
  if (state == FreezeState::kThawing) machine.on_write(FreezeRequest::kThawed, IoResult::kOk, kT0);
  return machine;
}

// Goal: no transition is forgotten. Method: each state, each write that a switch makes of it with
// each outcome, each look. A line lacks the events that need no write in its state.
TEST(FreezeMachine, GoesFromEachStateWithEachEventWhereItIsSaid) {
  using State = FreezeState;
  struct Line {
    FreezeState from;
    std::optional<FreezeRequest> needs;  // what a switch may need to write
    FreezeState wrote;                   // that was written, or was refused and is tried again
    // By what the pod was asked for / by what it does.
    FreezeState frozen_frozen, frozen_running, thawed_frozen, thawed_running;
  };
  const Line lines[] = {
      {State::kThawed, FreezeRequest::kFrozen, State::kFreezing, State::kForeign, State::kForeign,
       State::kForeign, State::kThawed},
      {State::kFreezing, FreezeRequest::kThawed, State::kThawing, State::kFrozen, State::kFreezing,
       State::kFreezing, State::kFreezing},
      {State::kFrozen, FreezeRequest::kThawed, State::kThawing, State::kFrozen, State::kFreezing,
       State::kFreezing, State::kFreezing},
      {State::kStuck, FreezeRequest::kThawed, State::kThawing, State::kFrozen, State::kStuck,
       State::kFreezing, State::kFreezing},
      {State::kThawing, FreezeRequest::kFrozen, State::kFreezing, State::kForeign, State::kForeign,
       State::kThawing, State::kThawed},
      {State::kForeign, std::nullopt, State::kForeign, State::kForeign, State::kForeign,
       State::kForeign, State::kThawed},
      {State::kGone, std::nullopt, State::kGone, State::kGone, State::kGone, State::kGone,
       State::kGone},
  };
  constexpr Duration kNow = kT0 + kStuckAfter;
  constexpr AskedState kGoneRequest{.result = IoResult::kGone};
  constexpr Observation kGoneObservation{.result = IoResult::kGone};
  constexpr Observation kFailedObservation{.result = IoResult::kFailed};
  // For each state: what the four looks make of it, what a look at a cgroup that is gone or cannot
  // be read makes of it, and what a switch would write, with each outcome of the write.
  for (const Line& line : lines) {
    SCOPED_TRACE(to_string(line.from));
    // A look some milliseconds after it came into that state, and at a stuck pod after two seconds.
    const Duration now = line.from == State::kStuck ? kNow : kT0 + milliseconds{5};
    const auto looked = [&](AskedState requested, Observation observation) {
      FreezeMachine machine = machine_in(line.from);
      EXPECT_EQ(machine.state(), line.from);
      machine.on_look(requested, observation, now);
      return machine.state();
    };
    EXPECT_EQ(looked(kAskedFrozen, kFrozen), line.frozen_frozen);
    EXPECT_EQ(looked(kAskedFrozen, kRunning), line.frozen_running);
    EXPECT_EQ(looked(kAskedThawed, kFrozen), line.thawed_frozen);
    EXPECT_EQ(looked(kAskedThawed, kRunning), line.thawed_running);
    EXPECT_EQ(looked(kGoneRequest, kRunning), State::kGone);
    EXPECT_EQ(looked(kAskedFrozen, kGoneObservation), State::kGone);
    EXPECT_EQ(looked(kAskedFrozen, kFailedObservation), line.from);
    FreezeMachine unreadable = machine_in(line.from);
    unreadable.on_look(kAskedFrozen, kFailedObservation, now);
    EXPECT_EQ(unreadable.next_due(),
              line.from == State::kGone ? std::nullopt : std::optional{now + kWriteRetryAfter});
    for (const FreezeRequest wanted : {FreezeRequest::kFrozen, FreezeRequest::kThawed}) {
      EXPECT_EQ(machine_in(line.from).needs_write(wanted), line.needs == wanted)
          << to_string(wanted);
      if (line.needs != wanted) continue;
      for (const IoResult result : {IoResult::kOk, IoResult::kDenied, IoResult::kFailed}) {
        FreezeMachine machine = machine_in(line.from);
        machine.on_write(wanted, result, now);
        EXPECT_EQ(machine.state(), line.wrote) << to_string(result);
        EXPECT_EQ(machine.denied(), result == IoResult::kDenied);
        const bool again = machine.due(*machine.next_due()) != Action::kLook;
        EXPECT_EQ(again, result != IoResult::kOk) << to_string(result);
      }
      FreezeMachine machine = machine_in(line.from);
      machine.on_write(wanted, IoResult::kGone, now);
      EXPECT_EQ(machine.state(), State::kGone);
    }
  }
}

}  // namespace
}  // namespace agent
