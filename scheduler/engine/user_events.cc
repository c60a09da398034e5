// The users' events: submit, change, hold, suspend, cancel (2.2, 13.2, 13.5).
#include "scheduler/engine/engine.h"

namespace sched {

// 1. The priority is taken before the job is refused: under priority/basic a refused job uses a
// number up, too.
// 2. What the partitions, and then the limits, never accept is turned away (R9.8).
// 3. The job enters the table, is counted as submitted, and is admitted to its queues.
void Engine::on(const Submit& event) {
  if (books_.find(event.request.id) != nullptr) return;
  // A job that is held gets its number of priority/basic when it is released (13.2).
  const bool held = event.request.hold || event.request.suspend;
  const Priority priority = held ? Priority{} : priorities_.next_basic(event.request);
  auto refusal = admission_.refused_at_submit(event.request);
  if (!refusal) refusal = resource_limits_.refused_at_submit(event.request);
  if (refusal) {
    books_.decide(SubmitRefused{event.request.id, *std::move(refusal)});
    return;
  }
  Job& job = books_.add(event.request);
  job.submit_time = event.request.submit_time;
  job.priority = priority;
  job.eligible_time = job.submit_time;
  if (event.request.hold) job.held = Reason::kJobHeldUser;
  hold_if_suspended(job);
  // Before the priority, of which fair share is a part.
  job.association = priorities_.association_of(job.request);
  priorities_.set(job, now_);
  resource_limits_.submitted(job, 1);
  admission_.admit(job, now_);
}

// A waiting job leaves queue and counters with its old request and comes back with the new one. Of
// an allocated job only the time limit and the priority change (JobBooks::set_request).
void Engine::on(const Update& event) {
  Job* job = books_.find(event.request.id);
  if (job == nullptr || is_terminal(job->state)) return;
  const bool was_held = job->request.hold;
  const bool reprioritised =
      event.request.priority && event.request.priority != job->request.priority;
  const int nice_before = job->request.nice;
  if (job->pending()) {
    admission_.withdraw(*job);
    // Submit limits count a job under its account and QOS, which the new request may change.
    resource_limits_.submitted(*job, -1);
    books_.set_request(*job, event.request);
    job->association = priorities_.association_of(job->request);
    resource_limits_.submitted(*job, 1);
  } else {
    books_.set_request(*job, event.request);
    job->time_limit = limits_.limit_of(*job, *job->partition, now_);
    limits_.arm(*job, now_);
  }
  // A priority that is given replaces the one that the job has; another nice value shifts it.
  job->priority = event.request.priority
                      ? *event.request.priority
                      : BasicPriorities::with_nice(job->priority, nice_before, event.request.nice);
  priorities_.set(*job, now_);
  if (job->pending()) {
    const bool is_held = job->held == Reason::kJobHeldAdmin || job->held == Reason::kJobHeldUser;
    if (reprioritised && is_held && !job->held_by_suspend && !event.request.hold) {
      job->held.reset();  // R9.1: what held it was the priority 0
    }
    if (event.request.hold && !was_held) {
      job->held = Reason::kJobHeldUser;
      job->held_by_suspend = false;
    }
    // What could never run may be able to as it asks now.
    if (job->held == Reason::kBadConstraints) job->held.reset();
    admission_.admit(*job, now_);
  }
}

// 13.2. Holds of the user and of the administrator differ by their reasons only.
void Engine::on(const Hold& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  // A job that runs can be held only where it can do without its turns (13.2).
  if (!job->pending() && !turns_->set_held(*job, true)) {
    books_.decide(CommandRefused{job->id, "a job that runs cannot be held: suspend it"});
    return;
  }
  if (job->pending()) admission_.withdraw(*job);
  job->held = event.by_admin ? Reason::kJobHeldAdmin : Reason::kJobHeldUser;
  job->held_by_suspend = false;
  if (job->pending()) admission_.admit(*job, now_);
}

// Takes a hold of any kind back, and with it a suspend of a waiting job, which was a hold.
void Engine::on(const Release& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  if (!job->held) return decides_as_recorded() ? release_unheld(*job) : void();
  if (job->pending()) {
    admission_.withdraw(*job);
  } else {
    turns_->set_held(*job, false);
  }
  job->held.reset();
  job->held_by_suspend = job->request.suspend = false;
  job->priority = priorities_.next_basic(job->request);  // 13.2: it is computed anew
  priorities_.set(*job, now_);
  if (job->pending()) admission_.admit(*job, now_);
}

// As recorded: a job that its user suspended while the gang had it suspended (T11) has no mark but
// its priority 0, and gets its turns again.
void Engine::release_unheld(Job& job) {
  if (job.pending()) return order_anew(job);
  if (!job.user_suspended || job.cores_released) return;
  turns_->unhold(job);
}

// 13.2 as recorded: to release a waiting job that is not held gives it a priority anew, the lowest
// so far under `basic`, and takes its nice value and the priority that it was given.
void Engine::order_anew(Job& job) {
  admission_.withdraw(job);
  job.request.nice = 0;
  job.request.priority.reset();
  job.priority = priorities_.next_basic(job.request);
  priorities_.set(job, now_);
  admission_.admit(job, now_);
}

// A job that is on its way to a requeue is turned into one that ends; its grace time goes on.
void Engine::on(const Cancel& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  // Nothing runs, so there is nothing to wait for: the job is over at once.
  if (job->pending()) {
    admission_.withdraw(*job);
    books_.clear_claim(*job, false, now_);
    books_.finish(*job, JobState::kCancelled);
    return;
  }
  if (job->ending && job->ending->final_state == JobState::kPending) {
    Ending ending = *job->ending;
    ending.final_state = JobState::kCancelled;  // T5: it ends and does not come back
    books_.set_ending(*job, ending);
    return;
  }
  begin_ending(*job, Ending{.final_state = JobState::kCancelled,
                            .verdict = EndingVerdict::kCancelled,
                            .grace_end = now_,
                            .preemptor = {}});
}

// 13.5: the job ends without a grace time, and waits anew once its pods are gone.
void Engine::on(const Requeue& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  if (job->pending()) {
    books_.decide(CommandRefused{job->id, "the job is pending already"});
  } else if (!may_requeue(*job)) {
    books_.decide(CommandRefused{
        job->id, partitions_of(cluster_, job->request).empty()
                     ? "the job may not be requeued: its partition does not exist any more"
                     : "the job may not be requeued (requeue: false)"});
  } else {
    begin_ending(*job, Ending{.final_state = JobState::kPending,
                              .verdict = EndingVerdict::kRequeue,
                              .grace_end = now_,
                              .preemptor = {}});
  }
}

// The caller deleted the object: whatever the job is doing, it leaves all books without a decision.
void Engine::on(const Forget& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr) return;
  if (job->pending()) {
    admission_.withdraw(*job);
    books_.clear_claim(*job, false, now_);
  }
  // No JobGone will come for it.
  if (job->allocated()) {
    turns_->leave(*job);
    books_.end(*job, JobState::kPending);
    remove_empty_nodes();
  }
  books_.erase(*job);
}

