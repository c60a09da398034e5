#include "simulation/node_agent.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "node-agent/program/policy_loop.h"
#include "node-agent/reporting/agent_report.h"
#include "node-agent/survival/supervisor.h"
#include "node-agent/survival/worker_watch.h"

namespace simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How often the supervisor looks at the worker's heartbeat, how long a new worker takes to begin,
// and how often at most a report is offered to the writer of the status.
constexpr Time kSupervisorLooks = milliseconds{500};
constexpr Time kWorkerStarts = milliseconds{300};
constexpr Time kTellEvery = milliseconds{100};
constexpr Time kThawWithin = milliseconds{1700};  // of a stop (program/worker.cc)
constexpr Time kJournalLate = seconds{1};         // of the break

std::string read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream{path, std::ios::binary | std::ios::trunc} << text;
}

// Returns the timetable with the turns of its cycle one slot later.
std::shared_ptr<const kube::NodeTimetable> shifted(
    const std::shared_ptr<const kube::NodeTimetable>& table) {
  if (table == nullptr || table->spec.timetable.cycle.size() < 2) return table;
  kube::NodeTimetable later = *table;
  auto& cycle = later.spec.timetable.cycle;
  std::rotate(cycle.begin(), cycle.begin() + 1, cycle.end());
  return std::make_shared<const kube::NodeTimetable>(std::move(later));
}

}  // namespace

// Hands the newest assignment to the switcher's next step, as the thread gets it.
class NodeAgent::Sink final : public agent::AssignmentSink {
 public:
  explicit Sink(bool no_barrier) : no_barrier_{no_barrier} {}

  // Assignments stay alive until the worker ends: the switcher reads the newest one by pointer, as
  // the real thread does.
  void submit(agent::Assignment assignment) override {
    assignment.number = ++number_;
    if (no_barrier_) assignment.barrier = base::Duration{0};
    alive_.push_back(std::make_unique<const agent::Assignment>(std::move(assignment)));
    newest_ = alive_.back().get();
  }
  bool caught_up() const override { return newest_ == nullptr; }
  const agent::Assignment* take() { return std::exchange(newest_, nullptr); }

 private:
  const bool no_barrier_;
  const agent::Assignment* newest_ = nullptr;
  std::uint64_t number_ = 0;
  std::vector<std::unique_ptr<const agent::Assignment>> alive_;
};

// One process of the agent. The parts are those of program/worker.cc and program/agent.cc.
struct NodeAgent::Worker {
  Worker(NodeAgent& agent, std::uint64_t seed)
      : watch{agent.client_,
              agent.machine_.clock,
              {.node = agent.machine_.name, .lease = operator_lease(), .seed = seed},
              [this] { news = true; }},
        core{agent.machine_.clock, reports, counters},
        sink{agent.breaks_.is(Break::kNoBarrier)},
        policy{agent.machine_.name, agent::JournalFile{agent.journal_path_}, agent.boot_id(),
               agent.machine_.kernel, sink},
        status{agent.client_, agent.machine_.clock, watch, waker} {}

  struct Timer {
    agent::NodeWatch::NamedStep step;
    Time at;
  };

  bool news = true;
  agent::ReportRing reports;
  agent::SwitchCounters counters;
  kube::Waker waker;
  agent::NodeWatch watch;
  agent::SwitchCore core;
  Sink sink;
  agent::NodePolicy policy;
  agent::StatusWriter status;
  std::optional<agent::PolicyLoop> loop;  // once the journal is inherited
  std::vector<Timer> timers;              // "confirm" and "lease"
  Time policy_at{0};
  Time status_at = kNoTime;
  Time told_at{0};
  bool confirming = false;  // the timetable is asked for, as the waker says
  bool stopping = false;
};

NodeAgent::NodeAgent(Machine& machine, devcluster::ApiServer& server, const Time& now,
                     const Breaks& breaks, Tally& tally, std::string journal, std::uint64_t seed)
    : machine_{machine},
      now_{now},
      breaks_{breaks},
      tally_{tally},
      journal_path_{std::move(journal)},
      prng_{seed},
      link_{server, now, breaks, tally, "agent-" + machine.name, seed + 1},
      client_{link_, machine.clock, sleeper_, client_options(2)} {
  (void)std::remove(journal_path_.c_str());
}

NodeAgent::~NodeAgent() {
  end_worker();
  (void)std::remove(journal_path_.c_str());
}

