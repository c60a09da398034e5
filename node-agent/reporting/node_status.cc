#include "node-agent/reporting/node_status.h"

#include <utility>
#include <vector>

namespace agent {
namespace {

// The bound of each list of names in the status; its pods are counted in the metrics anyway.
constexpr std::size_t kNamesMax = 64;

// True is the good state of all three, so a user may look for False alone.
kube::Condition condition(std::string type, bool status, std::string reason, std::string message) {
  return {.type = std::move(type),
          .status = status ? kube::ConditionStatus::kTrue : kube::ConditionStatus::kFalse,
          .reason = std::move(reason),
          .message = std::move(message)};
}

// Returns the first kNamesMax of those that belong, in the report's order: a node in trouble must
// not make an object that is too large to be stored.
template <typename Predicate>
std::vector<kube::PodReference> references_to(const std::vector<PodView>& pods, Predicate belongs) {
  std::vector<kube::PodReference> references;
  for (const PodView& pod : pods) {
    if (!belongs(pod) || references.size() >= kNamesMax) continue;
    const auto slash = pod.name.find('/');  // of "namespace/name"
    references.push_back({.ns = pod.name.substr(0, slash), .name = pod.name.substr(slash + 1)});
  }
  return references;
}

}  // namespace

// Returns one condition with one reason: the first that holds, the widest in effect first. A
// fault that stops all freezing on the node comes before a fault of a single pod. A node whose
// Ready is False gets no new jobs from the operator, and users read the reason there. A second
// cause shows when the first is mended. CPUSetNotApplied is True: such a pod takes its turns all
// the same.
kube::Condition ready_condition(const AgentReport& report) {
  const std::string type = "Ready";
  if (report.stopped) {
    return condition(type, false, "Stopped",
                     "the agent was stopped: nothing is frozen here until it is back");
  }
  if (report.kill_switch) {
    return condition(type, false, "KillSwitch",
                     "kubegang.io/freeze is disabled on the Node: nothing is frozen here");
  }
  if (report.failed_open) {
    return condition(type, false, "FailedOpen",
                     "the operator's Lease was not seen renewed: nothing is frozen here");
  }
  if (!report.journal_error.empty()) {
    return condition(type, false, "JournalUnwritable", report.journal_error);
  }
  if (!report.undecodable.empty()) {
    return condition(type, false, "InvalidTimetable", report.undecodable);
  }
  if (report.verdict == GateVerdict::kInvalid && !report.timetable_complaint.empty()) {
    return condition(type, false, "InvalidTimetable", report.timetable_complaint);
  }
  if (is_stale(report.verdict) && !report.timetable_complaint.empty()) {
    return condition(type, false, "StaleTimetable", report.timetable_complaint);
  }
  for (const PodView& pod : report.pods) {
    if (!pod.denied) continue;
    return condition(type, false, "CgroupUnwritable", "pod " + pod.name + ": " + pod.note);
  }
  for (const PodView& pod : report.pods) {
    if (!pod.never_frozen) continue;
    return condition(type, false, "PodNeverFrozen", "pod " + pod.name + ": " + pod.note);
  }
  for (const PodView& pod : report.pods) {
    if (!pod.no_cgroup) continue;
    return condition(type, false, "CgroupNotFound", "pod " + pod.name + ": " + pod.note);
  }
  if (!report.cpu_notes.empty()) {
    const auto& [pod, why] = *report.cpu_notes.begin();
    return condition(type, true, "CPUSetNotApplied", "pod " + pod + ": " + why);
  }
  return condition(type, true, "Obeying", "");
}

// A node whose clock is off switches at another instant than the other nodes of a gang. How far it
// may be off depends on the slice.
// Without a timetable nothing is switched; the limit of an hour's slice then finds clocks that are
// far off all the same.
kube::Condition clock_condition(const AgentReport& report) {
  const std::string type = "ClockSynchronized";
  if (!report.clock.synchronised) {
    return condition(type, false, "NotSynchronized",
                     "the kernel says that nothing keeps this clock: run an NTP client");
  }
  const base::Duration slice = report.in_force ? report.in_force->spec.timetable.slice
                                               : base::Duration{std::chrono::hours{1}};
  const base::Duration limit = clock_error_limit(slice);
  if (report.clock.error_max > limit) {
    return condition(type, false, "ErrorTooLarge",
                     "the clock may be off by more than the " + std::to_string(limit.count()) +
                         " us that this slice length allows");
  }
  return condition(type, true, "Synchronized", "");
}

// True also if something is weak: switches are possible then. The message lists what is weak, with
// the change that would mend it.
kube::Condition granted_condition(const AgentReport& report) {
  std::string message;
  for (const Grant& grant : report.grants) {
    // The clock has a condition of its own.
    if (grant.grade == Grade::kGood || grant.what == "clock") continue;
    message += (message.empty() ? "" : ". ") + grant.what + ": " + grant.found;
    if (!grant.change.empty()) message += ": " + grant.change;
  }
  if (!can_switch(report.grants)) return condition("Granted", false, "Missing", message);
  return condition("Granted", true, message.empty() ? "AllGranted" : "Limited", message);
}

// 1. which timetable is in force, 2. the node and the pods that stand out, 3. the conditions.
// `before` is the status as it was written last; the rest is written again, and a condition that
// stays keeps its transition time.
kube::NodeTimetableStatus node_status(const kube::NodeTimetableStatus& before,
                                      const AgentReport& report, base::Instant now) {
  kube::NodeTimetableStatus status = before;
  // Without a timetable in force nothing is observed; values of an older one would say that the
  // operator's latest is obeyed.
  status.observed_term.reset();
  status.observed_revision.reset();
  status.observed_generation.reset();
  if (report.in_force) {
    status.observed_term = report.in_force->spec.term;
    status.observed_revision = report.in_force->spec.revision;
    status.observed_generation = report.in_force->metadata.generation;
  }
  // Absent if the machine could not be read: to the operator each CPU of the Node is a core then.
  status.topology = report.topology;
  status.stuck = references_to(report.pods,
                               [](const PodView& pod) { return pod.state == FreezeState::kStuck; });
  status.exempt = references_to(report.pods, [](const PodView& pod) {
    return pod.standing == PodStanding::kExempt || pod.standing == PodStanding::kRefused ||
           pod.no_cgroup;
  });
  status.foreign = references_to(
      report.pods, [](const PodView& pod) { return pod.state == FreezeState::kForeign; });
  status.clock_error_micros = report.clock.error_max.count();
  status.agent_version = KUBEGANG_VERSION;
  std::vector<kube::Condition> conditions = {ready_condition(report), clock_condition(report)};
  // The first report may come before the node was checked.
  if (!report.grants.empty()) conditions.push_back(granted_condition(report));
  for (kube::Condition& next : conditions) {
    next.observed_generation = status.observed_generation;
    kube::set_condition(status.conditions, std::move(next), now);
  }
  return status;
}

// The clock's error bound alone grows and shrinks all the time and is not worth a write by each
// node; it goes out with the next other change.
bool worth_a_write(const kube::NodeTimetableStatus& before,
                   const kube::NodeTimetableStatus& after) {
  kube::NodeTimetableStatus same = before;
  same.clock_error_micros = after.clock_error_micros;
  return same != after;
}

}  // namespace agent
