#include "scheduler/forecast/forecast.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/forecast/coming_ends.h"
#include "scheduler/scheduler.h"

namespace sched {
namespace {

// Far starts need not be exact to the second, since hardly a job uses its limit up: passes of the
// backfill are as far apart as one part in kCoarse of the time that has gone by. Each of them costs
// most of a step.
constexpr int kCoarse = 30;
// Where jobs take turns, steps after the first hour are likewise one part in kFine of the time
// since then apart: jobs that end between two of them end together. A step looks at all components
// of the gang, however few jobs end in it.
constexpr base::Duration kOneByOne = std::chrono::hours{1};
constexpr int kFine = 128;

// One forecast. Jobs end at their limits.
class ForecastRun {
 public:
  ForecastRun(const ForecastQuestion& question, const ForecastBounds& bounds)
      : bounds_{bounds},
        began_{question.state.now},
        now_{began_},
        id_{question.request.id},
        takes_turns_{question.state.configuration->cluster.gang},
        begin_{question.request.begin_time.value_or(began_)} {
    take_over(question.state);
    JobRequest request = question.request;
    request.hold = request.suspend = false;
    request.submit_time = now_;
    tell(Submit{std::move(request), question.known});
  }

  Forecast run() && {
    const base::Instant end = now_ + bounds_.horizon;
    while (!is_answered_) {
      const std::optional<base::Instant> next = next_instant();
      if (!next || *next > end) {
        answer_.outcome = Forecast::Outcome::kNotWithin;
        break;
      }
      if (bounds_.gives_up()) break;
      if (*next > now_) now_ = step_for(*next);
      scheduler_.rest_at_least((now_ - began_) / kCoarse);
      end_jobs_at_limits();
      const auto due = scheduler_.next_due();
      if (!is_answered_ && due && *due <= now_) tell(Wake{});
    }
    return std::move(answer_);
  }

 private:
  // The next step, at which what is due at `next` happens: then or a little later. Not
  // after the instant from which on the job may start.
  base::Instant step_for(base::Instant next) const {
    if (!takes_turns_) return next;
    const base::Duration far = std::max(now_ - began_ - kOneByOne, base::Duration{0});
    base::Instant step = now_ + far / kFine;
    if (begin_ > now_) step = std::min(step, begin_);
    return std::max(next, step);
  }

  // 1. Nodes and configuration, with the same indexes.
  // 2. Jobs, turns and usage, as a new leader has them.
  // 3. Pods that are starting or ending do so at once.
  void take_over(const StateCopy& state) {
    Configuration configuration = *state.configuration;        // 1
    configuration.cluster.timetable_lead = base::Duration{0};  // no timetable must travel
    scheduler_.step(now_,
                    Configure{std::make_shared<const Configuration>(std::move(configuration))});
    std::vector<std::string> vacant;
    for (NodeSpec node : state.nodes) {
      if (node.name.empty()) {
        node.name = "vacant-" + std::to_string(vacant.size()) + "/";  // no name of a node
        vacant.push_back(node.name);
      }
      scheduler_.step(now_, NodeUpdate{std::move(node)});
    }
    for (const std::string& name : vacant) scheduler_.step(now_, NodeRemove{name});
    std::vector<JobFacts> jobs = state.jobs;  // 2
    for (JobFacts& job : jobs) {
      if (job.partition) {
        job.partition = scheduler_.known_partition(state.partitions[job.partition->index()]);
      }
    }
    scheduler_.restore_from_published(now_, std::move(jobs), state.published, known(state));
    if (state.usage.as_of != base::Instant{}) scheduler_.restore_usage(state.usage);
    settle();
    for (const JobFacts& job : state.jobs) {  // 3
      if (!job.allocated()) continue;
      if (job.ending) {
        tell(JobGone{job.id, JobState::kCompleted, 0});
        continue;
      }
      limit(job.id, job.time_limit, job.clock.run);
      if (!job.ready) tell(JobReady{job.id});
    }
  }

  // The jobs of open terms that the scheduler did not know are still to be submitted.
  static std::vector<KnownJob> known(const StateCopy& state) {
    std::set<JobId> there;
    for (const JobFacts& job : state.jobs) there.insert(job.id);
    std::vector<KnownJob> known;
    for (const JobFacts& job : state.jobs) {
      const std::vector<DependencyTerm>& terms = job.request->dependency.terms;
      for (std::size_t i = 0; i < std::min(terms.size(), job.terms.size()); ++i) {
        if (job.terms[i] != TermState::kOpen || there.contains(terms[i].job)) continue;
        if (!there.contains(terms[i].job.array())) known.push_back({.job = terms[i].job});
      }
    }
    return known;
  }

  std::optional<base::Instant> next_instant() {
    std::optional<base::Instant> next = scheduler_.next_due();
    if (const auto end = ends_.next(scheduler_, next.value_or(base::kNever))) next = end;
    if (next) next = std::max(*next, now_);
    return next;
  }