// Inherits the journal, then begins to watch, with the policy due at once, as program/agent.cc
// does.
void NodeAgent::start_worker() {
  starts_at_ = kNoTime;
  thaws_at_ = kNoTime;
  if (!std::exchange(supervisor_, true)) alive_since_ = now_;
  worker_since_ = now_;
  worker_ = std::make_unique<Worker>(*this, prng_.next());
  const agent::NodePolicy::Inherited before = worker_->policy.inherit();
  has_journal_ = before.found && before.damage.empty();
  worker_->loop.emplace(machine_.clock, worker_->watch, worker_->policy, before.journal);
  // Informers run when something has come for them, the other two steps when it is time.
  for (agent::NodeWatch::NamedStep& step : worker_->watch.steps()) {
    if (step.name == "lease" || step.name == "confirm") {
      worker_->timers.push_back({std::move(step), now_});
    } else {
      link_.add_feed([run = std::move(step.step)] { return run({}); });
    }
  }
  worker_->policy_at = now_;
}

// Leaves nothing of the process but the journal on disk, and what the kernel keeps: frozen cgroups.
void NodeAgent::end_worker() {
  if (!worker_) return;
  link_.drop_feeds();
  worker_.reset();
  hung_since_ = kNoTime;
  stopping_back_at_.reset();
}

// The supervisor goes on. It thaws what the journal names, and starts another worker.
void NodeAgent::kill_worker() {
  if (!worker_) return;
  end_worker();
  ++tally_.faults["agent's worker killed"];
  // SIGCHLD wakes the supervisor.
  thaws_at_ = now_ + milliseconds{static_cast<std::int64_t>(prng_.below(20))};
  starts_at_ = thaws_at_ + kWorkerStarts;
}

// Makes the worker do nothing and hold everything; its supervisor notices after kHangAfter.
void NodeAgent::hang_worker() {
  if (!worker_ || hung_since_ != kNoTime) return;
  ++tally_.faults["agent's worker hung"];
  // Without a CPU its heart has not beaten for longer.
  hung_since_ = now_ < no_cpu_until_ ? no_cpu_since_ : now_;
}

void NodeAgent::lose_cpu(Time until) {
  if (now_ >= no_cpu_until_) no_cpu_since_ = now_;
  no_cpu_until_ = until;
}

// Kills the supervisor too: nothing thaws until kubelet has started the container again.
void NodeAgent::kill_all(Time back_at) {
  if (!machine_.is_on) return;
  end_worker();
  supervisor_ = false;
  thaws_at_ = kNoTime;
  starts_at_ = back_at;
  ++tally_.faults["agent's container killed"];
}

// The worst point for a crash: the pod is frozen, and only what was written before can tell the
// next process so.
void NodeAgent::kill_at_first_freeze(bool supervisor_too, Time back_after) {
  armed_ = {supervisor_too, back_after, machine_.kernel.first_freezes()};
}

// Carries out what kill_at_first_freeze() has asked for, when it is time.
bool NodeAgent::dies_at_freeze() {
  if (!armed_ || machine_.kernel.first_freezes() == armed_->freezes) return false;
  const Armed armed = *std::exchange(armed_, std::nullopt);
  ++tally_.faults["agent killed at a freeze"];
  armed.supervisor_too ? kill_all(now_ + armed.back_after) : kill_worker();
  died_at_freeze_ = armed.supervisor_too ? armed.back_after : Time{0};
  return true;
}

// SIGTERM: the worker thaws all pods before it ends.
void NodeAgent::stop(Time back_at) {
  if (!worker_ || hung_since_ != kNoTime) return;
  worker_->stopping = true;
  worker_->policy_at = now_;
  stopping_back_at_ = back_at;
  ++tally_.faults["agent stopped"];
}

// The run directory is on tmpfs: the journal is gone with the machine, and so are all cgroups.
void NodeAgent::power_off() {
  end_worker();
  supervisor_ = false;
  thaws_at_ = starts_at_ = kNoTime;
  (void)std::remove(journal_path_.c_str());
}

// A file that was cut off anywhere, as after a write that was not finished.
void NodeAgent::tear_journal() {
  const std::string text = read_file(journal_path_);
  if (text.size() < 2) return;
  write_file(journal_path_, text.substr(0, 1 + prng_.below(text.size() - 1)));
  ++tally_.faults["journal torn"];
}

// Removes the file, while the machine and its cgroups go on.
void NodeAgent::lose_journal() {
  if (std::remove(journal_path_.c_str()) == 0) ++tally_.faults["journal lost"];
}

// Returns true if a worker is there and gets CPU time.
bool NodeAgent::is_working() const {
  return worker_ != nullptr && hung_since_ == kNoTime && now_ >= no_cpu_until_;
}

bool NodeAgent::failed_open() const {
  return worker_ != nullptr && worker_->loop->inputs().failed_open;
}

