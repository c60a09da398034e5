#include "simulation/kubelet.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/wellknown.h"
#include "kube/api/time_format.h"
#include "translation/task_key.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How the model of a node differs from a real one. Each pod has one container and one program,
// which needs a given time of work (an annotation of its template) and then exits with a given
// code; before it, some have an init container. A pod that kubelet has taken goes through:
// accepted, started after a while, in its init container, running, over; its object is removed when
// it was deleted. Kubelet acts by its own cache of pods and writes two things: the status, and the
// removal of an object whose deletion it has carried out. A write that fails is repeated until it
// is taken. Nothing of that depends on what the operator or the agent believe, so the model can
// serve as the truth.

constexpr Time kReportRetry = milliseconds{500};
// A program that may run ends so long after SIGTERM. A frozen one handles it when it is thawed, or
// is killed when its grace is over: cgroup v2 kills a frozen task, too.
constexpr Time kHandlesSigterm = milliseconds{200};
constexpr Time kRestartTakes = seconds{2};
// The interval at which kubelet compares its reports with its cache of pods: an object that a
// restore of etcd has set back to the version in the cache causes no event of a watch. SOURCE:
// kubernetes pkg/kubelet/status, syncPeriod and needsReconcile.
constexpr Time kCompares = seconds{10};
// The interval at which a waiting init container looks for its peer.
constexpr Time kLooksForPeer = milliseconds{100};
constexpr std::uint64_t kDebugMillisMax = 3000;
// On top of 100 ms, and ten times as long on a slow node.
constexpr std::uint64_t kStartMillisMax = 1500;

std::string label(const kube::Pod& pod, std::string_view name) {
  const auto found = pod.metadata.labels.find(std::string{name});
  return found == pod.metadata.labels.end() ? "0" : found->second;
}

// Returns the number of the pod's task of an array; nullopt if its job is none.
std::optional<int> array_task_of(const kube::Pod& pod) {
  const auto found = pod.metadata.labels.find(std::string{kube::kLabelArrayTask});
  if (found == pod.metadata.labels.end()) return std::nullopt;
  return std::stoi(found->second);
}

std::string note(const kube::Pod& pod, const std::string& name, const std::string& otherwise) {
  const auto found = pod.metadata.annotations.find("simulation/" + name);
  return found == pod.metadata.annotations.end() ? otherwise : found->second;
}

// Returns the containerStatuses, or those of init containers, of a pod whose only one is in
// `state`.
json container(const std::string& state, json detail, const char* name = "main") {
  return json::array({{{"name", name},
                       {"ready", state == "running"},
                       {"restartCount", 0},
                       {"image", "x"},
                       {"imageID", ""},
                       {"state", {{state, std::move(detail)}}}}});
}

// Returns the initContainerStatuses of a pod whose main container runs or has run.
json init_statuses(const Program& program) {
  if (!program.init_is_done) return json::array();
  return container("terminated", {{"exitCode", 0}, {"reason", "Completed"}}, "init");
}

}  // namespace

Kubelet::Kubelet(Machine& machine, devcluster::ApiServer& server, const Time& now,
                 const Breaks& breaks, Tally& tally, ProgramObserver& observer, std::uint64_t seed)
    : machine_{machine},
      now_{now},
      tally_{tally},
      observer_{observer},
      prng_{seed},
      link_{server, now, breaks, tally, "kubelet-" + machine.name, seed + 1},
      client_{link_, machine.clock, sleeper_, client_options(1)} {
  watch();
}

// Handlers only note that something changed; sync() reads the whole cache.
void Kubelet::watch() {
  const auto changed = [this](const auto&...) { changed_ = true; };
  informer_ = std::make_unique<kube::Informer<kube::Pod>>(
      client_, machine_.clock,
      kube::InformerOptions{.field_selector = "spec.nodeName=" + machine_.name,
                            .seed = prng_.next()},
      kube::Informer<kube::Pod>::Handlers{
          .on_add = changed, .on_update = changed, .on_delete = changed});
  link_.add_feed([this] { return informer_->step({}); });
  changed_ = true;
}

// Programs go on while kubelet is away, but nothing is started, ended or reported.
void Kubelet::restart() {
  link_.drop_feeds();
  informer_.reset();
  restarts_at_ = now_ + kRestartTakes;
  ++tally_.faults["kubelet restarted"];
}

