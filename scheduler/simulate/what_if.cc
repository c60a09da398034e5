#include "scheduler/simulate/what_if.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "scheduler/base/check.h"
#include "scheduler/simulate/driver.h"
#include "scheduler/simulate/totals.h"

namespace simulate {
namespace {

// When nothing runs and nothing more is to come, waiting jobs get this long after the last event
// that could help them (a begin time, the end of a requeue delay).
constexpr base::Duration kPatience = std::chrono::hours{1};

class WhatIfRun {
 public:
  explicit WhatIfRun(const Scenario& scenario)
      : scenario_{scenario}, driver_{scenario, {.told_timing = false}} {
    history_.resize(scenario.jobs.size());
    ran_.resize(scenario.jobs.size());
    end_version_.resize(scenario.jobs.size());
    for (std::size_t i = 0; i < scenario.nodes.size(); ++i) {
      node_by_name_[scenario.nodes[i].name] = i;
    }
    for (const Job& job : scenario.jobs) {
      wait_for_until(job.request.begin_time.value_or(base::Instant{}));
    }
  }

  WhatIf run() && {
    // 1. Everything of one instant: jobs that are done, inputs, then what the scheduler has due.
    while (const std::optional<base::Instant> next = next_instant()) {
      now_ = *next;
      end_finished_jobs();
      apply_inputs();
      wake();
      // 2. The new timetables, and with them the instants at which jobs will be done.
      take_plans();
    }
    WhatIf result;
    result.end = std::max(now_, scenario_.end.value_or(now_));
    for (const JobHistory& job : history_) {
      if (!job.ended) continue;
      last_event_ = std::max(last_event_, *job.ended);
    }
    if (!scenario_.end) result.end = last_event_;
    result.totals = count_totals(scenario_, history_, result.end);
    result.jobs = std::move(history_);
    return result;
  }

 private:
  struct PlannedEnd {
    base::Instant at;
    sched::JobId job;
    std::uint64_t version;  // of end_version_; older ones are void
    bool killed = false;    // SIGKILL of a job that ignores SIGTERM
    friend bool operator>(const PlannedEnd& a, const PlannedEnd& b) {
      return std::pair{a.at, a.job} > std::pair{b.at, b.job};
    }
  };

  std::optional<base::Instant> next_instant() {
    while (!ends_.empty() && is_void(ends_.top())) ends_.pop();
    std::optional<base::Instant> next = driver_.scheduler().next_due();
    // Wakes alone change nothing for ever when no job is left that they could help.
    if (ends_.empty() && next_input_ == scenario_.inputs.size() &&
        (active_ == 0 || (next && *next > helpful_until_ + kPatience))) {
      next.reset();
    }
    const auto earlier = [&](base::Instant t) { next = next ? std::min(*next, t) : t; };
    if (!ends_.empty()) earlier(ends_.top().at);
    if (next_input_ < scenario_.inputs.size()) earlier(scenario_.inputs[next_input_].at);
    if (next && scenario_.end && *next >= *scenario_.end) next.reset();
    return next;
  }

  bool is_void(const PlannedEnd& end) const {
    return end.version != end_version_[end.job.index() - 1];
  }
  void wait_for_until(base::Instant t) { helpful_until_ = std::max(helpful_until_, t); }

  void end_finished_jobs() {
    while (!ends_.empty() && (is_void(ends_.top()) || ends_.top().at <= now_)) {
      const PlannedEnd end = ends_.top();
      ends_.pop();
      if (is_void(end)) continue;
      ++end_version_[end.job.index() - 1];
      driver_.step(now_, sched::JobGone{end.job, sched::JobState::kCompleted, 0});
      settle();
    }
  }

  void apply_inputs() {
    while (next_input_ < scenario_.inputs.size() && scenario_.inputs[next_input_].at <= now_) {
      const Input& input = scenario_.inputs[next_input_++];
      CHECK(input.happening.has_value());
      if (const auto* submit = std::get_if<SubmitJob>(&*input.happening)) {
        history(submit->job).submitted = now_;
        ++active_;
      }
      wait_for_until(now_);
      last_event_ = now_;
      driver_.apply(now_, *input.happening);
      settle();
    }
  }

