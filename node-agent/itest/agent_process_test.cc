// The real program against an in-memory API server over HTTPS, on real cgroups with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/prng.h"
#include "kube/api/pod.h"
#include "node-agent/itest/agent_process_fixture.h"
#include "node-agent/reporting/node_check.h"

namespace agent::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Rounds of random kills: 10, in `make check-long` 500.
int crash_rounds() {
  if (const char* wanted = std::getenv("KUBEGANG_CRASH_ROUNDS")) return std::atoi(wanted);
  return std::getenv("KUBEGANG_LONG") == nullptr ? 10 : 500;
}

class AgentProcessTest : public AgentProcessFixture {};

// Two pods of two gangs, of which one runs in the even slots and the other in the odd ones. The
// status is written once, and turns write nothing: with thousands of nodes each turn would be a
// write of each.
TEST_P(AgentProcessTest, LetsTwoGangsTakeTurnsAndReports) {
  two_gangs();
  const base::Instant begin = clock_.wall();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  for (int look = 0; look < 10; ++look) EXPECT_TRUE(takes_turns_soon(seconds{1}));
  ASSERT_TRUE(
      eventually([&] { return node_->timetable().status.observed_revision == 1; }, seconds{6}));
  const kube::NodeTimetableStatus status = node_->timetable().status;
  EXPECT_TRUE(kube::is_true(status.conditions, "Ready"));
  EXPECT_NE(kube::find_condition(status.conditions, "ClockSynchronized"), nullptr);
  EXPECT_TRUE(kube::is_true(status.conditions, "Granted"));
  EXPECT_GE(status.topology->sockets, 1);
  EXPECT_EQ(status.agent_version, KUBEGANG_VERSION);
  // The turns cost no API write. (The server logs one when it has answered, after the object has
  // changed.)
  ASSERT_TRUE(eventually([&] {
    const auto writes = node_->server().writes_since(begin);
    return std::any_of(writes.begin(), writes.end(), [](const auto& write) {
      return write.kind.resource == "nodetimetables" && write.kind.subresource == "status";
    });
  }));
  const base::Instant since = clock_.wall();
  std::this_thread::sleep_for(seconds{1});
  EXPECT_TRUE(node_->server().writes_since(since).empty());
}

// A page would be read from etcd. Sixty other pods are on the node, and the lists that the
// agent asks for are counted.
TEST_P(AgentProcessTest, ReadsThePodsOnceFromTheServersCache) {
  two_gangs();
  kube::Pod pod;
  pod.metadata.ns = "default";
  pod.spec.node_name = "n1";
  pod.spec.containers = {{.name = "main", .image = "none"}};
  for (int i = 0; i < 60; ++i) {
    pod.metadata.name = "other-" + std::to_string(i);
    ASSERT_TRUE(node_->client().create(pod).ok());
  }
  node_->server().clear_request_log();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  std::int64_t lists = 0;
  for (const auto& [kind, count] : node_->server().request_counts()) {
    if (kind.verb == "list" && kind.resource == "pods") lists += count;
  }
  // A list from the cache is not paged, and etcd is not read for it.
  EXPECT_EQ(lists, 1);
}

// b never has a turn, so only its deletion can thaw it (freezer.md 4 rule 5).
TEST_P(AgentProcessTest, ThawsAPodThatIsDeletedWhileItIsFrozen) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{0}}, kSlice);
  node_->start();
  ASSERT_TRUE(eventually([&] { return frozen("b"); }));
  const base::Duration deleted = clock_.monotonic();
  node_->delete_pod("b");
  EXPECT_TRUE(eventually([&] { return !frozen("b"); }));
  tell("thaw_after_deletion_ms", deleted);
  EXPECT_TRUE(moves(node_->progress("b")));
}

// A program that ignores SIGTERM must not run in other turns for longer than its grace
// time.
TEST_P(AgentProcessTest, FreezesAPodAgainThatOutlivesItsGracePeriodOnV2) {
  node_->add_pod("a", "a");
  // A second of grace and kubelet's lag of five: on v2 it takes its turns again some six seconds
  // later. On v1 SIGKILL does not reach a frozen task, so the pod stays thawed.
  node_->add_pod("b", "b", /*grace_seconds=*/1);
  node_->publish(1, 1, {"a", "b"}, {{0}}, kSlice);
  node_->start();
  ASSERT_TRUE(eventually([&] { return frozen("b"); }));
  node_->delete_pod("b");
  ASSERT_TRUE(eventually([&] { return !frozen("b"); }));
  const bool again = eventually([&] { return frozen("b"); },
                                GetParam() == CgroupVersion::kV2 ? seconds{15} : seconds{3});
  EXPECT_EQ(again, GetParam() == CgroupVersion::kV2);
}

