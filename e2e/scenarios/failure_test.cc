// Faults, and what must go on in spite of them: operators that are killed, paused and doubled,
// agents, watches and nodes (architecture.md 3 and 5).
#include <gmock/gmock.h>
#include <signal.h>
#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "e2e/scenarios/harness.h"

namespace scenarios {
namespace {

using nlohmann::json;
using testing::Each;

// Goal: a fault costs at most the time that it takes to notice it, and no job is lost, started
// twice or run beside another one because of it. Method: real programs, killed at a chosen write by
// KUBEGANG_CRASH_AT or at any moment by a signal. The probes say what really ran.
class FailureScenario : public Scenario {
 protected:
  bool begin(const ClusterOptions& options) {
    start(options);
    return !IsSkipped() && !HasFatalFailure();
  }
  // A job on all nodes whose pods have settled.
  void ready(const std::string& name) {
    submit({.name = name, .nodes_count = options_.nodes_count});
    ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  }
  // Pods that are there in order: one on each node, of the job's first start.
  void expect_one_start(const std::string& name) {
    EXPECT_EQ(pods(name).size(), static_cast<std::size_t>(options_.nodes_count)) << name;
    EXPECT_EQ(job(name).status.starts.value_or(0), 1) << name;
    EXPECT_EQ(job(name).status.restarts.value_or(0), 0) << name;
  }
};

// Proves that a rotation needs no operator: the agents go on with the timetables that are
// published, and the successor changes nothing of a gang that is in order.
TEST_F(FailureScenario, AnOperatorKilledInTheMiddleOfARotationCostsNobodyATurn) {
  if (!begin({.nodes_count = 2})) return;
  ASSERT_NO_FATAL_FAILURE(ready("first"));
  ASSERT_NO_FATAL_FAILURE(ready("second"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  const Instant from = now();
  cluster_->components().kill(std::string{devcluster::kOperator});
  pass(seconds{1});
  start_operator();
  pass(seconds{5});  // it leads after two, and looks at everything
  expect_strict_turns(from, now(), {"first", "second"});
  expect_one_start("first");
  expect_one_start("second");
  EXPECT_EQ(state("first"), "Running");
}

// Returns some: the operator's crash tests take every write of such histories in virtual time; here
// real processes show that it is so, at one point of each kind. With KUBEGANG_LONG at all of them.
std::vector<const char*> points(std::vector<const char*> some,
                                const std::vector<const char*>& more) {
  if (std::getenv("KUBEGANG_LONG") != nullptr) some.insert(some.end(), more.begin(), more.end());
  return some;
}

// The operator dies at a commit point while a second job starts beside a first, or ends; its
// successor goes on from what the API server has.
class CommitPoint : public FailureScenario, public testing::WithParamInterface<const char*> {};

TEST_P(CommitPoint, OfASecondJobsStartLosesNothing) {
  if (!begin({.nodes_count = 2})) return;
  ASSERT_NO_FATAL_FAILURE(ready("first"));
  // The operator is replaced by one that will crash at the given write.
  cluster_->components().kill(std::string{devcluster::kOperator});
  start_operator(std::string{devcluster::kOperator},
                 {std::string{"KUBEGANG_CRASH_AT="} + GetParam()});
  const Instant from = now();
  submit({.name = "second", .nodes_count = 2});
  // It has reached the point. Without it the test would have shown nothing.
  ASSERT_NO_FATAL_FAILURE(wait_for_operators_end());
  start_operator();
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  const Instant rotating = now();
  pass(seconds{1});
  expect_strict_turns(rotating, now(), {"first", "second"});
  expect_one_start("first");
  expect_one_start("second");
  // The first job was not started again by the operator's successor.
  EXPECT_LT(*job("first").status.start_time, from);
}

INSTANTIATE_TEST_SUITE_P(Points, CommitPoint,
                         testing::ValuesIn(points({"after:start", "after:timetable"},
                                                  {"before:start", "before:timetable",
                                                   "before:pod-create", "after:pod-create",
                                                   "before:ready", "after:ready",
                                                   "after:timetable:3"})),
                         [](const auto& point) {
                           std::string name{point.param};
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

class EndingPoint : public FailureScenario, public testing::WithParamInterface<const char*> {};

// The operator dies while a job of two is being ended. Its successor must finish the end, free the
// nodes once the pods are gone, and leave the other job alone.
TEST_P(EndingPoint, OfACancelledJobLosesNothing) {
  if (!begin({.nodes_count = 2})) return;
  ASSERT_NO_FATAL_FAILURE(ready("first"));
  ASSERT_NO_FATAL_FAILURE(ready("second"));
  cluster_->components().kill(std::string{devcluster::kOperator});
  start_operator(std::string{devcluster::kOperator},
                 {std::string{"KUBEGANG_CRASH_AT="} + GetParam()});
  patch(job_path("second"), {{"spec", {{"control", {{"cancel", true}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_for_operators_end());
  start_operator();
  ASSERT_NO_FATAL_FAILURE(wait_state("second", "Cancelled"));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("second's pods are gone", [&] { return pods("second").empty(); }));
  // Until the successor leads, the old timetable is in force: the second job's slots stay empty.
  ASSERT_NO_FATAL_FAILURE(wait_until("nobody is left to take turns with", [&] {
    const std::vector<kube::NodeTimetable> all = timetables();
    return std::all_of(all.begin(), all.end(),
                       [](const kube::NodeTimetable& one) { return one.spec.pods.empty(); });
  }));
  pass(seconds{1});
  const Instant from = now();
  pass(seconds{1});
  EXPECT_THAT(owners_of_slots(node(0), from, now(), {"first", "second"}), Each("first"));
  expect_one_start("first");
}

INSTANTIATE_TEST_SUITE_P(Points, EndingPoint,
                         testing::ValuesIn(points({"after:ending"},
                                                  {"before:ending", "before:pod-delete",
                                                   "after:pod-delete", "before:final",
                                                   "after:final"})),
                         [](const auto& point) {
                           std::string name{point.param};
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

// Goal: fencing by term. The old leader is stopped with SIGSTOP, a second operator leads and starts
// a third job, and the old one wakes up and still believes that it leads. Its writes are refused by
// term, the turns of three go on without a break, and it ends because it cannot renew its Lease.
TEST_F(FailureScenario, APausedLeaderThatComesBackCannotUndoTheNewOnesWork) {
  if (!begin({.nodes_count = 2})) return;
  ASSERT_NO_FATAL_FAILURE(ready("first"));
  ASSERT_NO_FATAL_FAILURE(ready("second"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  const std::string old_one{devcluster::kOperator};
  ASSERT_TRUE(cluster_->components().signal(old_one, SIGSTOP).ok());
  const std::int64_t old_term = timetables().front().spec.term;
  // It leads when the Lease of the stopped one has run out, after two seconds.
  start_operator("operator-2");
  submit({.name = "third", .nodes_count = 2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second", "third"}));
  EXPECT_GT(timetables().front().spec.term, old_term);
  const Instant from = now();
  ASSERT_TRUE(cluster_->components().signal(old_one, SIGCONT).ok());
  // Enough for the old leader to try whatever it had decided.
  pass(seconds{4});
  EXPECT_GT(timetables().front().spec.term, old_term);
  EXPECT_EQ(overlap_since(from, {"first", "second", "third"}), Duration{});
  const auto slots = owners_of_slots(node(0), from, now(), {"first", "second", "third"});
  // Three jobs in turn: each slot has the owner of the third slot before it.
  for (std::size_t i = 3; i < slots.size(); ++i) EXPECT_EQ(slots[i], slots[i - 3]);
  for (const char* name : {"first", "second", "third"}) expect_one_start(name);
  EXPECT_FALSE(cluster_->components().runs(old_one)) << "it cannot renew, so it ends";
}

// The job's event is lost and the history that had it is compacted: only a new list can show the
// job. The second time the watches break while both jobs run.
TEST_F(FailureScenario, DroppedWatchesAndForgottenVersionsAreCaughtUp) {
  if (!begin({.nodes_count = 2})) return;
  ASSERT_NO_FATAL_FAILURE(ready("first"));
  // The event never reaches a watch, although the object is stored.
  cluster_->api_server().lose_next_event("jobs");
  submit({.name = "lost", .nodes_count = 2});
  cluster_->api_server().drop_watches();
  cluster_->api_server().compact();
  ASSERT_NO_FATAL_FAILURE(wait_ready("lost"));
  cluster_->api_server().reset_watches();
  cluster_->api_server().compact();
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "lost"}));
  const Instant from = now();
  pass(seconds{1});
  expect_strict_turns(from, now(), {"first", "lost"});
}

// 503 comes before the write, and a reset connection after it: in the second case the retry finds
// its own write done and must not start the job twice.
TEST_F(FailureScenario, AServerThatFailsNowAndThenDelaysOnly) {
  if (!begin({.nodes_count = 2})) return;
  ASSERT_NO_FATAL_FAILURE(ready("first"));
  using devcluster::Fault;
  submit({.name = "second", .nodes_count = 2});
  for (const char* verb : {"create", "update", "patch"}) {
    cluster_->api_server().inject(
        // Only our programs see the faults; the test's own requests do not.
        {.verb = verb, .user_agent = "kubegang", .code = 503, .count = 2});
    cluster_->api_server().inject(
        {.kind = Fault::Kind::kResetAfter, .verb = verb, .user_agent = "kubegang", .count = 2});
  }
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  expect_one_start("second");
}

// A node that loses power: the job keeps its allocation until its pods there are confirmed gone;
// then it is requeued or ends, as its rule says. The other job's nodes do not care.
TEST_F(FailureScenario, ANodeThatVanishesTakesOnlyItsJobWithIt) {
  if (!begin({.nodes_count = 3})) return;
  submit({.name = "pair",
          .nodes_count = 2,
          .patch = R"({"spec": {"lifecycle": {"requeue": false}}})"_json});
  ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
  submit({.name = "single", .nodes_count = 1});
  ASSERT_NO_FATAL_FAILURE(wait_ready("single"));
  ASSERT_EQ(job("single").status.allocation->hostlist, "n14");
  cluster_->components().kill(devcluster::agent_name(node(1)));
  cluster_->kubelet().fail_node(node(1), devcluster::NodeFault::kPoweredOff);
  pass(seconds{1});
  // A node that is silent may still run its pods. Giving its place away would let two jobs run on
  // it.
  EXPECT_EQ(state("pair"), "Running") << "not confirmed gone yet";
  // The machine comes back: its pods have failed, that is the confirmation.
  cluster_->kubelet().restore_node(node(1));
  ASSERT_TRUE(cluster_->components().start_again(devcluster::agent_name(node(1))).ok());
  ASSERT_NO_FATAL_FAILURE(wait_until("pair has ended", [&] {
    const std::string now_in = state("pair");
    return now_in == "NodeFail" || now_in == "Failed";
  }));
  EXPECT_TRUE(runs_now("single"));
  EXPECT_EQ(job("single").status.starts.value_or(0), 1);
}

}  // namespace
}  // namespace scenarios
