// The switcher without its thread: holds the table of controlled pods, knows which of them must run
// now, and switches. Stepped by switcher.h on the real clock, by tests on a fake one.
//
// A switch has three steps: write the freezes of all pods that go off; read back until all of them
// are seen frozen, for `barrier` at most; write the thaws of all pods that come on. Later steps
// look after pods that are late, and count the overlap. (architecture.md 2; freezer.md 4 rule 3,
// 5.3)
//
// Invariants: acts on run(now), never on boundaries that passed; never writes a foreign or gone
// pod; nothing is allocated, logged or locked in here once the assignment is obeyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "node-agent/switching/assignment.h"
#include "node-agent/switching/freeze_machine.h"
#include "node-agent/switching/switch_clock.h"
#include "node-agent/switching/switch_report.h"

namespace agent {

// From this size on, a difference between the wall clock and the monotonic clock counts as a step;
// a smaller one is slewing.
inline constexpr base::Duration kClockStepMin = std::chrono::milliseconds{50};
// Pods are not looked at in this time before a boundary.
inline constexpr base::Duration kQuietBefore = std::chrono::milliseconds{1};
// How long to read back before the CPU is given away: a task on another CPU stops within 20 us; a
// task that this thread keeps off its CPU cannot stop until then.
inline constexpr base::Duration kReadBackSpin = std::chrono::microseconds{20};
// For how long it is given away then: an eighth of the time waited so far, so that a look is late
// by at most that much, and a wait for the whole barrier takes about fifty looks. If the kernel
// reports changes, a report ends the pause; the pause is there for changes that it does not report.
inline constexpr int kReadBackPausePart = 8;
inline constexpr base::Duration kReadBackPauseMin = std::chrono::microseconds{5};
inline constexpr base::Duration kReadBackNewsWaitMin = std::chrono::microseconds{50};

struct SwitchWake {
  std::optional<base::Instant> boundary;  // wall clock: the next change of run(t)
  std::optional<base::Duration> look;     // monotonic: the next look at a pod
};

// One thread.
class SwitchCore {
 public:
  SwitchCore(SwitchClock& clock, ReportRing& reports, SwitchCounters& counters);

  // Takes over an assignment and switches to it at once. The caller keeps it alive until
  // counters.obeyed_assignment is higher than its number.
  void obey(const Assignment& assignment);

  // Works out ahead of `boundary` which pods are switched then, so that step() need only write.
  void prepare(base::Instant boundary);

  // Does what is due: the switch of a boundary that has passed, looks at pods, repairs.
  void step();

  SwitchWake next_wake() const;

  // Returns true if nothing is frozen, or being frozen, by us.
  bool everything_runs() const;

  // Returns true if something worth reporting soon happened since the last call: an assignment was
  // obeyed, a switch had late or failed writes, or a state changed other than by a normal turn.
  bool take_changed() { return std::exchange(changed_, false); }

 private:
  struct Slot {
    std::shared_ptr<PodControl> control;
    FreezeMachine machine;
    std::uint16_t index;
    ControlRule rule;
    bool leaving;          // no longer in the assignment: thawed, kept until that is verified
    bool thaw_of_deleted;  // its two thaws (at once, 100 ms later) are due
    std::optional<base::Duration> overlaps_since;  // it still runs, beside pods that are on
    IoResult result;                               // of the write in the switch at hand
    bool seen_frozen;                              // in the switch at hand, if it read back
  };

  void take_in(const Assignment& assignment, base::Duration now);
  bool notice_clock_step(base::Instant wall, base::Duration monotonic);
  void mark_desired(base::Instant t);
  void work_out(base::Instant t);
  void switch_now(SwitchCause cause, base::Instant due);
  std::uint32_t read_back(base::Duration started);
  bool is_seen_frozen(Slot& slot, base::Duration started);
  void verify_thaw(Slot& slot, base::Duration now);
  void tell_machines(base::Duration frozen_at, base::Duration thawed_at);
  void tell_what_was_read_back(Slot& slot, base::Duration now);
  void note_overlaps(base::Duration now);
  void end_overlap(Slot& slot, base::Duration now);
  void count_missed(base::Instant boundary, base::Instant now);
  bool boundary_is_near() const;
  void look_after(base::Duration now);
  void look_at(Slot& slot, base::Duration now);
  void publish(Slot& slot);
  void drop_left();

  SwitchClock& clock_;
  ReportRing& reports_;
  SwitchCounters& counters_;

  const Assignment* assignment_ = nullptr;  // kept alive by the caller of obey()
  std::vector<Slot> slots_;
  std::vector<Slot> slots_before_;          // scratch of take_in()
  std::vector<std::uint8_t> desired_runs_;  // by index in the timetable
  std::vector<std::uint32_t> freeze_;       // slots to freeze
  std::vector<std::uint32_t> thaw_;         // to thaw
  std::vector<std::uint32_t> unconfirmed_;  // asked to freeze by an earlier switch, not seen frozen
  bool others_run_ = false;  // to be thawed, or in their turn: freezes are waited for
  std::optional<base::Instant> prepared_for_;
  std::optional<base::Instant> prepared_until_;    // when run(t) changes after that
  std::optional<base::Instant> boundary_;          // next change of run(t) after the last switch
  base::Instant applied_at_{};                     // the t of the run(t) in force
  std::optional<base::Duration> held_back_until_;  // monotonic; see step()
  base::Duration last_boundary_switch_{0};
  base::Duration wall_minus_monotonic_{0};
  bool changed_ = false;
};

}  // namespace agent