// An agent that is stopped has nothing behind it that thaws: a pod that stayed frozen would be an
// outage.
TEST_P(AgentProcessTest, StopsWithin2SecondsAndThawsEverything) {
  ASSERT_TRUE(two_frozen_gangs());
  const base::Duration told = clock_.monotonic();
  node_->signal(SIGTERM);
  EXPECT_EQ(node_->wait_for_end(seconds{10}), 0);
  tell("stopped_after_ms", told);
  EXPECT_TRUE(all_run());
}

// The agent's last act, after the thaw, so that the operator need not find out that this node is
// not switched. Twice, since the second start must take the condition back.
TEST_P(AgentProcessTest, SaysThatItHasStoppedAndThatItIsBack) {
  two_gangs();
  const auto ready = [&](kube::ConditionStatus status, const std::string& reason) {
    const auto conditions = node_->timetable().status.conditions;
    const auto* found = kube::find_condition(conditions, "Ready");
    return found != nullptr && found->status == status && found->reason == reason;
  };
  for (int round = 0; round < 2; ++round) {
    node_->start();
    ASSERT_TRUE(eventually([&] { return ready(kube::ConditionStatus::kTrue, "Obeying"); }));
    ASSERT_TRUE(takes_turns_soon());
    node_->signal(SIGTERM);
    ASSERT_EQ(node_->wait_for_end(seconds{10}), 0);
    EXPECT_TRUE(ready(kube::ConditionStatus::kFalse, "Stopped"));
    EXPECT_TRUE(all_run());
  }
}

// The last word is a write to an API server that answers after 5 s.
TEST_P(AgentProcessTest, ASlowApiServerDoesNotHoldUpAStop) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  node_->server().inject({.kind = devcluster::Fault::Kind::kSlow,
                          .user_agent = "kubegang",
                          .delay = seconds{5},
                          .count = 1'000'000});
  node_->signal(SIGTERM);
  std::optional<int> code;
  const std::optional<base::Duration> took = time_until([&] {
    code = node_->wait_for_end(base::Duration{0});
    return code.has_value();
  });
  node_->server().clear_faults();
  ASSERT_TRUE(took.has_value());
  // Well below the 2 s of a stop, although each answer takes 5 s: the last word to the API server
  // is given up after 0.3 s.
  EXPECT_LE(*took, seconds{1});
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(all_run());
}

// A connection that is being made cannot be broken off. The worker itself thaws, and is not killed
// by its supervisor, which would end with 1.
TEST_P(AgentProcessTest, AnApiServerThatDoesNotAnswerAtAllDoesNotHoldUpAStop) {
  ASSERT_TRUE(two_frozen_gangs());
  node_->silence_server();
  // Most of the four watches are being begun again.
  ASSERT_TRUE(eventually([&] { return node_->silent_connections() >= 3; }));
  const Stop stop = stopped();
  EXPECT_EQ(stop.code, 0);
  EXPECT_TRUE(all_run());
}

// An administrator switches slicing off for this node, and on again.
TEST_P(AgentProcessTest, TheKillSwitchOnTheNodeThawsWithin1Second) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const base::Duration thrown = clock_.monotonic();
  node_->set_kill_switch(true);
  EXPECT_TRUE(eventually([&] { return all_run_for(kSlice * 2); }));
  tell("all_run_after_kill_switch_ms", thrown + kSlice * 2);
  ASSERT_TRUE(eventually([&] {
    const auto status = node_->timetable().status;
    const auto* ready = kube::find_condition(status.conditions, "Ready");
    return ready != nullptr && ready->reason == "KillSwitch";
  }));
  node_->set_kill_switch(false);
  EXPECT_TRUE(takes_turns_soon());
}

