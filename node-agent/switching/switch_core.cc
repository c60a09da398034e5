#include "node-agent/switching/switch_core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

// The core keeps one table of slots, a slot for each controlled pod with its FreezeMachine. All
// work is a comparison of that table with run(t):
//
// * obey() replaces the table: pods that stay keep their machine, new ones get one, pods that are
//   no longer listed leave once they run.
// * work_out(t) sorts the slots whose wish differs from their last request into freeze_ and thaw_.
// * switch_now() does the system calls in the order freeze, read back, thaw, and only afterwards
//   any bookkeeping.
// * look_after() steps the machines between switches: late freezes, failed writes, audits.
// The time between the first freeze and the last thaw is time in which a node's CPUs idle or two
// gangs run on one core. So nothing in that stretch allocates, logs, locks or looks at more pods
// than it must, and as much as possible is prepared before the boundary.
namespace agent {
namespace {

// Boundaries that are counted as missed after one long pause.
constexpr int kMissedCountMax = 1000;
// The longest time between two boundary switches that a clock which steps can enforce. Slices may
// last hours, and the gang of another slot must not run for a quarter of one.
constexpr base::Duration kApartMax = std::chrono::seconds{2};

FreezeMachine machine_of(FoundAs found_as, base::Duration now) {
  switch (found_as) {
    case FoundAs::kRunning:
      return FreezeMachine::found_running(now);
    case FoundAs::kFrozenByUs:
      return FreezeMachine::found_frozen_by_us(now);
    case FoundAs::kForeign:
      return FreezeMachine::found_foreign(now);
  }
  return FreezeMachine::found_running(now);
}

// Returns true for a pod that must stand still and has not been seen frozen.
bool runs_on(FreezeState state) {
  return state == FreezeState::kFreezing || state == FreezeState::kStuck;
}

// Ordinary turns are not reported: on a node they happen every slice.
bool is_part_of_a_turn(FreezeState state, FreezeState before) {
  return (state == FreezeState::kThawed && before == FreezeState::kFrozen) ||
         (state == FreezeState::kFrozen && before == FreezeState::kThawed);
}

}  // namespace

SwitchCore::SwitchCore(SwitchClock& clock, ReportRing& reports, SwitchCounters& counters)
    : clock_{clock}, reports_{reports}, counters_{counters} {
  // All memory is taken here: the switching thread allocates nothing on its way, since an
  // allocation may take a lock or a page fault just when pods must be switched.
  slots_.reserve(2 * kControlledPodsMax);
  slots_before_.reserve(2 * kControlledPodsMax);
  desired_runs_.reserve(timetable::kPodsMax);
  freeze_.reserve(2 * kControlledPodsMax);
  thaw_.reserve(2 * kControlledPodsMax);
  unconfirmed_.reserve(2 * kControlledPodsMax);
}

void SwitchCore::obey(const Assignment& assignment) {
  // The capacity of the tables was reserved for this many. More would allocate on the switching
  // thread.
  CHECK(assignment.pods.size() <= kControlledPodsMax);
  CHECK(assignment_ == nullptr || assignment.number > assignment_->number);
  const base::Instant wall = clock_.wall();
  notice_clock_step(wall, clock_.monotonic());
  take_in(assignment, clock_.monotonic());
  assignment_ = &assignment;
  prepared_for_.reset();
  // A new timetable is obeyed at once. The brake on switches that follow each other closely is
  // against clocks that jump, not against operators.
  held_back_until_.reset();
  switch_now(SwitchCause::kAssignment, wall);
  counters_.obeyed_assignment.store(assignment.number, std::memory_order_release);
}

// 1. Each pod of the assignment gets a slot. One that was in the table before keeps its machine,
//    which knows what was asked and when.
// 2. A pod that an agent before this one froze is looked at once, so that its first turn knows
//    whether it stands.
// 3. Pods of the old table that are not in the new one: frozen ones are kept as leaving, and thawed
//    by the switch that follows; all others are let go.
void SwitchCore::take_in(const Assignment& assignment, base::Duration now) {
  std::swap(slots_, slots_before_);
  slots_.clear();
  for (const ControlledPod& pod : assignment.pods) {
    // A pod remembers its slot, so that taking over a thousand pods is not a thousand searches.
    const std::size_t place = pod.control->slot;
    const bool known = place < slots_before_.size() && slots_before_[place].control == pod.control;
    Slot* before = known ? &slots_before_[place] : nullptr;
    Slot slot{.control = pod.control,
              .machine = known ? before->machine : machine_of(pod.control->found_as, now),
              .index = pod.index,
              .rule = pod.rule,
              .leaving = false,
              .thaw_of_deleted = pod.rule == ControlRule::kDeleted &&
                                 (!known || before->rule != ControlRule::kDeleted),
              .overlaps_since = known ? before->overlaps_since : std::nullopt,
              .result = IoResult::kOk,
              .seen_frozen = false};
    // A slot without a control is one that was carried over; the loop below skips it.
    if (known) before->control.reset();
    // It is asked for; whether it stands still is not known yet.
    if (!known && pod.control->found_as == FoundAs::kFrozenByUs) {
      slot.machine.on_look({.result = IoResult::kOk, .request = FreezeRequest::kFrozen},
                           pod.control->freezer->observe(), now);
    }
    pod.control->slot = slots_.size();
    publish(slot);
    slots_.push_back(std::move(slot));
  }
  // In the new table these are not listed: pods that we froze are thawed first and dropped when
  // they run; all others are let go at once.
  for (Slot& slot : slots_before_) {
    if (!slot.control) continue;
    if (!is_frozen_by_us(slot.machine.state())) {
      slot.control->controlled.store(false, std::memory_order_release);
      continue;
    }
    if (slots_.size() == slots_.capacity()) break;  // Cannot be: twice the most that is assigned.
    slot.leaving = true;
    slot.rule = ControlRule::kRuns;
    slot.control->slot = slots_.size();
    slots_.push_back(std::move(slot));
  }
  slots_before_.clear();
}

// 1. Marks the pods that the timetable lets run at `t`.
void SwitchCore::mark_desired(base::Instant t) {
  desired_runs_.assign(assignment_->table->pods_count, 0);
  for (const std::uint16_t index : timetable::run_at(*assignment_->table, t)) {
    desired_runs_[index] = 1;
  }
}

// 2. Sorts the pods that differ from that into freeze_ and thaw_, and into unconfirmed_ those that
//    an earlier switch asked to freeze and that have not been seen frozen yet. Others run if one
//    is thawed, or is in its turn: it may run already, since it was never frozen.
void SwitchCore::work_out(base::Instant t) {
  mark_desired(t);
  freeze_.clear();
  thaw_.clear();
  unconfirmed_.clear();
  others_run_ = false;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    // Everything that is not explicitly off by the timetable runs: deleted pods, pods that leave,
    // and all pods while the agent fails open or stops.
    const bool takes_turns = slot.rule == ControlRule::kTimetable && !assignment_->everything_runs;
    const bool frozen = takes_turns && desired_runs_[slot.index] == 0;
    others_run_ |= takes_turns && !frozen;
    if (slot.thaw_of_deleted && slot.machine.state() != FreezeState::kGone) {
      thaw_.push_back(i);
    } else if (slot.machine.needs_write(frozen ? FreezeRequest::kFrozen : FreezeRequest::kThawed)) {
      (frozen ? freeze_ : thaw_).push_back(i);
    } else if (frozen && slot.machine.awaits_freeze()) {
      unconfirmed_.push_back(i);
    }
  }
  others_run_ |= !thaw_.empty();
}

