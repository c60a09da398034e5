#include "node-agent/reporting/node_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/timex.h>

#include <filesystem>
#include <fstream>

#include "node-agent/reporting/topology.h"
#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr base::Instant kNow{seconds{1'767'225'600}};

// Returns a report of which nothing is wrong; each test spoils one field.
AgentReport good() {
  auto timetable = std::make_shared<kube::NodeTimetable>();
  timetable->spec.term = 3;
  timetable->spec.revision = 17;
  timetable->spec.timetable.slice = seconds{30};
  return {.in_force = timetable,
          .clock = {.synchronised = true, .error_max = milliseconds{1}},
          .topology = kube::NodeTopology{
              .sockets = 1, .cores_per_socket = 2, .threads_per_core = 1, .cpu_ids = "0-1"}};
}

// The operator reads from here which timetable the node obeys.
TEST(NodeStatus, SaysWhatIsInForce) {
  const kube::NodeTimetableStatus status = node_status({}, good(), kNow);
  EXPECT_EQ(status.observed_term, 3);
  EXPECT_EQ(status.observed_revision, 17);
  EXPECT_EQ(status.topology->cpu_ids, "0-1");
  EXPECT_EQ(status.clock_error_micros, 1000);
  EXPECT_TRUE(kube::is_true(status.conditions, "Ready"));
  EXPECT_TRUE(kube::is_true(status.conditions, "ClockSynchronized"));
}

// Thousands of nodes write to one API server, so a number that always moves does not justify one.
TEST(NodeStatus, IsWorthNoWriteWhenOnlyTheClocksErrorMoved) {
  const kube::NodeTimetableStatus before = node_status({}, good(), kNow);
  AgentReport report = good();
  report.clock.error_max = milliseconds{2};
  EXPECT_FALSE(worth_a_write(before, node_status(before, report, kNow + seconds{60})));
  report.clock.error_max = milliseconds{101};  // 100 ms, or slice / 20 if that is less
  const kube::NodeTimetableStatus after = node_status(before, report, kNow + seconds{60});
  EXPECT_TRUE(worth_a_write(before, after));
  EXPECT_EQ(kube::find_condition(after.conditions, "ClockSynchronized")->reason, "ErrorTooLarge");
}

// A twentieth of the slice, 100 ms at most. Nodes of one gang switch by their own clocks: an error
// of that size is the part of a slice in which two gangs overlap across nodes.
TEST(NodeStatus, TheClockMustBeBetterForShorterSlices) {
  EXPECT_EQ(clock_error_limit(seconds{30}), milliseconds{100});
  EXPECT_EQ(clock_error_limit(seconds{1}), milliseconds{50});
  EXPECT_EQ(clock_error_limit(milliseconds{100}), milliseconds{5});
}

// Five pods, one for each list and one that belongs in none: a pod that takes its turns. A refused
// pod counts as exempt: it takes no turns.
TEST(NodeStatus, NamesStuckExemptAndForeignPods) {
  AgentReport report = good();
  const auto pod = [](std::string name, PodStanding standing, std::optional<FreezeState> state) {
    return PodView{.name = std::move(name), .standing = standing, .state = state};
  };
  report.pods = {pod("ns/a", PodStanding::kControlled, FreezeState::kFrozen),
                 pod("ns/b", PodStanding::kControlled, FreezeState::kStuck),
                 pod("ns/c", PodStanding::kExempt, FreezeState::kThawed),
                 pod("ns/d", PodStanding::kRefused, std::nullopt),
                 pod("ns/e", PodStanding::kControlled, FreezeState::kForeign)};
  const kube::NodeTimetableStatus status = node_status({}, report, kNow);
  EXPECT_THAT(status.stuck, ElementsAre(kube::PodReference{"ns", "b"}));
  EXPECT_THAT(status.exempt,
              ElementsAre(kube::PodReference{"ns", "c"}, kube::PodReference{"ns", "d"}));
  EXPECT_THAT(status.foreign, ElementsAre(kube::PodReference{"ns", "e"}));
}