  // Published timetables may be due too, so one instant may need several rounds of run().
  void wake() {
    const std::optional<base::Instant> due = driver_.scheduler().next_due();
    if (!due || *due > now_) return;
    constexpr int kWakesMax = 1'000;  // at one instant
    wakes_at_now_ = now_ == last_wake_ ? wakes_at_now_ + 1 : 0;
    last_wake_ = now_;
    CHECK(wakes_at_now_ < kWakesMax, "the scheduler is due again and again at one instant");
    driver_.step(now_, sched::Wake{});
    settle();
  }

  // Carries decisions out until none is left.
  void settle() {
    constexpr int kRoundsMax = 1'000'000;
    for (int round = 0; round < kRoundsMax; ++round) {
      const std::vector<sched::Decision> decisions = driver_.scheduler().take_decisions();
      if (decisions.empty()) return;
      std::vector<sched::Event> follow_ups;
      for (const sched::Decision& decision : decisions) {
        std::visit([&](const auto& d) { note(d, follow_ups); }, decision);
      }
      for (const sched::Event& event : follow_ups) driver_.step(now_, event);
    }
    CHECK(false, "an instant of the simulation does not settle");
  }

  using Events = std::vector<sched::Event>;

  void note(const sched::Start& start, Events& follow_ups) {
    Placement placement;
    placement.from = now_;
    placement.partition = driver_.scheduler().partition_name(start.partition);
    for (const sched::NodeAllocation& part : start.allocation.nodes) {
      placement.parts.push_back({.node = node_by_name_.at(driver_.scheduler().node_name(part.node)),
                                 .cores = part.cores,
                                 .cpus = part.cpus});
    }
    placement.spans.push_back({.from = now_});
    ran_[start.job.index() - 1] = base::Duration{0};
    JobHistory& job = history(start.job);
    job.state = sched::JobState::kRunning;
    job.placements.push_back(std::move(placement));
    const sched::NodeIndex reference = start.allocation.nodes.front().node;
    reference_node_[start.job] = reference;
    jobs_on_[reference].insert(start.job);
    changed_.insert(start.job);
    last_event_ = now_;
    wait_for_until(now_);
    follow_ups.push_back(sched::JobReady{start.job});
  }

  void note(const sched::End& end, Events& follow_ups) {
    JobHistory& job = history(end.job);
    if (end.preemptor) job.was_preempted = true;
    ending_.insert(end.job);
    ++end_version_[end.job.index() - 1];
    const bool stubborn =
        scenario_.job(end.job).ignores_term && driver_.commanded() != end.job && end.kill_at > now_;
    if (!stubborn) {
      follow_ups.push_back(sched::JobGone{end.job, sched::JobState::kCancelled, 0});
      return;
    }
    ends_.push({.at = end.kill_at,
                .job = end.job,
                .version = end_version_[end.job.index() - 1],
                .killed = true});
  }

  void note(const sched::StateChange& change, Events&) {
    JobHistory& job = history(change.job);
    if (job.state != sched::JobState::kPending) leave_nodes(change.job);
    job.state = change.state;
    job.restarts = change.restarts;
    if (change.eligible_at) wait_for_until(*change.eligible_at);
    job.waits.push_back({.at = now_, .reason = change.reason, .message = {}});
    if (sched::is_terminal(change.state)) {
      job.ended = now_;
      --active_;
    }
    wait_for_until(now_);
  }

  void note(const sched::Suspend& suspend, Events&) {
    if (suspend.cause == sched::Reason::kPreempted) history(suspend.job).was_preempted = true;
  }
  void note(const sched::Resume&, Events&) {}
  void note(const sched::Claim&, Events&) {}
  void note(const sched::Refused&, Events&) {}
  void note(const sched::Waits& waits, Events&) {
    history(waits.job).waits.push_back(
        {.at = now_, .reason = waits.reason, .message = waits.message});
  }

