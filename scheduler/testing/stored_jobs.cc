#include "scheduler/testing/stored_jobs.h"

#include <algorithm>
#include <utility>

namespace sched::testing {
namespace {

bool is_system_hold(Reason reason) {
  return reason == Reason::kJobHeldAdmin || reason == Reason::kJobHoldMaxRequeue ||
         reason == Reason::kLaunchFailedRequeuedHeld;
}

}  // namespace

// A wish is stored as the spec has it, whatever became of it.
void StoredJobs::on_event(base::Instant now, const Event& event) {
  const auto request = [&](JobId id, auto change) {
    if (const auto at = jobs_.find(id); at != jobs_.end()) change(at->second.request);
  };
  if (const auto* configure = std::get_if<Configure>(&event)) {
    configuration_ = *configure->configuration;
  } else if (const auto* submit = std::get_if<Submit>(&event)) {
    jobs_.try_emplace(submit->request.id, RestoredJob{.request = submit->request});
  } else if (const auto* update = std::get_if<Update>(&event)) {
    on(now, *update);
  } else if (const auto* hold = std::get_if<Hold>(&event)) {
    request(hold->job, [&](JobRequest& r) { r.hold = r.hold || !hold->by_admin; });
  } else if (const auto* release = std::get_if<Release>(&event)) {
    request(release->job, [](JobRequest& r) { r.hold = false; });
  } else if (const auto* suspend = std::get_if<UserSuspend>(&event)) {
    request(suspend->job, [](JobRequest& r) { r.suspend = true; });
  } else if (const auto* resume = std::get_if<UserResume>(&event)) {
    request(resume->job, [](JobRequest& r) { r.suspend = false; });
  } else if (const auto* ending = std::get_if<JobEnding>(&event)) {
    on(*ending);
  } else if (const auto* forget = std::get_if<Forget>(&event)) {
    jobs_.erase(forget->job);
    impossible_.erase(forget->job);
  }
}

void StoredJobs::on(base::Instant, const Update& update) {
  const auto at = jobs_.find(update.request.id);
  if (at == jobs_.end()) return;
  RestoredJob& job = at->second;
  const JobRequest before = job.request;
  if (!job.partition) {
    job.request = update.request;
    job.request.submit_time = before.submit_time;
    job.request.suspend = before.suspend;  // a wish of its own
    return;
  }
  job.request.time_limit = update.request.time_limit;
  job.request.priority = update.request.priority;
  job.request.nice = update.request.nice;
  job.request.hold = update.request.hold;
}

// The caller has read it from the pods, and stores what it tells.
void StoredJobs::on(const JobEnding& event) {
  const auto at = jobs_.find(event.job);
  if (at == jobs_.end()) return;
  RestoredJob& job = at->second;
  if (!job.partition || job.ending || job.ending_state) return;
  job.ending_state = event.verdict;
  job.exit_code = event.exit_code;
  const auto exists = [&](const std::string& name) {
    return std::ranges::any_of(configuration_.partitions,
                               [&](const PartitionConfig& each) { return each.name == name; });
  };
  const bool requeue = event.verdict == JobState::kNodeFail &&
                       job.request.requeue.value_or(configuration_.cluster.requeue_default) &&
                       std::ranges::any_of(job.request.partitions, exists);
  if (requeue) job.ending = EndingVerdict::kRequeue;
}

void StoredJobs::on_decisions(base::Instant now, const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) {
    const JobId id = std::visit([](const auto& each) { return each.job; }, decision);
    const auto* reason = std::get_if<Waits>(&decision);
    if (reason != nullptr && reason->reason == Reason::kBadConstraints) impossible_.insert(id);
    if (std::holds_alternative<Start>(decision)) impossible_.erase(id);
    const auto at = jobs_.find(id);
    if (at == jobs_.end()) continue;
    RestoredJob& job = at->second;
    if (const auto* start = std::get_if<Start>(&decision)) {
      job.partition = start->partition;
      job.allocated_at = now;
      job.time_limit = start->time_limit;
      job.claim.reset();
      job.exit_code = 0;
    } else if (const auto* end = std::get_if<End>(&decision)) {
      job.ending = end->verdict;
      job.ending_state.reset();
      job.kill_at = end->kill_at;
      job.preemptor = end->preemptor;
    } else if (const auto* limit = std::get_if<LimitChanged>(&decision)) {
      job.time_limit = limit->time_limit;
    } else if (const auto* claim = std::get_if<Claim>(&decision)) {
      job.claim = claim->claim;
      job.claim_until = claim->until;
    } else if (const auto* change = std::get_if<StateChange>(&decision)) {
      on(now, *change);
    } else if (const auto* waits = std::get_if<Waits>(&decision)) {
      if (job.partition) continue;
      job.held_by_system.reset();
      if (is_system_hold(waits->reason)) job.held_by_system = waits->reason;
    } else if (std::holds_alternative<SubmitRefused>(decision)) {
      jobs_.erase(at);
    }
  }
}

