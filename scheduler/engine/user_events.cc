// The users' events: submit, change, hold, suspend, cancel (2.2, 13.2, 13.5).
#include <algorithm>
#include <memory>
#include <utility>

#include "scheduler/engine/engine.h"

namespace sched {

// 1. The priority is taken before the job is refused: under priority/basic a refused job uses a
// number up, too.
// 2. Jobs that the partitions, and then the limits, never accept are turned away (R9.8), and
//    circles of dependencies.
// 3. The job enters the table, is counted as submitted, and is admitted to its queues.
void Engine::on(const Submit& event) {
  if (books_.find(event.request.id) != nullptr) return;
  // A job that is held gets its number of priority/basic when it is released (13.2).
  const bool held = event.request.hold || event.request.suspend;
  const Priority priority = held ? Priority{} : priorities_.next_basic(event.request);
  auto refusal = admission_.refused_at_submit(event.request);
  if (!refusal) refusal = resource_limits_.refused_at_submit(event.request);
  if (!refusal) refusal = dependencies_.refused(event.request);
  if (refusal) {
    books_.decide(SubmitRefused{event.request.id, *std::move(refusal)});
    return;
  }
  Job& job = books_.add(JobFacts::of(event.request));
  job.priority = priority;
  job.eligible_time = job.submit_time;
  hold_as_asked(job);
  // Before the priority, of which fair share is a part.
  job.factors.association = priorities_.association_of(*job.request);
  priorities_.set(job, now_);
  resource_limits_.submitted(job, 1);
  dependencies_.add(job, event.known);
  admission_.admit(job, now_);
}

// 1. A job that can never start is canceled if it, or the cluster, says so (13.1), held or not; who
//    waits for it hears of that in the next round.
// 2. The age of a job counts from the instant on at which it could have started (R9.3).
void Engine::settle_dependencies() {
  while (dependencies_.has_changed()) {
    for (const JobId id : dependencies_.take_splits()) find(id);
    for (const JobId id : dependencies_.take_changed()) {
      Job* job = books_.find(id);
      if (job == nullptr || !job->pending() || job->count() == 0) continue;
      books_.decide(TermsChanged{id, job->terms});
      const Dependency& asked = job->request->dependency;
      const TermState state = state_of(job->terms, asked.any);
      admission_.withdraw(*job);
      if (state == TermState::kFailed &&
          asked.kill_invalid.value_or(cluster_.parameters().kill_invalid_depend)) {
        books_.clear_claim(*job, false, now_);
        books_.finish(*job, JobState::kCancelled, Reason::kDependencyNeverSatisfied);
        continue;
      }
      if (state == TermState::kMet && !asked.terms.empty()) {
        job->eligible_time = std::max(job->eligible_time, now_);
        priorities_.set(*job, now_);
      }
      admission_.admit(*job, now_);
    }
  }
}

// A waiting job leaves queue and counters with its old request and comes back with the new one. An
// allocated job changes only its time limit and priority (JobBooks::set_request).
void Engine::on(const Update& event) {
  Job* const job = find(event.request.id);
  if (job == nullptr || is_terminal(job->state)) return;
  if (!job->is_array()) return update(*job, event);
  Update all = event;
  if (!all.request.array) all.request.array.emplace();
  all.request.array->tasks = job->request->array->tasks;
  // The array knows how many may run at once, also if none waits as the array any longer; and a new
  // leader tells by its request what its priority says of those of later jobs.
  if (job->count() == 0) {
    const std::shared_ptr<const JobRequest> before = job->request;
    dependencies_.change(*job, all.request, all.known);
    change_priority(*job, *before, all.request);
  }
  const bool changes_hold = all.request.hold != job->request->hold;
  each_job(job->id, [&](Job& each) {
    if (each.is_array()) return update(each, all);
    Update of_task{all.request, all.known};
    // Single tasks are held and released by events of their own.
    if (!changes_hold) of_task.request.hold = each.request->hold;
    const auto own = all.tasks.find(*each.id.task());
    if (own != all.tasks.end()) own->second.apply_to(of_task.request);
    update(each, of_task);
  });
  reopen(*job);
}

// A change that would be turned away at submission is refused here.
std::optional<std::string> Engine::refused_at_update(const Job& job,
                                                     const JobRequest& request) const {
  if (!job.pending()) return std::nullopt;
  if (request.dependency != job.request->dependency) {
    if (auto refusal = dependencies_.refused(request)) return refusal;
  }
  if (request.licenses == job.request->licenses) return std::nullopt;
  return resource_limits_.licenses().refused_at_submit(request);
}

void Engine::update(Job& job, const Update& event) {
  if (auto refusal = refused_at_update(job, event.request)) {
    return books_.decide(CommandRefused{job.id, *std::move(refusal)});
  }
  const bool was_held = job.request->hold;
  const bool reprioritised =
      event.request.priority && event.request.priority != job.request->priority;
  const std::shared_ptr<const JobRequest> before = job.request;
  if (job.pending()) {
    admission_.withdraw(job);
    // Submit limits count a job under its account and QOS, which the new request may change.
    resource_limits_.submitted(job, -1);
    dependencies_.change(job, event.request, event.known);
    job.factors.association = priorities_.association_of(*job.request);
    resource_limits_.submitted(job, 1);
  } else {
    const auto limit_before = job.request->time_limit;
    books_.set_request(job, event.request);
    if (job.request->time_limit != limit_before) change_limit(job);
  }
  change_priority(job, *before, event.request);
  priorities_.set(job, now_);
  if (!job.pending()) return;
  // R9.1: what held it was the priority 0.
  if (reprioritised && !event.request.hold) take_back(job, {HoldBy::kAdmin, HoldBy::kUser});
  if (event.request.hold && !was_held) job.held.set(HoldBy::kUser);
  // A job that could never run may be able to with its new request.
  take_back(job, {HoldBy::kImpossible});
  admission_.admit(job, now_);
}

// A priority that is given replaces the one that the job has, and one that is taken back leaves the
// job as if it came now; another nice value shifts it.
void Engine::change_priority(Job& job, const JobRequest& before, const JobRequest& now) {
  if (now.priority) {
    job.priority = *now.priority;
  } else if (before.priority) {
    job.priority = priorities_.next_basic(now);
  } else {
    job.priority = BasicPriorities::with_nice(job.priority, before.nice, now.nice);
  }
}

// 8.1 m and R8.2: a limit that the backfill has cut is what other jobs were promised their nodes
// by. It stays until the user says another limit, as of which the cut is forgotten.
void Engine::change_limit(Job& job) {
  job.time_limit = limits_.limit_of(job, *job.partition, now_);
  books_.decide(LimitChanged{job.id, job.time_limit});
  limits_.arm(job, now_);
}

// 13.2. Holds of the user and of the administrator differ by their reasons only.
void Engine::on(const Hold& event) {
  each_job(event.job, [&](Job& job) { hold(job, event.by_admin, job.id != event.job); });
}

// A job that runs cannot be held (13.2). A task that runs while its whole array is held goes on.
void Engine::hold(Job& job, bool by_admin, bool with_array) {
  if (!job.pending()) {
    if (with_array) return;
    books_.decide(CommandRefused{job.id, "a job that runs cannot be held: suspend it"});
    return;
  }
  admission_.withdraw(job);
  // The release takes it back; an update that says the same changes nothing.
  if (!by_admin) books_.change_request(job, [](JobRequest& request) { request.hold = true; });
  job.held.set(by_admin ? HoldBy::kAdmin : HoldBy::kUser);
  admission_.admit(job, now_);
}

// Takes back every hold but a suspend, which only a resume ends: a job whose user wants it to stand
// still does not start. To Slurm the two are one priority 0.
void Engine::on(const Release& event) {
  each_job(event.job, [&](Job& job) { release(job); });
}

void Engine::release(Job& job) {
  if (!job.held) return;
  if (job.pending()) admission_.withdraw(job);
  end_holds(job);
  if (job.pending()) admission_.admit(job, now_);
}

void Engine::end_holds(Job& job) {
  books_.change_request(job, [](JobRequest& request) { request.hold = false; });
  take_back(job, {HoldBy::kAdmin, HoldBy::kLaunchFailed, HoldBy::kMaxRequeue, HoldBy::kUser,
                  HoldBy::kImpossible});
}

// 13.2: the priority is computed again. R9.3: age is the time in which the job could have started.
bool Engine::take_back(Job& job, std::initializer_list<HoldBy> holds) {
  const Holds before = job.held;
  for (const HoldBy hold : holds) job.held.clear(hold);
  if (job.held == before) return false;
  // A job that could merely not run anywhere has kept its priority and its age.
  if (!before.by_someone() || job.held.by_someone()) return true;
  job.eligible_time = std::max(job.eligible_time, now_);
  job.priority = priorities_.next_basic(*job.request);
  priorities_.set(job, now_);
  return true;
}

// A job that is on its way out, and would come back or has a grace time, ends now and for good. How
// it ended stays if it ended by itself.
void Engine::on(const Cancel& event) {
  each_job(event.job, [&](Job& job) { cancel(job); });
}

void Engine::cancel(Job& job) {
  // Nothing runs, so there is nothing to wait for: the job is over at once.
  if (job.pending()) {
    admission_.withdraw(job);
    books_.clear_claim(job, false, now_);
    books_.finish(job, JobState::kCancelled);
    return;
  }
  const bool is_final =
      job.ending && job.ending->killed && job.ending->final_state != JobState::kPending;
  if (is_final) return;
  Ending cancelled{.final_state = JobState::kCancelled,
                   .verdict = EndingVerdict::kCancelled,
                   .grace_end = now_,
                   .preemptor = {}};
  if (job.ending) {  // T5
    cancelled.exit_code = job.ending->exit_code;
    cancelled.killed = job.ending->killed;
  }
  decide_ending(job, std::move(cancelled));
}

// 13.5: the job ends without a grace time, and waits again once its pods are gone.
void Engine::on(const Requeue& event) {
  Job* job = books_.find(event.job);
  if (job != nullptr && job->is_array() && job->tasks->allocated > 0) {
    return each_job(event.job, [&](Job& task) {
      if (task.allocated()) requeue(task);
    });
  }
  if (job == nullptr) job = find(event.job);
  if (job != nullptr && !is_terminal(job->state)) requeue(*job);
}

void Engine::requeue(Job& job) {
  if (job.pending()) {
    books_.decide(CommandRefused{job.id, "the job is pending already"});
  } else if (!may_requeue(job)) {
    books_.decide(CommandRefused{
        job.id, partitions_of(cluster_, *job.request).empty()
                    ? "the job may not be requeued: its partition no longer exists"
                    : "the job may not be requeued (requeue: false)"});
  } else {
    begin_ending(job, Ending{.final_state = JobState::kPending,
                             .verdict = EndingVerdict::kRequeue,
                             .grace_end = now_,
                             .preemptor = {}});
  }
}

// The caller deleted the object: whatever the job is doing, it leaves all books without a decision.
void Engine::on(const Forget& event) {
  Job* job = find(event.job);
  if (job == nullptr) {
    if (!event.returns) dependencies_.over_elsewhere(event.job, JobState::kCancelled);
    return;
  }
  if (job->is_array()) {
    // Their ends no longer concern the array.
    for (const JobId id : std::exchange(job->tasks->own, {})) {
      Job& task = *books_.find(id);
      task.whole = nullptr;
      forget(task);
    }
    if (is_terminal(job->state)) return books_.erase(*job);
  }
  if (event.returns) dependencies_.keep_waiting_for(job->id);
  forget(*job);
}

void Engine::forget(Job& job) {
  if (job.pending()) {
    admission_.withdraw(job);
    books_.clear_claim(job, false, now_);
  }
  // No JobGone will come for it.
  if (job.allocated()) end_allocation(job, JobState::kPending);
  books_.erase(job);
}

// T10, T11. A resume takes again what the suspend gave back, and nothing else (P4).
void Engine::on(const UserSuspend& event) {
  each_job(event.job, [&](Job& job) { suspend(job); });
}

void Engine::suspend(Job& job) {
  books_.change_request(job, [](JobRequest& request) { request.suspend = true; });
  if (job.pending()) {
    admission_.withdraw(job);
    job.held.set(HoldBy::kSuspend);
    admission_.admit(job, now_);
    return;
  }
  stop_waiting_for_room(job);
  // A suspend that comes twice gives nothing back twice.
  if (job.user_suspended || job.completing()) return;
  books_.give_cores_back(job);
  turns_->leave(job);
  books_.suspend_by_user(job);
  // Suspended time counts from JobReady on, as run time does.
  if (job.ready) turns_->set_phase(job, JobClock::Phase::kSuspended);
  turns_->mark_nodes(job);
}

// 1. A job that waits: the suspend was a hold.
// 2. A job that had given back its cores (T10) needs a row again. If none is free it stays
//    suspended, and is tried again whenever something has changed. Its nodes are kept for it
//    meanwhile, or smaller jobs would take each core that comes free.
void Engine::on(const UserResume& event) {
  each_job(event.job, [&](Job& job) { resume(job); });
}

void Engine::resume(Job& job) {
  books_.change_request(job, [](JobRequest& request) { request.suspend = false; });
  if (job.pending()) {  // a hold is for a release to take back
    if (!job.held.has(HoldBy::kSuspend)) return;
    admission_.withdraw(job);
    take_back(job, {HoldBy::kSuspend});
    return admission_.admit(job, now_);
  }
  if (!job.user_suspended || job.completing()) return;
  if (!books_.resume_by_user(job, false)) {
    set_reason(job, Reason::kUser, "resumes when a row is free on its nodes");
    waiting_resumes_.insert(job.id);
    books_.wait_for_room(job);
    return;
  }
  go_on(job);
}

// The job runs before the gang hears of it (P3).
void Engine::go_on(Job& job) {
  stop_waiting_for_room(job);
  turns_->set_phase(job, job.ready ? JobClock::Phase::kRunning : JobClock::Phase::kIdle);
  set_reason(job, Reason::kNone);
  // A gang that is not ready takes its turns from JobReady on.
  if (job.ready) turns_->start(job);
  limits_.arm(job, now_);
  turns_->mark_nodes(job);
}

// It has room, or does not want it any longer.
void Engine::stop_waiting_for_room(Job& job) {
  if (waiting_resumes_.erase(job.id) > 0) books_.clear_claim(job, false, now_);
}

}  // namespace sched
