#include "node-agent/reporting/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace agent {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

// The state of a pod that has settled and has no cgroup; by its standing it settles.
constexpr std::string_view kNoCgroup = "no-cgroup";
// 10 us to 1 s in steps of 1, 2, 5; a switch that is later still counts in +Inf.
// With SCHED_FIFO a switch is some tenths of a millisecond late, without it some milliseconds on a
// busy node (freezer.md 2.2 and 2.4): both lie well within.
const prometheus::Histogram::BucketBoundaries kLateness = {
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1.0};

double seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Raises a counter to a value that is kept elsewhere. Never lowers it: a restart of the worker
// begins at 0 anyway.
void raise_to(prometheus::Counter& counter, double value) {
  const double missing = value - counter.Value();
  if (missing > 0) counter.Increment(missing);
}

// Relaxed: each counter counts for itself, and a value that is a step old is as good.
double as_double(const std::atomic<std::uint64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

}  // namespace

// The families in the order in which they are served. Names and labels are documented for users,
// and dashboards rely on them.
// Members refer into the registry, which therefore comes first and goes last.
struct Metrics::Families {
  prometheus::Registry registry;

  // These three make a family of a single series, which most of them are.
  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               const prometheus::Labels& labels = {}) {
    return BuildCounter().Name("kubegang_agent_" + name).Help(help).Register(registry).Add(labels);
  }
  prometheus::Gauge& gauge(const std::string& name, const std::string& help,
                           const prometheus::Labels& labels = {}) {
    return BuildGauge().Name("kubegang_agent_" + name).Help(help).Register(registry).Add(labels);
  }
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const prometheus::Labels& labels = {}) {
    return BuildHistogram()
        .Name("kubegang_agent_" + name)
        .Help(help)
        .Register(registry)
        .Add(labels, kLateness);
  }

  prometheus::Counter& switches = counter("switch_total", "Switches made.");
  prometheus::Family<prometheus::Histogram>& lateness =
      BuildHistogram()
          .Name("kubegang_agent_switch_lateness_seconds")
          .Help("From the boundary to waking up, to the first and to the last write.")
          .Register(registry);
  prometheus::Histogram& late_wake = lateness.Add({{"phase", "wake"}}, kLateness);
  prometheus::Histogram& late_first = lateness.Add({{"phase", "first_write"}}, kLateness);
  prometheus::Histogram& late_last = lateness.Add({{"phase", "last_write"}}, kLateness);
  prometheus::Histogram& confirm =
      histogram("freeze_confirm_seconds", "From the first freeze to seeing all of them frozen.");
  prometheus::Family<prometheus::Gauge>& pods = BuildGauge()
                                                    .Name("kubegang_agent_pods")
                                                    .Help("Listed pods by their state.")
                                                    .Register(registry);
  prometheus::Counter& stuck =
      counter("stuck_total", "Freezes that the kernel had not finished after 2 s.");
  prometheus::Counter& overlap =
      counter("overlap_seconds_total", "Time that a late pod ran on beside those that were on.");
  prometheus::Gauge& foreign =
      gauge("foreign_frozen", "Listed pods that another program has frozen.");
  prometheus::Counter& missed =
      counter("missed_boundaries_total", "Boundaries noticed later than half a slice.");
  prometheus::Counter& steps = counter("clock_steps_total", "Steps of the wall clock.");
  prometheus::Counter& errors =
      counter("write_errors_total", "Writes to freeze files that failed, gone cgroups included.");
  prometheus::Counter& repairs =
      counter("repairs_total", "Pods that another program had thawed and that were frozen again.");
  prometheus::Gauge& clock_error =
      gauge("clock_maxerror_seconds", "The kernel's bound of the wall clock's error.");
  prometheus::Gauge& clock_ok =
      gauge("clock_synchronised", "1 when something keeps the wall clock.");
  prometheus::Gauge& revision = gauge("timetable_revision", "Revision of the timetable in force.");
  prometheus::Gauge& term = gauge("timetable_term", "Term of the timetable in force.");
  prometheus::Family<prometheus::Counter>& ignored =
      BuildCounter()
          .Name("kubegang_agent_timetable_ignored_total")
          .Help("Timetables that were not obeyed, by reason.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& policy =
      BuildGauge()
          .Name("kubegang_agent_switcher_policy")
          .Help("1 for the scheduling policy that the switcher's thread got.")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& open =
      BuildGauge()
          .Name("kubegang_agent_open")
          .Help("1 while everything runs instead of taking turns, by reason.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& failopen =
      BuildCounter()
          .Name("kubegang_agent_failopen_total")
          .Help("Times that slicing was given up, by reason.")
          .Register(registry);
  prometheus::Gauge& boundary_index =
      gauge("boundary_index", "Slot number that began with the last switch.");
  prometheus::Gauge& boundary_offset =
      gauge("boundary_last_write_seconds", "From that boundary to the last write.");

  prometheus::Family<prometheus::Counter>& frozen =
      BuildCounter()
          .Name("kubegang_agent_pod_frozen_seconds_total")
          .Help("Time that the gang's pods stood still on this node, as the kernel counts it.")
          .Register(registry);

  std::map<std::string_view, prometheus::Gauge*> pods_by_state;
  // Values of the last update() and count_frozen(): counters grow by the difference.
  std::map<std::string, prometheus::Counter*> frozen_of_gangs;
  std::map<std::string, base::Duration> frozen_of_pods;  // by UID, as last counted
  bool was_failed_open = false;
  bool was_killed = false;
};

Metrics::Metrics() : families_{std::make_unique<Families>()} {
  constexpr std::array kStates = {
      std::string_view{"waited-for"}, std::string_view{"settling"}, std::string_view{"thawed"},
      std::string_view{"freezing"},   std::string_view{"frozen"},   std::string_view{"stuck"},
      std::string_view{"thawing"},    std::string_view{"foreign"},  std::string_view{"gone"},
      std::string_view{"exempt"},     std::string_view{"refused"},  kNoCgroup};
  // All label values exist from the start: a rate or an alert on a series that appears with its
  // first event would miss that event.
  for (const std::string_view state : kStates) {
    families_->pods_by_state[state] = &families_->pods.Add({{"state", std::string{state}}});
  }
  for (const char* reason : {"stale_term", "stale_revision", "invalid"}) {
    families_->ignored.Add({{"reason", reason}});
  }
  for (const char* reason : {"lease", "kill_switch"}) {
    families_->open.Add({{"reason", reason}});
    families_->failopen.Add({{"reason", reason}});
  }
  for (const ThreadPolicy policy : {ThreadPolicy::kFifo, ThreadPolicy::kCfs}) {
    families_->policy.Add({{"policy", std::string{to_string(policy)}}});
  }
}

Metrics::~Metrics() = default;

// Called once, when the switcher's thread has asked for its policy; the other series stays 0.
void Metrics::set_policy(ThreadPolicy policy) {
  families_->policy.Add({{"policy", std::string{to_string(policy)}}}).Set(1);
}

// Records a switch that the switcher's thread reports; a report that did not fit into its ring is
// missing here, but not in the counters.
// The phases of one switch, in their order: due, woke, first write, all frozen (confirmed), last
// write. Between the first and the last write some CPUs of the node idle.
void Metrics::record(const SwitchReport& report) {
  Families& to = *families_;
  // Without pods that come on the freezes were not read back (switch_core.cc), and `confirmed` says
  // nothing.
  if (report.froze_count > 0 && report.thawed_count > 0) {
    to.confirm.Observe(seconds(report.confirmed - report.first_write));
  }
  // A switch for a new assignment or a repair has no instant at which it was due, so it says
  // nothing about lateness.
  if (report.cause != SwitchCause::kBoundary) return;
  to.late_wake.Observe(seconds(std::max(report.woke - report.due, base::Duration{0})));
  to.late_first.Observe(seconds(report.first_write - report.due));
  to.late_last.Observe(seconds(report.last_write - report.due));
  to.boundary_index.Set(static_cast<double>(report.slot));
  to.boundary_offset.Set(seconds(report.last_write - report.due));
}

// Called with each step of the agent's loop, from its thread. Gauges say how it is now; counters
// are raised to what others have counted.
void Metrics::update(const AgentReport& report, const SwitchCounters& counters) {
  Families& to = *families_;
  // States that no pod has are 0, and so are those that operator[] adds here.
  std::map<std::string_view, double> by_state;
  for (const PodView& pod : report.pods) {
    const bool by_freezer = pod.standing == PodStanding::kControlled && pod.state.has_value();
    const std::string_view standing = pod.no_cgroup ? kNoCgroup : to_string(pod.standing);
    by_state[by_freezer ? to_string(*pod.state) : standing] += 1;
  }
  for (auto& [state, gauge] : to.pods_by_state) gauge->Set(by_state[state]);
  to.foreign.Set(by_state["foreign"]);
  // The switcher's counters are plain atomics, because its thread takes no lock; Prometheus'
  // counters can only be raised, so the difference is added.
  raise_to(to.switches, as_double(counters.switches));
  raise_to(to.stuck, as_double(counters.stuck));
  raise_to(to.overlap, as_double(counters.overlap_micros) * 1e-6);
  raise_to(to.missed, as_double(counters.boundaries_missed));
  raise_to(to.steps, as_double(counters.clock_steps));
  raise_to(to.errors, as_double(counters.write_errors));
  raise_to(to.repairs, as_double(counters.repairs));
  to.clock_error.Set(seconds(report.clock.error_max));
  to.clock_ok.Set(report.clock.synchronised ? 1 : 0);
  to.revision.Set(report.in_force ? static_cast<double>(report.in_force->spec.revision) : 0);
  to.term.Set(report.in_force ? static_cast<double>(report.in_force->spec.term) : 0);
  for (const auto& [verdict, count] : report.ignored) {
    raise_to(to.ignored.Add({{"reason", std::string{to_string(verdict)}}}),
             static_cast<double>(count));
  }
  to.open.Add({{"reason", "lease"}}).Set(report.failed_open ? 1 : 0);
  to.open.Add({{"reason", "kill_switch"}}).Set(report.kill_switch ? 1 : 0);
  // Counted at the edge: the report says how it is now, once per step.
  if (report.failed_open && !to.was_failed_open) to.failopen.Add({{"reason", "lease"}}).Increment();
  if (report.kill_switch && !to.was_killed) {
    to.failopen.Add({{"reason", "kill_switch"}}).Increment();
  }
  to.was_failed_open = report.failed_open;
  to.was_killed = report.kill_switch;
}

// 1. Each pod's gang gets what the kernel has counted since the last reading. 2. The readings are
//    kept for the next time. 3. Gangs of which no pod is listed lose their series.
// For example a gang of pods a and b of which the kernel counts 10 s and 20 s: the first reading
// raises its counter by 30 s. If the next one finds 15 s and cannot read b, it grows by 5 s; once b
// is read again, with 28 s, by 8 s.
void Metrics::count_frozen(const std::vector<FrozenPod>& pods) {
  Families& to = *families_;
  std::map<std::string, base::Duration> counted;
  std::set<std::string> listed;
  for (const FrozenPod& pod : pods) {
    const auto known = to.frozen_of_pods.find(pod.uid);
    const bool is_known = known != to.frozen_of_pods.end();
    if (!pod.frozen && !is_known) continue;
    prometheus::Counter*& counter = to.frozen_of_gangs[pod.gang];
    if (counter == nullptr) counter = &to.frozen.Add({{"gang", pod.gang}});
    listed.insert(pod.gang);
    // A pod that cannot be read keeps what was counted of it last: the kernel's count goes on, and
    // all of it would count once more at the next reading. That count begins at 0 with each cgroup,
    // so one that was made again may be below the last value; a counter never falls.
    const base::Duration before = is_known ? known->second : base::Duration{0};
    const base::Duration now = pod.frozen.value_or(before);
    if (now > before) counter->Increment(seconds(now - before));
    counted[pod.uid] = now;
  }
  to.frozen_of_pods = std::move(counted);
  std::erase_if(to.frozen_of_gangs, [&](const auto& entry) {
    if (listed.contains(entry.first)) return false;
    // A gang that has left the node keeps no series, or their number would grow with every job that
    // ever ran here.
    to.frozen.Remove(entry.second);
    return true;
  });
}

// In Prometheus' text format, for a scrape.
std::string Metrics::render() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace agent