// T10, T11. A resume takes again what the suspend gave back, and nothing else (P4).
void Engine::on(const UserSuspend& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  job->request.suspend = true;
  if (job->pending()) {
    admission_.withdraw(*job);
    if (job->held == Reason::kBadConstraints) job->held.reset();
    hold_if_suspended(*job);
    admission_.admit(*job, now_);
    return;
  }
  waiting_resumes_.erase(job->id);
  // A suspend that comes twice gives nothing back twice.
  if (job->user_suspended || job->completing()) return;
  // T11: a job that the gang has suspended keeps its cores and loses its turns alone.
  if (turns_->hold(*job)) return set_reason(*job, Reason::kUser);
  books_.give_cores_back(*job);
  turns_->leave(*job);
  books_.suspend_by_user(*job);
  // Suspended time counts from JobReady on, as run time does.
  if (job->ready) turns_->set_phase(*job, JobClock::Phase::kSuspended);
  turns_->mark_nodes(*job);
}

// 1. A job that waits: the suspend was a hold, unless another hold came on top of it.
// 2. A job that had kept its cores (T11) waits for its next turn.
// 3. A job that had given them back (T10) needs a row again. If none is free it stays suspended,
//    and is tried again whenever something has changed.
void Engine::on(const UserResume& event) {
  Job* job = books_.find(event.job);
  if (job == nullptr || is_terminal(job->state)) return;
  job->request.suspend = false;
  if (job->pending()) {  // a hold is for a release to take back
    if (job->held_by_suspend) on(Release{event.job});
    return;
  }
  if (decides_as_recorded()) return resume_as_recorded(*job);
  if (!job->user_suspended || job->completing()) return;
  if (!job->cores_released) return turns_->unhold(*job);
  // P3: the job runs before the gang hears of it.
  if (!books_.resume_by_user(*job, !timing_.resume_needs_room)) {
    set_reason(*job, Reason::kUser, "resumes when a row is free on its nodes");
    waiting_resumes_.insert(job->id);
    return;
  }
  waiting_resumes_.erase(job->id);
  turns_->set_phase(*job, job->ready ? JobClock::Phase::kRunning : JobClock::Phase::kIdle);
  set_reason(*job, Reason::kNone);
  // A gang that is not ready takes its turns from JobReady on.
  if (job->ready) turns_->start(*job);
  limits_.arm(*job, now_);
  turns_->mark_nodes(*job);
}

// P3: the job runs from now on, also one that the gang has suspended, and over others; the gang
// takes it for suspended until its turn comes.
void Engine::resume_as_recorded(Job& job) {
  if (!job.suspended() || job.completing()) return;
  turns_->resume_at_once(job, job.user_suspended || job.held.has_value());
  job.held.reset();
  if (job.cores_released) {
    books_.resume_by_user(job, true);
  } else {
    if (job.user_suspended) books_.unhold_by_user(job);
    books_.resume(job);
    books_.changed();
  }
  set_reason(job, Reason::kNone);
}

}  // namespace sched