// Gangs would share the node unnoticed: it gets no more jobs that share it.
TEST(NodeStatus, IsNotReadyIfAPodCannotBeFrozenOrTheAgentHasStopped) {
  AgentReport report = good();
  report.pods = {PodView{.name = "ns/a",
                         .standing = PodStanding::kRefused,
                         .note = "CRI-O keeps its monitor in it",
                         .never_frozen = true}};
  const kube::Condition ready = ready_condition(report);
  EXPECT_EQ(ready.status, kube::ConditionStatus::kFalse);
  EXPECT_EQ(ready.reason, "PodNeverFrozen");
  EXPECT_EQ(ready.message, "pod ns/a: CRI-O keeps its monitor in it");
  report.stopped = true;
  EXPECT_EQ(ready_condition(report).reason, "Stopped");
}

// The same for a pod whose cgroup is not where the agent looks.
TEST(NodeStatus, IsNotReadyIfAPodThatTakesTurnsHasNoCgroup) {
  AgentReport report = good();
  report.pods = {PodView{.name = "ns/a",
                         .standing = PodStanding::kSettling,
                         .note = "no cgroup below /sys/fs/cgroup"}};
  EXPECT_EQ(ready_condition(report).reason, "Obeying");
  report.pods[0].no_cgroup = true;
  const kube::Condition ready = ready_condition(report);
  EXPECT_EQ(ready.status, kube::ConditionStatus::kFalse);
  EXPECT_EQ(ready.reason, "CgroupNotFound");
  EXPECT_EQ(ready.message, "pod ns/a: no cgroup below /sys/fs/cgroup");
  EXPECT_THAT(node_status({}, report, kNow).exempt, ElementsAre(kube::PodReference{"ns", "a"}));
}

// Three reasons, from the best to the worst; the worst grant decides. Only a missing one makes the
// condition false.
TEST(NodeStatus, SaysWhatTheNodeGrants) {
  AgentReport report = good();
  // Without grants the node has not been checked yet, and the condition says nothing.
  EXPECT_EQ(kube::find_condition(node_status({}, report, kNow).conditions, "Granted"), nullptr);
  report.grants = {{.what = "freezer", .found = "writable"}};
  EXPECT_EQ(granted_condition(report).reason, "AllGranted");
  // The clock's text changes all the time, and the clock has a condition of its own.
  report.grants.push_back({.what = "clock", .grade = Grade::kWeak, .found = "not synchronized"});
  EXPECT_EQ(granted_condition(report).reason, "AllGranted");
  report.grants.push_back(
      {.what = "FIFO", .grade = Grade::kWeak, .found = "refused", .change = "agent.realtime"});
  report.grants.push_back({.what = "cpuset", .grade = Grade::kWeak, .found = "not there"});
  const kube::NodeTimetableStatus before = node_status({}, report, kNow);
  const kube::Condition* limited = kube::find_condition(before.conditions, "Granted");
  EXPECT_EQ(limited->reason, "Limited");
  EXPECT_EQ(limited->message, "FIFO: refused: agent.realtime. cpuset: not there");
  EXPECT_EQ(limited->status, kube::ConditionStatus::kTrue);
  EXPECT_FALSE(worth_a_write(before, node_status(before, report, kNow + seconds{60})));
  report.grants[0] = {.what = "freezer", .grade = Grade::kMissing, .found = "read-only"};
  EXPECT_EQ(granted_condition(report).reason, "Missing");
  EXPECT_EQ(granted_condition(report).status, kube::ConditionStatus::kFalse);
}

// Turns do not depend on CPU sets, so a set that cannot be applied must not take the node away from
// the gangs.
TEST(NodeStatus, SaysWhichPodIsNotBoundToItsCpusAndIsReadyAllTheSame) {
  AgentReport report = good();
  report.pods = {PodView{.name = "ns/a", .standing = PodStanding::kControlled}};
  report.cpu_notes = {{"ns/b", "its CPU set 9 is not there"}};
  const kube::Condition ready = ready_condition(report);
  EXPECT_EQ(ready.status, kube::ConditionStatus::kTrue);
  EXPECT_EQ(ready.reason, "CPUSetNotApplied");
  EXPECT_EQ(ready.message, "pod ns/b: its CPU set 9 is not there");
}

