#include "operator/loop/control_loop.h"

#include <algorithm>

#include "api/wellknown.h"
#include "base/check.h"

namespace control {
namespace {

// A reconciliation that goes on for so many rounds chases its own tail: a bug of ours.
constexpr int kReconcileRoundsMax = 10'000;
constexpr base::Duration kLagEvery = std::chrono::seconds{1};

}  // namespace

ControlLoop::ControlLoop(const kube::Clock& clock, Inbox& inbox, Writer& writer,
                         TemplateBook& templates, LoopHooks hooks)
    : clock_{clock},
      inbox_{inbox},
      writer_{writer},
      templates_{templates},
      report_{std::move(hooks)},
      gate_{{.is_stored =
                 [this](const std::string& uid) {
                   const auto job = jobs_.find(uid);
                   return job == jobs_.end() || !job->second->status.is_uncommitted();
                 },
             .is_published =
                 [this](const std::string& node) { return timetables_.is_published(node); }}} {}

base::Instant ControlLoop::step() {
  if (fenced_) return base::kNever;
  // Instants never go back, whatever the machine's clock does.
  now_ = std::max(now_, clock_.wall());
  ++counters_.steps;
  // 1. What came in: changed objects and answers to writes.
  take_inbox();
  if (!restored_) restore();
  if (fenced_) return base::kNever;
  // 2. What became due.
  fire_timers();
  count_unsliced();
  const auto wake = [this] {
    const auto due = scheduler_.next_due();
    if (!due || *due > now_) return false;
    tell(sched::Wake{});
    return true;
  };
  (void)wake();
  // 3. What follows from it. A pass at once where one is due after that: a job that may start when
  // it is submitted is never written as pending, and no pod of it is tried.
  reconcile_until_quiet();
  if (wake()) reconcile_until_quiet();
  // 4. What has to be written.
  take_plans();
  write_due_statuses();
  write_due_timetables();
  write_due_taints();
  write_due_orphans();
  reconcile_until_quiet();  // pods may be created once their timetables are found to be written
  refresh_running();
  write_due_informing();
  if (counts_dirty_) count_jobs();
  counters_.nodes_known = nodes_.size();
  counters_.jobs_finished = static_cast<std::int64_t>(finished_.size());
  if (now_ - lag_taken_at_ >= kLagEvery) take_lag();
  return next_due();
}

void ControlLoop::take_inbox() {
  Inbox::Batch batch = inbox_.take();
  WatchedKinds::for_each(
      [&]<typename T>(std::type_identity<T>) { observe(std::as_const(batch).of<T>()); });
  for (Outcome& outcome : batch.outcomes) {
    writer_.heard_outcome();
    std::visit([this](auto& each) { answered(std::move(each)); }, outcome);
  }
}

// A node that is down obeys nothing, and that is no news.
void ControlLoop::take_lag() {
  lag_taken_at_ = now_;
  counters_.timetable_lag = lag_.oldest(now_, [this](const std::string& name) {
    const sched::NodeSpec* told = nodes_.told(name);
    return nodes_.in_partition(name) && told != nullptr && told->state != sched::NodeState::kDown;
  });
}

void ControlLoop::fire_timers() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    const std::string uid = timers_.begin()->second;
    timers_.erase(timers_.begin());
    if (JobRecord* job = find_job(uid)) {
      job->timer = base::kNever;
      touch(uid);
      status_jobs_.insert(uid);
    }
  }
  write_due_numbers();
}

void ControlLoop::reconcile_until_quiet() {
  for (int round = 0;; ++round) {
    CHECK(round < kReconcileRoundsMax, "the operator does not settle");
    if (policy_.is_dirty()) reconfigure();
    tell_nodes();
    count_nodes();
    if (dirty_jobs_.empty()) return;
    // In order of arrival: who came first gets the lower number, and the queue goes by that (3.3).
    std::vector<std::pair<std::int64_t, std::string>> dirty;
    for (const std::string& uid : std::exchange(dirty_jobs_, {})) {
      if (const JobRecord* job = find_job(uid)) dirty.emplace_back(job->arrival, uid);
    }
    std::sort(dirty.begin(), dirty.end());
    for (const auto& [arrival, uid] : dirty) {
      if (JobRecord* job = find_job(uid)) reconcile(*job);
    }
  }
}