// Of the start that is over nothing stays.
void StoredJobs::on(base::Instant now, const StateChange& change) {
  RestoredJob& job = jobs_.at(change.job);
  if (is_terminal(change.state)) {
    jobs_.erase(change.job);
    impossible_.erase(change.job);
    return;
  }
  RestoredJob waits{.request = std::move(job.request)};
  if (change.restarts != job.restarts) waits.request.submit_time = now;
  waits.restarts = change.restarts;
  waits.node_failures = change.node_failures;
  waits.retry = change.retry;
  waits.exit_code = change.exit_code;
  if (is_system_hold(change.reason)) waits.held_by_system = change.reason;
  job = std::move(waits);
}

std::vector<RestoredJob> StoredJobs::restored(
    const Scheduler& leader, base::Instant now,
    const std::function<PartitionIndex(PartitionIndex)>& partition_of) const {
  std::vector<RestoredJob> all;
  for (const auto& [id, stored] : jobs_) {
    const auto view = leader.job(id, now);
    if (!view) continue;
    RestoredJob job = stored;
    job.state = view->state;
    // A held job shows priority 0, which the hold says by itself.
    if (view->priority.value() > 0) job.priority = view->priority;
    if (!stored.partition) {
      job.eligible_time = view->eligible_time;
      all.push_back(std::move(job));
      continue;
    }
    job.partition = partition_of(*stored.partition);
    job.allocation = *view->allocation;
    job.ready = view->ready;
    job.start_time = view->start_time;
    if (view->start_time) job.allocated_at = *view->start_time;
    job.run_time = view->run_time;
    job.suspend_time = view->suspend_time;
    job.times_as_of = now;
    job.user_suspended = view->state == JobState::kSuspended && view->reason == Reason::kUser;
    all.push_back(std::move(job));
  }
  return all;
}

bool StoredJobs::asks_for_hold(JobId id) const {
  const auto at = jobs_.find(id);
  return at != jobs_.end() && at->second.request.hold;
}
bool StoredJobs::asks_for_suspend(JobId id) const {
  const auto at = jobs_.find(id);
  return at != jobs_.end() && at->second.request.suspend;
}

std::optional<base::Instant> StoredJobs::allocated_at(JobId id) const {
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || !at->second.partition) return std::nullopt;
  return at->second.allocated_at;
}

std::vector<Event> StoredJobs::wishes(const std::vector<RestoredJob>& jobs) const {
  std::vector<Event> events;
  for (const RestoredJob& job : jobs) {
    if (!job.partition || job.request.suspend == job.user_suspended) continue;
    if (job.request.suspend) {
      events.push_back(UserSuspend{job.request.id});
    } else {
      events.push_back(UserResume{job.request.id});
    }
  }
  return events;
}

}  // namespace sched::testing
