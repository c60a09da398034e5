#include "node-agent/switching/freeze_machine.h"

// The machine compares two things that the kernel keeps apart: the request (`cgroup.freeze`,
// `freezer.self_freezing`) and the effect (`frozen` in `cgroup.events`, `freezer.state`).
//
// - Request and effect differ for a short time after each write, for long while a task sits in an
//   uninterruptible call, and for as long as an ancestor is frozen.
// - A request that is not the one that we wrote last was written by another program. While the pod
//   must stand still, the timetable wins and the freeze is written again. While it must run, the
//   freeze is foreign and stays (freezer.md 4 rule 10).
//
// A pod at rest is audited about every 2 s, because another program can freeze or thaw it at any
// time without notice to the agent.
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

// A pod that was just found is audited like one at rest.
FreezeMachine::FreezeMachine(FreezeState state, FreezeRequest asked, base::Duration now)
    : state_{state}, asked_{asked}, since_{now}, next_due_{now + kAuditEvery} {}

FreezeMachine FreezeMachine::found_running(base::Duration now) {
  return {FreezeState::kThawed, FreezeRequest::kThawed, now};
}

FreezeMachine FreezeMachine::found_frozen_by_us(base::Duration now) {
  FreezeMachine machine{FreezeState::kFreezing, FreezeRequest::kFrozen, now};
  // An earlier agent asked for it. Whether the kernel has frozen the pod since is not known, so the
  // first look is due at once instead of at the next audit.
  machine.next_due_ = now;
  return machine;
}

// asked_ is kThawed although nothing was written: when the foreign freeze ends, the pod runs, and
// needs_write() then compares the timetable's wish with that.
FreezeMachine FreezeMachine::found_foreign(base::Duration now) {
  return {FreezeState::kForeign, FreezeRequest::kThawed, now};
}

bool FreezeMachine::needs_write(FreezeRequest wanted) const {
  // A pod that another program has frozen is left to that program (freezer.md 4 rule 10).
  if (state_ == FreezeState::kGone || state_ == FreezeState::kForeign) return false;
  return asked_ != wanted;
}

// Comes to rest in a state that needs no write: the next look is an audit, and the counts of looks
// and rewrites begin again with the next write.
void FreezeMachine::settle_in(FreezeState state, base::Duration now) {
  state_ = state;
  // Deadlines are rounded up to a grid of 100 ms, so that the audits of many pods share one wake-up
  // of the thread.
  next_due_ = (now / kAuditGrid + 1) * kAuditGrid + kAuditEvery;
  looks_ = 0;
  rewrites_ = 0;
  rewrite_due_ = false;
}

// The first looks follow the write closely (kLooks), because most freezes take microseconds. A pod
// that is still not frozen then is looked at every 100 ms. Looks whose time has passed, for example
// during a switch of many pods, are skipped and not made up for.
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

// A write that repeats the last one keeps since_: how long a freeze takes, and when it counts as
// stuck, is measured from the first write. Otherwise the rewrites for v1 would postpone kStuck
// forever.
void FreezeMachine::on_write(FreezeRequest wanted, IoResult result, base::Duration now) {
  if (result == IoResult::kGone) {
    state_ = FreezeState::kGone;
    next_due_.reset();
    return;
  }
  // In state kThawed nothing is pending, so a write begins again even if it asks for what was asked
  // before.
  const bool repeated = asked_ == wanted && state_ != FreezeState::kThawed;
  denied_ = result == IoResult::kDenied;
  write_again_ = result != IoResult::kOk;
  rewrite_due_ = false;
  // Also if the write failed: asked_ is the wish that due() tries again, not what the kernel holds.
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
  // A refused or undone write is repeated in the direction that was asked for last. A change of the
  // timetable goes through on_write(), which replaces asked_.
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

// Returns the one action that is due, writes before looks:
// 1. a freeze that holds is written again for tasks that have entered (v1)
// 2. a write that failed or was undone is repeated
// 3. the second thaw of a pod that is being deleted
// 4. else a look
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

// 1. A cgroup that is gone ends everything. 2. A read that failed is repeated. 3. The state decides
//    what the two contents mean: a pod at rest is compared with the last write's result, a pod on
//    its way with what was asked for.
void FreezeMachine::on_look(AskedState requested, Observation observation, base::Duration now) {
  if (state_ == FreezeState::kGone) return;
  if (requested.result == IoResult::kGone || observation.result == IoResult::kGone) {
    state_ = FreezeState::kGone;
    next_due_.reset();
    return;
  }
  // A read that failed says nothing about the pod: the state stays, and the look is repeated.
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
    // Both must be over before the pod counts as running: the request, because the kernel would
    // freeze the next task that enters, and the effect, because an ancestor may still be frozen.
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

// The pod must stand still. In order: another program undid the freeze; it stands; it stood and a
// task entered; it does not stand yet, so it is looked at again, and on v1 asked again.
void FreezeMachine::on_look_while_freezing(AskedState requested, Observation observation,
                                           base::Duration now) {
  // Another program undid the freeze. The timetable holds, so it is written again at once; the time
  // until the pod stands still counts from now.
  if (requested.request == FreezeRequest::kThawed) {
    state_ = FreezeState::kFreezing;
    since_ = now;
    write_again_ = true;
    next_due_ = now;
    return;
  }
  // Stuck pods come here too: a task that returned from its call late makes the pod frozen as
  // usual.
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

// The pod must run. In order: another program froze it again; it runs; it runs but a second thaw is
// owed; an ancestor's freeze keeps it, which after kStuckAfter counts as foreign.
void FreezeMachine::on_look_while_thawing(AskedState requested, Observation observation,
                                          base::Duration now) {
  // The request says frozen although our last write said thawed: another program wrote since. While
  // the second thaw of a deleted pod is owed, that program is overruled once more (freezer.md 4
  // rule 5).
  if (requested.request == FreezeRequest::kFrozen && !second_thaw_) {
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
  // Still frozen 100 ms after the thaw: it is written again. For a deleted pod that is the second
  // thaw. An ancestor's freeze outlasts it, and counts as foreign 2 s after the first.
  write_again_ = now - since_ >= kSecondThawAfter;
}

}  // namespace agent