// Runs in the last microseconds before the boundary, on a thread that spins anyway: working out
// which pods change would otherwise delay the first freeze.
void SwitchCore::prepare(base::Instant boundary) {
  if (assignment_ == nullptr) return;
  work_out(boundary);
  prepared_for_ = boundary;
  // The prepared arrays hold for this slot alone. A thread that wakes too late for it works
  // everything out again.
  prepared_until_ = timetable::next_change(*assignment_->table, boundary);
}

void SwitchCore::switch_now(SwitchCause cause, base::Instant due) {
  const base::Instant now = clock_.wall();
  SwitchReport report{.cause = cause, .due = due, .woke = now};
  const bool prepared =
      prepared_for_ && now >= *prepared_for_ && (!prepared_until_ || now < *prepared_until_);
  // 1. All pods that go off are asked to freeze, one write after the other.
  // 2. Only if others run: wait until the kernel reports them frozen, or the barrier passes. So in
  //    the normal case no two gangs run on one core.
  // 3. The pods that come on are thawed.
  // 4. Bookkeeping, reports and counters, when nothing waits for them.
  if (!prepared) work_out(now);
  // From here to the last write: system calls only.
  report.first_write = clock_.wall();
  for (const std::uint32_t i : freeze_) {
    slots_[i].result = slots_[i].control->freezer->request(FreezeRequest::kFrozen);
  }
  const base::Duration frozen_at = clock_.monotonic();
  // If no other pod runs, none can overlap with the ones that go off. The follow-up looks confirm
  // the freezes then, and nothing waits here.
  const std::uint32_t late_count = others_run_ ? read_back(frozen_at) : 0;
  report.confirmed = clock_.wall();
  for (const std::uint32_t i : thaw_) {
    slots_[i].result = slots_[i].control->freezer->request(FreezeRequest::kThawed);
  }
  report.last_write = clock_.wall();
  // From here on nothing is urgent.
  const base::Duration thawed_at = clock_.monotonic();
  tell_machines(frozen_at, thawed_at);
  report.slot = base::slot_of(due, assignment_->table->slice);
  report.froze_count = static_cast<std::uint32_t>(freeze_.size());
  report.thawed_count = static_cast<std::uint32_t>(thaw_.size());
  report.late_count = late_count;
  if (report.froze_count + report.thawed_count > 0) {
    counters_.switches.fetch_add(1, std::memory_order_relaxed);
    if (!reports_.push(report)) counters_.reports_dropped.fetch_add(1, std::memory_order_relaxed);
  }
  // `now` and not `due`: a switch that comes late acts on the slot that has begun meanwhile.
  applied_at_ = now;
  // The next instant at which run(t) changes, which may be many slots away: in between the agent
  // sleeps.
  boundary_ = timetable::next_change(*assignment_->table, now);
  // An ordinary turn does not change the status: with thousands of nodes that would be a write for
  // each in each slice.
  changed_ |= cause != SwitchCause::kBoundary || report.late_count > 0;
  prepared_for_.reset();
  drop_left();
}