// An older timetable is obeyed if it is the API server itself that has gone back, as after etcd was
// restored from a backup. The invalid ones come first; each time the gangs must go on by the last
// valid one.
TEST_P(AgentProcessTest, ObeysNoInvalidTimetableAndSaysSoAndAnOlderOneIfItIsWhatTheServerHas) {
  two_gangs();
  node_->publish(2, 5, {"a", "b"}, {{0}, {1}}, kSlice);
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  node_->publish(2, 6, {"a", "b"}, {{0}, {9}}, kSlice);  // an index out of range
  ASSERT_TRUE(eventually(
      [&] {
        const auto status = node_->timetable().status;
        const auto* ready = kube::find_condition(status.conditions, "Ready");
        return ready != nullptr && ready->reason == "InvalidTimetable";
      },
      seconds{8}));
  EXPECT_EQ(node_->timetable().status.observed_revision, 5);
  EXPECT_TRUE(takes_turns_soon());
  // Half a second is longer than the agent needs to hear of a timetable: it has refused it by then.
  const auto goes_on = [&] {
    std::this_thread::sleep_for(milliseconds{500});
    return takes_turns_soon();
  };
  node_->publish(2, 6, {"a", "b"}, {}, kSlice);  // no slot at all
  EXPECT_TRUE(goes_on());
  node_->publish(2, 6, {"a", "b"}, {{}}, seconds{0});
  EXPECT_TRUE(goes_on());
  // The watch alone would be refused as stale; the quorum read says the same, so it is obeyed.
  node_->publish(2, 4, {"a", "b"}, {{}}, kSlice);  // an older revision
  EXPECT_TRUE(both_freeze());
  node_->publish(1, 7, {"a", "b"}, {{0}, {1}}, kSlice);  // a lower term
  EXPECT_TRUE(takes_turns_soon());
  node_->publish(2, 7, {"a"}, {{0}}, kSlice);  // drops b, which comes on
  EXPECT_TRUE(eventually([&] { return all_run(); }));
  EXPECT_TRUE(all_run_for(milliseconds{500}));
}

// A plan comes before the cycle as long as it lasts, here not at all and for a thousand years.
TEST_P(AgentProcessTest, APlanInThePastOrTheFarFutureIsAsGoodAsAny) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{1}}, kSlice,
                 {{.until = clock_.wall() - std::chrono::hours{1}, .run = {0}}});
  node_->start();
  EXPECT_TRUE(eventually([&] { return frozen("a") && !frozen("b"); }));
  // The entry outlives the test: a runs alone from then on, and nothing overflows on the way.
  constexpr std::chrono::hours kThousandYears{24 * 365'000};
  node_->publish(1, 3, {"a", "b"}, {{1}}, kSlice,
                 {{.until = clock_.wall() + kThousandYears, .run = {0}}});
  EXPECT_TRUE(eventually([&] { return !both_frozen(); }));
}

// The journal has all that turns need. An agent that waited for the API server would let both gangs
// run, and one that failed open at once would, too.
TEST_P(AgentProcessTest, GoesOnWithoutTheApiServerAlsoAfterARestart) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  node_->stop_server();
  std::this_thread::sleep_for(milliseconds{500});
  EXPECT_TRUE(goes_on_taking_turns());
  kill_container();
  node_->start();
  EXPECT_TRUE(goes_on_taking_turns());
  node_->start_server();  // with another certificate authority, which the agent reads at its start
  // Both in one slot, so that a look can tell this timetable from the one of the journal.
  node_->publish(1, 2, {"a", "b"}, {{0, 1}}, kSlice);
  kill_container();
  node_->start();
  EXPECT_TRUE(eventually([&] { return all_run_for(kSlice * 3); }, seconds{30}));
}

// No operator renews the Lease, so the timetable may be wrong: the node runs everything.
TEST_P(AgentProcessTest, FailsOpenWhenTheLeaseIsNotRenewedAndSlicesAgainWhenItIs) {
  node_->set_fail_open_after(seconds{2});
  two_gangs();
  node_->renew_lease();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const base::Duration since = clock_.monotonic();
  EXPECT_TRUE(eventually(
      [&] {
        if (!all_run()) return false;
        std::this_thread::sleep_for(kSlice * 2);
        return all_run();
      },
      seconds{8}));
  // Not at once: the limit is 2 s from the last renewal that the agent saw, and its turns took a
  // part of it.
  EXPECT_GE(clock_.monotonic() - since, milliseconds{500});
  EXPECT_TRUE(all_run_for(seconds{1}));
  node_->renew_lease();
  EXPECT_TRUE(takes_turns_soon());
}

