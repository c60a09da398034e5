#include "node-agent/switching/switch_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/prng.h"
#include "node-agent/testing/fake_freezer.h"
#include "node-agent/testing/fake_switch_clock.h"

namespace agent {
namespace {

using base::Duration;
using base::Instant;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Instant kStart{seconds{1'000'000}};  // a boundary of every slice used here
// Short, so that many turns pass in a test; a and b each have every second slot.
constexpr Duration kSlice = seconds{1};

// Exchanges the cycle of an assignment, whose table is shared and constant.
void set_cycle(Assignment& assignment, std::vector<timetable::PodSet> cycle) {
  timetable::Timetable table = *assignment.table;
  table.cycle = std::move(cycle);
  assignment.table = std::make_shared<const timetable::Timetable>(std::move(table));
}

// The core without its thread: a fake clock that only the test moves, and a kernel in memory that
// says what was written, in which order, and how long a freeze takes.
class SwitchCoreTest : public ::testing::Test {
 protected:
  // Returns the control of the pod of this name, the same one each time: assignments that follow
  // one another list the same object. `found` counts at its first use only.
  std::shared_ptr<PodControl> control(const std::string& name, FoundAs found = FoundAs::kRunning) {
    auto& known = controls_[name];
    if (!known) {
      known = std::make_shared<PodControl>(PodIdentity{.uid = name}, kernel_.open(name), found);
    }
    return known;
  }
  // Two gangs, a and b, that take turns, usually every second; a runs in even slots.
  Assignment two_gangs(Duration slice = kSlice) {
    Assignment assignment;
    assignment.number = ++number_;
    assignment.table = std::make_shared<const timetable::Timetable>(
        timetable::Timetable{.slice = slice, .pods_count = 2, .cycle = {{0}, {1}}});
    assignment.pods = {{.control = control("a"), .index = 0, .rule = ControlRule::kTimetable},
                       {.control = control("b"), .index = 1, .rule = ControlRule::kTimetable}};
    return assignment;
  }
  // The pods of these names, in this order, by one set forever.
  Assignment always(const std::vector<std::string>& names, timetable::PodSet run) {
    Assignment assignment;
    assignment.number = ++number_;
    assignment.table = std::make_shared<const timetable::Timetable>(timetable::Timetable{
        .slice = kSlice, .pods_count = names.size(), .cycle = {std::move(run)}});
    for (std::uint16_t i = 0; i < names.size(); ++i) {
      assignment.pods.push_back(
          {.control = control(names[i]), .index = i, .rule = ControlRule::kTimetable});
    }
    return assignment;
  }
  // The core keeps a reference to what it obeys, so the assignment must live as long as the test.
  void obey(Assignment assignment) {
    assignments_.push_back(std::make_unique<Assignment>(std::move(assignment)));
    core_.obey(*assignments_.back());
  }
  // As the thread does: sleep to the next wake-up, step.
  void run_until(Instant end) {
    for (int i = 0; i < 100'000 && clock_.wall() < end; ++i) {
      const SwitchWake wake = core_.next_wake();
      Instant next = end;
      if (wake.boundary) next = std::min(next, *wake.boundary);
      if (wake.look) next = std::min(next, clock_.wall() + (*wake.look - clock_.monotonic()));
      if (next > clock_.wall()) clock_.advance_to(next);
      core_.step();
    }
  }
  bool runs(const std::string& name) { return kernel_.is_running(name); }

