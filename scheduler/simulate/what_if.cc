#include "scheduler/simulate/what_if.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "scheduler/forecast/coming_ends.h"
#include "scheduler/simulate/driver.h"
#include "scheduler/simulate/totals.h"

namespace simulate {
namespace {

// When nothing runs and nothing more is to come, waiting jobs get this long after the last event
// that could help them (a begin time, the end of a requeue delay).
constexpr base::Duration kPatience = std::chrono::hours{1};

// A discrete simulation in virtual time.
//
// 1. The next instant is the earliest of: an input, something that the scheduler has due, a job
//    that is done.
// 2. When a job is done depends on its turns, which later events change (ComingEnds).
// 3. At an instant, jobs that are done leave, then inputs are applied, then the scheduler wakes.
//    After each of these, decisions are carried out until none is left.
// 4. It ends with the scenario's end, or when no job runs and nothing can help those that wait.
class WhatIfRun {
 public:
  // Nothing is published and no plan is reported: runs are taken from the scheduler as spans, which
  // is all that the history needs. Begin times and deadlines may lie far behind the last input, and
  // waiting jobs are given that long.
  explicit WhatIfRun(const Scenario& scenario)
      : scenario_{scenario},
        driver_{scenario, sched::Scheduler{{.publishes = false, .tells_starts = false}}} {
    history_.resize(scenario.jobs.size());
    for (std::size_t i = 0; i < scenario.nodes.size(); ++i) {
      node_by_name_[scenario.nodes[i].name] = i;
    }
    for (const Job& job : scenario.jobs) {
      wait_for_until(job.request.begin_time.value_or(base::Instant{}));
      wait_for_until(job.request.deadline.value_or(base::Instant{}));
    }
  }

  WhatIf run() && {
    // Everything of one instant: jobs that are done, inputs, then what the scheduler has due.
    while (const std::optional<base::Instant> next = next_instant()) {
      now_ = *next;
      end_finished_jobs();
      apply_inputs();
      wake();
    }
    WhatIf result;
    // Jobs that still run have run until the end. Unless the scenario names an end, it is the last
    // thing that happened to a job: wakes that found nothing do not make a simulation longer.
    result.end = std::max(now_, scenario_.end.value_or(now_));
    note_runs(driver_.scheduler().open_runs());
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
  // Step 1. Without a job that runs, the scheduler may be due forever (passes, periods) without
  // anything coming of it; kPatience ends that. nullopt ends the simulation.
  std::optional<base::Instant> next_instant() {
    std::optional<base::Instant> next = driver_.scheduler().next_due();
    // Wakes alone change nothing forever when no job is left that they could help.
    const bool helps_nobody = active_ == 0 || (next && *next > helpful_until_ + kPatience);
    if (next_input_ == scenario_.inputs.size() && helps_nobody && !next_end(base::kNever)) {
      next.reset();
    }
    const auto earlier = [&](base::Instant t) { next = next ? std::min(*next, t) : t; };
    if (next_input_ < scenario_.inputs.size()) earlier(scenario_.inputs[next_input_].at);
    if (const auto end = next_end(next.value_or(base::kNever))) earlier(*end);
    if (next && scenario_.end && *next >= *scenario_.end) next.reset();
    return next;
  }

  // Step 2.
  std::optional<base::Instant> next_end(base::Instant until) {
    return ends_.next(driver_.scheduler(), until);
  }
  void wait_for_until(base::Instant t) { helpful_until_ = std::max(helpful_until_, t); }

  // Step 3.
  void end_finished_jobs() {
    for (const sched::ComingEnds::End& end : ends_.take_due(driver_.scheduler(), now_)) {
      // The end of a job before it, at this same instant, may have made the scheduler stop this
      // one.
      if (!ends_.holds(end)) continue;
      ends_.drop(end.job);
      const auto verdict =
          end.is_killed ? sched::JobState::kCancelled : sched::JobState::kCompleted;
      driver_.step(now_, sched::JobGone{end.job, verdict, 0});
      settle();
    }
  }

  // The inputs of this instant, in the order of the file.
  void apply_inputs() {
    while (next_input_ < scenario_.inputs.size() && scenario_.inputs[next_input_].at <= now_) {
      const Input& input = scenario_.inputs[next_input_++];
      CHECK(input.happening.has_value());
      if (const auto* submit = std::get_if<SubmitJob>(&*input.happening)) {
        const bool is_array = scenario_.job(submit->job).request.array.has_value();
        const auto waits = is_array ? std::make_shared<std::vector<WaitNote>>() : nullptr;
        history(submit->job).with_array = waits;
        scenario_.each_task(submit->job, [&](sched::JobId job) {
          history(job).submitted = now_;
          history(job).with_array = waits;
          ++active_;
        });
      }
      wait_for_until(now_);
      last_event_ = now_;
      driver_.apply(now_, *input.happening);
      // Nothing of these jobs runs on a lost node, and their other nodes are clean at once.
      for (const sched::JobId job : driver_.lost()) {
        driver_.step(now_, sched::JobGone{job, sched::JobState::kNodeFail, 0});
      }
      settle();
    }
  }

  // Published timetables may be due too, so one instant may need several rounds of run().
  void wake() {
    const std::optional<base::Instant> due = driver_.scheduler().next_due();
    if (!due || *due > now_) return;
    constexpr int kWakesMax = 100'000;  // at one instant; a pass of the backfill takes many
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
      note_runs(driver_.scheduler().take_runs());
      const std::vector<sched::Decision> decisions = driver_.scheduler().take_decisions();
      if (decisions.empty()) return;
      // First all decisions of a round are noted, then the events that answer them are stepped: an
      // answer may bring decisions about the same jobs.
      std::vector<sched::Event> follow_ups;
      for (const sched::Decision& decision : decisions) {
        std::visit([&](const auto& d) { note(d, follow_ups); }, decision);
      }
      for (const sched::Event& event : follow_ups) driver_.step(now_, event);
    }
    CHECK(false, "an instant of the simulation does not settle");
  }