bool NodeAgent::knows_its_pods() const {
  return worker_ != nullptr && (has_journal_ || worker_->loop->inputs().pods_known);
}

bool NodeAgent::everything_runs() const {
  return worker_ != nullptr && worker_->policy.everything_runs();
}

base::Duration NodeAgent::overlap() const {
  if (worker_ == nullptr || breaks_.is(Break::kOverlapForgotten)) return {};
  return std::chrono::microseconds{worker_->counters.overlap_micros.load()};
}

std::shared_ptr<const kube::NodeTimetable> NodeAgent::obeyed() const {
  return worker_ == nullptr ? nullptr : worker_->policy.timetable();
}

// Returns when the agent has something to do. A worker that hangs is silent until its supervisor
// has noticed; one without a CPU, until it has one again.
Time NodeAgent::next() const {
  Time next = std::min({starts_at_, thaws_at_, journal_late_at_});
  if (!worker_) return next;
  if (hung_since_ != kNoTime) {
    return std::min(next, hung_since_ + agent::kHangAfter + kSupervisorLooks);
  }
  if (now_ < no_cpu_until_) return std::min(next, no_cpu_until_);
  next = std::min({next, link_.next_feed(), worker_->policy_at, worker_->status_at});
  if (worker_->news || !worker_->sink.caught_up()) return now_;
  if (breaks_.is(Break::kNeverRests)) return now_;
  for (const Worker::Timer& timer : worker_->timers) next = std::min(next, timer.at);
  const agent::SwitchWake wake = worker_->core.next_wake();
  if (wake.look) next = std::min(next, machine_.clock.when_monotonic(*wake.look));
  if (wake.boundary) next = std::min(next, machine_.clock.when_wall(*wake.boundary));
  return std::max(next, now_);
}

// The supervisor's last duty, without an API server: every pod that the journal names is thawed.
void NodeAgent::thaw_journaled() {
  thaws_at_ = kNoTime;
  const auto journal = agent::JournalFile{journal_path_}.read(boot_id());
  if (!journal) return;  // damaged: the next worker asks the API server
  for (const agent::PodIdentity& pod : journal->pods) machine_.kernel.thaw(pod.uid);
}

// 1. what is due without a worker: a late journal (a break), the supervisor's thaw, a start
// 2. a worker that hangs, or has no CPU, does nothing
// 3. its threads, one after the other: watches, timers, policy, switcher, status
// 4. a worker that is being stopped ends when everything runs, or when its time is over
void NodeAgent::step() {
  if (now_ >= journal_late_at_) {
    journal_late_at_ = kNoTime;
    write_file(journal_path_, *std::exchange(journal_late_, std::nullopt));
  }
  if (now_ >= thaws_at_) thaw_journaled();
  if (!worker_ && machine_.is_on && now_ >= starts_at_) start_worker();
  if (!worker_) return;
  if (hung_since_ != kNoTime) {
    // The supervisor looks at the heartbeat every 500 ms, so it may see a hang that much later than
    // kHangAfter.
    if (now_ >= hung_since_ + agent::kHangAfter + kSupervisorLooks) {
      end_worker();
      thaw_journaled();
      starts_at_ = now_ + kWorkerStarts;
    }
    return;
  }
  if (now_ < no_cpu_until_) return;
  link_.run_feeds();
  run_timers();
  if (std::exchange(worker_->news, false) || now_ >= worker_->policy_at) step_policy();
  step_switch();
  if (dies_at_freeze()) return;
  if (worker_->status_at <= now_) {
    const base::Duration wait = worker_->status.step();
    worker_->status_at = now_ + std::max<base::Duration>(wait, milliseconds{1});
  }
  if (!stopping_back_at_) return;
  // The worker ends when everything runs, and at the latest kThawWithin before its successor
  // starts.
  const bool done = worker_->policy.everything_runs() && worker_->policy.all_thawed();
  if (done || now_ >= *stopping_back_at_ - kThawWithin) {
    // The last step writes the journal that names no pod, as the worker does.
    if (done) step_policy();
    const Time back_at = *stopping_back_at_;
    end_worker();
    supervisor_ = false;
    starts_at_ = back_at;
  } else {
    worker_->policy_at = std::min(worker_->policy_at, now_ + milliseconds{5});
  }
}

// The steps of NodeWatch that are not informers: reading the Lease, and the quorum read. Each says
// when it is due again.
void NodeAgent::run_timers() {
  for (Worker::Timer& timer : worker_->timers) {
    if (now_ < timer.at) continue;
    timer.at = now_ + std::max<base::Duration>(timer.step.step({}), milliseconds{1});
  }
}