// From the narrowest reason to the widest: each one added hides those before. One reason is shown,
// and it must be the one that explains the others.
TEST(NodeStatus, IsNotReadyForEachReasonThatKeepsItFromSlicing) {
  const auto reason = [](const AgentReport& report) { return ready_condition(report).reason; };
  AgentReport report = good();
  report.pods = {PodView{.name = "ns/a",
                         .standing = PodStanding::kControlled,
                         .state = FreezeState::kStuck,
                         .note = "the kernel refuses",
                         .denied = true}};
  EXPECT_EQ(reason(report), "CgroupUnwritable");
  report.verdict = GateVerdict::kInvalid;
  report.timetable_complaint = "revision 18: cycle: empty";
  EXPECT_EQ(reason(report), "InvalidTimetable");
  EXPECT_THAT(ready_condition(report).message, HasSubstr("cycle: empty"));
  report.journal_error = "no space left on device";
  EXPECT_EQ(reason(report), "JournalUnwritable");
  report.failed_open = true;
  EXPECT_EQ(reason(report), "FailedOpen");
  report.kill_switch = true;
  EXPECT_EQ(reason(report), "KillSwitch");
  // Until a quorum read says whether a cache or the API server has gone back.
  report = good();
  report.verdict = GateVerdict::kStaleRevision;
  report.timetable_complaint = "revision 3 is older";
  EXPECT_EQ(reason(report), "StaleTimetable");
}

// CPUs may be taken offline and come back while the agent runs.
TEST(Topology, IsReadAgainWhenOtherCpusAreOnline) {
  const testing::TemporaryDirectory directory;
  TopologyWatch watch{directory.path()};
  EXPECT_EQ(watch.read(), std::nullopt);
  EXPECT_THAT(watch.error(), HasSubstr("cannot be read"));
  EXPECT_EQ(watch.online(), "");
  std::ofstream{directory.path() + "/online"} << "0-1\n";
  EXPECT_EQ(watch.read()->cpu_ids, "0-1");
  EXPECT_EQ(watch.error(), "");
  std::ofstream{directory.path() + "/online"} << "0-3\n";
  EXPECT_EQ(watch.read()->cpu_ids, "0-3");
  EXPECT_EQ(watch.read()->cores_per_socket, 4);
}

// A fake /sys tree. The list of CPUs has the threads of a core beside each other, in the order of
// cores, because the scheduler's cores are counted in that order.
TEST(Topology, CountsPackagesCoresAndThreads) {
  const testing::TemporaryDirectory directory;
  std::ofstream{directory.path() + "/online"} << "0-7\n";
  // Two packages of two cores with two threads each; cores are numbered per package.
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string topology = directory.path() + "/cpu" + std::to_string(cpu) + "/topology";
    std::filesystem::create_directories(topology);
    std::ofstream{topology + "/physical_package_id"} << (cpu / 2) % 2 << "\n";
    std::ofstream{topology + "/core_id"} << cpu % 2 << "\n";
  }
  EXPECT_EQ(*read_topology(directory.path()), (kube::NodeTopology{.sockets = 2,
                                                                  .cores_per_socket = 2,
                                                                  .threads_per_core = 2,
                                                                  .cpu_ids = "0,4,1,5,2,6,3,7"}));
  // CPU 7 is off: what is promised is there, and of the other cores their first thread alone.
  std::ofstream{directory.path() + "/online"} << "0-6\n";
  EXPECT_EQ(*read_topology(directory.path()),
            (kube::NodeTopology{
                .sockets = 2, .cores_per_socket = 2, .threads_per_core = 1, .cpu_ids = "0-3"}));
  // It is a matter of counting: the others go on working.
  TopologyWatch watch{directory.path()};
  EXPECT_EQ(watch.read()->cpu_ids, "0-3");
  EXPECT_EQ(watch.online(), "0-6");
  std::ofstream{directory.path() + "/online"} << "0-\n";
  EXPECT_THAT(read_topology(directory.path()).error().message, HasSubstr("\"0-\""));
  EXPECT_EQ(read_topology(directory.path() + "/none").error().code, base::Code::kNotFound);
}

// Against the machine's own clock, whatever its state is.
TEST(ClockCheck, SaysWhatTheKernelSays) {
  const ClockReading reading = read_clock_state();
  timex state{};
  const int condition = ::adjtimex(&state);
  ASSERT_GE(condition, 0);
  EXPECT_EQ(reading.synchronised,
            condition != TIME_ERROR && (static_cast<unsigned>(state.status) & STA_UNSYNC) == 0);
  // It grows by at most 500 us in a second, up to 16 s; and is made small when the clock is set.
  EXPECT_GT(reading.error_max, base::Duration{0});
  EXPECT_LE(reading.error_max, seconds{16});
}

}  // namespace
}  // namespace agent