// An administrator's decision holds for the next worker too, even if no API server answers it. The
// journal keeps it.
TEST_P(AgentProcessTest, TheKillSwitchHoldsAfterARestartWithoutTheApiServer) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  node_->set_kill_switch(true);
  ASSERT_TRUE(eventually([&] { return all_run_for(kSlice * 3); }));
  // From here on only the journal can tell the new worker.
  node_->stop_server();
  kill_container();
  node_->start();
  EXPECT_TRUE(all_run_for(seconds{2}));
  node_->start_server();
  kill_container();
  node_->start();
  EXPECT_TRUE(all_run_for(seconds{2}));
  node_->set_kill_switch(false);
  EXPECT_TRUE(goes_on_taking_turns());
}

// The new worker cannot ask how long the Lease has been silent. Counting from its own start would
// freeze pods by a timetable that was given up already.
TEST_P(AgentProcessTest, TheFailOpenLimitHoldsAfterARestartWithoutTheApiServer) {
  node_->set_fail_open_after(seconds{2});
  two_gangs();
  node_->renew_lease();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  node_->stop_server();
  ASSERT_TRUE(eventually([&] { return all_run_for(kSlice * 3); }));
  kill_container();
  node_->start();
  EXPECT_TRUE(all_run_for(seconds{2}));
  node_->start_server();
  node_->renew_lease();
  kill_container();
  node_->start();
  EXPECT_TRUE(goes_on_taking_turns());
}

// All processes are killed while both pods are frozen, and the timetable changes meanwhile.
TEST_P(AgentProcessTest, RepairsWithin1SecondOfARestartAndThawsWhatIsNotListedAnyMore) {
  ASSERT_TRUE(two_frozen_gangs());
  node_->signal(SIGKILL);
  ASSERT_TRUE(node_->wait_for_end(seconds{2}).has_value());
  std::this_thread::sleep_for(milliseconds{100});
  // The price of SIGKILL to all processes at once. The guard's container, which would thaw them, is
  // not part of this test.
  EXPECT_TRUE(both_frozen());  // no process is there to thaw them
  node_->publish(1, 3, {"a"}, {{0}}, kSlice);
  node_->start();
  const base::Duration since = clock_.monotonic();
  EXPECT_TRUE(eventually([&] { return all_run(); }));
  tell("repaired_after_restart_ms", since);
}

// freezer.md 5.4: with a damaged journal the API server decides which pods are the agent's.
TEST_P(AgentProcessTest, RepairsAfterARestartWithADamagedJournalAndLeavesForeignFreezesAlone) {
  two_gangs();
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  const std::string foreign = node_->cgroups().add_pod("foreign");
  node_->cgroups().set_frozen(foreign, true);
  node_->start();
  ASSERT_TRUE(both_freeze());
  node_->signal(SIGKILL);
  ASSERT_TRUE(node_->wait_for_end(seconds{5}).has_value());
  // Now nothing shows which pods the agent froze. Those of jobs count as such, the foreign one
  // belongs to no pod that the API server names.
  std::ofstream{node_->run_directory() + "/journal"} << "not a journal";
  node_->publish(1, 3, {"a", "b"}, {{0}, {1}}, kSlice);
  const base::Duration since = clock_.monotonic();
  node_->start();
  EXPECT_TRUE(takes_turns_soon(seconds{10}));
  tell("repaired_after_restart_ms", since);
  EXPECT_TRUE(node_->cgroups().is_asked_frozen(foreign));
}

// Each answer takes 3 s, which is many slices. Turns must not wait for any of them.
TEST_P(AgentProcessTest, ASlowApiServerHoldsUpNoTurn) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  node_->server().inject({.kind = devcluster::Fault::Kind::kSlow,
                          .user_agent = "kubegang",
                          .delay = seconds{3},
                          .count = 1'000'000});
  for (int look = 0; look < 10; ++look) EXPECT_TRUE(takes_turns_soon());
  node_->publish(1, 2, {"a", "b"}, {{0, 1}}, kSlice);
  node_->server().clear_faults();
  EXPECT_TRUE(eventually([&] { return all_run_for(kSlice * 2); }, seconds{30}));
}

