#include "scheduler/testing/stored_jobs.h"

#include <algorithm>
#include <utility>

namespace sched::testing {
namespace {

// The caller stores the hold of the system that a reason shows, and no other.
void store_hold(JobFacts& job, Reason reason) {
  job.held = Holds{};
  if (const auto hold = Holds::to_store(reason)) job.held.set(*hold);
}

// Names the fields that differ.
std::string difference(const JobFacts& stored, const JobFacts& held) {
  std::string text = "of job " + to_string(held.id) + " nobody was told:";
  const auto say = [&](const char* name, bool same) {
    if (!same) text += std::string{" "} + name;
  };
  say("state", stored.state == held.state);
  say("ready", stored.ready == held.ready);
  say("user_suspended", stored.user_suspended == held.user_suspended);
  say("partition", stored.partition == held.partition);
  say("allocation", stored.allocation == held.allocation);
  say("ending", stored.ending == held.ending);
  say("allocated_at", stored.allocated_at == held.allocated_at);
  say("start_time", stored.start_time == held.start_time);
  say("time_limit", stored.time_limit == held.time_limit);
  say("eligible_time", stored.eligible_time == held.eligible_time);
  say("held", stored.held == held.held);
  say("submit_time", stored.submit_time == held.submit_time);
  say("not_before", stored.not_before == held.not_before);
  say("retry", stored.retry == held.retry);
  say("restarts", stored.restarts == held.restarts);
  say("node_failures", stored.node_failures == held.node_failures);
  say("exit_code", stored.exit_code == held.exit_code);
  say("terms", stored.terms == held.terms);
  say("claim", stored.claim == held.claim && stored.claim_until == held.claim_until);
  return text;
}

}  // namespace

// A task of an array has an entry of its own as soon as anything is reported of it.
JobFacts* StoredJobs::find(JobId id) {
  const auto at = jobs_.find(id);
  if (at != jobs_.end()) return &at->second;
  const auto array = id.is_task() ? jobs_.find(id.array()) : jobs_.end();
  if (array == jobs_.end() || !array->second.array->waiting.contains(*id.task())) return nullptr;
  array->second.array->waiting.erase(*id.task());
  JobFacts task;
  task.id = id;
  task.request = array->second.request;
  task.submit_time = array->second.submit_time;
  task.held = array->second.held;
  task.terms = array->second.terms;
  return &jobs_.emplace(id, std::move(task)).first->second;
}

// Ends an array's tasks that wait; a task leaves its outcome behind.
void StoredJobs::end(JobId id, JobState state, int exit_code) {
  JobFacts& job = jobs_.at(id);
  if (job.array) {
    job.array->waiting.each([&](int task) { job.array->outcomes.set(task, outcome_of(state)); });
    job.array->waiting = {};
    const auto next = jobs_.upper_bound(id);
    if (next != jobs_.end() && next->first.array() == id) return;
  } else if (const auto array = jobs_.find(id.array()); id.is_task() && array != jobs_.end()) {
    array->second.array->outcomes.set(*id.task(), outcome_of(state));
    array->second.exit_code = std::max(array->second.exit_code, exit_code);
  }
  jobs_.erase(id);
  impossible_.erase(id);
}

// A wish is stored as the spec has it, whatever became of it.
void StoredJobs::on_event(base::Instant now, const Event& event) {
  // One about an array is one about all of its tasks.
  const auto request = [&](JobId id, auto change, bool only_waiting = false) {
    if (find(id) == nullptr) return;
    for (auto at = jobs_.find(id); at != jobs_.end(); ++at) {
      if (at->first != id && (id.is_task() || at->first.array() != id)) break;
      // If no task waits as the array, nothing is reported of that.
      if (at->second.array && at->second.array->waiting.empty()) continue;
      if (!only_waiting || !at->second.partition) at->second.change_request(change);
    }
  };
  if (const auto* configure = std::get_if<Configure>(&event)) {
    configuration_ = *configure->configuration;
  } else if (const auto* submit = std::get_if<Submit>(&event)) {
    jobs_.try_emplace(submit->request.id, JobFacts::of(submit->request));
  } else if (const auto* update = std::get_if<Update>(&event)) {
    on(now, *update);
  } else if (const auto* hold = std::get_if<Hold>(&event)) {
    request(
        hold->job, [&](JobRequest& r) { r.hold = r.hold || !hold->by_admin; }, true);
  } else if (const auto* release = std::get_if<Release>(&event)) {
    request(
        release->job, [](JobRequest& r) { r.hold = false; }, true);
  } else if (const auto* suspend = std::get_if<UserSuspend>(&event)) {
    request(suspend->job, [](JobRequest& r) { r.suspend = true; });
  } else if (const auto* resume = std::get_if<UserResume>(&event)) {
    request(resume->job, [](JobRequest& r) { r.suspend = false; });
  } else if (const auto* ending = std::get_if<JobEnding>(&event)) {
    on(*ending);
  } else if (const auto* forget = std::get_if<Forget>(&event)) {
    if (find(forget->job) == nullptr) return;
    if (jobs_.at(forget->job).array) {
      std::erase_if(jobs_, [&](const auto& each) {
        return each.first.is_task() && each.first.array() == forget->job;
      });
    }
    // The array keeps the exit code of a task that waits again.
    end(forget->job, JobState::kCancelled, jobs_.at(forget->job).exit_code);
  }
}

void StoredJobs::on(base::Instant, const Update& update) {
  JobFacts* const found = find(update.request.id);
  if (found == nullptr) return;
  JobFacts& job = *found;
  // Single tasks are held and released by events of their own.
  const bool changes_hold = update.request.hold != job.request->hold;
  if (job.array) {
    for (auto at = jobs_.upper_bound(job.id); at != jobs_.end() && at->first.array() == job.id;
         ++at) {
      JobRequest of_task = update.request;
      if (!changes_hold) of_task.hold = at->second.request->hold;
      const auto own = update.tasks.find(*at->first.task());
      if (own != update.tasks.end()) own->second.apply_to(of_task);
      change(at->second, of_task);
    }
  }
  change(job, update.request);
}

void StoredJobs::change(JobFacts& job, const JobRequest& changed) {
  job.change_request([&](JobRequest& request) {
    if (!job.partition) {
      const bool suspend = request.suspend;  // a wish of its own
      const bool hold = job.id.is_task() && request.hold;
      const auto array = request.array;
      request = changed;
      request.suspend = suspend;
      request.hold = request.hold || hold;
      if (array) request.array.emplace().tasks = array->tasks;
      return;
    }
    request.time_limit = changed.time_limit;
    request.priority = changed.priority;
    request.nice = changed.nice;
    request.hold = changed.hold;
  });
}

// The caller has read it from the pods, and stores what it tells.
void StoredJobs::on(const JobEnding& event) {
  const auto at = jobs_.find(event.job);
  if (at == jobs_.end()) return;
  JobFacts& job = at->second;
  if (!job.partition || job.ending) return;
  job.ending.emplace();
  job.ending->final_state = event.verdict;
  job.ending->exit_code = job.exit_code = event.exit_code;
  const auto exists = [&](const std::string& name) {
    return std::ranges::any_of(configuration_.partitions,
                               [&](const PartitionConfig& each) { return each.name == name; });
  };
  const bool requeue = event.verdict == JobState::kNodeFail &&
                       job.request->requeue.value_or(configuration_.cluster.requeue_default) &&
                       std::ranges::any_of(job.request->partitions, exists);
  if (!requeue) return;
  job.ending->verdict = EndingVerdict::kRequeue;
  job.ending->final_state = JobState::kPending;
  job.ending->node_failed = true;
}

void StoredJobs::on_decisions(base::Instant now, const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) {
    const JobId id = std::visit([](const auto& each) { return each.job; }, decision);
    const auto* reason = std::get_if<Waits>(&decision);
    if (reason != nullptr && reason->reason == Reason::kBadConstraints) impossible_.insert(id);
    if (std::holds_alternative<Start>(decision)) impossible_.erase(id);
    JobFacts* const found = find(id);
    if (found == nullptr) continue;
    JobFacts& job = *found;
    if (const auto* start = std::get_if<Start>(&decision)) {
      job.partition = start->partition;
      job.has_begun = true;
      job.allocated_at = now;
      job.time_limit = start->time_limit;
      job.claim.reset();
      job.exit_code = 0;
    } else if (const auto* end = std::get_if<End>(&decision)) {
      job.ending = Ending{.final_state = final_state_of(end->verdict),
                          .verdict = end->verdict,
                          .grace_end = end->kill_at - configuration_.cluster.kill_wait,
                          .preemptor = end->preemptor,
                          .exit_code = job.exit_code};
    } else if (const auto* limit = std::get_if<LimitChanged>(&decision)) {
      job.time_limit = limit->time_limit;
    } else if (const auto* terms = std::get_if<TermsChanged>(&decision)) {
      job.terms = terms->terms;
    } else if (const auto* claim = std::get_if<Claim>(&decision)) {
      job.claim = claim->claim;
      job.claim_until = claim->until;
    } else if (const auto* change = std::get_if<StateChange>(&decision)) {
      on(now, *change);
    } else if (const auto* waits = std::get_if<Waits>(&decision)) {
      if (job.partition) continue;
      store_hold(job, waits->reason);
    } else if (std::holds_alternative<SubmitRefused>(decision)) {
      jobs_.erase(id);
    }
  }
}

