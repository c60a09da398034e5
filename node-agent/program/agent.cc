#include "node-agent/program/agent.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/log_fields.h"

namespace agent {
namespace {

// The state of the machine and the frozen times are read this often. Both cost a file read for each
// pod or CPU, and neither changes what is frozen.
constexpr base::Duration kMachineReadEvery = std::chrono::seconds{10};
constexpr base::Duration kFrozenReadEvery = std::chrono::seconds{10};
// A pod that writes to a slow disk freezes slowly in every slice.
constexpr base::Duration kSlowWarnEvery = std::chrono::minutes{1};  // of one pod

// Returns the state of a pod that the log shows: how it stands, and the freezer's state if that is
// news. Ordinary turns are not.
// So a pod of a gang that takes turns is "controlled" in the log from its first slice to its last.
std::string short_state(const PodView& pod) {
  std::string text{to_string(pod.standing)};
  if (pod.standing == PodStanding::kControlled && pod.state) {
    const FreezeState state = *pod.state;
    if (state == FreezeState::kStuck || state == FreezeState::kForeign ||
        state == FreezeState::kGone) {
      text = to_string(state);
    }
  }
  return text;
}

}  // namespace

Agent::Agent(AgentParts parts, const Journal& before)
    : parts_{std::move(parts)}, loop_{parts_.clock, parts_.watch, parts_.policy, before} {}

// Does the main thread's turn, in four parts, of which only the second decides. It makes no call to
// the API server, and waits for nothing but the journal's write.
base::Duration Agent::step() {
  // 1. Inputs: what the API server, the clocks and the machine say.
  loop_.read(stopping_);
  look_at_machine();
  // 2. The policy decides, and the switcher gets its work.
  const base::Duration next = loop_.decide(loop_.inputs());
  const Inputs& inputs = loop_.inputs();
  ready_ = inputs.pods_known && inputs.timetable_known && inputs.rules_known;
  // 3. Note what the switcher has done since.
  switches_seen_ = parts_.switcher.counters().switches.load();
  // The ring is emptied at every step: when it is full, the switcher drops reports rather than
  // wait.
  while (const std::optional<SwitchReport> report = parts_.switcher.take_report()) {
    parts_.metrics.record(*report);
    spdlog::debug("switched froze={} thawed={} late={} late_us={} took_us={}", report->froze_count,
                  report->thawed_count, report->late_count,
                  (report->first_write - report->due).count(),
                  (report->last_write - report->first_write).count());
  }
  // 4. Metrics, log and status.
  const base::Duration tell_again = tell();
  return std::max(std::min(next, tell_again) - parts_.clock.monotonic(), base::Duration{0});
}

// Reads what changes seldom: the state of the clock, the CPUs and what the node grants.
// The CPUs go to the policy, which binds pods only to those that are online; clock and grants are
// only told.
void Agent::look_at_machine() {
  const base::Duration now = loop_.inputs().monotonic;
  if (machine_read_at_ && now - *machine_read_at_ < kMachineReadEvery) return;
  machine_read_at_ = now;
  clock_reading_ = read_clock_state();
  topology_ = parts_.read_topology();
  grants_ = parts_.check_node(clock_reading_);
  loop_.set_cpu_ids(parts_.online_cpus());
}

// Both: the policy must have asked the switcher to let everything run, and the kernel must have
// confirmed it for every pod.
bool Agent::stopped() const {
  return stopping_ && parts_.policy.everything_runs() && parts_.policy.all_thawed();
}

// Tells people how things stand, at most every 100 ms, however fast the slices are: log, metrics,
// status. Returns when to step again for it (monotonic).
base::Duration Agent::tell() {
  constexpr base::Duration kTellEvery = std::chrono::milliseconds{100};
  const base::Duration now = loop_.inputs().monotonic;
  if (told_at_ && now - *told_at_ < kTellEvery) return *told_at_ + kTellEvery;
  told_at_ = now;
  AgentReport report = loop_.report();
  report.clock = clock_reading_;
  report.topology = topology_;
  report.grants = grants_;
  log_changes(report.pods);
  log_cpu_notes(report.cpu_notes);
  log_slow_freezes(report.pods);
  parts_.metrics.update(report, parts_.switcher.counters());
  count_frozen(report.pods);
  parts_.report(std::move(report));
  return base::Duration::max();
}

// Sums by gang what the kernel counts for each pod: a series for each pod would grow with every
// restart.
void Agent::count_frozen(const std::vector<PodView>& pods) {
  const base::Duration now = loop_.inputs().monotonic;
  if (counted_frozen_at_ && now - *counted_frozen_at_ < kFrozenReadEvery) return;
  counted_frozen_at_ = now;
  std::map<std::string, std::string> gangs;  // by UID of the pod
  for (const auto& [key, pod] : loop_.inputs().pods) {
    if (!pod.job_name.empty()) gangs[pod.uid] = key.ns + "/" + pod.job_name;
  }
  std::vector<FrozenPod> frozen;
  for (const PodView& pod : pods) {
    const auto gang = gangs.find(pod.uid);
    if (gang == gangs.end()) continue;
    FrozenPod& one = frozen.emplace_back(FrozenPod{.uid = pod.uid, .gang = gang->second});
    if (!pod.path.empty()) one.frozen = parts_.frozen_time(pod);
  }
  parts_.metrics.count_frozen(frozen);
}

// Warns of pods whose freeze took longer than kSlowFreeze. A pod that is stuck is not among them:
// its state shows it.
void Agent::log_slow_freezes(const std::vector<PodView>& pods) {
  const base::Duration now = loop_.inputs().monotonic;
  std::map<std::string, LoggedSlow> logged;
  for (const PodView& pod : pods) {
    if (pod.slow_freezes == 0) continue;
    LoggedSlow& one = logged[pod.uid] = logged_slow_[pod.uid];
    const bool may = !one.at || now - *one.at >= kSlowWarnEvery;
    if (pod.slow_freezes == one.count || !may) continue;
    spdlog::warn("pod={} froze slowly: took_ms={} slow_freezes={}", pod.name,
                 pod.slow_freeze.count() / 1000, pod.slow_freezes);
    one = {.count = pod.slow_freezes, .at = now};
  }
  logged_slow_ = std::move(logged);
}

// Logs differences only, once each: the timetable in force, a complaint about one, the journal,
// fail-open, the kill switch, steps of the clock, and the states of pods. A log line for each turn
// would be thousands a day of one pod.
void Agent::log_changes(const std::vector<PodView>& pods) {
  const Inputs& inputs = loop_.inputs();
  if (const auto timetable = parts_.policy.timetable(); timetable != logged_timetable_) {
    logged_timetable_ = timetable;
    if (timetable) {
      spdlog::info("obeying timetable node={} term={} revision={} pods={} slots={}", parts_.node,
                   timetable->spec.term, timetable->spec.revision, timetable->spec.pods.size(),
                   timetable->spec.timetable.cycle.size());
    } else {
      spdlog::info("no timetable node={}", parts_.node);
    }
  }
  if (const std::string& complaint = parts_.policy.timetable_complaint();
      complaint != logged_complaint_) {
    logged_complaint_ = complaint;
    if (!complaint.empty()) {
      spdlog::warn("timetable not obeyed node={} verdict={} reason={}", parts_.node,
                   to_string(parts_.policy.last_verdict()), base::log_value(complaint));
    }
  }
  if (const std::string& error = parts_.policy.journal_error(); error != logged_journal_error_) {
    logged_journal_error_ = error;
    if (!error.empty()) spdlog::error("cannot write the journal error={}", base::log_value(error));
  }
  if (inputs.failed_open != std::exchange(logged_failed_open_, inputs.failed_open)) {
    spdlog::warn("{} node={}",
                 inputs.failed_open ? "failed open: the operator's lease was not seen renewed"
                                    : "slicing again: the operator's lease was renewed",
                 parts_.node);
  }
  if (inputs.kill_switch != std::exchange(logged_kill_switch_, inputs.kill_switch)) {
    spdlog::warn("kill switch on={} node={}", inputs.kill_switch, parts_.node);
  }
  const std::uint64_t steps = parts_.switcher.counters().clock_steps.load();
  if (steps != std::exchange(logged_clock_steps_, steps)) {
    spdlog::warn("the wall clock stepped node={} steps={}", parts_.node, steps);
  }
  // The note is part of what is compared: a pod that is refused for another reason than before is
  // news.
  std::map<std::string, std::string> states;
  for (const PodView& pod : pods) {
    const std::string state = short_state(pod);
    states[pod.name] = state + pod.note;
    const auto before = logged_pods_.find(pod.name);
    if (before != logged_pods_.end() && before->second == states[pod.name]) continue;
    spdlog::info("pod={} state={} cgroup={} note={}", pod.name, state, base::log_value(pod.path),
                 base::log_value(pod.note));
  }
  for (const auto& [name, state] : logged_pods_) {
    if (!states.contains(name)) spdlog::info("pod={} state=unlisted", name);
  }
  logged_pods_ = std::move(states);
}

// The same for pods that run unbound: a note is logged once, until it changes.
void Agent::log_cpu_notes(const std::map<std::string, std::string>& notes) {
  if (notes == logged_cpu_notes_) return;
  for (const auto& [pod, note] : notes) {
    const auto before = logged_cpu_notes_.find(pod);
    if (before != logged_cpu_notes_.end() && before->second == note) continue;
    spdlog::warn("not bound to its CPUs: pod={} note={}", pod, base::log_value(note));
  }
  logged_cpu_notes_ = notes;
}

}  // namespace agent