// Returns how many of this switch were not seen frozen when the barrier passed. One after the
// other: while it waits for one, the others come to a stand too. Pods that an earlier switch froze
// just now (its revision was superseded) have their own barrier: a pod that comes on may be in
// conflict with it.
std::uint32_t SwitchCore::read_back(base::Duration started) {
  std::uint32_t late_count = 0;
  for (const std::uint32_t i : freeze_) {
    slots_[i].seen_frozen = is_seen_frozen(slots_[i], started);
    if (!slots_[i].seen_frozen && slots_[i].result == IoResult::kOk) ++late_count;
  }
  for (const std::uint32_t i : unconfirmed_) {
    slots_[i].result = IoResult::kOk;
    slots_[i].seen_frozen = is_seen_frozen(slots_[i], slots_[i].machine.asked_at());
  }
  return late_count;
}

// The first looks come at once; later ones give the CPU away in between, since the tasks that have
// to stop may be waiting for it.
bool SwitchCore::is_seen_frozen(Slot& slot, base::Duration started) {
  if (slot.result != IoResult::kOk) return false;  // Not asked: there is nothing to wait for.
  Freezer& freezer = *slot.control->freezer;
  const base::Duration barrier = assignment_->barrier;
  for (;;) {
    const Observation seen = freezer.observe();
    if (seen.frozen) return true;
    if (seen.result == IoResult::kGone) {
      slot.result = IoResult::kGone;
      return false;
    }
    const base::Duration waited = clock_.monotonic() - started;
    if (waited >= barrier) return false;
    // Most freezes take microseconds, and a sleep costs more than that.
    if (waited < kReadBackSpin) continue;
    const base::Duration left = barrier - waited;
    const base::Duration pause = waited / kReadBackPausePart;
    // cgroup v2 notifies of a change (cgroup.events); v1 must be asked again and again.
    if (const std::optional<int> changes = freezer.changes_fd()) {
      clock_.pause_until_news(*changes, std::min(left, std::max(kReadBackNewsWaitMin, pause)));
    } else {
      clock_.pause(std::min(left, std::max(kReadBackPauseMin, pause)));
    }
  }
}