  // Before the scheduler finds them, which would count as failures: others may wait for them.
  void end_jobs_at_limits() {
    for (const ComingEnds::End& end : ends_.take_due(scheduler_, now_)) {
      if (is_answered_) return;
      // The end of one before it may have stopped this one.
      if (ends_.holds(end)) tell(JobGone{end.job, JobState::kCompleted, 0});
    }
  }

  // From now on the job ends after this run time; nullopt: never.
  void limit(JobId job, std::optional<base::Duration> after, base::Duration ran = {}) {
    if (!after) return ends_.drop(job);
    ends_.end_after(job, *after, now_ + std::max(*after - ran, base::Duration{0}));
  }

  void tell(const Event& event) {
    scheduler_.step(now_, event);
    settle();
  }

  // Carries decisions out until none is left. The answers of a round are sent after all of its
  // decisions were noted.
  void settle() {
    for (;;) {
      (void)scheduler_.take_runs();
      const std::vector<Decision> decisions = scheduler_.take_decisions();
      if (decisions.empty()) return;
      std::vector<Event> answers;
      for (const Decision& decision : decisions) {
        std::visit([&](const auto& each) { note(each, answers); }, decision);
      }
      for (const Event& answer : answers) scheduler_.step(now_, answer);
    }
  }

  bool is_asked_for(JobId job) const { return job.array() == id_; }

  void note(const Start& start, std::vector<Event>& answers) {
    if (is_asked_for(start.job) && !is_answered_) return starts(start);
    limit(start.job, start.time_limit);
    answers.push_back(JobReady{start.job});
  }

  // The jobs that it stops in place are stopped when it is ready. Later changes at this instant are
  // not noted.
  void starts(const Start& start) {
    is_answered_ = true;
    answer_.outcome = Forecast::Outcome::kStarts;
    answer_.start = now_;
    answer_.partition = scheduler_.partition_name(start.partition);
    for (const NodeAllocation& use : start.allocation.nodes) {
      answer_.nodes.push_back(scheduler_.node_name(use.node));
      answer_.cpus += use.cpus;
    }
    scheduler_.step(now_, JobReady{start.job});
    for (const Decision& decision : scheduler_.take_decisions()) {
      const auto* const suspend = std::get_if<Suspend>(&decision);
      if (suspend == nullptr || suspend->cause != Reason::kPreempted) continue;
      stopped_.emplace(suspend->job, Forecast::Stop::kSuspended);
    }
    for (const auto& [job, how] : stopped_) answer_.stopped.push_back({job, how});
    answer_.reason = Reason::kNone;
    answer_.message.clear();
  }

  // It goes when it gets SIGTERM.
  void note(const End& end, std::vector<Event>& answers) {
    ends_.drop(end.job);
    if (end.preemptor && is_asked_for(*end.preemptor) && !is_answered_) {
      stopped_.emplace(end.job, end.verdict == EndingVerdict::kRequeue
                                    ? Forecast::Stop::kRequeued
                                    : Forecast::Stop::kCancelled);
    }
    answers.push_back(JobGone{end.job, JobState::kCancelled, 0});
  }

  void note(const StateChange& change, std::vector<Event>&) {
    ends_.drop(change.job);
    if (change.job == id_ && is_terminal(change.state)) never(change.reason, {});
  }
  void note(const SubmitRefused& refused, std::vector<Event>&) {
    if (refused.job == id_) never(Reason::kNone, refused.message);
  }
  void note(const Waits& waits, std::vector<Event>&) {
    if (waits.job != id_ || is_answered_) return;
    answer_.reason = waits.reason;
    answer_.message = waits.message;
    if (waits.reason == Reason::kBadConstraints) never(waits.reason, waits.message);
  }
  void note(const LimitChanged& changed, std::vector<Event>&) {
    const auto view = scheduler_.job(changed.job, now_);
    if (view) limit(changed.job, changed.time_limit, view->run_time);
  }
  void note(const Suspend&, std::vector<Event>&) {}
  void note(const Resume&, std::vector<Event>&) {}
  void note(const Claim&, std::vector<Event>&) {}
  void note(const Planned&, std::vector<Event>&) {}
  void note(const TermsChanged&, std::vector<Event>&) {}
  void note(const CommandRefused&, std::vector<Event>&) {}

  void never(Reason reason, std::string message) {
    if (std::exchange(is_answered_, true)) return;
    answer_.outcome = Forecast::Outcome::kNever;
    answer_.reason = reason;
    answer_.message = std::move(message);
  }

  const ForecastBounds& bounds_;
  Scheduler scheduler_{Options{.publishes = false, .tells_starts = false}};
  const base::Instant began_;
  base::Instant now_;
  const JobId id_;
  const bool takes_turns_;
  const base::Instant begin_;  // of the job
  ComingEnds ends_;
  std::map<JobId, Forecast::Stop> stopped_;
  bool is_answered_ = false;
  Forecast answer_;
};

}  // namespace

Forecast forecast(const ForecastQuestion& question, const ForecastBounds& bounds) {
  return ForecastRun{question, bounds}.run();
}

}  // namespace sched