// Programs end without a word. Their pods stay in the API until the machine is back.
void Kubelet::power_off() {
  link_.drop_feeds();
  informer_.reset();
  restarts_at_ = kNoTime;
  for (auto& [uid, program] : programs_) {
    if (!program.running) {
      if (program.over && !program.report.empty()) observer_.end_untold(program);
      continue;
    }
    machine_.kernel.stop(uid);
    program.running = false;
    program.over = true;
    observer_.program_ended(program, EndedBy::kMachine);
  }
  // Init containers run again from their beginning.
  programs_.clear();
  machine_.kernel.power_off();
}

// kubelet comes up some time after the machine, with an empty cache and no programs.
void Kubelet::power_on() {
  restarts_at_ = now_ + kRestartTakes;
}

// As `kill -9` of the container's process: exit code 137 and a failed pod.
bool Kubelet::kill_one(std::uint64_t which) {
  std::vector<Program*> running;
  for (auto& [uid, program] : programs_) {
    if (program.running) running.push_back(&program);
  }
  if (running.empty()) return false;
  finish(*running[which % running.size()], 137, "Error", EndedBy::kSignal);
  return true;
}

// Returns false for a frozen program: it can neither work nor handle SIGTERM.
bool Kubelet::may_act(const Program& program) const {
  return !machine_.kernel.stands(program.uid);
}

// Returns when a program starts, ends by its work, handles SIGTERM, or is killed; and when a report
// is due. A frozen program is not waited for, because its thaw is an event of the agent.
Time Kubelet::next() {
  if (!informer_) return restarts_at_;
  if (changed_) return now_;
  Time next = link_.next_feed();
  // Without programs there is nothing to compare with the API server.
  if (!programs_.empty()) next = std::min(next, compares_at_);
  for (auto& [uid, program] : programs_) {
    if (!program.report.empty() || program.remove_object) next = std::min(next, program.report_at);
    if (program.over) continue;
    if (!program.running && !program.in_init) {
      next = std::min(next, program.starts_at);
      continue;
    }
    if (program.terminated_at) next = std::min(next, *program.terminated_at + program.grace);
    next = std::min(next, deadline_of(program));
    if (!may_act(program)) continue;
    for (const Debug& one : program.debugs) {
      if (!one.started_wall) next = std::min(next, one.starts_at);
    }
    if (program.terminated_at) next = std::min(next, *program.terminated_at + kHandlesSigterm);
    if (program.in_init && !program.init_ends) continue;
    const base::Duration left =
        (program.in_init ? program.init : program.work) - machine_.kernel.worked(uid);
    const bool waits = program.in_init && left <= base::Duration{0};
    next = std::min(next, waits ? program.looks_at : now_ + std::max(left, base::Duration{0}));
  }
  return std::max(next, now_);
}

// 1. kubelet itself comes back 2. news from the API server, and from time to time a comparison
// without any news 3. what is due of each program, and what is to be reported of it
void Kubelet::step() {
  if (!informer_) {
    if (now_ < restarts_at_ || !machine_.is_on) return;
    watch();
  }
  link_.run_feeds();
  if (now_ >= compares_at_) {
    compares_at_ = now_ + kCompares;
    changed_ = true;
  }
  if (std::exchange(changed_, false) && informer_->has_synced()) sync();
  for (auto& [uid, program] : programs_) {
    advance(program);
    report(program);
  }
}

// Compares the objects of the node with the programs: new ones are taken, and programs without an
// object end.
void Kubelet::sync() {
  std::set<std::string> exist;
  for (const auto& pod : informer_->snapshot()) {
    exist.insert(pod->metadata.uid);
    take(*pod);
  }
  for (auto entry = programs_.begin(); entry != programs_.end();) {
    Program& program = entry->second;
    if (exist.contains(entry->first)) {
      ++entry;
      continue;
    }
    // The object is gone: nothing of the pod may stay.
    if (program.running) finish(program, 137, "Error", EndedBy::kRequest);
    if (program.in_init) end_init(program);
    machine_.kernel.remove(entry->first);
    entry = programs_.erase(entry);
  }
}