// The kernel says thawed as soon as the write returns, unless an ancestor is frozen: one look here
// saves a wake-up a millisecond later.
void SwitchCore::verify_thaw(Slot& slot, base::Duration now) {
  if (slot.result != IoResult::kOk) return;
  slot.machine.on_look({.result = IoResult::kOk, .request = FreezeRequest::kThawed},
                       slot.control->freezer->observe(), now);
}

// The machines learn the results after the last write. Their bookkeeping costs time for each pod,
// which would delay the pods that come on.
void SwitchCore::tell_machines(base::Duration frozen_at, base::Duration thawed_at) {
  const std::int64_t wall = base::micros_since_epoch(clock_.wall());
  for (const std::uint32_t i : freeze_) {
    Slot& slot = slots_[i];
    slot.machine.on_write(FreezeRequest::kFrozen, slot.result, frozen_at);
    if (slot.result != IoResult::kOk) counters_.write_errors.fetch_add(1);
    // If no others run, nothing was read back; the next look shows it.
    if (others_run_) tell_what_was_read_back(slot, thawed_at);
    slot.control->last_switch_micros.store(wall, std::memory_order_relaxed);
    publish(slot);
  }
  for (const std::uint32_t i : unconfirmed_) {
    if (!others_run_) break;
    tell_what_was_read_back(slots_[i], thawed_at);
    publish(slots_[i]);
  }
  for (const std::uint32_t i : thaw_) {
    Slot& slot = slots_[i];
    if (slot.thaw_of_deleted) {
      slot.machine.on_thaw_of_deleted(slot.result, thawed_at);
      slot.thaw_of_deleted = false;
    } else {
      slot.machine.on_write(FreezeRequest::kThawed, slot.result, thawed_at);
    }
    verify_thaw(slot, thawed_at);
    if (slot.result != IoResult::kOk) counters_.write_errors.fetch_add(1);
    end_overlap(slot, thawed_at);
    slot.control->last_switch_micros.store(wall, std::memory_order_relaxed);
    publish(slot);
  }
  note_overlaps(thawed_at);
}

void SwitchCore::tell_what_was_read_back(Slot& slot, base::Duration now) {
  if (slot.result == IoResult::kGone) {
    slot.machine.on_write(FreezeRequest::kFrozen, IoResult::kGone, now);
  } else if (slot.seen_frozen) {
    slot.machine.on_look({.result = IoResult::kOk, .request = FreezeRequest::kFrozen},
                         {.result = IoResult::kOk, .frozen = true}, now);
  }
  if (slot.result == IoResult::kGone || slot.seen_frozen) end_overlap(slot, now);
}

// A pod that should stand still, and is not known to, runs on beside others, because the kernel
// takes its time or because the write failed.
void SwitchCore::note_overlaps(base::Duration now) {
  for (Slot& slot : slots_) {
    if (!others_run_) {
      end_overlap(slot, now);
    } else if (runs_on(slot.machine.state()) && !slot.overlaps_since) {
      slot.overlaps_since = now;
    }
  }
}

void SwitchCore::end_overlap(Slot& slot, base::Duration now) {
  if (!slot.overlaps_since) return;
  counters_.overlap_micros.fetch_add(
      static_cast<std::uint64_t>((now - *slot.overlaps_since).count()));
  slot.overlaps_since.reset();
}

