#include "node-agent/switching/freeze_machine.h"

namespace agent {

std::string_view to_string(FreezeState state) {
  switch (state) {
    case FreezeState::kThawed:
      return "thawed";
    case FreezeState::kFreezing:
      return "freezing";
    case FreezeState::kFrozen:
      return "frozen";
    case FreezeState::kStuck:
      return "stuck";
    case FreezeState::kThawing:
      return "thawing";
    case FreezeState::kForeign:
      return "foreign";
    case FreezeState::kGone:
      return "gone";
  }
  return "unknown";
}

FreezeMachine::FreezeMachine(FreezeState state, FreezeRequest asked, base::Duration now)
    : state_{state}, asked_{asked}, since_{now}, next_due_{now + kAuditEvery} {}

FreezeMachine FreezeMachine::found_running(base::Duration now) {
  return {FreezeState::kThawed, FreezeRequest::kThawed, now};
}

FreezeMachine FreezeMachine::found_frozen_by_us(base::Duration now) {
  FreezeMachine machine{FreezeState::kFreezing, FreezeRequest::kFrozen, now};
  // An agent before this one asked for it; whether the kernel has done it is looked at right away.
  machine.next_due_ = now;
  return machine;
}

FreezeMachine FreezeMachine::found_foreign(base::Duration now) {
  return {FreezeState::kForeign, FreezeRequest::kThawed, now};
}

bool FreezeMachine::needs_write(FreezeRequest wanted) const {
  // A pod that another program has frozen is left to that program (freezer.md 4 rule 10).
  if (state_ == FreezeState::kGone || state_ == FreezeState::kForeign) return false;
  return asked_ != wanted;
}

void FreezeMachine::settle_in(FreezeState state, base::Duration now) {
  state_ = state;
  // On a common grid, so that many pods cost one wake-up.
  next_due_ = (now / kAuditGrid + 1) * kAuditGrid + kAuditEvery;
  looks_ = 0;
  rewrites_ = 0;
  rewrite_due_ = false;
}

// The first looks follow the write closely (kLooks), since most freezes take microseconds; a pod
// that stays in between is looked at ever more rarely.
void FreezeMachine::look_later(base::Duration now) {
  base::Duration look = now + kLooks.back();
  while (looks_ < kLooks.size()) {
    const base::Duration planned = since_ + kLooks[looks_++];
    if (planned > now) {
      look = planned;
      break;
    }
  }
  next_due_ = look;
}

// A write that repeats the last one does not begin anew: how long the freeze takes counts from the
// first.
void FreezeMachine::on_write(FreezeRequest wanted, IoResult result, base::Duration now) {
  if (result == IoResult::kGone) {
    state_ = FreezeState::kGone;
    next_due_.reset();
    return;
  }
  const bool repeated = asked_ == wanted && state_ != FreezeState::kThawed;
  denied_ = result == IoResult::kDenied;
  write_again_ = result != IoResult::kOk;
  rewrite_due_ = false;
  asked_ = wanted;
  if (!repeated) {
    since_ = now;
    looks_ = 0;
    rewrites_ = 0;
    slow_ = false;
  }
  const bool late = now - since_ >= kStuckAfter;
  if (wanted == FreezeRequest::kThawed) {
    state_ = FreezeState::kThawing;
    // The second thaw of a pod that is being deleted (freezer.md 4 rule 5): no further one is owed.
    if (repeated && now - since_ >= kSecondThawAfter) second_thaw_ = false;
  } else {
    second_thaw_ = false;
    state_ = late ? FreezeState::kStuck : FreezeState::kFreezing;
  }
  if (write_again_) {
    // A write that has failed for long will not succeed in the next milliseconds: it is tried as
    // rarely as a pod at rest is looked at.
    next_due_ = now + (late ? kAuditEvery : kWriteRetryAfter);
  } else {
    look_later(now);
  }
}

void FreezeMachine::on_thaw_of_deleted(IoResult result, base::Duration now) {
  if (state_ == FreezeState::kForeign) state_ = FreezeState::kFrozen;
  asked_ = FreezeRequest::kFrozen;  // Whatever it was: this is a thaw from the start.
  on_write(FreezeRequest::kThawed, result, now);
  second_thaw_ = state_ == FreezeState::kThawing;
}

// At most one thing at a time; writes go before looks.
FreezeMachine::Action FreezeMachine::due(base::Duration now) const {
  if (!next_due_ || now < *next_due_) return Action::kNothing;
  if (rewrite_due_) return Action::kFreezeAgain;
  if (write_again_)
    return asked_ == FreezeRequest::kFrozen ? Action::kFreezeAgain : Action::kThawAgain;
  if (state_ == FreezeState::kThawing && second_thaw_ && now >= since_ + kSecondThawAfter) {
    return Action::kThawAgain;
  }
  return Action::kLook;
}

void FreezeMachine::on_look(AskedState requested, Observation observation, base::Duration now) {
  if (state_ == FreezeState::kGone) return;
  if (requested.result == IoResult::kGone || observation.result == IoResult::kGone) {
    state_ = FreezeState::kGone;
    next_due_.reset();
    return;
  }
  if (requested.result != IoResult::kOk || observation.result != IoResult::kOk) {
    next_due_ = now + kWriteRetryAfter;
    return;
  }
  switch (state_) {
    case FreezeState::kThawed:
      // A running pod that is frozen without our having asked: another program did it, or an
      // ancestor's freeze.
      settle_in(requested.request == FreezeRequest::kFrozen || observation.frozen
                    ? FreezeState::kForeign
                    : FreezeState::kThawed,
                now);
      return;
    case FreezeState::kForeign:
      settle_in(requested.request == FreezeRequest::kThawed && !observation.frozen
                    ? FreezeState::kThawed
                    : FreezeState::kForeign,
                now);
      return;
    case FreezeState::kFreezing:
    case FreezeState::kStuck:
    case FreezeState::kFrozen:
      on_look_while_freezing(requested, observation, now);
      return;
    case FreezeState::kThawing:
      on_look_while_thawing(requested, observation, now);
      return;
    case FreezeState::kGone:
      return;
  }
}

void FreezeMachine::on_look_while_freezing(AskedState requested, Observation observation,
                                           base::Duration now) {
  if (requested.request == FreezeRequest::kThawed) {  // Somebody undid it: the timetable holds.
    state_ = FreezeState::kFreezing;
    since_ = now;
    write_again_ = true;
    next_due_ = now;
    return;
  }
  if (observation.frozen) {
    if (state_ != FreezeState::kFrozen) confirmed_after_ = now - since_;
    settle_in(FreezeState::kFrozen, now);
    return;
  }
  if (state_ == FreezeState::kFrozen) {  // A task entered; the kernel stops it by itself.
    state_ = FreezeState::kFreezing;
    since_ = now;
  }
  slow_ = now - since_ >= kSlowFreeze;
  // A task in an uninterruptible call (NFS, a device) cannot be frozen until it returns. The pod
  // runs on as far as the kernel lets it; that is counted and shown, and nothing waits for it.
  if (now - since_ >= kStuckAfter) state_ = FreezeState::kStuck;
  // Harmless on v2, needed on v1 for tasks that entered since the last write.
  if (rewrites_ < kFreezeRewritesMax && now - since_ >= kLooks.front()) {
    ++rewrites_;
    rewrite_due_ = true;
    next_due_ = now;
  } else {
    look_later(now);
  }
}

void FreezeMachine::on_look_while_thawing(AskedState requested, Observation observation,
                                          base::Duration now) {
  if (requested.request == FreezeRequest::kFrozen &&
      !second_thaw_) {  // Not by us: we asked for the contrary.
    settle_in(FreezeState::kForeign, now);
    return;
  }
  if (!observation.frozen && !second_thaw_) {
    settle_in(FreezeState::kThawed, now);
    return;
  }
  if (!observation.frozen) {
    // It runs; all that is left is the second thaw.
    next_due_ = since_ + kSecondThawAfter;
    return;
  }
  if (now - since_ >= kStuckAfter) {  // We asked for it, twice: an ancestor is frozen.
    settle_in(FreezeState::kForeign, now);
    return;
  }
  look_later(now);
  write_again_ = now - since_ >= kSecondThawAfter;
}

}  // namespace agent
