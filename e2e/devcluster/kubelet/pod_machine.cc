#include "e2e/devcluster/kubelet/pod_machine.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

// A pod as kubelet sees it, without processes, files or clocks: each report (started, exited,
// deleted) changes the records and returns what is to be done next. One container runs once, since
// the jobs' pods have restartPolicy Never. Example, of one init container i and two containers a
// and b:
//
//   admit               start i (here and below the status is written as well)
//   exited(i, 0)        start a and b
//   delete_requested    SIGTERM to those that run, a deadline
//   exited(a), (b)      remove the pod
namespace devcluster {
namespace {

using kube::PodPhase;
using State = ContainerRecord::State;

constexpr int kExitCodeStartError = 128;  // what containerd reports when exec failed
constexpr int kExitCodeUnknown = 255;     // and what a container that vanished is given

ContainerIndex at(std::size_t index) {
  return ContainerIndex{static_cast<std::int32_t>(index)};
}

bool terminated(const ContainerRecord& record) {
  return record.state == State::kTerminated;
}
bool failed(const ContainerRecord& record) {
  return terminated(record) && record.exit.exit_code != 0;
}

}  // namespace

PodMachine::PodMachine(std::shared_ptr<const kube::Pod> pod)
    : pod_{std::move(pod)},
      records_(pod_->spec.init_containers.size() + pod_->spec.containers.size()),
      asked_(records_.size(), false) {
  // A pod without init containers says ContainerCreating from the beginning (the record's default).
  for (std::size_t i = init_count(); init_count() > 0 && i < records_.size(); ++i) {
    records_[i].reason = "PodInitializing";
  }
}

// One numbering for both lists: init containers first, in their order.
const kube::Container& PodMachine::container(ContainerIndex index) const {
  CHECK(index.index() < records_.size());
  return is_init(index) ? pod_->spec.init_containers[index.index()]
                        : pod_->spec.containers[index.index() - init_count()];
}

ContainerRecord& PodMachine::record(ContainerIndex index) {
  CHECK(index.index() < records_.size());
  return records_[index.index()];
}

bool PodMachine::is_init(ContainerIndex index) const {
  return index.index() < init_count();
}

// True without init containers: all of none.
bool PodMachine::initialized() const {
  return std::all_of(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(init_count()),
                     [](const auto& record) { return terminated(record) && !failed(record); });
}

// One failed init container fails the pod, because restartPolicy is Never.
bool PodMachine::init_failed() const {
  return std::any_of(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(init_count()),
                     failed);
}

// By the records alone: a container counts until its end has been reported.
bool PodMachine::anything_runs() const {
  return std::any_of(records_.begin(), records_.end(),
                     [](const auto& record) { return record.state == State::kRunning; });
}

// The phase follows from the containers' records alone, in kubelet's order of precedence.
PodPhase PodMachine::phase() const {
  if (refused_ || init_failed()) return PodPhase::kFailed;
  const auto mains = records_.begin() + static_cast<std::ptrdiff_t>(init_count());
  if (std::all_of(mains, records_.end(), terminated)) {
    // All have ended: one that failed is enough.
    return std::any_of(mains, records_.end(), failed) ? PodPhase::kFailed : PodPhase::kSucceeded;
  }
  // A container that waits keeps the pod Pending, also beside one that runs.
  const bool one_waits = std::any_of(
      mains, records_.end(), [](const auto& record) { return record.state == State::kWaiting; });
  return !initialized() || one_waits ? PodPhase::kPending : PodPhase::kRunning;
}

bool PodMachine::ended() const {
  return phase() == PodPhase::kSucceeded || phase() == PodPhase::kFailed;
}

// Returns what follows from the records now. The status is written in any case.
// 1. a pod that is deleted and has no process left is removed, once
// 2. a pod that has failed or is deleted starts nothing more
// 3. the next init container, if the ones before have ended
// 4. all containers at once
Actions PodMachine::go_on() {
  Actions actions{WriteStatus{}};
  if (deleting_ || phase() == PodPhase::kFailed) {
    if (deleting_ && !anything_runs() && !removed_) {
      removed_ = true;
      // The grace time is over when the last process is gone, however much of it was left.
      deadline_.reset();
      abandon_waiting();
      actions.emplace_back(RemovePod{});
    }
    return actions;
  }
  const auto ask = [&](std::size_t index) {
    if (asked_[index]) return;
    // Before it has started: the answer comes later, and meanwhile go_on() may be called again.
    asked_[index] = true;
    actions.emplace_back(StartContainer{at(index)});
  };
  for (std::size_t i = 0; i < init_count(); ++i) {
    // One that failed has made the pod Failed above, so each that has ended here ended well.
    if (terminated(records_[i])) continue;
    ask(i);
    return actions;
  }
  for (std::size_t i = init_count(); i < records_.size(); ++i) ask(i);
  return actions;
}

// A pod that is deleted before a container started: that one never runs.
void PodMachine::abandon_waiting() {
  for (ContainerRecord& entry : records_) {
    // A removed pod must not say that a container is still to start.
    if (entry.state != State::kWaiting) continue;
    entry.state = State::kTerminated;
    entry.reason = "ContainerStatusUnknown";
    entry.message = "the pod was deleted before the container started";
    entry.exit = {.exit_code = 137};
  }
}

// The node has room for it; what starts first follows from the records, as at every later step.
Actions PodMachine::admit(Now now) {
  admitted_at_ = now.wall;
  return go_on();
}

// The node has no room. The pod is Failed without a container that ever ran, and its maker must
// make another.
Actions PodMachine::refuse(std::string reason, std::string message, Now now) {
  admitted_at_ = now.wall;
  refused_ = true;
  reason_ = std::move(reason);
  message_ = std::move(message);
  return {WriteStatus{}};
}

// `id`: of the container's cgroup.
Actions PodMachine::started(ContainerIndex index, std::string id, Now now) {
  ContainerRecord& entry = record(index);
  entry.state = State::kRunning;
  entry.reason.clear();
  entry.message.clear();
  entry.id = std::move(id);
  entry.started_at = now.wall;
  // A deletion that came in between has signalled those that ran then.
  if (deleting_) return {WriteStatus{}, SignalContainer{index, SIGTERM}};
  return {WriteStatus{}};
}

// The container has ended before it began: exit code 128, no start time.
Actions PodMachine::start_failed(ContainerIndex index, std::string reason, std::string message,
                                 Now now) {
  ContainerRecord& entry = record(index);
  entry.state = State::kTerminated;
  entry.reason = std::move(reason);
  entry.message = std::move(message);
  entry.started_at = base::Instant{};
  entry.finished_at = now.wall;
  entry.exit = {.exit_code = kExitCodeStartError};
  return go_on();
}

// The container waits, with a reason that users know. A real kubelet would try again; here the pod
// stays Pending until it is deleted.
Actions PodMachine::start_blocked(ContainerIndex index, std::string reason, std::string message) {
  ContainerRecord& entry = record(index);
  entry.reason = std::move(reason);
  entry.message = std::move(message);
  return {WriteStatus{}};
}

// A second report of the same end, or one after a reboot of the node, changes nothing.
Actions PodMachine::exited(ContainerIndex index, ExitStatus exit, Now now, std::string message) {
  ContainerRecord& entry = record(index);
  if (entry.state != State::kRunning) return {};
  entry.state = State::kTerminated;
  entry.reason = exit.exit_code == 0 ? "Completed" : "Error";
  entry.message = std::move(message);
  entry.finished_at = now.wall;
  entry.exit = exit;
  return go_on();
}

// A second request may shorten the grace time and never lengthens it.
Actions PodMachine::delete_requested(base::Duration grace, Now now) {
  const base::Duration deadline = now.monotonic + grace;
  // Nothing is signalled again: the processes have had their SIGTERM.
  if (deleting_) {
    if (deadline_ && deadline < *deadline_) deadline_ = deadline;
    return {};
  }
  deleting_ = true;
  // Nothing to wait for: the pod is removed at once.
  if (!anything_runs()) return go_on();
  deadline_ = deadline;
  Actions actions;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].state == State::kRunning) actions.emplace_back(SignalContainer{at(i), SIGTERM});
  }
  return actions;
}

// The grace time is over: everything that is left is killed. The ends of the processes come as
// exited().
Actions PodMachine::tick(Now now) {
  if (!deadline_ || now.monotonic < *deadline_) return {};
  deadline_.reset();
  return {KillPod{}};
}

// Everything that had not ended has failed with the machine. SOURCE: kubelet reports a container
// that is gone after its own start as ContainerStatusUnknown.
Actions PodMachine::node_rebooted(Now now) {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    ContainerRecord& entry = records_[i];
    if (entry.state == State::kTerminated) continue;
    entry.state = State::kTerminated;
    entry.reason = "ContainerStatusUnknown";
    entry.message = "the node restarted while the container ran";
    entry.finished_at = now.wall;
    entry.exit = {.exit_code = kExitCodeUnknown};
  }
  return go_on();
}

}  // namespace devcluster