void SwitchCore::publish(Slot& slot) {
  const FreezeState state = slot.machine.state();
  // The policy decides by this state which pods the journal must name, and when one may be
  // forgotten.
  const FreezeState before = slot.control->state.exchange(state, std::memory_order_acq_rel);
  // Thawed to frozen and back is what turns are; everything else (stuck, foreign, gone) is worth a
  // word.
  changed_ |= state != before && !is_part_of_a_turn(state, before);
  if (state == FreezeState::kStuck && before != state) counters_.stuck.fetch_add(1);
  if (state == FreezeState::kFrozen && runs_on(before) && slot.machine.was_slow()) {
    slot.control->slow_freeze_micros.store(slot.machine.confirmed_after().count());
    slot.control->slow_freezes.fetch_add(1);
  }
  const bool denied = slot.machine.denied();
  changed_ |= slot.control->denied.exchange(denied, std::memory_order_relaxed) != denied;
  slot.control->controlled.store(true, std::memory_order_release);
}

// Returns true if the wall clock was set since the last call. The first call only notes the
// difference of the clocks.
bool SwitchCore::notice_clock_step(base::Instant wall, base::Duration monotonic) {
  // Both clocks run at the same rate except when the wall clock is set, so a change of their
  // difference is a step.
  base::Duration difference = wall.time_since_epoch() - monotonic;
  const auto is_step = [&] {
    return wall_minus_monotonic_ != base::Duration{0} &&
           std::chrono::abs(difference - wall_minus_monotonic_) >= kClockStepMin;
  };
  if (is_step()) {  // Or this thread lost its CPU between the two readings.
    const base::Instant again = clock_.wall();
    difference = again.time_since_epoch() - clock_.monotonic();
  }
  const bool stepped = is_step();
  if (stepped) counters_.clock_steps.fetch_add(1, std::memory_order_relaxed);
  wall_minus_monotonic_ = difference;
  return stepped;
}

// Boundaries are missed when the machine slept or the thread got no CPU. They are only counted: the
// switch that follows acts on the current slot and replays none of them (freezer.md 5.3).
void SwitchCore::count_missed(base::Instant boundary, base::Instant now) {
  std::optional<base::Instant> missed = boundary;
  for (int i = 0; i < kMissedCountMax && missed && *missed <= now; ++i) {
    // A boundary that is obeyed a little late is late, not missed.
    if (now - *missed > assignment_->table->slice / 2) {
      counters_.boundaries_missed.fetch_add(1, std::memory_order_relaxed);
    }
    missed = timetable::next_change(*assignment_->table, *missed);
  }
}

// 1. Notice a step of the wall clock.
// 2. Switch if a boundary has come, or if the clock went back to before the last switch: run(t) may
//    then name other pods.
// 3. Hold the switch back if the last one was too recent.
// 4. Look after single pods: late freezes, failed writes, audits.
void SwitchCore::step() {
  if (assignment_ == nullptr) return;
  const base::Instant wall = clock_.wall();
  const base::Duration now = clock_.monotonic();
  const bool stepped = notice_clock_step(wall, now);
  const bool came = boundary_ && wall >= *boundary_;
  const bool clock_went_back = wall < applied_at_;
  if (came || clock_went_back) {
    // Whatever the clock does, boundary switches are not closer together than a quarter of a slice
    // or kApartMax, unless the timetable itself has them closer.
    // A wall clock that jumps back and forth over a boundary would otherwise switch the same pods
    // as fast as the thread can run.
    base::Duration apart = std::min(assignment_->table->slice / 4, kApartMax);
    if (came && !clock_went_back) apart = std::min(apart, *boundary_ - applied_at_);
    const base::Duration earliest = last_boundary_switch_ + apart;
    if (now < earliest) {
      held_back_until_ = earliest;
    } else {
      // After a step of the clock the boundaries in between never passed on this machine, so they
      // are not counted as missed.
      if (came && !stepped) count_missed(*boundary_, wall);
      held_back_until_.reset();
      last_boundary_switch_ = now;
      switch_now(SwitchCause::kBoundary, came ? *boundary_ : wall);
    }
  } else {
    held_back_until_.reset();  // The clock came back: what is in force is run(now).
  }
  look_after(clock_.monotonic());
}