// 1. a pod that is new is accepted
// 2. a status that the server has forgotten (a restore) is written again
// 3. a deletion: SIGTERM, or the removal of the object if nothing runs
void Kubelet::take(const kube::Pod& pod) {
  const std::string& uid = pod.metadata.uid;
  const auto [entry, fresh] = programs_.try_emplace(uid);
  Program& program = entry->second;
  if (fresh) accept(pod, program);
  // The API server has forgotten the report.
  const bool told_of = pod.status.phase && *pod.status.phase != kube::PodPhase::kPending;
  const bool told_end =
      pod.status.phase == kube::PodPhase::kSucceeded || pod.status.phase == kube::PodPhase::kFailed;
  const bool forgotten = program.over ? !told_end : program.running && !told_of;
  if (program.report.empty() && !program.reported.empty() && forgotten) {
    program.report = std::exchange(program.reported, "");
    program.report_at = now_ + kReportRetry;
  }
  const auto& told = pod.status.ephemeral_container_statuses;
  const auto told_running = std::count_if(
      told.begin(), told.end(), [](const auto& status) { return bool{status.state.running}; });
  const auto running = std::count_if(program.debugs.begin(), program.debugs.end(),
                                     [](const Debug& one) { return bool{one.started_wall}; });
  if (program.report.empty() && program.running && told_running < running) tell_of_debugs(program);
  if (pod.spec.active_deadline_seconds) {
    program.lasts_at_most = seconds{*pod.spec.active_deadline_seconds};
  }
  if (!pod.metadata.deletion_timestamp || program.remove_object) return;
  if (!program.running && !program.in_init) {
    program.over = true;
    program.remove_object = true;
    program.report_at = now_;
  } else if (!program.terminated_at) {
    program.terminated_at = now_;
    program.grace = seconds{pod.metadata.deletion_grace_period_seconds.value_or(30)};
  }
}

// 1. the facts that the template's annotations and the labels tell
// 2. a pod that has ended stays as it is
// 3. one that had run before this kubelet has failed with its machine
// 4. one that kubelet refuses fails
// 5. any other starts after a while
void Kubelet::accept(const kube::Pod& pod, Program& program) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  program.node = machine_.name;
  program.uid = pod.metadata.uid;
  program.ns = pod.metadata.ns;
  program.name = pod.metadata.name;
  const std::optional<int> array_task = array_task_of(pod);
  program.job_uid = owner == nullptr ? "" : control::record_key(owner->uid, array_task);
  program.start = std::stoll(label(pod, kube::kLabelStart));
  program.task = std::stoi(label(pod, kube::kLabelTask));
  // Pods of one template need not be alike: their work may grow with their index, or with that of
  // their task, and one may be the only one that fails.
  program.work = milliseconds{std::stoll(note(pod, "work-ms", "1000000000")) +
                              array_task.value_or(program.task) % 3 *
                                  std::stoll(note(pod, "work-more-ms", "0"))};
  const bool fails =
      std::stoi(note(pod, "fails-index", label(pod, kube::kLabelTask))) == program.task &&
      std::stoi(note(pod, "fails-task", std::to_string(array_task.value_or(-1)))) ==
          array_task.value_or(-1);
  if (fails) program.exit_code = std::stoi(note(pod, "exit-code", "0"));
  program.init = milliseconds{std::stoll(note(pod, "init-ms", "0"))};
  program.init_ends = note(pod, "init-ends", "yes") == "yes";
  if (program.task == 0) {
    program.init_waits = milliseconds{std::stoll(note(pod, "init-waits-ms", "0"))};
  }
  const bool slow = now_ < slow_until_;
  program.starts_at =
      now_ +
      milliseconds{100 + static_cast<std::int64_t>(prng_.below(kStartMillisMax))} * (slow ? 10 : 1);
  if (slow) ++tally_.faults["kubelet slow"];
  const bool finished =
      pod.status.phase == kube::PodPhase::kSucceeded || pod.status.phase == kube::PodPhase::kFailed;
  if (finished) {
    // Kubelet keeps the status that it found, and reports it again if the server forgets it.
    program.over = true;
    program.reported = encode(pod)["status"].dump();
    // Started before this kubelet, and not running now: the machine has failed in between.
  } else if (pod.status.phase == kube::PodPhase::kRunning || had_started_.contains(program.uid)) {
    program.started_wall = machine_.clock.wall();  // lost with the machine; kubelet says so
    finish(program, 137, "ContainerStatusUnknown", EndedBy::kMachine);
  } else if (refuse_ > 0 && !pod.metadata.deletion_timestamp) {
    --refuse_;
    ++tally_.faults["pod refused by kubelet"];
    observer_.program_refused(program);
    program.over = true;
    program.report = R"({"phase":"Failed","reason":"OutOfcpu","message":"no room"})";
    program.report_at = now_;
  } else {
    machine_.kernel.make(program.uid);
    if (now_ >= volumes_come_at_) return;
    ++tally_.faults["pod in ContainerCreating"];
    const bool never = note(pod, "start-timeout", "no") == "yes";
    program.starts_at = never ? kNoTime : std::max(program.starts_at, volumes_come_at_);
    program.report =
        json{{"phase", "Pending"},
             {"containerStatuses", container("waiting", {{"reason", "ContainerCreating"}})}}
            .dump();
    program.report_at = now_;
  }
}

