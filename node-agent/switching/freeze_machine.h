// The state of one controlled pod's freezer, and when to look or write again. A pure state
// machine: the switcher makes the calls and passes it the outcomes; the machine holds the deadlines
// and is stepped with the monotonic time. Policy (which pod, when) is not here.
//
//   Thawed ──wrote frozen──▶ Freezing ──observed──▶ Frozen ──wrote thawed──▶ Thawing ──▶ Thawed
//                               └─ 2 s ─▶ Stuck (stays asked for; becomes Frozen late, or thawed)
//   Thawed ──another program froze it──▶ Foreign ──they thawed it──▶ Thawed
//   any ──removed──▶ Gone
// SOURCE: freezer.md 5.2, 5.3; rules 3, 5, 10.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "node-agent/freezer/freezer.h"

namespace agent {

enum class FreezeState : std::uint8_t {
  kThawed,
  kFreezing,
  kFrozen,
  kStuck,
  kThawing,
  kForeign,
  kGone,
};

std::string_view to_string(FreezeState state);

// Returns true if the pod is, or may still be, frozen by us: in every state from the freeze's write
// until the thaw is confirmed.
constexpr bool is_frozen_by_us(FreezeState state) {
  return state == FreezeState::kFreezing || state == FreezeState::kFrozen ||
         state == FreezeState::kStuck || state == FreezeState::kThawing;
}

// A freeze takes microseconds; one that the kernel has not finished within kStuckAfter is reported
// as stuck. kSecondThawAfter is for a pod that is being deleted. A pod at rest is looked at every
// kAuditEvery, rounded up to kAuditGrid; a write or a read that failed is tried again after
// kWriteRetryAfter.
inline constexpr base::Duration kStuckAfter = std::chrono::seconds{2};
inline constexpr base::Duration kSlowFreeze = std::chrono::milliseconds{100};  // worth a warning
inline constexpr base::Duration kSecondThawAfter = std::chrono::milliseconds{100};
inline constexpr base::Duration kAuditEvery = std::chrono::milliseconds{1900};
inline constexpr base::Duration kAuditGrid = std::chrono::milliseconds{100};
inline constexpr base::Duration kWriteRetryAfter = std::chrono::milliseconds{10};
// A v1 cgroup that processes keep entering is asked again, as often as this.
inline constexpr int kFreezeRewritesMax = 50;
// When to look after a write that was not confirmed at once; then every 100 ms.
inline constexpr std::array<base::Duration, 5> kLooks = {
    std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, std::chrono::milliseconds{5},
    std::chrono::milliseconds{20}, std::chrono::milliseconds{100}};

class FreezeMachine {
 public:
  enum class Action : std::uint8_t { kNothing, kLook, kFreezeAgain, kThawAgain };

  // Makes a pod as it was found: frozen by us (inherited), frozen by another program, or running.
  static FreezeMachine found_running(base::Duration now);
  static FreezeMachine found_frozen_by_us(base::Duration now);
  static FreezeMachine found_foreign(base::Duration now);

  FreezeState state() const { return state_; }
  // Returns true if a switch to `wanted` must write. A foreign or gone pod is never written.
  bool needs_write(FreezeRequest wanted) const;
  // It was asked to freeze, at asked_at(), and has not been seen frozen yet.
  bool awaits_freeze() const { return state_ == FreezeState::kFreezing && !write_again_; }
  base::Duration asked_at() const { return since_; }

  // Call when a write returned. A failed one is tried again by due().
  void on_write(FreezeRequest wanted, IoResult result, base::Duration now);
  // The same for a thaw that must be written twice: now and 100 ms later (rule 5). Takes a foreign
  // pod over.
  void on_thaw_of_deleted(IoResult result, base::Duration now);
  // The contents of both files.
  void on_look(AskedState requested, Observation observation, base::Duration now);

  Action due(base::Duration now) const;
  // Never for a gone pod.
  std::optional<base::Duration> next_due() const { return next_due_; }

  // Returns how long the last freeze took from the write to the look that saw it; of a frozen pod.
  base::Duration confirmed_after() const { return confirmed_after_; }
  // A look kSlowFreeze after that write or later saw it running still.
  bool was_slow() const { return slow_; }
  // The last write was refused: the report says that the agent lacks the right.
  bool denied() const { return denied_; }

 private:
  FreezeMachine(FreezeState state, FreezeRequest asked, base::Duration now);

  void settle_in(FreezeState state, base::Duration now);
  void look_later(base::Duration now);
  void on_look_while_freezing(AskedState requested, Observation observation, base::Duration now);
  void on_look_while_thawing(AskedState requested, Observation observation, base::Duration now);

  FreezeState state_;
  // Invariant: a pod that is gone has no next_due_; every other pod has one.
  FreezeRequest asked_;   // what we last asked for
  base::Duration since_;  // of that write
  std::optional<base::Duration> next_due_;
  base::Duration confirmed_after_{0};
  std::size_t looks_ = 0;
  int rewrites_ = 0;
  bool slow_ = false;
  bool second_thaw_ = false;  // still to be written
  bool write_again_ = false;  // the last one failed, or another program undid it
  bool rewrite_due_ = false;  // the freeze holds; to be written again for tasks that entered
  bool denied_ = false;
};

}  // namespace agent