// A container runtime that does not read the log leaves the pipe full. A write that blocked would
// stop the main loop, and then the supervisor that should notice.
TEST_P(AgentProcessTest, ALogThatNobodyReadsHoldsUpNeitherTheWorkerNorItsSupervisor) {
  two_gangs();
  node_->log_to_a_full_pipe();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const std::optional<pid_t> worker = node_->worker();
  ASSERT_TRUE(worker.has_value());
  // It stands still, as one in a write that blocks would, and the supervisor must notice although
  // its own log blocks as well.
  ::kill(*worker, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return all_run(); }, seconds{15}));
  ASSERT_TRUE(eventually([&] { return node_->has_other_worker(worker); }, seconds{15}));
  EXPECT_TRUE(takes_turns_soon(seconds{10}));
}

// Returns the mask in hexadecimal, as the kernel shows it.
std::string effective_capabilities(pid_t process) {
  std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
  for (std::string word; status >> word;) {
    if (word == "CapEff:" && status >> word) return word;
  }
  return {};
}

// freezer.md 5.6: SYS_NICE and IPC_LOCK make it faster, nothing more. Every way of thawing is
// tried: a turn, a deletion, the supervisor's, and the stop.
TEST_P(AgentProcessTest, Uid0WithoutAnyCapabilityIsEnough) {
  two_gangs();
  node_->drop_capabilities();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  EXPECT_EQ(effective_capabilities(node_->supervisor()), "0000000000000000");
  EXPECT_EQ(effective_capabilities(node_->worker().value()), "0000000000000000");
  node_->publish(1, 2, {"a", "b"}, {{}}, kSlice);
  ASSERT_TRUE(both_freeze());
  node_->delete_pod("b");
  EXPECT_TRUE(eventually([&] { return !frozen("b"); }));
  ::kill(node_->worker().value(), SIGKILL);  // its supervisor thaws and starts another one
  EXPECT_TRUE(eventually([&] { return !frozen("a"); }));
  EXPECT_TRUE(eventually([&] { return frozen("a"); }));
  node_->signal(SIGTERM);
  EXPECT_EQ(node_->wait_for_end(seconds{10}), 0);
  EXPECT_TRUE(all_run());
}

// CPU 3 is offline, so one thread of each core counts. CPU 1 works, and pods stay bound to it; a
// set that names no CPU that is online makes the agent say which ones are.
TEST_P(AgentProcessTest, PodsAreBoundToAllCpusThatAreOnline) {
  two_gangs();
  const std::string cpus = node_->directory() + "/cpus";
  for (int cpu = 0; cpu < 3; ++cpu) {
    const std::string topology = cpus + "/cpu" + std::to_string(cpu) + "/topology";
    std::filesystem::create_directories(topology);
    std::ofstream{topology + "/core_id"} << cpu / 2 << "\n";
  }
  std::ofstream{cpus + "/online"} << "0-2\n";
  ASSERT_TRUE(
      node_->client()
          .patch<kube::Pod>({"default", "a"},
                            {{"metadata", {{"annotations", {{"kubegang.io/cpuset", "7"}}}}}})
          .ok());
  node_->start({"--cpu-dir=" + cpus});
  std::string message;
  EXPECT_TRUE(eventually([&] {
    const kube::NodeTimetableStatus status = node_->timetable().status;
    const kube::Condition* ready = kube::find_condition(status.conditions, "Ready");
    message = ready == nullptr ? "" : ready->message;
    return message.find("this node (0-2) does not have: 7") != message.npos;
  })) << message;
  EXPECT_EQ(node_->timetable().status.topology->cpu_ids, "0,2");
}

// Two files for each pod, and a container runtime gives 1024 to a program that asks for no more.
TEST_P(AgentProcessTest, TheWorkerMayOpenTheFilesOfEveryPodThatATimetableLists) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit usual{.rlim_cur = 1024, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  two_gangs();
  node_->start();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(takes_turns_soon());
  rlimit worker{};
  ASSERT_EQ(::prlimit(*node_->worker(), RLIMIT_NOFILE, nullptr, &worker), 0);
  EXPECT_EQ(worker.rlim_cur, std::min<rlim_t>(kOpenFilesWanted, before.rlim_max));
}

