#include "scheduler/jobs/job_books.h"

#include <algorithm>

#include "base/check.h"
#include "scheduler/preempt/rules.h"

namespace sched {
namespace {

// Makes one of the two for the whole cluster: SelectType.
std::unique_ptr<Selector> make_selector(const Cluster& cluster) {
  return cluster.parameters().select == SelectType::kLinear ? make_linear_selector(cluster)
                                                            : make_cons_tres_selector(cluster);
}

// Returns the effect of refused starts that still counts.
std::optional<Retry> retry_of(const Job& job, base::Instant now) {
  if (job.retry.at <= now && job.retry.nodes_until <= now) return std::nullopt;
  return job.retry;
}

}  // namespace

JobBooks::JobBooks(const Cluster& cluster) : cluster_{cluster}, usage_{cluster} {
  reshape();
}

Job& JobBooks::add(JobFacts facts) {
  Job& job = table_.add(std::move(facts));
  if (job.whole == nullptr) return job;
  job.whole->tasks->own.insert(job.id);
  if (job.has_begun) ++job.whole->tasks->begun;
  return job;
}

// Copies what it has in common with the tasks that wait, and nothing of the array as a whole.
Job& JobBooks::split(Job& array, int task) {
  array.array->waiting.erase(task);
  JobFacts facts;
  facts.id = JobId::of_task(array.id, task);
  facts.request = array.request;
  facts.priority = array.priority;
  facts.eligible_time = array.eligible_time;
  facts.held = array.held;
  facts.submit_time = array.submit_time;
  facts.not_before = array.not_before;
  facts.terms = array.terms;
  Job& job = add(std::move(facts));
  job.factors = array.factors;
  // 13.4, as recorded.
  if (cluster_.parameters().quirks.arrays_go_to_the_end) table_.swap_places(array, job);
  return job;
}

// A job that is not over yet is reported as over first, so that its counts are taken back.
void JobBooks::erase(Job& job) {
  CHECK(!job.allocated() && job.queued.in.empty(), to_string(job.id));
  if (!is_terminal(job.state)) {
    changed();  // its end would have been a change already
    if (job.whole != nullptr)
      job.whole->array->outcomes.set(*job.id.task(), TaskOutcome::kCanceled);
    for (const Listener& listener : over_listeners_) listener(job);
    if (job.whole != nullptr) {
      ended_tasks_.push_back(job.id);  // its array hears of it
      task_over(job);
    }
  }
  table_.erase(job.id);
}

// An allocated job keeps what its allocation was made for; only what can change without new nodes
// is taken over. A task that was resumed by itself stays so, whatever its array is.
void JobBooks::set_request(Job& job, const JobRequest& request) {
  changed();
  if (job.pending()) {
    return change_request(job, [&](JobRequest& own) {
      const bool suspend = job.whole != nullptr ? own.suspend : request.suspend;
      own = request;
      own.suspend = suspend;
    });
  }
  change_request(job, [&](JobRequest& own) {
    own.hold = request.hold;  // it waits for the next start
    own.time_limit = request.time_limit;
    own.priority = request.priority;
    own.nice = request.nice;
  });
  tell_less(job.allocation);
}

// The order of the steps is part of the contract: the books know the job before any listener hears
// of it, and the decision stands before whatever the listeners decide.
void JobBooks::begin(Job& job, PartitionIndex partition, Allocation allocation,
                     SharingStatus sharing, base::Instant now) {
  changed();
  // The Start says that the claim is over.
  clear_claim(job, false, now);
  job.partition = partition;
  job.allocation = std::move(allocation);
  job.sharing = sharing;
  job.allocated_at = now;
  job.ready = false;
  job.start_time.reset();
  job.state = JobState::kRunning;
  job.reason = Reason::kNone;
  job.message.clear();
  book(job);
  decide(Start{job.id, partition, job.allocation, job.time_limit});
  for (const Listener& listener : begin_listeners_) listener(job);
}

// As begin(), without a decision: it was decided by the scheduler before.
void JobBooks::restore(Job& job) {
  book(job);
  for (const Listener& listener : begin_listeners_) listener(job);
}

// Takes an allocated job into all books. One that is completing has given its cores back already
// (R2.1), so the selector does not get it.
void JobBooks::book(Job& job) {
  show(job);
  allocated_.emplace(job.table_order, &job);
  const bool is_first = !std::exchange(job.has_begun, true);
  if (job.whole != nullptr) {
    ++job.whole->tasks->allocated;
    if (!job.completing()) ++job.whole->tasks->running;
    if (is_first) ++job.whole->tasks->begun;
  }
  usage_.add(job);
  if (job.completing()) {
    completing_since_.insert(job.ending->grace_end);
  } else {
    selector_->add(job.select);
  }
}

// REQUIRES: it completes, and its ending is what it was when that was entered.
void JobBooks::end_completing(const Job& job) {
  completing_since_.erase(completing_since_.find(job.ending->grace_end));
}

// A change: what follows from its start, its exempt time and its expected end, is another now.
void JobBooks::set_ready(Job& job, base::Instant now) {
  job.ready = true;
  job.start_time = now;
  show(job);
  changed();
}

// Nothing is free yet: during its grace time the job holds its cores and takes its turns.
void JobBooks::set_ending(Job& job, Ending ending) {
  if (job.completing()) end_completing(job);
  job.ending = std::move(ending);
  if (job.completing()) completing_since_.insert(job.ending->grace_end);
  changed();
}

// The node counters look at what the job counts as, so it leaves them as what it was and enters
// them as what it is now: its place in jobs_on() stays the same.
void JobBooks::release_cores(Job& job) {
  if (job.whole != nullptr) --job.whole->tasks->running;
  selector_->remove(job.select);
  usage_.before_change(job);
  job.ending->killed = true;
  completing_since_.insert(job.ending->grace_end);
  usage_.after_change(job);
  changed();
}

// Kept ascending, since has_left() looks by halving. The allocation stays as it was, and limits
// count all of it until the end.
void JobBooks::leave_nodes(Job& job, const std::vector<NodeIndex>& nodes) {
  usage_.leave(job, nodes);
  job.clean_nodes.insert(job.clean_nodes.end(), nodes.begin(), nodes.end());
  std::sort(job.clean_nodes.begin(), job.clean_nodes.end());
  changed();
}

// The listeners come first, since they read the allocation that goes; then the books, in the
// opposite order of book().
void JobBooks::end(Job& job, JobState next) {
  for (const Listener& listener : end_listeners_) listener(job);
  if (job.completing()) {
    end_completing(job);
  } else {
    selector_->remove(job.select);
  }
  usage_.remove(job);
  allocated_.erase(job.table_order);
  if (job.whole != nullptr) {
    --job.whole->tasks->allocated;
    if (!job.completing()) --job.whole->tasks->running;
  }
  job.partition.reset();
  job.allocation = Allocation{};
  job.user_suspended = job.cores_released = job.ready = false;
  job.ending.reset();
  job.clean_nodes.clear();
  job.state = next;
  show(job);
  changed();
}

// In job-table order, as at every start of them: which row of a node a job gets depends on which
// jobs were there before it.
void JobBooks::reshape() {
  selector_ = make_selector(cluster_);
  usage_.reset();
  for (const auto& [order, job] : allocated_) {
    show(*job);
    usage_.add(*job);
    if (!job->completing()) selector_->add(job->select);
  }
  changed();
}

// The decision is what reserves the nodes: the caller stores it, so a new leader has the claim too.
void JobBooks::set_claim(Job& job, Allocation claim, base::Instant until) {
  restore_claim(job, std::move(claim), until);
  decide(Claim{job.id, job.claim, until});
}

// A change, although nothing comes free: jobs of lower standing may no longer use the claimed
// nodes, and the claimant may be tried on nodes that others withhold.
void JobBooks::restore_claim(Job& job, Allocation claim, base::Instant until) {
  job.claim = std::move(claim);
  job.claim_until = until;
  claimants_.insert(job.id);
  changed();
  tell_less(*job.claim);
}

// A change: the nodes are open to others again.
void JobBooks::clear_claim(Job& job, bool tell, base::Instant now) {
  if (!job.claim) return;
  job.claim.reset();
  claimants_.erase(job.id);
  changed();
  if (tell) decide(Claim{job.id, std::nullopt, now});
}

void JobBooks::wait_for_room(Job& job) {
  if (!job.claim) restore_claim(job, job.allocation, base::kNever);
}

// Over a copy, since each claim that is cleared leaves the set.
void JobBooks::expire_claims(base::Instant now) {
  const std::set<JobId> claimants = claimants_;
  for (const JobId id : claimants) {
    Job& job = *find(id);
    if (now >= job.claim_until) clear_claim(job, true, now);
  }
}

// Neither of these two counts as a change: see the header.
void JobBooks::suspend(Job& job, Reason why) {
  restore_turn(job, false, why);
  decide(Suspend{job.id, why});
}

void JobBooks::resume(Job& job) {
  restore_turn(job, true, Reason::kNone);
  decide(Resume{job.id});
}

// A turn of the rotation, told or restored: the state and its reason go together.
void JobBooks::restore_turn(Job& job, bool runs, Reason why) {
  set_state(job, runs ? JobState::kRunning : JobState::kSuspended);
  job.reason = why;
}

// The selector gets the change before `select` shows it: it looks up what the job held. From here
// on until resume_by_user() the books show it as a job that holds memory alone (R5.2).
void JobBooks::give_cores_back(Job& job) {
  changed();
  job.user_suspended = job.cores_released = true;
  selector_->user_suspend(job.select);
  job.select.user_suspended = true;
}

// The state first, so that the reason that follows is one of a suspended job.
void JobBooks::suspend_by_user(Job& job) {
  set_state(job, JobState::kSuspended);
  decide(Suspend{job.id, Reason::kUser});
  set_reason(job, Reason::kUser);
}

// T11: the selector is not called, since the job gives nothing back.
void JobBooks::hold_by_user(Job& job) {
  changed();
  job.user_suspended = true;
}

// The job takes nothing, since it gave nothing back; it waits for its next turn.
void JobBooks::unhold_by_user(Job& job) {
  changed();
  job.user_suspended = false;
}

// `even_without_room`: no row is free, so the job is taken out and booked again, over others, as
// Slurm does it.
bool JobBooks::resume_by_user(Job& job, bool even_without_room) {
  if (!selector_->user_resume(job.select)) {
    if (!even_without_room) return false;
    selector_->remove(job.select);
    job.select.user_suspended = false;
    selector_->add(job.select);
  }
  changed();
  job.user_suspended = job.cores_released = job.select.user_suspended = false;
  set_state(job, JobState::kRunning);
  decide(Resume{job.id});
  tell_less(job.allocation);
  return true;
}

// The StateChange carries the reason, so none is left over from the run that ended.
void JobBooks::return_to_queue(Job& job, Reason why, int exit_code, base::Instant now) {
  CHECK(job.pending(), to_string(job.id));
  job.reason = Reason::kNone;
  job.message.clear();
  decide(StateChange{.job = job.id,
                     .state = JobState::kPending,
                     .reason = job.held.shown().value_or(why),
                     .exit_code = exit_code,
                     .restarts = job.restarts,
                     .node_failures = job.node_failures,
                     .eligible_at = job.not_before,
                     .retry = retry_of(job, now)});
}

// The listeners see the terminal state and the old reason, and what became of a task.
void JobBooks::finish(Job& job, JobState state, Reason why) {
  CHECK(!job.allocated(), to_string(job.id));
  changed();
  if (job.is_array()) return finish_array(job, state, why);
  set_state(job, state);
  if (job.whole != nullptr) job.whole->array->outcomes.set(*job.id.task(), outcome_of(state));
  for (const Listener& listener : over_listeners_) listener(job);
  job.reason = state == JobState::kDeadline ? Reason::kDeadline : why;
  job.message.clear();
  decide_end(job, state);
  if (job.whole == nullptr) return;
  ended_tasks_.push_back(job.id);
  task_over(job);
}

void JobBooks::decide_end(const Job& job, JobState state) {
  decide(StateChange{.job = job.id,
                     .state = state,
                     .reason = job.reason,
                     .exit_code = job.exit_code,
                     .restarts = job.restarts,
                     .node_failures = job.node_failures,
                     .eligible_at = std::nullopt});
}

// The tasks that wait, if any, are over, and so is the array if no other is left.
void JobBooks::finish_array(Job& array, JobState state, Reason why) {
  TaskSet& waiting = array.array->waiting;
  waiting.each([&](int task) { array.array->outcomes.set(task, outcome_of(state)); });
  if (array.tasks->own.empty()) set_state(array, state);
  for (const Listener& listener : over_listeners_) listener(array);
  waiting = {};
  array.reason = state == JobState::kDeadline ? Reason::kDeadline : why;
  array.message.clear();
  array.plan.reset();
  decide_end(array, state);
}

// The last one ends its array, unless others wait.
void JobBooks::task_over(Job& task) {
  Job& array = *std::exchange(task.whole, nullptr);
  array.exit_code = std::max(array.exit_code, task.exit_code);
  array.tasks->own.erase(task.id);
  if (task.has_begun) --array.tasks->begun;
  if (!array.array->waiting.empty() || !array.tasks->own.empty()) return;
  finish_array(array, state_of(array.array->outcomes), Reason::kNone);
}

// A job with records in several partitions gets a reason from each of them in one pass. Only the
// last of these is a decision, and only if it differs from the reason before the pass: otherwise
// each pass would tell two changes that cancel out. For example, a job waits with Resources in
// partition a and with Priority in b. In each pass it gets first the one and then the other: two
// changes, and none in the end.
void JobBooks::set_reason(Job& job, Reason reason, std::string message) {
  if (job.reason == reason && job.message == message) return;
  if (in_pass_ && job.pending() && job.queued.in.size() > 1) {
    said_before_pass_.try_emplace(job.id, Said{job.reason, job.message});
    job.reason = reason;
    job.message = std::move(message);
    return;
  }
  job.reason = reason;
  job.message = message;
  // The StateChange that made it terminal carries the last reason.
  if (is_terminal(job.state)) return;
  decide(Waits{job.id, reason, std::move(message)});
}

// Puts the old reason back and sets the new one in the ordinary way. If both are equal nothing is
// decided.
void JobBooks::end_pass() {
  in_pass_ = false;
  for (auto& [id, before] : std::exchange(said_before_pass_, {})) {
    Job* job = table_.find(id);
    if (job == nullptr || !job->pending()) continue;
    Said now{job->reason, job->message};
    job->reason = before.reason;
    job->message = std::move(before.message);
    set_reason(*job, now.reason, std::move(now.message));
  }
}

// An empty Planned takes back the last one.
void JobBooks::set_plan(Job& job, std::optional<Job::Plan> plan) {
  if (job.plan == plan) return;
  job.plan = std::move(plan);
  if (job.plan) {
    decide(Planned{job.id, job.plan->start, job.plan->nodes});
  } else {
    decide(Planned{.job = job.id, .start = {}, .nodes = {}});
  }
}

// The nodes' counters depend on whether their jobs run.
// The record, what the selectors see of it, and the counters of R4.4 change together. begin() and
// end() change the allocation as well, and see to all three themselves.
void JobBooks::set_state(Job& job, JobState state) {
  const bool ran = job.running();
  job.state = state;
  job.select.state = state;
  if (job.allocated() && !job.completing() && ran != job.running()) {
    usage_.change_running(job, job.running());
  }
}

// Updates the part of the job that the selectors see. All of it follows from the job's record and
// the configuration, so it is worked out again after each change of either (reshape()).
void JobBooks::show(Job& job) const {
  SelectJob& view = job.select;
  view.state = job.state;
  view.user_suspended = job.cores_released;
  if (!job.allocated()) {
    view.allocation = nullptr;
    return;
  }
  view.allocation = &job.allocation;
  view.partition = *job.partition;
  view.may_stack = job.sharing.may_stack;
  view.victim_mode = preempt::effective_mode(cluster_, job);
  view.exempt_until =
      job.start_time.value_or(job.allocated_at) + preempt::exempt_time(cluster_, job);
}

}  // namespace sched