// Starts a program, or ends it by SIGTERM, SIGKILL or the end of its work, whichever is due.
void Kubelet::advance(Program& program) {
  if (program.over) return;
  if (!program.running && !program.in_init) {
    if (now_ < program.starts_at) return;
    // A container cannot be started in a frozen pod: the runtime waits.
    if (may_act(program)) {
      const bool has_init = program.init > base::Duration{0};
      has_init && !program.init_is_done ? start_init(program) : start(program);
    } else {
      program.starts_at = now_ + kReportRetry;
    }
    return;
  }
  if (program.running) start_debugs(program);
  if (now_ >= deadline_of(program)) return end_at_deadline(program);
  if (program.terminated_at) {
    const bool handled = now_ >= *program.terminated_at + kHandlesSigterm && may_act(program);
    if (handled || now_ >= *program.terminated_at + program.grace) {
      if (program.in_init) end_init(program);
      finish(program, 143, "Error", EndedBy::kRequest);
      program.remove_object = true;
      return;
    }
  }
  if (program.in_init) {
    if (init_is_over(program)) {
      end_init(program);
      start(program);
    } else if (now_ >= program.looks_at) {
      program.looks_at = now_ + kLooksForPeer;
    }
  } else if (machine_.kernel.worked(program.uid) >= program.work) {
    finish(program, program.exit_code, program.exit_code == 0 ? "Completed" : "Error",
           EndedBy::kItself);
  }
}

// Returns when kubelet ends the pod for its deadline, which counts from the pod's startTime.
Time Kubelet::deadline_of(const Program& program) const {
  const bool may_end = program.running && program.lasts_at_most && !program.terminated_at;
  return may_end ? program.started_at + *program.lasts_at_most : kNoTime;
}

// A frozen program is killed when its grace is over, without having heard of it: here at once.
// SOURCE: kubernetes pkg/kubelet/active_deadline.go.
void Kubelet::end_at_deadline(Program& program) {
  ++tally_.faults["deadline of a pod reached"];
  finish(program, 137, "Error", EndedBy::kSignal);
  json status = json::parse(program.report);
  status["reason"] = "DeadlineExceeded";
  status["message"] = "Pod was active on the node longer than the specified deadline";
  program.report = status.dump();
}

// The init container's work is not the program's, which must work that much longer.
void Kubelet::start_init(Program& program) {
  program.in_init = true;
  machine_.kernel.start(program.uid);
  program.report =
      json{{"phase", "Pending"},
           {"initContainerStatuses", container("running", json::object(), "init")},
           {"containerStatuses", container("waiting", {{"reason", "PodInitializing"}})}}
          .dump();
  program.report_at = now_;
}

// Returns true if it has done its work and, if it waits for a peer, that one has.
bool Kubelet::init_is_over(Program& program) {
  return program.init_ends && may_act(program) &&
         machine_.kernel.worked(program.uid) >= program.init &&
         (program.init_waits == base::Duration{0} || peers_worked_(program) >= program.init_waits);
}

void Kubelet::end_init(Program& program) {
  program.in_init = false;
  program.init_is_done = true;
  program.work += machine_.kernel.worked(program.uid);
  machine_.kernel.stop(program.uid);
}