// Without the API server the agent is alive and not ready: kubelet must not restart it, and a
// rolling update must wait.
TEST_P(AgentProcessTest, ServesHealthReadinessAndMetrics) {
  two_gangs();
  node_->stop_server();
  node_->start();
  EXPECT_TRUE(eventually([&] { return get("/readyz").starts_with("HTTP/1.1 503"); }));
  EXPECT_THAT(get("/readyz"), HasSubstr("the API server has not yet sent"));
  EXPECT_THAT(get("/healthz"), StartsWith("HTTP/1.1 200"));
  kill_container();
  node_->start_server();
  node_->start();
  EXPECT_TRUE(eventually([&] { return get("/readyz").starts_with("HTTP/1.1 200"); }));
  EXPECT_TRUE(goes_on_taking_turns());
  EXPECT_TRUE(eventually([&] {
    const std::string metrics = get("/metrics");
    return metrics.find("\nkubegang_agent_timetable_revision 1\n") != metrics.npos &&
           metrics.find("\nkubegang_agent_pods{state=\"frozen\"} 1\n") != metrics.npos &&
           (metrics.find("kubegang_agent_switcher_policy{policy=\"fifo\"} 1") != metrics.npos ||
            metrics.find("kubegang_agent_switcher_policy{policy=\"cfs\"} 1") != metrics.npos);
  })) << get("/metrics");
}

// With an agent, without one, with a journal that is damaged, one that cannot be read, and in a
// directory that no agent has used. A person calls it when something is wrong, so it must work in
// each of these.
TEST_P(AgentProcessTest, InspectShowsTheNode) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  // The shown pods are written a moment after a switch.
  std::this_thread::sleep_for(milliseconds{300});
  const std::string place = " --cgroup-root " + node_->cgroups().root() + " --run-dir ";
  const std::string inspect = "inspect" + place + node_->run_directory();
  os::testing::Output said = run_program(inspect);
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.text, StartsWith("agent        running\n"));
  EXPECT_THAT(said.text, HasSubstr("term=1 revision=1"));
  EXPECT_THAT(said.text, HasSubstr("controlled/"));
  for (const char* pod : {"a", "b"}) {
    EXPECT_THAT(said.text, HasSubstr("default/" + std::string{pod} + "\n"));
    EXPECT_THAT(said.text, HasSubstr(node_->path(pod) + "\n"));
  }

  kill_container();  // both pods stay as they are
  said = run_program(inspect);
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.text, StartsWith("agent        not running"));
  EXPECT_THAT(said.text, HasSubstr("  frozen  "));
  EXPECT_THAT(said.text, HasSubstr("  running  "));
  // Cut off in the middle, as no rename would leave it: the last line, "end", is missing.
  std::filesystem::resize_file(node_->run_directory() + "/journal", 100);
  said = run_program(inspect);
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.text, HasSubstr("journal      damaged: "));
  std::filesystem::remove(node_->run_directory() + "/journal");
  std::filesystem::create_directory(node_->run_directory() + "/journal");
  said = run_program(inspect);
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.text, HasSubstr("/journal: Is a directory\n"));

  said = run_program("inspect" + place + node_->directory());
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.text, HasSubstr("no agent has used it"));
  EXPECT_EQ(run_program("inspect default/a").exit_code, 2);
}

// On one node by looking, and of all nodes by asking the API server. Two more calls take something
// away: the run directory, and the cgroups.
TEST_P(AgentProcessTest, CheckSaysWhatTheNodeGrantsAndItsExitCodeWhetherThatIsEnough) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const std::string cluster =
      "check --whole-cluster --kubeconfig " + node_->directory() + "/kubeconfig";
  os::testing::Output said = run_program(cluster);
  EXPECT_EQ(said.exit_code, 0) << said.text;
  EXPECT_THAT(said.text, StartsWith("n1: Obeying, "));
  const std::string here = "check --cgroup-root " + node_->cgroups().root() + " --run-dir ";
  said = run_program(here + node_->run_directory());
  EXPECT_EQ(said.exit_code, 0) << said.text;
  const bool v2 = GetParam() == CgroupVersion::kV2;
  EXPECT_THAT(said.text, StartsWith(v2 ? "hierarchy      good     cgroup v2"
                                       : "hierarchy      weak     cgroup v1"));
  said = run_program(here + "/nowhere");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.text, HasSubstr("run directory  MISSING  /nowhere: No such file"));
  said = run_program("check --cgroup-root /proc --run-dir " + node_->run_directory());
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.text, HasSubstr("no kubepods with a freezer below /proc"));
}