  void leave_nodes(sched::JobId id) {
    Placement& placement = history(id).placements.back();
    placement.to = now_;
    placement.spans.back().to = now_;
    jobs_on_[reference_node_.at(id)].erase(id);
    reference_node_.erase(id);
    ending_.erase(id);
    changed_.erase(id);
    ++end_version_[id.index() - 1];
  }

  void take_plans() {
    for (sched::NodePlan& plan : driver_.scheduler().take_plans(now_)) {
      for (const sched::JobId id : jobs_on_[plan.node]) changed_.insert(id);
      NodeState& node = nodes_[plan.node];
      node.entries = std::move(plan.entries);
      node.timetable = std::make_shared<const timetable::Timetable>(std::move(plan.timetable));
    }
    for (const sched::JobId id : changed_) follow_plan(id);
    changed_.clear();
  }

  // A new span for the job by the newest timetable of its first node, and when it will be done.
  void follow_plan(sched::JobId id) {
    const NodeState& node = nodes_[reference_node_.at(id)];
    RunSpan span{.from = now_};
    for (std::size_t i = 0; i < node.entries.size(); ++i) {
      if (node.entries[i].job != id) continue;
      span.timetable = node.timetable;
      span.pod = static_cast<std::uint16_t>(i);
    }
    Placement& placement = history(id).placements.back();
    base::Duration& ran = ran_[id.index() - 1];
    placement.spans.back().to = now_;
    ran += run_time(placement.spans.back(), placement.spans.back().from, now_);
    if (placement.spans.back().from == now_) placement.spans.pop_back();
    placement.spans.push_back(span);
    const std::optional<base::Duration> work = scenario_.job(id).work;
    if (!work || ending_.count(id) != 0) return;
    ++end_version_[id.index() - 1];
    const base::Duration left = *work - ran;
    const std::optional<base::Instant> end = when_has_run(span, now_, left);
    if (end) ends_.push({.at = *end, .job = id, .version = end_version_[id.index() - 1]});
  }

  JobHistory& history(sched::JobId id) { return history_.at(id.index() - 1); }

  struct NodeState {
    std::vector<sched::NodeTimetableEntry> entries;
    std::shared_ptr<const timetable::Timetable> timetable;
  };

  const Scenario& scenario_;
  Driver driver_;
  base::Instant now_{};
  std::map<std::string, std::size_t> node_by_name_;  // index into Scenario::nodes
  std::vector<JobHistory> history_;
  std::size_t next_input_ = 0;
  std::int64_t active_ = 0;        // submitted and not ended
  base::Instant helpful_until_{};  // until then something may still help waiting jobs
  base::Instant last_event_{};
  base::Instant last_wake_ = base::kNever;
  int wakes_at_now_ = 0;
  std::map<sched::NodeIndex, NodeState> nodes_;
  // A job's timetable is that of its first node: they agree on when it runs.
  std::map<sched::JobId, sched::NodeIndex> reference_node_;
  std::map<sched::NodeIndex, std::set<sched::JobId>> jobs_on_;
  std::set<sched::JobId> changed_;  // new timetable, or just started
  std::set<sched::JobId> ending_;   // told to end
  std::priority_queue<PlannedEnd, std::vector<PlannedEnd>, std::greater<>> ends_;
  std::vector<std::uint64_t> end_version_;
  std::vector<base::Duration> ran_;  // by the present placement's spans but the last
};

}  // namespace

base::Result<WhatIf> run_what_if(const Scenario& scenario) {
  CHECK(!scenario.timing_is_told());
  for (const Job& job : scenario.jobs) {
    if (!job.work && !scenario.end) {
      return base::invalid_argument("job " + job.label +
                                    ": say how many seconds it runs (run), or when the scenario "
                                    "ends (end)");
    }
  }
  return WhatIfRun{scenario}.run();
}

}  // namespace simulate