  testing::FakeSwitchClock clock_{kStart + milliseconds{100}};
  testing::FakeKernel kernel_{clock_};
  ReportRing reports_;
  SwitchCounters counters_;
  SwitchCore core_{clock_, reports_, counters_};
  std::map<std::string, std::shared_ptr<PodControl>> controls_;
  std::vector<std::unique_ptr<Assignment>> assignments_;
  std::uint64_t number_ = 0;
};

// Freezes come before thaws in each switch: the other order would let both gangs run for a moment.
TEST_F(SwitchCoreTest, ObeysAtOnceAndFreezesBeforeItThaws) {
  obey(two_gangs());
  EXPECT_THAT(kernel_.take_log(), ElementsAre("freeze b"));  // a runs and was never touched
  EXPECT_EQ(core_.next_wake().boundary, kStart + kSlice);
  run_until(kStart + kSlice + milliseconds{1});
  EXPECT_THAT(kernel_.take_log(), ElementsAre("freeze a", "thaw b"));
  EXPECT_FALSE(runs("a"));
  EXPECT_TRUE(runs("b"));
  EXPECT_EQ(controls_["a"]->state.load(), FreezeState::kFrozen);
  EXPECT_EQ(controls_["b"]->state.load(), FreezeState::kThawed);
}

// A freeze takes 8 ms. The report of the switch says when its first and its last write took place.
TEST_F(SwitchCoreTest, WaitsForSlowFreezesUpToTheBarrierSoThatNothingOverlaps) {
  kernel_.cgroup("a").freeze_takes = milliseconds{8};
  obey(two_gangs());
  run_until(kStart + kSlice + milliseconds{100});
  EXPECT_EQ(counters_.overlap_micros.load(), 0U);
  std::optional<SwitchReport> report;
  while (auto next = reports_.pop()) report = next;
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->due, kStart + kSlice);
  EXPECT_EQ(report->slot, base::slot_of(kStart, kSlice) + 1);
  EXPECT_EQ(report->late_count, 0U);
  // The freeze takes 8 ms, which is less than the barrier of 20 ms, so the thaw waits for all of it
  // and no longer.
  EXPECT_GE(report->last_write - report->first_write, milliseconds{8});
}

// A freeze takes longer than the barrier. Waiting on would cost the incoming gang its turn, so both
// run for a while, and the metric must say for how long.
TEST_F(SwitchCoreTest, LetsTheIncomingGangOnWhenATaskIsStuckAndCountsTheOverlap) {
  kernel_.cgroup("a").freeze_takes = milliseconds{70};
  obey(two_gangs());
  run_until(kStart + kSlice + milliseconds{30});
  EXPECT_TRUE(runs("a"));
  EXPECT_TRUE(runs("b"));
  run_until(kStart + kSlice + milliseconds{200});
  EXPECT_FALSE(runs("a"));
  // 70 ms minus the barrier of 20 ms, seen at the look 100 ms after the write at the latest.
  EXPECT_GE(counters_.overlap_micros.load(), 49'000U);
  EXPECT_LE(counters_.overlap_micros.load(), 81'000U);
  EXPECT_EQ(counters_.stuck.load(), 0U);
}

// a is new, was never frozen, and so is not thawed as its first turn begins: the overlap beside it
// counts all the same.
TEST_F(SwitchCoreTest, CountsTheOverlapBesideAGangThatWasNeverFrozen) {
  kernel_.cgroup("b").freeze_takes = milliseconds{70};
  obey(two_gangs());
  EXPECT_TRUE(runs("a") && runs("b"));
  run_until(kStart + milliseconds{500});
  EXPECT_FALSE(runs("b"));
  // 70 ms minus the barrier of 20 ms, seen at the look 100 ms after the write at the latest.
  EXPECT_GE(counters_.overlap_micros.load(), 49'000U);
  EXPECT_LE(counters_.overlap_micros.load(), 81'000U);
}

// c is new and ran while it started. Its first freeze is slow, and it runs on beside a, whose turn
// goes on: no pod comes on. When a has gone it runs alone.
TEST_F(SwitchCoreTest, CountsTheOverlapOfANewPodBesideAGangInItsTurn) {
  obey(always({"a"}, {0}));
  run_until(clock_.wall() + milliseconds{100});
  kernel_.cgroup("c").freeze_takes = milliseconds{500};
  obey(always({"a", "c"}, {0}));
  EXPECT_TRUE(runs("a") && runs("c"));
  run_until(clock_.wall() + milliseconds{200});
  obey(always({"c"}, {}));
  EXPECT_TRUE(runs("c"));
  run_until(clock_.wall() + seconds{1});
  EXPECT_GE(counters_.overlap_micros.load(), 190'000U);
  EXPECT_LE(counters_.overlap_micros.load(), 210'000U);
}

// Only a freeze that is remarkable becomes a warning, with its duration, and for its pod alone.
TEST_F(SwitchCoreTest, TellsOfAFreezeThatTookLong) {
  // Late, but below kSlowFreeze (100 ms): no warning.
  kernel_.cgroup("a").freeze_takes = milliseconds{30};
  obey(two_gangs());
  run_until(kStart + kSlice + milliseconds{500});
  EXPECT_EQ(controls_["a"]->slow_freezes.load(), 0U);
  kernel_.cgroup("a").freeze_takes = milliseconds{150};
  run_until(kStart + 3 * kSlice + milliseconds{500});
  EXPECT_EQ(controls_["a"]->slow_freezes.load(), 1U);
  EXPECT_GE(controls_["a"]->slow_freeze_micros.load(), 150'000);
  EXPECT_EQ(controls_["b"]->slow_freezes.load(), 0U);
}

// Five refusals at 10 ms each keep a running into b's turn for about 50 ms.
TEST_F(SwitchCoreTest, CountsTheOverlapOfAPodWhoseFreezeIsRefused) {
  obey(two_gangs());
  kernel_.cgroup("a").fail_next.assign(5, IoResult::kDenied);  // tried again every 10 ms
  run_until(kStart + kSlice + milliseconds{30});
  EXPECT_TRUE(runs("a") && runs("b"));
  run_until(kStart + kSlice + milliseconds{500});
  EXPECT_FALSE(runs("a"));
  EXPECT_GE(counters_.overlap_micros.load(), 40'000U);
  EXPECT_LE(counters_.overlap_micros.load(), 110'000U);
}

// The revision before froze b, and no pod came on, so it did not look back. c comes on in the
// revision after it, and must still wait until b has stopped.
TEST_F(SwitchCoreTest, ASupersedingRevisionWaitsForTheFreezesOfTheOneBeforeIt) {
  obey(always({"a", "b", "c"}, {0, 1}));
  run_until(clock_.wall() + milliseconds{100});
  kernel_.cgroup("b").freeze_takes = milliseconds{8};
  obey(always({"a", "b", "c"}, {0}));
  obey(always({"a", "b", "c"}, {0, 2}));
  EXPECT_FALSE(runs("b"));
  EXPECT_TRUE(runs("c"));
  EXPECT_EQ(controls_["b"]->state.load(), FreezeState::kFrozen);
  run_until(clock_.wall() + milliseconds{200});
  EXPECT_EQ(counters_.overlap_micros.load(), 0U);
}

// The freeze of b is 30 ms old when the next revision comes, so its barrier of 20 ms is over: c
// must not wait once more.
TEST_F(SwitchCoreTest, ASupersedingRevisionWaitsNoLongerThanTheBarrierOfTheFirstFreeze) {
  obey(always({"a", "b", "c"}, {0, 1}));
  run_until(clock_.wall() + milliseconds{100});
  kernel_.cgroup("b").freeze_takes = milliseconds{70};
  obey(always({"a", "b", "c"}, {0}));
  run_until(clock_.wall() + milliseconds{30});
  while (reports_.pop()) {
  }
  obey(always({"a", "b", "c"}, {0, 2}));
  EXPECT_TRUE(runs("b") && runs("c"));
  const std::optional<SwitchReport> report = reports_.pop();
  ASSERT_TRUE(report.has_value());
  EXPECT_LT(report->last_write - report->first_write, milliseconds{1});
  run_until(clock_.wall() + milliseconds{200});
  EXPECT_GE(counters_.overlap_micros.load(), 39'000U);
}

// Another program has frozen a cgroup above the pod. The pod's own file says thawed and the pod
// stands still; calling it thawed would hide why the job makes no progress.
TEST_F(SwitchCoreTest, AThawThatAnAncestorHoldsUpIsNotVerifiedAndSaidToBeForeign) {
  obey(two_gangs());
  kernel_.cgroup("b").ancestor_frozen = true;
  run_until(kStart + kSlice + milliseconds{50});
  EXPECT_EQ(controls_["b"]->state.load(), FreezeState::kThawing);
  Assignment always_b = two_gangs();
  set_cycle(always_b, {{1}});
  obey(always_b);
  run_until(clock_.wall() + seconds{3});
  EXPECT_EQ(controls_["b"]->state.load(), FreezeState::kForeign);
}

// News lead to a report, and a report perhaps to a write to the API server. Turns must not, on
// thousands of nodes.
TEST_F(SwitchCoreTest, TurnsAreNoNewsAndWhateverElseHappensIs) {
  obey(two_gangs());
  EXPECT_TRUE(core_.take_changed());  // an assignment was obeyed
  run_until(kStart + seconds{10});
  EXPECT_FALSE(core_.take_changed());
  kernel_.cgroup("a").freeze_takes = milliseconds{50};
  run_until(kStart + seconds{12});
  EXPECT_TRUE(core_.take_changed());  // a late one
  kernel_.cgroup("a").freeze_takes = Duration{0};
  run_until(kStart + seconds{14});
  core_.take_changed();
  kernel_.cgroup("a").fail_next = {IoResult::kDenied};
  run_until(kStart + seconds{16});
  EXPECT_TRUE(core_.take_changed());  // the agent lacks the right
  run_until(kStart + seconds{18});
  core_.take_changed();
  kernel_.cgroup("a").removed = true;
  run_until(kStart + seconds{20});
  EXPECT_TRUE(core_.take_changed());  // gone
}

// Between the look that finds tasks still running and the write that it asks for. The pod does not
// count as freezing then, and b must wait for it all the same.
TEST_F(SwitchCoreTest, WaitsForAFreezeThatIsAboutToBeWrittenAgain) {
  kernel_.cgroup("a").freeze_takes = milliseconds{5};
  obey(always({"a", "b"}, {}));
  clock_.advance(milliseconds{1});
  core_.step();  // looks at a, which runs on
  ASSERT_TRUE(runs("a"));
  obey(always({"a", "b"}, {1}));
  EXPECT_TRUE(runs("b"));
  EXPECT_FALSE(runs("a"));
}

// As a task in an uninterruptible call (NFS, a device): the request stays, nothing waits for it,
// and it is counted once.
TEST_F(SwitchCoreTest, CountsAPodThatNeverFreezesAsStuck) {
  kernel_.cgroup("a").freeze_takes = hours{1};
  Assignment always_b = two_gangs();
  set_cycle(always_b, {{1}});
  obey(always_b);
  run_until(kStart + seconds{5});
  EXPECT_EQ(controls_["a"]->state.load(), FreezeState::kStuck);
  EXPECT_EQ(counters_.stuck.load(), 1U);
}

// b is no longer listed while it is frozen. Nothing else would ever thaw it.
TEST_F(SwitchCoreTest, ThawsAPodThatTheNewAssignmentDropsInTheSameSwitch) {
  obey(two_gangs());
  kernel_.take_log();
  Assignment without_b;
  without_b.number = ++number_;
  without_b.table = std::make_shared<const timetable::Timetable>(
      timetable::Timetable{.slice = kSlice, .pods_count = 2, .cycle = {{1}}});
  without_b.pods = {{.control = control("a"), .index = 0, .rule = ControlRule::kTimetable}};
  obey(without_b);
  EXPECT_THAT(kernel_.take_log(), ElementsAre("freeze a", "thaw b"));
  EXPECT_FALSE(controls_["b"]->controlled.load());  // verified and let go
}

// c is dropped, cannot be thawed at once, and is listed again. If the core held it twice, the entry
// that lets it go would thaw it in other turns.
TEST_F(SwitchCoreTest, APodThatIsListedAgainWhileItIsBeingLetGoIsHeldOnlyOnce) {
  obey(always({"a", "b", "c"}, {0}));
  kernel_.cgroup("c").ancestor_frozen = true;  // its thaw cannot be verified
  obey(always({"a"}, {0}));
  EXPECT_FALSE(controls_["b"]->controlled.load());
  EXPECT_TRUE(controls_["c"]->controlled.load());
  obey(always({"a", "c"}, {0}));
  run_until(clock_.wall() + seconds{1});
  EXPECT_EQ(kernel_.cgroup("c").request,
            FreezeRequest::kFrozen);  // no program thaws it behind our back
  EXPECT_EQ(controls_["c"]->state.load(), FreezeState::kFrozen);
  EXPECT_TRUE(controls_["c"]->controlled.load());
}

// Rule 5 of freezer.md 4: the second thaw comes 100 ms after the first, whatever the first one did.
TEST_F(SwitchCoreTest, ThawsADeletedPodTwiceAndItComesUnderTheTimetableAgainAfterwards) {
  obey(two_gangs());
  kernel_.take_log();
  Assignment deleted = two_gangs();
  deleted.pods[1].rule = ControlRule::kDeleted;
  obey(deleted);
  EXPECT_THAT(kernel_.take_log(), ElementsAre("thaw b"));
  run_until(clock_.wall() + milliseconds{150});
  EXPECT_THAT(kernel_.take_log(), ElementsAre("thaw b"));
  EXPECT_TRUE(runs("b"));
  obey(two_gangs());  // its grace period is over
  EXPECT_THAT(kernel_.take_log(), ElementsAre("freeze b"));
}

// A thaw that overtakes the freeze must still win: both writes of rule 5 come, and the pod runs.
TEST_F(SwitchCoreTest, ThawsAPodThatIsDeletedWhileItFreezes) {
  kernel_.cgroup("b").freeze_takes = milliseconds{50};
  obey(two_gangs());
  run_until(clock_.wall() + milliseconds{5});
  ASSERT_EQ(controls_["b"]->state.load(), FreezeState::kFreezing);
  Assignment deleted = two_gangs();
  deleted.pods[1].rule = ControlRule::kDeleted;
  kernel_.take_log();
  obey(deleted);
  run_until(clock_.wall() + milliseconds{300});
  EXPECT_THAT(kernel_.take_log(), ElementsAre("thaw b", "thaw b"));
  EXPECT_TRUE(runs("b"));
  EXPECT_EQ(controls_["b"]->state.load(), FreezeState::kThawed);
}

// Another program has frozen b, for a checkpoint perhaps. The agent's thaw would break that; only a
// deletion, which would hang otherwise, may.
TEST_F(SwitchCoreTest, NeverWritesAForeignPodUntilItIsDeleted) {
  kernel_.cgroup("b").request = FreezeRequest::kFrozen;
  control("b", FoundAs::kForeign);
  obey(two_gangs());
  run_until(kStart + seconds{4});
  EXPECT_EQ(kernel_.cgroup("b").writes, 0U);
  EXPECT_EQ(controls_["b"]->state.load(), FreezeState::kForeign);
  Assignment deleted = two_gangs();
  deleted.pods[1].rule = ControlRule::kDeleted;
  obey(deleted);
  EXPECT_TRUE(runs("b"));
}

// The timetable says that b is off, so it is frozen as soon as the agent may freeze it.
TEST_F(SwitchCoreTest, TakesUpAPodWhoseForeignFreezeEnded) {
  Assignment assignment = two_gangs();
  set_cycle(assignment, {{0}});
  kernel_.cgroup("b").request = FreezeRequest::kFrozen;
  control("b", FoundAs::kForeign);
  obey(assignment);
  kernel_.cgroup("b").request = FreezeRequest::kThawed;
  run_until(clock_.wall() + seconds{3});
  EXPECT_FALSE(runs("b"));
}

// The audit finds it. Until then b runs in a's turn, so it must not take longer than two seconds.
TEST_F(SwitchCoreTest, FreezesAgainWhatSomebodyElseThawed) {
  Assignment assignment = two_gangs();
  set_cycle(assignment, {{0}});
  obey(assignment);
  ASSERT_FALSE(runs("b"));
  kernel_.cgroup("b").request = FreezeRequest::kThawed;
  run_until(clock_.wall() + seconds{2});
  EXPECT_FALSE(runs("b"));
  EXPECT_EQ(counters_.repairs.load(), 1U);
}

// It is a's turn, so the first switch thaws what an agent before this one froze for its own last
// slot.
TEST_F(SwitchCoreTest, InheritsWhatItsPredecessorFroze) {
  kernel_.cgroup("a").request = FreezeRequest::kFrozen;
  control("a", FoundAs::kFrozenByUs);
  obey(two_gangs());
  EXPECT_TRUE(runs("a"));
  EXPECT_FALSE(runs("b"));
}

// The thread was kept from its CPU for nearly seven slices. Replaying the switches would let gangs
// run at the wrong time.
TEST_F(SwitchCoreTest, SkipsBoundariesThatItSleptThroughAndActsOnNow) {
  obey(two_gangs());
  kernel_.take_log();
  clock_.advance_to(kStart + seconds{7} + milliseconds{800});
  core_.step();
  EXPECT_THAT(kernel_.take_log(), ElementsAre("freeze a", "thaw b"));  // slot 7 is b's
  // Boundaries 1 to 7 passed in the sleep. Even the last one is 800 ms ago, which is more than half
  // a slice, so it counts as missed, too.
  EXPECT_EQ(counters_.boundaries_missed.load(), 7U);
  EXPECT_EQ(core_.next_wake().boundary, kStart + seconds{8});
}

// After a step the pods of the slot that the clock now shows run, within the quarter of a slice
// that switches are kept apart. No boundary in between is replayed.
TEST_F(SwitchCoreTest, FollowsAClockThatSteps) {
  obey(two_gangs());
  for (const Duration step : {Duration{seconds{1}}, Duration{seconds{-1}}, Duration{hours{1}},
                              Duration{hours{-1}}, Duration{seconds{-3}}}) {
    run_until(clock_.wall() + seconds{2});
    clock_.step_wall(step);
    core_.step();
    run_until(clock_.wall() + kSlice / 4);
    const bool even = base::slot_of(clock_.wall(), kSlice) % 2 == 0;
    EXPECT_EQ(runs("a"), even) << step.count();
    EXPECT_EQ(runs("b"), !even) << step.count();
  }
  EXPECT_EQ(counters_.clock_steps.load(), 5U);
}

// A quarter of such a slice is two and a half minutes, in which the other nodes of the gang would
// be in another slot.
TEST_F(SwitchCoreTest, FollowsAClockThatStepsWithin2SecondsHoweverLongTheSlices) {
  constexpr Duration kLong = seconds{600};
  obey(two_gangs(kLong));
  for (const Duration step : {kLong, -kLong}) {
    const Instant next = base::slot_begin(base::slot_of(clock_.wall(), kLong) + 1, kLong);
    run_until(next + milliseconds{100});
    clock_.step_wall(step);
    core_.step();
    run_until(clock_.wall() + seconds{2});
    const bool even = base::slot_of(clock_.wall(), kLong) % 2 == 0;
    EXPECT_EQ(runs("a"), even) << step.count();
    EXPECT_EQ(runs("b"), !even) << step.count();
  }
}

// A false step would make the core switch at once and count a clock problem that administrators
// would look for.
TEST_F(SwitchCoreTest, TakesALostCpuForNoStepOfTheClock) {
  obey(two_gangs());
  run_until(kStart + milliseconds{300});
  // Between the readings of the two clocks the thread loses its CPU for 80 ms: their difference is
  // off by that, and the second pair of readings shows that no clock was set.
  clock_.lose_cpu_after_wall(milliseconds{80});
  core_.step();
  EXPECT_EQ(counters_.clock_steps.load(), 0U);
  clock_.step_wall(milliseconds{80});
  core_.step();
  EXPECT_EQ(counters_.clock_steps.load(), 1U);
}

// The boundary of the switch that was just made lies ahead again for a moment. Waking for it would
// be a busy loop until the quarter of a slice is over.
TEST_F(SwitchCoreTest, SleepsUntilTheNextBoundaryAfterAClockThatWentBackForAMoment) {
  obey(two_gangs());
  run_until(kStart + kSlice + milliseconds{10});
  clock_.step_wall(-milliseconds{100});  // before the switch that was just made
  core_.step();
  clock_.step_wall(milliseconds{100});
  core_.step();
  EXPECT_EQ(core_.next_wake().boundary, kStart + 2 * kSlice);
  clock_.advance(milliseconds{300});  // a quarter of a slice is over
  core_.step();
  const SwitchWake wake = core_.next_wake();
  EXPECT_EQ(wake.boundary, kStart + 2 * kSlice);
  EXPECT_TRUE(!wake.look || *wake.look > clock_.monotonic());
}

// Without the bound a clock that jumps to and fro would freeze and thaw all pods in a loop.
TEST_F(SwitchCoreTest, SwitchesAtMostEveryQuarterSliceWhateverTheClockDoes) {
  obey(two_gangs());
  kernel_.take_log();
  const std::uint64_t before = counters_.switches.load();
  for (int i = 0; i < 100; ++i) {  // one second in which the clock is thrown about
    clock_.step_wall(i % 2 == 0 ? kSlice : -kSlice);
    core_.step();
    clock_.advance(milliseconds{10});
  }
  // A quarter of a slice is 250 ms: at most five instants of the second are that far apart.
  EXPECT_LE(counters_.switches.load() - before, 5U);
}

// The way out for fail-open, the kill switch and the end of the agent: no timetable holds then.
TEST_F(SwitchCoreTest, RunsEverythingWhenToldTo) {
  Assignment all = two_gangs();
  set_cycle(all, {{}});
  obey(all);
  EXPECT_FALSE(runs("a"));
  EXPECT_FALSE(core_.everything_runs());
  all.number = ++number_;
  all.everything_runs = true;
  obey(all);
  run_until(clock_.wall() + milliseconds{20});
  EXPECT_TRUE(runs("a"));
  EXPECT_TRUE(runs("b"));
  EXPECT_TRUE(core_.everything_runs());
}

// kubelet removes the cgroup of a pod that ended without asking. The write fails with ENODEV, and
// the other gang keeps its turns.
TEST_F(SwitchCoreTest, GoesOnWhenACgroupIsRemovedUnderItsHands) {
  obey(two_gangs());
  kernel_.cgroup("a").removed = true;
  run_until(kStart + seconds{3});
  EXPECT_EQ(controls_["a"]->state.load(), FreezeState::kGone);
  EXPECT_TRUE(runs("b") == (base::slot_of(clock_.wall(), kSlice) % 2 == 1));
}

// Goal: at any time only run(t) is thawed, up to the time that freezing takes; and everything runs
// again on request. Method: random timetables, freeze times and failed writes; the state of the
// fake kernel is compared with run(t) whenever the core sleeps.
TEST_F(SwitchCoreTest, OnlyRunOfNowIsThawedAtAnyTime) {
  constexpr std::uint64_t kSeed = 7;
  base::Prng prng{kSeed};
  constexpr std::uint16_t kPods = 5;
  Assignment last;
  int looks = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    Assignment assignment;
    assignment.number = ++number_;
    timetable::Timetable table;
    table.slice = milliseconds{100 * static_cast<std::int64_t>(1 + prng.below(5))};
    table.pods_count = kPods;
    for (std::uint64_t slots = 1 + prng.below(5); slots > 0; --slots) {
      timetable::PodSet set;
      for (std::uint16_t pod = 0; pod < kPods; ++pod) {
        if (prng.below(2) == 0) set.push_back(pod);
      }
      table.cycle.push_back(set);
    }
    assignment.table = std::make_shared<const timetable::Timetable>(table);
    std::vector<bool> listed(kPods);
    for (std::uint16_t pod = 0; pod < kPods; ++pod) {
      const std::string name = "p" + std::to_string(pod);
      listed[pod] = prng.below(5) != 0;
      kernel_.cgroup(name).freeze_takes = Duration{static_cast<std::int64_t>(prng.below(15'000))};
      if (prng.below(8) == 0) kernel_.cgroup(name).fail_next = {IoResult::kFailed};
      if (listed[pod]) {
        assignment.pods.push_back(
            {.control = control(name), .index = pod, .rule = ControlRule::kTimetable});
      }
    }
    last = assignment;
    obey(assignment);
    const Instant end = clock_.wall() + seconds{2};
    for (Instant look = clock_.wall() + milliseconds{230}; look < end; look += milliseconds{17}) {
      run_until(look);
      // ε: the last switch plus a barrier, and the retry of a failed write.
      const Instant since = clock_.wall() - milliseconds{40};
      const auto change = timetable::next_change(*assignment.table, since);
      if (change && *change <= clock_.wall()) continue;
      for (std::uint16_t pod = 0; pod < kPods; ++pod) {
        const bool want = !listed[pod] || timetable::runs_at(*assignment.table, pod, clock_.wall());
        const std::string name = "p" + std::to_string(pod);
        if (!kernel_.cgroup(name).fail_next.empty()) continue;
        if (look < clock_.wall() - milliseconds{1}) continue;
        ASSERT_EQ(runs(name), want) << name;
        ++looks;
      }
    }
  }
  EXPECT_GT(looks, 10'000);
  last.number = ++number_;
  last.everything_runs = true;
  obey(last);
  run_until(clock_.wall() + seconds{1});
  for (const auto& [name, unused] : controls_) EXPECT_TRUE(runs(name)) << name;
}

}  // namespace
}  // namespace agent
