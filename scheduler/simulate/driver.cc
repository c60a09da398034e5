#include "scheduler/simulate/driver.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"

namespace simulate {
namespace {

// A visitor made of lambdas, for std::visit.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

bool name_less(const sched::NodeSpec& node, const std::string& name) {
  return node.name < name;
}

}  // namespace

Driver::Driver(const Scenario& scenario, sched::Scheduler scheduler)
    : scenario_{scenario}, nodes_{scenario.nodes}, scheduler_{std::move(scheduler)} {
  // All of it at the epoch, before the first input of the scenario.
  configure({}, scenario.configuration);
  for (const sched::NodeSpec& node : nodes_) scheduler_.step({}, sched::NodeUpdate{node});
  // The first configuration decides nothing that a scenario could show.
  scheduler_.take_decisions();
  // Only for look-ups by name. The scheduler got the nodes in the scenario's order, and sorts
  // them in the natural order of their names itself.
  std::sort(nodes_.begin(), nodes_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

// In a simulation no timetable must travel to a node, so changes need no lead.
void Driver::configure(base::Instant now, sched::Configuration configuration) {
  configuration.cluster.timetable_lead = base::Duration{0};
  scheduler_.step(now, sched::Configure{
                           std::make_shared<const sched::Configuration>(std::move(configuration))});
}

// Each kind of input becomes one event, or one for each node. TellPass, TellSlice and TellTimeLimit
// are for replays alone; the scheduler makes its own otherwise.
void Driver::apply(base::Instant now, const Happening& happening) {
  // Each happening is one command at most, and its decisions are taken before the next.
  commanded_.reset();
  lost_.clear();
  std::visit(
      Overloaded{
          [&](const SubmitJob& submit) {
            sched::JobRequest request = scenario_.job(submit.job).request;
            request.submit_time = now;
            step(now, sched::Submit{std::move(request)});
          },
          [&](const TellPass& pass) {
            step(now, sched::Pass{pass.main, pass.backfill});
          },
          [&](const TellSlice&) { step(now, sched::SliceEnd{}); },
          // All processes are gone and the nodes are clean: Slurm's two messages are one in a
          // recording.
          [&](const TellEnd& end) {
            const bool failed = end.exit_code != 0 || end.signal != 0;
            // A recording tells how a job ended as the shell would see it: 128 plus the signal that
            // killed it, else its exit code.
            step(now, sched::JobGone{
                          end.job, failed ? sched::JobState::kFailed : sched::JobState::kCompleted,
                          end.signal != 0 ? 128 + end.signal : end.exit_code});
          },
          [&](const TellTimeLimit& limit) { step(now, sched::TimeLimitReached{limit.job}); },
          [&](const Command& given) { command(now, given); },
          [&](const SetNodeState& change) { set_node_state(now, change); },
          [&](const SetConfiguration& change) { configure(now, change.configuration); },
          [&](const UpdateJob& update) { step(now, sched::Update{update.request}); },
      },
      happening);
}

// `commanded_` tells the end of a job that a user ended, which is carried out at once, from that of
// a victim, which takes its grace time.
void Driver::command(base::Instant now, const Command& command) {
  const sched::JobId job = command.job;
  switch (command.kind) {
    case CommandKind::kSuspend:
      return step(now, sched::UserSuspend{job});
    case CommandKind::kResume:
      return step(now, sched::UserResume{job});
    case CommandKind::kHold:
      return step(now, sched::Hold{.job = job, .by_admin = true});
    case CommandKind::kRelease:
      return step(now, sched::Release{job});
    case CommandKind::kCancel:
      commanded_ = job;
      return step(now, sched::Cancel{job});
    case CommandKind::kRequeue:
      commanded_ = job;
      return step(now, sched::Requeue{job});
  }
}

// A node that goes down takes its jobs with it (T9).
void Driver::set_node_state(base::Instant now, const SetNodeState& change) {
  for (const std::string& name : change.nodes) {
    const auto node = std::lower_bound(nodes_.begin(), nodes_.end(), name, name_less);
    CHECK(node != nodes_.end() && node->name == name, name);
    node->state = change.state;
    step(now, sched::NodeUpdate{*node});
    if (change.state != sched::NodeState::kDown) continue;
    // The scheduler leaves it to its caller to say how jobs on a lost node end.
    for (const sched::JobId id : scheduler_.jobs()) {
      const std::optional<sched::JobView> view = scheduler_.job(id, now);
      if (!view || view->allocation == nullptr) continue;
      const auto& parts = view->allocation->nodes;
      if (std::any_of(parts.begin(), parts.end(), [&](const sched::NodeAllocation& part) {
            return scheduler_.node_name(part.node) == name;
          })) {
        step(now, sched::JobEnding{id, sched::JobState::kNodeFail, 0});
        lost_.push_back(id);
      }
    }
  }
}

const sched::NodeSpec& Driver::node(const std::string& name) const {
  const auto found = std::lower_bound(nodes_.begin(), nodes_.end(), name, name_less);
  CHECK(found != nodes_.end() && found->name == name, name);
  return *found;
}

}  // namespace simulate