// 1. Each machine that is due looks or writes. 2. If a state changed, the wishes are compared once
//    more, because a pod that another program let go may need to stand still now. 3. If one must be
//    written, that is a switch of its own, with the cause kRepair.
void SwitchCore::look_after(base::Duration now) {
  // Looks take system calls; just before a boundary they could make it late.
  if (boundary_is_near()) return;
  bool changed = false;
  for (Slot& slot : slots_) {
    const FreezeState before = slot.machine.state();
    look_at(slot, now);
    changed |= slot.machine.state() != before;
  }
  if (!changed) return;
  // A foreign freeze that ended may leave a pod running that must stand still. The pods are worked
  // out for the instant of the last switch, not for now: a boundary that has passed since is the
  // next step's work, with its own barrier and report.
  work_out(applied_at_);
  if (!freeze_.empty() || !thaw_.empty()) {
    prepared_for_.reset();
    switch_now(SwitchCause::kRepair, clock_.wall());
  } else {
    prepared_for_.reset();
    drop_left();
  }
}

// A look reads one file if the pod stands as it must, and two otherwise. A pod that we asked to
// freeze and whose request says thawed was thawed by another program: that is a repair, and is
// counted.
void SwitchCore::look_at(Slot& slot, base::Duration now) {
  const FreezeMachine::Action action = slot.machine.due(now);
  Freezer& freezer = *slot.control->freezer;
  switch (action) {
    case FreezeMachine::Action::kNothing:
      return;
    case FreezeMachine::Action::kLook: {
      const bool off = slot.machine.needs_write(FreezeRequest::kThawed);
      const Observation seen = freezer.observe();
      // It stands still as we asked: no program undid it, or it makes no difference yet. Reading no
      // more of it saves half of what an idle agent would do.
      const bool stands = slot.machine.state() == FreezeState::kFrozen &&
                          seen == Observation{.result = IoResult::kOk, .frozen = true};
      const AskedState requested =
          stands ? AskedState{.result = IoResult::kOk, .request = FreezeRequest::kFrozen}
                 : freezer.asked();
      slot.machine.on_look(requested, seen, now);
      if (off &&
          requested == AskedState{.result = IoResult::kOk, .request = FreezeRequest::kThawed}) {
        counters_.repairs.fetch_add(1, std::memory_order_relaxed);
      }
      break;
    }
    case FreezeMachine::Action::kFreezeAgain:
      slot.machine.on_write(FreezeRequest::kFrozen, freezer.request(FreezeRequest::kFrozen), now);
      break;
    case FreezeMachine::Action::kThawAgain:
      slot.machine.on_write(FreezeRequest::kThawed, freezer.request(FreezeRequest::kThawed), now);
      break;
  }
  if (!runs_on(slot.machine.state())) end_overlap(slot, now);
  publish(slot);
}

// Lets pods go that have left the assignment and run.
void SwitchCore::drop_left() {
  const std::size_t dropped = std::erase_if(slots_, [](const Slot& slot) {
    const bool done = slot.leaving && !is_frozen_by_us(slot.machine.state());
    if (done) slot.control->controlled.store(false, std::memory_order_release);
    return done;
  });
  if (dropped == 0) return;
  // The slots behind a dropped one have moved up, so each control's note of its place is renewed.
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].control->slot = i;
}

// A switch that is held back waits on the monotonic clock, so the boundary does not keep looks
// away.
bool SwitchCore::boundary_is_near() const {
  if (!boundary_ || held_back_until_) return false;
  const base::Duration away = *boundary_ - clock_.wall();
  return away > base::Duration{0} && away <= kQuietBefore;
}

// Returns the next boundary and the earliest look of all pods. O(pods): the thread asks once for
// each wake-up.
SwitchWake SwitchCore::next_wake() const {
  SwitchWake wake{.boundary = boundary_, .look = std::nullopt};
  if (held_back_until_) {
    wake.boundary.reset();
    wake.look = held_back_until_;
  }
  // Without the looks, which look_after() would refuse now: a look that is due would make the
  // thread wake again and again until the boundary.
  if (boundary_is_near()) return wake;
  for (const Slot& slot : slots_) {
    const std::optional<base::Duration> due = slot.machine.next_due();
    if (due && (!wake.look || *due < *wake.look)) wake.look = due;
  }
  return wake;
}

bool SwitchCore::everything_runs() const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [](const Slot& slot) { return is_frozen_by_us(slot.machine.state()); });
}

}  // namespace agent
