#include "node-agent/reporting/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// The series of gang a in Prometheus' text format, up to its value.
constexpr char kFrozenOfA[] = "kubegang_agent_pod_frozen_seconds_total{gang=\"default/a\"} ";

// 2 + 0.5 s, then one second more of pod 1. The kernel's number is a pod's total, so of each pod
// only what came since the last reading is added. A gang without pods here has no series.
TEST(Metrics, AddsUpWhatThePodsOfAGangStoodStill) {
  Metrics metrics;
  EXPECT_THAT(metrics.render(), Not(HasSubstr("pod_frozen_seconds_total{")));
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}},
                        {.uid = "2", .gang = "default/a", .frozen = milliseconds{500}},
                        {.uid = "3", .gang = "default/b", .frozen = seconds{9}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "2.5\n"));
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{3}},
                        {.uid = "2", .gang = "default/a", .frozen = milliseconds{500}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "3.5\n"));
}

// The counter of a gang must not fall when one of its pods ends, or a rate over it would show a
// restart. Gangs come by the thousands; series that were never forgotten would fill memory, here
// and in Prometheus.
TEST(Metrics, KeepsTheTimeOfAGangsPodThatEndedAndForgetsAGangThatIsNotListedAnyMore) {
  Metrics metrics;
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}},
                        {.uid = "2", .gang = "default/a", .frozen = seconds{1}}});
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "3\n"));
  metrics.count_frozen({});
  EXPECT_THAT(metrics.render(), Not(HasSubstr("gang=\"default/a\"")));
}

// 2 s are counted, and at the third reading only the 3 s that came since.
TEST(Metrics, CountsAPodThatCouldNotBeReadForAWhileOnlyOnce) {
  Metrics metrics;
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{2}}});
  metrics.count_frozen({{.uid = "1", .gang = "default/a"}});
  metrics.count_frozen({{.uid = "1", .gang = "default/a", .frozen = seconds{5}}});
  EXPECT_THAT(metrics.render(), HasSubstr(std::string{kFrozenOfA} + "5\n"));
}

// One series for each policy, of which one is 1, so that an alert can name the policy it wants.
TEST(Metrics, TellThePolicyOfTheSwitchersThread) {
  Metrics metrics;
  metrics.set_policy(ThreadPolicy::kCfs);
  EXPECT_THAT(metrics.render(), HasSubstr("kubegang_agent_switcher_policy{policy=\"cfs\"} 1\n"));
  EXPECT_THAT(metrics.render(), HasSubstr("kubegang_agent_switcher_policy{policy=\"fifo\"} 0\n"));
}

// A switch that an assignment caused has no instant at which it was due, so it must not count as
// late. The index of the boundary comes with it, so that the lateness of several nodes at the
// same boundary can be compared.
TEST(Metrics, TellHowLateTheSwitchesAtBoundariesWere) {
  Metrics metrics;
  // Lateness is counted at boundaries only; confirmations of freezes after any switch.
  SwitchReport report{.cause = SwitchCause::kBoundary, .froze_count = 1, .thawed_count = 1};
  report.last_write = report.due + milliseconds{3};
  report.slot = 58;
  metrics.record(report);
  report.slot = 59;
  report.cause = SwitchCause::kAssignment;  // was not due at a boundary
  metrics.record(report);
  const std::string text = metrics.render();
  EXPECT_THAT(text,
              HasSubstr("kubegang_agent_switch_lateness_seconds_count{phase=\"last_write\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("kubegang_agent_switch_lateness_seconds_sum{phase=\"last_write\"} 0.003\n"));
  // How long freezes take does not depend on what caused the switch.
  EXPECT_THAT(text, HasSubstr("kubegang_agent_freeze_confirm_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("kubegang_agent_boundary_index 58\n"));
  EXPECT_THAT(text, HasSubstr("kubegang_agent_boundary_last_write_seconds 0.003\n"));
}

// One pod for each state; each counter has a number of its own, so that two that are mixed up show.
// An update with the same numbers again must not raise a counter.
TEST(Metrics, TellWhatIsGoingOn) {
  Metrics metrics;
  SwitchCounters counters;
  counters.switches = 11;
  counters.boundaries_missed = 2;
  counters.stuck = 3;
  counters.overlap_micros = 4'500'000;
  counters.clock_steps = 5;
  counters.write_errors = 6;
  counters.repairs = 7;
  const auto pod = [](PodStanding standing, std::optional<FreezeState> state) {
    return PodView{.standing = standing, .state = state};
  };
  auto timetable = std::make_shared<kube::NodeTimetable>();
  timetable->spec.revision = 17;
  timetable->spec.term = 3;
  const AgentReport report{.pods = {pod(PodStanding::kControlled, FreezeState::kFrozen),
                                    pod(PodStanding::kControlled, FreezeState::kForeign),
                                    pod(PodStanding::kExempt, FreezeState::kThawed),
                                    pod(PodStanding::kSettling, std::nullopt),
                                    {.standing = PodStanding::kSettling, .no_cgroup = true}},
                           .in_force = timetable,
                           .ignored = {{GateVerdict::kStaleTerm, 8},
                                       {GateVerdict::kStaleRevision, 9},
                                       {GateVerdict::kInvalid, 10}},
                           .failed_open = true,
                           .clock = {.synchronised = true, .error_max = milliseconds{250}}};
  metrics.update(report, counters);
  metrics.update(report, counters);  // as often as one likes
  const std::string text = metrics.render();
  for (const char* sample : {"switch_total 11",
                             "missed_boundaries_total 2",
                             "stuck_total 3",
                             "overlap_seconds_total 4.5",
                             "clock_steps_total 5",
                             "write_errors_total 6",
                             "repairs_total 7",
                             "pods{state=\"frozen\"} 1",
                             "pods{state=\"foreign\"} 1",
                             "pods{state=\"exempt\"} 1",
                             "pods{state=\"settling\"} 1",
                             "pods{state=\"no-cgroup\"} 1",
                             "pods{state=\"thawed\"} 0",
                             "foreign_frozen 1",
                             "timetable_revision 17",
                             "timetable_term 3",
                             "clock_synchronised 1",
                             "clock_maxerror_seconds 0.25",
                             "timetable_ignored_total{reason=\"stale_term\"} 8",
                             "timetable_ignored_total{reason=\"stale_revision\"} 9",
                             "timetable_ignored_total{reason=\"invalid\"} 10",
                             "open{reason=\"lease\"} 1",
                             "open{reason=\"kill_switch\"} 0",
                             "failopen_total{reason=\"lease\"} 1",
                             "failopen_total{reason=\"kill_switch\"} 0"}) {
    EXPECT_THAT(text, HasSubstr("\nkubegang_agent_" + std::string{sample} + "\n"));
  }
}

}  // namespace
}  // namespace agent