// Nothing stays of the start that is over.
void StoredJobs::on(base::Instant now, const StateChange& change) {
  JobFacts& job = jobs_.at(change.job);
  if (is_terminal(change.state)) {
    return end(change.job, change.state, change.exit_code);
  }
  JobFacts waits = JobFacts::of(*job.request);
  waits.id = job.id;
  waits.array.reset();
  waits.submit_time = change.restarts != job.restarts ? now : job.submit_time;
  waits.restarts = change.restarts;
  waits.node_failures = change.node_failures;
  waits.retry = change.retry.value_or(Retry{});
  waits.exit_code = change.exit_code;
  waits.has_begun = job.has_begun;
  waits.terms = job.terms;
  waits.not_before = change.eligible_at;
  store_hold(waits, change.reason);
  job = std::move(waits);
}

std::vector<JobFacts> StoredJobs::restored(
    const Scheduler& leader, base::Instant now,
    const std::function<PartitionIndex(PartitionIndex)>& partition_of) const {
  std::vector<JobFacts> all;
  // A task that became a job of its own for something that changed nothing.
  StoredJobs with_all = *this;
  for (const JobId id : leader.jobs()) with_all.find(id);
  for (const auto& [id, stored] : with_all.jobs_) {
    const auto view = leader.job(id, now);
    if (!view) continue;
    JobFacts job = stored;
    job.state = view->state;
    // A held job shows priority 0, which the hold says by itself.
    if (view->priority.value() > 0) job.priority = view->priority;
    job.eligible_time = view->eligible_time;
    if (!stored.partition) {
      all.push_back(std::move(job));
      continue;
    }
    job.partition = partition_of(*stored.partition);
    job.allocation = *view->allocation;
    job.ready = view->ready;
    job.start_time = view->start_time;
    if (view->start_time) job.allocated_at = *view->start_time;
    job.clock.run = view->run_time;
    job.clock.suspended = view->suspend_time;
    job.clock.as_of = now;
    job.user_suspended = view->state == JobState::kSuspended && view->reason == Reason::kUser;
    all.push_back(std::move(job));
  }
  return all;
}

