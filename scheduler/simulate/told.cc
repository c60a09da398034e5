#include "scheduler/simulate/told.h"

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "scheduler/replay/replay.h"
#include "scheduler/simulate/driver.h"

namespace simulate {
namespace {

// A slurmd answers that much later that nothing of a job is left. In the recordings a pass 1 ms
// after the order finds the node still taken, and an end follows it by 45 ms.
constexpr base::Duration kAnswerAfter = std::chrono::milliseconds{40};

// A recording says when Slurm made passes, ended slices and finished jobs. The run tells the
// scheduler exactly these, so that its decisions can be compared with Slurm's one by one, without
// any timing of its own in between. Pods are ready at once, since a recorded job runs from its
// start.
class ToldRun {
 public:
  explicit ToldRun(const Scenario& scenario)
      : scenario_{scenario}, driver_{scenario, sched::make_replay()} {
    report_.outcomes.resize(scenario.jobs.size());
  }

  // Makes one step of the report for each input of the recording, with everything that follows from
  // it at that instant.
  ToldReport run() && {
    for (const Input& input : scenario_.inputs) {
      now_ = input.at;
      tell_answers();
      // Also for an input that Slurm refused, so that each input has its step.
      report_.steps.push_back({.at = now_,
                               .started = {},
                               .victims = {},
                               .suspended = {},
                               .priority = {},
                               .expected = {}});
      if (input.happening) {
        driver_.apply(now_, *input.happening);
        // Recordings do not tell the end of a job that a lost node has ended.
        for (const sched::JobId job : driver_.lost()) {
          answers_.emplace_back(now_ + kAnswerAfter,
                                sched::JobGone{job, sched::JobState::kNodeFail, 0});
        }
        if (const auto* submit = std::get_if<SubmitJob>(&*input.happening)) {
          scenario_.each_task(submit->job,
                              [&](sched::JobId job) { outcome(job).submitted = true; });
          note_priority(submit->job);
        }
        settle();
      }
      note_suspended();
    }
    return std::move(report_);
  }

 private:
  // No start or suspension follows from these before the next pass or slice.
  void tell_answers() {
    while (!answers_.empty() && answers_.front().first <= now_) {
      driver_.step(now_, answers_.front().second);
      answers_.pop_front();
    }
  }

  // Carries decisions out until none is left. A decision is followed by events of the caller (pods
  // that are ready, a job that is gone), which may lead to further decisions at the same instant;
  // so in rounds, and the events of a round after all of its decisions were noted.
  void settle() {
    // Each job starts and ends at most once in a step, so this is far away.
    constexpr int kRoundsMax = 1'000'000;
    for (int round = 0; round < kRoundsMax; ++round) {
      const std::vector<sched::Decision> decisions = driver_.scheduler().take_decisions();
      if (decisions.empty()) return;
      follow_ups_.clear();
      for (const sched::Decision& decision : decisions) {
        std::visit([this](const auto& d) { note(d); }, decision);
      }
      for (const sched::Event& event : follow_ups_) driver_.step(now_, event);
    }
    CHECK(false, "a step of the scenario does not settle");
  }