// Does what Agent::step does, without the log and the metrics: read what has come, decide, set the
// timers, offer a report. Rules that are broken on purpose change its inputs or delay its journal.
void NodeAgent::step_policy() {
  Worker& w = *worker_;
  agent::PolicyLoop& loop = *w.loop;
  const base::Duration open_before = loop.inputs().settings.fail_open_after;
  loop.read(w.stopping);
  // The interval at which the Lease is read follows from failOpenAfter. A shorter one must not wait
  // for the end of an interval that was computed from the longer one.
  if (open_before != loop.inputs().settings.fail_open_after) {
    for (Worker::Timer& timer : w.timers) {  // as its waker does
      if (timer.step.name == "lease") timer.at = now_;
    }
  }
  loop.set_cpu_ids("0-7");
  agent::Inputs told = loop.inputs();
  break_inputs(told);
  // The policy writes the journal before it lets the switcher freeze. For the break the new text is
  // put back to the old one and written a second later: a crash in between leaves a frozen pod that
  // no journal names.
  const bool late = breaks_.is(Break::kJournalAfterFreeze);
  const std::string before = late ? read_file(journal_path_) : "";
  const base::Duration next = loop.decide(told);
  if (late && machine_.is_on) {
    const std::string after = read_file(journal_path_);
    if (after != before) {
      journal_late_ = after;
      journal_late_at_ = now_ + kJournalLate;
      write_file(journal_path_, before);
    }
  }
  // The real agent has a waker that ends the wait of its "confirm" step. Here the step's timer is
  // set: at once when the policy begins to need a quorum read, never while it needs none.
  const bool confirm = w.policy.needs_confirmation();
  for (Worker::Timer& timer : w.timers) {
    if (timer.step.name != "confirm") continue;
    if (!confirm) timer.at = kNoTime;
    if (confirm && !w.confirming) timer.at = now_;
  }
  w.confirming = confirm;
  w.policy_at = std::max(machine_.clock.when_monotonic(next), now_ + base::Duration{1});
  offer_report();
}

// Carries out the breaks that lie in the agent: the policy gets something else than what was read.
// The policy itself, which is real code, is not touched.
void NodeAgent::break_inputs(agent::Inputs& inputs) {
  if (breaks_.is(Break::kNeverFailsOpen)) inputs.failed_open = false;
  if (breaks_.is(Break::kStaleObeyed)) inputs.confirmed = inputs.timetable;
  if (breaks_.is(Break::kNeverConfirmed)) inputs.confirmed.reset();
  if (breaks_.is(Break::kTurnsShifted) && machine_.name == "n1") {
    inputs.timetable = shifted(inputs.timetable);
    inputs.confirmed = shifted(inputs.confirmed);
  }
  for (auto& [key, facts] : inputs.pods) {
    if (breaks_.is(Break::kFrozenUnsettled)) facts.settled_at = base::Instant{};
    if (breaks_.is(Break::kDeletedStaysFrozen)) facts.ending_within.reset();
    if (breaks_.is(Break::kDebugExempts) && facts.starting_count > 0) exempt_.insert(facts.uid);
    const bool is_endless = breaks_.is(Break::kDebugEndless) && facts.starting_count > 0;
    if (is_endless || exempt_.contains(facts.uid)) facts.settled_at.reset();
    // One that has settled is settled for good, but for containers that have yet to start.
    if (exempt_.contains(facts.uid)) facts.starting_count = 1;
  }
}

// Hands the agent's report to the writer of its status, which decides whether it differs enough to
// be written; not more often than kTellEvery.
void NodeAgent::offer_report() {
  Worker& w = *worker_;
  agent::AgentReport report = w.loop->report();
  report.clock = {.synchronised = true, .error_max = base::Duration{1}};
  report.topology = topology();
  w.status.offer(std::move(report));
  w.status_at = std::min(w.status_at, std::max(now_, w.told_at + kTellEvery));
  w.told_at = std::max(now_, w.told_at);
}

// Eight cores in one socket, as World::create_node_object() says.
std::optional<kube::NodeTopology> NodeAgent::topology() const {
  return kube::NodeTopology{
      .sockets = 1, .cores_per_socket = 8, .threads_per_core = 1, .cpu_ids = "0-7"};
}

// Does as the switcher's thread: take the newest assignment, do what is due, report changes to the
// policy.
void NodeAgent::step_switch() {
  Worker& w = *worker_;
  if (const agent::Assignment* newest = w.sink.take()) w.core.obey(*newest);
  w.core.step();
  if (w.core.take_changed()) w.news = true;
  while (w.reports.pop()) {
  }
}

}  // namespace simulation