// As in the chart's containers: the environment says where the host's cgroups are.
TEST_P(AgentProcessTest, InspectFindsTheCgroupsOfItsContainersEnvironment) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  ::setenv("KUBEGANG_CGROUP_ROOT", node_->cgroups().root().c_str(), 1);
  const os::testing::Output said = run_program("inspect --run-dir " + node_->run_directory());
  ::unsetenv("KUBEGANG_CGROUP_ROOT");
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_THAT(said.text, HasSubstr("  frozen  "));
  EXPECT_THAT(said.text, HasSubstr("  running  "));
}

// Two agents would thaw what the other one has frozen.
TEST_P(AgentProcessTest, ASecondAgentInTheSameRunDirectoryRefusesToStart) {
  two_gangs();
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  const os::testing::Output said =
      run_program("--node-name n1 --kubeconfig " + node_->directory() + "/kubeconfig --run-dir " +
                  node_->run_directory() + " --cgroup-root " + node_->cgroups().root());
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_THAT(said.text, HasSubstr("kubegang-agent: run directory " + node_->run_directory() +
                                   ": another kubegang-agent uses it"));
  EXPECT_THAT(said.text, Not(HasSubstr("thawed what the journal names")));
  EXPECT_TRUE(takes_turns_soon());
}

// Goal: whatever happens to the agent, within 6 s nothing is frozen that should run, and nothing of
// another owner is ever touched. Method: SIGKILL and SIGSTOP of the worker, and SIGKILL of the
// whole container, which is started again as kubelet does, at random points of a rotation.
TEST_P(AgentProcessTest, SurvivesKillsAndStopsAtRandomPoints) {
  constexpr base::Duration kLimit = seconds{6};
  const int rounds = crash_rounds();
  constexpr std::uint64_t kSeed = 20260105;
  base::Prng prng{kSeed};
  two_gangs();
  const std::string foreign_off = node_->cgroups().add_pod("foreign-off");
  const std::string foreign_on = node_->cgroups().add_pod("foreign-on");
  auto& off = node_->cgroups().spawn_counter(foreign_off, milliseconds{1});
  auto& on = node_->cgroups().spawn_counter(foreign_on, milliseconds{1});
  node_->cgroups().set_frozen(foreign_off, true);
  node_->start();
  ASSERT_TRUE(takes_turns_soon());
  base::Duration longest{0};
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    // Up to 400 ms: anywhere in a slot, the switch at its boundary included.
    std::this_thread::sleep_for(base::Duration{static_cast<std::int64_t>(prng.below(400'000))});
    const std::optional<pid_t> worker = node_->worker();
    ASSERT_TRUE(worker.has_value());
    const std::uint64_t kind = prng.below(10);
    const base::Duration hit_at = clock_.monotonic();
    if (kind < 6) {
      ::kill(*worker, SIGKILL);
    } else if (kind < 8) {
      ::kill(*worker, SIGSTOP);
    } else {
      node_->signal(SIGKILL);
      ASSERT_TRUE(node_->wait_for_end(seconds{10}).has_value());
      node_->start();
    }
    ASSERT_TRUE(both_have_run_within(kLimit));
    longest = std::max(longest, clock_.monotonic() - hit_at);
    ASSERT_TRUE(eventually([&] { return node_->has_other_worker(worker); }, seconds{20}));
    ASSERT_TRUE(takes_turns_soon(seconds{10}));
    ASSERT_TRUE(node_->cgroups().is_asked_frozen(foreign_off));
    // The two foreign pods, in both states: neither may be touched by any of the ways to thaw.
    ASSERT_TRUE(stands_still(off, milliseconds{5}));
    ASSERT_FALSE(node_->cgroups().is_asked_frozen(foreign_on));
    ASSERT_TRUE(moves(on));
  }
  std::printf("%d rounds, longest until both had run: %lld ms\n", rounds,
              static_cast<long long>(longest.count() / 1000));
}

INSTANTIATE_TEST_SUITE_P(Real, AgentProcessTest,
                         ::testing::Values(CgroupVersion::kV2, CgroupVersion::kV1),
                         [](const auto& version) { return to_string(version.param); });

}  // namespace
}  // namespace agent::testing