std::string StoredJobs::not_told(const Scheduler& leader, base::Instant now) const {
  for (JobFacts stored :
       restored(leader, now, [](PartitionIndex partition) { return partition; })) {
    const JobView view = *leader.job(stored.id, now);
    JobFacts held = *view.facts;
    // 1. Whatever a look at the scheduler gives, and what it works out again.
    held.state = stored.state;
    held.clock = stored.clock;
    held.priority = stored.priority;
    held.held.clear(HoldBy::kImpossible);
    held.array = stored.array;
    held.terms = stored.terms;  // of those that were never told all are open
    if (held.request->deadline) held.time_limit = stored.time_limit;  // cut to it when it was ready
    // 2. Holds that the spec says, which it has by itself.
    for (JobFacts* const each : {&stored, &held}) {
      each->held.clear(HoldBy::kUser);
      each->held.clear(HoldBy::kSuspend);
    }
    stored.request = held.request;
    // 3. Clear what is over, or begins with the next start.
    for (JobFacts* const each : {&stored, &held}) {
      if (each->retry.at <= now) each->retry.at = {};
      if (each->retry.nodes_until <= now) {
        each->retry.nodes_until = {};
        each->retry.nodes.clear();
      }
      if (each->not_before && *each->not_before <= now) each->not_before.reset();
      if (each->allocated()) {
        each->not_before.reset();
        each->retry = {};
        each->exit_code = 0;
        each->claim.reset();  // of a resume: the wish is sent again
        if (each->ready) each->allocated_at = *each->start_time;
      } else {
        each->time_limit.reset();
        each->allocated_at = {};
      }
      if (!each->claim) each->claim_until = {};
      if (!each->ending) continue;
      each->ending->killed = false;
      // 4. An end by itself is stored as one that was decided.
      if (held.ending && !held.ending->verdict) {
        each->ending->verdict.reset();
        each->ending->grace_end = {};
      }
    }
    if (stored != held) return difference(stored, held);
  }
  return {};
}

bool StoredJobs::asks_for_hold(JobId id) const {
  const auto at = jobs_.find(id);
  return at != jobs_.end() && at->second.request->hold;
}
bool StoredJobs::asks_for_suspend(JobId id) const {
  const auto at = jobs_.find(id);
  return at != jobs_.end() && at->second.request->suspend;
}

std::optional<base::Instant> StoredJobs::allocated_at(JobId id) const {
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || !at->second.partition) return std::nullopt;
  return at->second.allocated_at;
}

std::vector<Event> StoredJobs::wishes(const std::vector<JobFacts>& jobs) const {
  std::vector<Event> events;
  for (const JobFacts& job : jobs) {
    if (!job.partition || job.request->suspend == job.user_suspended) continue;
    if (job.request->suspend) {
      events.push_back(UserSuspend{job.id});
    } else {
      events.push_back(UserResume{job.id});
    }
  }
  return events;
}

}  // namespace sched::testing