  // Each run is a span of the job's present placement. Runs come with their timetable and not
  // slice by slice, so a week of turns costs one span.
  void note_runs(std::vector<sched::JobRun> runs) {
    for (sched::JobRun& run : runs) {
      add_span(
          history(run.job).placements.back(),
          {.from = run.from, .to = run.to, .timetable = std::move(run.timetable), .pod = run.pod});
    }
  }

  using Events = std::vector<sched::Event>;

  // Pods are ready at once.
  void note(const sched::Start& start, Events& follow_ups) {
    Placement placement;
    placement.from = now_;
    placement.partition = driver_.scheduler().partition_name(start.partition);
    for (const sched::NodeAllocation& part : start.allocation.nodes) {
      placement.parts.push_back({.node = node_by_name_.at(driver_.scheduler().node_name(part.node)),
                                 .cores = part.cores,
                                 .cpus = part.cpus});
    }
    JobHistory& job = history(start.job);
    job.state = sched::JobState::kRunning;
    job.placements.push_back(std::move(placement));
    if (const std::optional<base::Duration> work = scenario_.job(start.job).work) {
      ends_.end_after(start.job, *work, now_ + *work);
    }
    last_event_ = now_;
    wait_for_until(now_);
    follow_ups.push_back(sched::JobReady{start.job});
  }

  // A job goes when it gets SIGTERM, unless it ignores that and was not ended by its user: then it
  // stays until SIGKILL.
  void note(const sched::End& end, Events& follow_ups) {
    JobHistory& job = history(end.job);
    if (end.preemptor) job.was_preempted = true;
    ends_.drop(end.job);
    const bool stubborn =
        scenario_.job(end.job).ignores_term && !driver_.commanded(end.job) && end.kill_at > now_;
    if (!stubborn) {
      follow_ups.push_back(sched::JobGone{end.job, sched::JobState::kCancelled, 0});
      return;
    }
    ends_.kill_at(end.job, end.kill_at);
  }

  // A change to pending is a requeue: the job leaves its nodes and waits again, and its history
  // goes on.
  void note(const sched::StateChange& change, Events&) {
    if (!scenario_.job(change.job).request.array) return note_change(change.job, change);
    // For an array: for the tasks that waited as the array.
    scenario_.each_task(change.job, [&](sched::JobId task) {
      const bool has_own = driver_.scheduler().job(task, now_).has_value();
      if (!has_own && !history(task).ended) note_change(task, change);
    });
  }
  void note_change(sched::JobId id, const sched::StateChange& change) {
    JobHistory& job = history(id);
    if (job.state != sched::JobState::kPending) leave_nodes(id);
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

  // Suspensions by turns are part of the runs; only a preemption is noted.
  void note(const sched::Suspend& suspend, Events&) {
    if (suspend.cause == sched::Reason::kPreempted) history(suspend.job).was_preempted = true;
  }
  void note(const sched::Resume&, Events&) {}
  void note(const sched::LimitChanged&, Events&) {}
  void note(const sched::Claim&, Events&) {}
  // It was never in the queue, so nothing waits for its end.
  void note(const sched::SubmitRefused& refused, Events&) {
    scenario_.each_task(refused.job, [&](sched::JobId id) {
      JobHistory& job = history(id);
      job.submitted.reset();
      job.refusal = refused.message;
      --active_;
    });
  }
  void note(const sched::TermsChanged&, Events&) {}
  void note(const sched::CommandRefused&, Events&) {}
  void note(const sched::Planned&, Events&) {}
  void note(const sched::Waits& waits, Events&) {
    JobHistory& job = history(waits.job);
    const bool is_array = scenario_.job(waits.job).request.array.has_value();
    (is_array ? *job.with_array : job.waits)
        .push_back({.at = now_, .reason = waits.reason, .message = waits.message});
  }

  // A job that starts again begins its work from the beginning.
  void leave_nodes(sched::JobId id) {
    history(id).placements.back().to = now_;
    ends_.drop(id);
  }

  JobHistory& history(sched::JobId id) { return history_.at(scenario_.index_of(id)); }

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
  sched::ComingEnds ends_;
};

}  // namespace

// A job that never ends is legal only in a scenario with an end.
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