void Kubelet::add_debug(const std::string& uid, bool starts) {
  const Time takes = milliseconds{static_cast<std::int64_t>(prng_.below(kDebugMillisMax))};
  Program& program = programs_.at(uid);
  program.debugs.push_back({.starts_at = starts ? now_ + takes : kNoTime});
  tell_of_debugs(program);
}

// No container can be started in a frozen pod.
void Kubelet::start_debugs(Program& program) {
  if (!may_act(program)) return;
  for (Debug& one : program.debugs) {
    if (one.started_wall || now_ < one.starts_at) continue;
    one.started_wall = machine_.clock.wall();
    tell_of_debugs(program);
  }
}

// Adds to what is reported of the pod how its debug containers are.
void Kubelet::tell_of_debugs(Program& program) {
  json statuses = json::array();
  for (std::size_t i = 0; i < program.debugs.size(); ++i) {
    const auto& at = program.debugs[i].started_wall;
    const std::string name = "debugger-" + std::to_string(i);
    const json one =
        at ? container("running", {{"startedAt", kube::format_time(*at)}}, name.c_str())
           : container("waiting", {{"reason", "ImagePullBackOff"}}, name.c_str());
    statuses.push_back(one.front());
  }
  json status = json::parse(program.report.empty() ? program.reported : program.report);
  status["ephemeralContainerStatuses"] = statuses;
  program.report = status.dump();
  program.report_at = now_;
}

// Pods report the start by the machine's own clock, which may be wrong.
void Kubelet::start(Program& program) {
  program.running = true;
  program.started_at = now_;
  program.started_wall = machine_.clock.wall();
  had_started_.insert(program.uid);
  machine_.kernel.start(program.uid);
  const std::string at = kube::format_time(*program.started_wall);
  program.report = json{{"phase", "Running"},
                        {"startTime", at},
                        {"initContainerStatuses", init_statuses(program)},
                        {"containerStatuses", container("running", {{"startedAt", at}})}}
                       .dump();
  program.report_at = now_;
  observer_.program_started(program);
}

// Ends a program and notes what is to be reported. The ledger counts a success only if the work is
// done: a program that got SIGTERM may exit with 0 without having done it.
void Kubelet::finish(Program& program, int exit_code, const std::string& reason, EndedBy by) {
  const bool ran = program.running;
  machine_.kernel.stop(program.uid);
  program.running = false;
  program.over = true;
  json ended{{"exitCode", exit_code},
             {"reason", reason},
             {"finishedAt", kube::format_time(machine_.clock.wall())}};
  if (program.started_wall) ended["startedAt"] = kube::format_time(*program.started_wall);
  // One that ends in its init container has no main one.
  json status{{"phase", exit_code == 0 ? "Succeeded" : "Failed"},
              {"initContainerStatuses", init_statuses(program)}};
  status["containerStatuses"] = program.started_wall
                                    ? container("terminated", ended)
                                    : container("waiting", {{"reason", "PodInitializing"}});
  if (!program.started_wall)
    status["initContainerStatuses"] = container("terminated", ended, "init");
  program.report = status.dump();
  program.report_at = now_;
  if (ran) observer_.program_ended(program, by);
}

// Writes what is due and tries again until it is written: first the status, then the removal.
void Kubelet::report(Program& program) {
  if (now_ < program.report_at) return;
  const kube::ObjectKey key{program.ns, program.name};
  // A conflict may be a passing one; if the pod is another by now, the watch shows it.
  const auto is_gone = [](const base::Error& error) { return error.code == base::Code::kNotFound; };
  if (!program.report.empty()) {
    const auto done = client_.patch_status<kube::Pod>(
        key, {{"status", json::parse(program.report)}}, {.uid = program.uid});
    if (!done.ok() && !is_gone(done.error())) {
      program.report_at = now_ + kReportRetry;
      return;
    }
    program.reported = std::exchange(program.report, "");
  }
  if (!program.remove_object) return;
  const base::Status removed =
      client_.remove<kube::Pod>(key, {.uid = program.uid, .grace_period = seconds{0}});
  program.report_at = now_ + kReportRetry;
  if (!removed.ok() && !is_gone(removed.error())) return;
  // The watch tells that it is gone, or that it was not.
  program.report_at = now_ + seconds{5};
}

}  // namespace simulation