  // Compared with a recording are partition, nodes, CPUs, memory and devices of each start.
  void note(const sched::Start& start) {
    StartedJob started{.job = start.job,
                       .partition = driver_.scheduler().partition_name(start.partition),
                       .nodes = {}};
    for (const sched::NodeAllocation& part : start.allocation.nodes) {
      const std::string& name = driver_.scheduler().node_name(part.node);
      started.nodes.push_back({.name = name,
                               .cpus = cpu_ids(driver_.node(name), part.cores),
                               .memory = part.memory,
                               .devices = devices_on(start.allocation, part.node)});
    }
    report_.steps.back().started.push_back(std::move(started));
    outcome(start.job).state = sched::JobState::kRunning;
    follow_ups_.push_back(sched::JobReady{start.job});
  }
  // Only the set of suspensions at the end of the step is compared, as only that was recorded.
  void note(const sched::Suspend& suspend) {
    outcome(suspend.job).state = sched::JobState::kSuspended;
  }
  void note(const sched::Resume& resume) { outcome(resume.job).state = sched::JobState::kRunning; }
  // A victim's end is an input of the recording (TellEnd); only a job that its user canceled or
  // requeued is gone at once.
  void note(const sched::End& end) {
    if (driver_.commanded(end.job)) {
      follow_ups_.push_back(sched::JobGone{end.job, sched::JobState::kCancelled, 0});
    } else if (end.verdict == sched::EndingVerdict::kPreempted) {
      report_.steps.back().victims.push_back({.job = end.job, .requeued = false});
    } else if (end.verdict == sched::EndingVerdict::kRequeue && end.preemptor) {
      report_.steps.back().victims.push_back({.job = end.job, .requeued = true});
    }
    if (!driver_.commanded(end.job)) {
      answers_.emplace_back(now_ + kAnswerAfter, clean_but_for_the_first(end.job));
    }
  }
  // A recorded job is a batch script, which runs on the first of its nodes alone. The others are
  // clean as soon as their slurmd has answered; the first one is with TellEnd.
  sched::NodesClean clean_but_for_the_first(sched::JobId job) {
    sched::NodesClean clean{.job = job, .nodes = {}};
    const std::optional<sched::JobView> view = driver_.scheduler().job(job, now_);
    if (!view || view->allocation == nullptr) return clean;
    const std::vector<sched::NodeAllocation>& nodes = view->allocation->nodes;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      clean.nodes.push_back(driver_.scheduler().node_name(nodes[i].node));
    }
    return clean;
  }
  // That of an array is about the tasks that waited as the array.
  void note(const sched::StateChange& change) {
    scenario_.each_task(change.job, [&](sched::JobId job) {
      if (job != change.job && !waited_with_array(job)) return;
      outcome(job).state = change.state;
      outcome(job).restarts = change.restarts;
    });
  }
  bool waited_with_array(sched::JobId task) {
    return outcome(task).state == sched::JobState::kPending && !driver_.scheduler().job(task, now_);
  }
  // Claims, reasons and refusals are in no recording.
  void note(const sched::LimitChanged&) {}
  void note(const sched::Claim&) {}
  void note(const sched::Waits&) {}
  void note(const sched::Planned& planned) {
    report_.steps.back().expected.push_back({.job = planned.job, .at = planned.start});
  }
  void note(const sched::TermsChanged&) {}
  void note(const sched::SubmitRefused&) {}
  void note(const sched::CommandRefused&) {}

  // Under priority/basic recordings do not compare priorities.
  void note_priority(sched::JobId id) {
    const auto& rule = scenario_.configuration.cluster.priority;
    if (rule.type != sched::PriorityType::kMultifactor) return;
    if (const auto job = driver_.scheduler().job(id, now_)) {
      report_.steps.back().priority = job->priority;
    }
  }

  // Recorded after each input: the set of suspended jobs is what chapter 6 predicts.
  void note_suspended() {
    for (std::size_t i = 0; i < report_.outcomes.size(); ++i) {
      if (report_.outcomes[i].state == sched::JobState::kSuspended) {
        report_.steps.back().suspended.push_back(scenario_.jobs[i].request.id);
      }
    }
  }

  JobOutcome& outcome(sched::JobId id) { return report_.outcomes.at(scenario_.index_of(id)); }

  const Scenario& scenario_;
  Driver driver_;
  base::Instant now_{};
  ToldReport report_;
  std::vector<sched::Event> follow_ups_;
  std::deque<std::pair<base::Instant, sched::Event>> answers_;  // of slurmds, to be sent then
};

}  // namespace

ToldReport run_told(const Scenario& scenario) {
  return ToldRun{scenario}.run();
}

}  // namespace simulate
