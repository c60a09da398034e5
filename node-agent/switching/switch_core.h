// The switcher without its thread: holds the table of controlled pods, knows who has to run now and
// does the switch. Stepped by switcher.h on the real clock, by tests on a fake one.
//
// A switch: write the freezes of all that go off; read back until all are seen frozen, `barrier` at
// most; write the thaws of all that come on. What is late is looked after in later steps, and its
// overlap counted. (architecture.md 2; freezer.md 4 rule 3, 5.3)
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

// A step of the wall clock against the monotonic one that is more than slewing.
inline constexpr base::Duration kClockStepMin = std::chrono::milliseconds{50};
// Looks at pods keep this far away from a boundary.
inline constexpr base::Duration kQuietBefore = std::chrono::milliseconds{1};
// How long to read back without giving the CPU away: a task on another CPU stops within 20 us; one
// that this thread keeps off its CPU never would.
inline constexpr base::Duration kReadBackSpin = std::chrono::microseconds{20};
// How long to give it away then: an eighth of what was waited so far, so that a look comes at most
// that much too late and a wait for the whole barrier costs about fifty looks. Where the kernel
// tells of changes, that ends the pause, and the time is for changes that it does not tell of.
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

  // Works out who is switched at `boundary`, ahead of it, so that step() has only to write.
  void prepare(base::Instant boundary);

  // Does what is due by now: the switch of a boundary that came, looks at pods, repairs.
  void step();

  SwitchWake next_wake() const;

  // Nothing that is ours is frozen or being frozen.
  bool everything_runs() const;

  // Whether anything happened since the last call that others have to hear of soon: an assignment
  // was obeyed, a switch did not go well, a pod's state changed other than by a turn that it takes.
  bool take_changed() { return std::exchange(changed_, false); }

 private:
  struct Slot {
    std::shared_ptr<PodControl> control;
    FreezeMachine machine;
    std::uint16_t index;
    ControlRule rule;
    bool leaving;          // not in the assignment any more: thawed, kept until verified
    bool thaw_of_deleted;  // the two thaws of rule 5 have to begin
    std::optional<base::Duration> overlaps_since;  // it runs on beside those that came on
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
  void begin_overlaps(base::Duration now);
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