void ControlLoop::tell(const sched::Event& event) {
  ++counters_.events;
  plans_dirty_ = true;
  const base::Duration began = clock_.monotonic();
  scheduler_.step(now_, event);
  const auto decisions = scheduler_.take_decisions();
  counters_.deciding += clock_.monotonic() - began;
  for (const sched::Decision& decision : decisions) {
    ++counters_.decisions;
    apply(decision);
  }
}

base::Instant ControlLoop::next_due() {
  base::Instant due = base::kNever;
  const auto earlier = [&](base::Instant at) { due = std::min(due, at); };
  if (const auto next = scheduler_.next_due()) earlier(*next);
  if (!timers_.empty()) earlier(timers_.begin()->first);
  earlier(timetables_.next_due(now_));
  earlier(taints_.next_due(now_));
  earlier(orphans_.next_due());
  earlier(numbers_.next_due(now_));
  earlier(inform_.next_due(now_));
  earlier(unsliced_.next_due());
  if (!trials_.empty()) earlier(now_ + InformBudget::kLookAgain);
  for (const std::string& uid : status_jobs_) {
    const auto found = jobs_.find(uid);
    if (found == jobs_.end()) continue;
    const StatusMirror<kube::Job>& status = found->second->status;
    if (status.urgency() == WriteUrgency::kClean || !status.exists()) continue;
    if (status.due() > now_) {
      earlier(status.due());
    } else if (status.urgency() == WriteUrgency::kInforms) {
      earlier(now_ + InformBudget::kLookAgain);
    } else if (!found->second->start.commit_after) {
      earlier(now_);  // it was marked after the statuses had been looked at
    }
  }
  const auto mirror_due = [&](const auto& mirror) {
    if (mirror.urgency() == WriteUrgency::kClean || !mirror.exists()) return;
    if (mirror.is_in_flight()) return;
    const base::Instant informs =
        std::max(now_ + InformBudget::kLookAgain, mirror.informed_at() + kRefreshPeriod);
    earlier(mirror.urgency() == WriteUrgency::kInforms ? informs : std::max(mirror.due(), now_));
  };
  policy_.for_each_status([&](WritePoint, const auto& mirror) { mirror_due(mirror); });
  earlier(refreshed_at_ + kRefreshPeriod);
  return due;
}

void ControlLoop::mark(JobRecord& job, WriteUrgency how) {
  job.status.mark(how);
  status_jobs_.insert(job.uid);
  if (how == WriteUrgency::kCommit) touch(job.uid);
}

void ControlLoop::write(std::optional<Effect> effect) {
  if (effect) writer_.submit(std::move(*effect));
}

void ControlLoop::set_timer(JobRecord& job, base::Instant at) {
  if (job.timer <= at && job.timer > now_) return;
  timers_.erase({job.timer, job.uid});
  job.timer = at;
  timers_.emplace(at, job.uid);
}

JobRecord* ControlLoop::find_job(const std::string& uid) {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? take_out(uid) : found->second.get();
}

JobRecord* ControlLoop::find_job(sched::JobId id) {
  const auto found = uid_by_id_.find(id);
  return found == uid_by_id_.end() ? nullptr : find_job(found->second);
}

void ControlLoop::event(const JobRecord& job, bool warning, const std::string& reason,
                        const std::string& message) const {
  if (job.deleted) return;
  report_.event({.api_version = "kubegang.io/v1alpha1",
                 .kind = "Job",
                 .ns = job.key.ns,
                 .name = job.key.name,
                 .uid = job.uid,
                 .resource_version = job.status.version()},
                warning, reason, message);
}

void ControlLoop::be_fenced(std::int64_t by_term) {
  if (fenced_) return;
  fenced_ = true;
  warn("another operator leads",
       "term=" + std::to_string(term_) + " by_term=" + std::to_string(by_term));
  report_.fenced(by_term);
}

}  // namespace control
