// Accounts, limits and priorities, from the objects to what becomes of jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/usage_record.h"
#include "operator/testing/world.h"
#include "operator/write/write_point.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Returns an object of the cluster as its administrator writes it.
json policy(const std::string& kind, const std::string& name, const json& spec) {
  return {{"apiVersion", "kubegang.io/v1alpha1"},
          {"kind", kind},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}
json account(const std::string& name, const json& spec) {
  return policy("Account", name, spec);
}
// Returns the part of a Job's spec that names its account, or its QOS.
json in_account(const std::string& name) {
  return {{"schedule", {{"account", name}}}};
}
json of_qos(const std::string& name) {
  return {{"schedule", {{"qos", name}}}};
}

// Five nodes that are not shared, so that a job that waits does so for a limit or for room.
struct Accounts : testing::Test {
  Accounts() {
    world.apply(linear_config());
    world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  }
  std::string ns() { return world.job("first").metadata.ns; }
  std::string reason(const std::string& job) { return world.job(job).status.reason; }

  World world{{}};
};

// A job may not charge an account that does not list its namespace. It becomes legal when the
// account changes, without a change of the job.
TEST_F(Accounts, AJobIsOfAnAccountThatListsItsNamespace) {
  world.apply(account("physics", {{"namespaces", {{{"name", "somebody-else"}}}}}));
  world.apply(gang_job("first", 1, "5s", in_account("physics")));
  world.run_for(seconds{2});
  EXPECT_THAT(world.condition("Job", "first", "Accepted"),
              HasSubstr("account \"physics\" does not list namespace \"" + ns() + "\""));
  world.apply(account("physics", {{"namespaces", {{{"name", ns()}}}}}));
  EXPECT_TRUE(world.run_until([&] { return world.state("first") == "Completed"; }, seconds{60}))
      << world.log_tail();
  expect_no_violations(world);
}

// Tests the namespace's default, and the limits of accounts on the way up. "first" was submitted
// before the accounts existed and counts all the same. science uses at most two nodes at once, so
// "third" waits; physics takes three submissions, so "fourth" is refused.
TEST_F(Accounts, AJobWithoutAnAccountIsOfTheDefaultOneAndItsLimitsHold) {
  world.apply(gang_job("first", 1, ""));
  world.run_for(seconds{2});
  world.apply(account("science", {{"limits", {{"group", {{"resources", {{"nodes", 2}}}}}}}}));
  world.apply(account("physics", {{"parent", "science"},
                                  {"namespaces", {{{"name", ns()}}}},
                                  {"limits", {{"group", {{"submittedJobs", 3}}}}}}));
  world.run_for(seconds{2});
  world.apply(gang_job("second", 1, ""));
  world.apply(gang_job("third", 1, ""));
  world.run_for(seconds{3});
  EXPECT_EQ(world.state("second"), "Running") << world.log_tail();
  EXPECT_EQ(world.state("third"), "Pending");
  EXPECT_EQ(reason("third"), "AssocGrpNodeLimit");
  world.apply(gang_job("fourth", 1, ""));
  world.run_for(seconds{2});
  EXPECT_THAT(world.condition("Job", "fourth", "Accepted"), HasSubstr("account physics"));
  world.remove_job("first");
  EXPECT_TRUE(world.run_until([&] { return world.state("third") == "Running"; }, seconds{60}))
      << world.log_tail();
  expect_no_violations(world);
}

// One job runs (a), a second waits (b), a third is more than may be submitted (c). DenyOnLimit
// turns away what could never run instead of letting it wait. The reasons are Slurm's, in which a
// user is what a namespace is here.
TEST_F(Accounts, LimitsOfAQosKeepJobsWaitingOrTurnThemAway) {
  world.apply(
      policy("QOS", "few", {{"limits", {{"perNamespace", {{"jobs", 1}, {"submittedJobs", 2}}}}}}));
  world.apply(policy(
      "QOS", "small",
      {{"limits", {{"perJob", {{"resources", {{"nodes", 1}}}}}}}, {"flags", {"DenyOnLimit"}}}));
  for (const char* name : {"a", "b", "c"}) {
    world.apply(gang_job(name, 1, "", of_qos("few")));
    world.run_for(seconds{2});
  }
  EXPECT_EQ(world.state("a"), "Running") << world.log_tail();
  EXPECT_EQ(reason("b"), "QOSMaxJobsPerUserLimit");
  EXPECT_THAT(world.condition("Job", "c", "Accepted"), HasSubstr("False: "));
  world.apply(gang_job("wide", 2, "", of_qos("small")));
  world.run_for(seconds{2});
  EXPECT_THAT(world.condition("Job", "wide", "Accepted"), HasSubstr("QOS small allows 1"));
}

// Only the size counts: the wide job overtakes the small one, which was submitted first. With
// "runs" on all nodes both wait, and its end lets the priorities decide.
TEST_F(Accounts, UnderMultifactorPrioritiesFollowFromTheWeights) {
  json config = linear_config();
  config["spec"]["priority"] = {{"type", "Multifactor"}, {"weights", {{"jobSize", 1000}}}};
  world.apply(config);
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{2});
  world.apply(gang_job("small", 1, ""));
  world.apply(gang_job("wide", 5, ""));
  world.run_for(seconds{3});
  world.remove_job("runs");
  ASSERT_TRUE(world.run_until([&] { return world.state("wide") == "Running"; }, seconds{60}))
      << world.log_tail();
  EXPECT_EQ(world.state("small"), "Pending") << "it was submitted before";
}

// squeue and sprio show the priority of a job that waits: it is in the first write of its status,
// and follows the periods without more writes than the budget has.
TEST_F(Accounts, AWaitingJobShowsItsPriority) {
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{2});
  world.apply(gang_job("first", 5, ""));
  world.apply(gang_job("second", 5, ""));
  world.run_for(seconds{2});
  const auto priority = [&](const char* job) { return world.job(job).status.priority.value_or(0); };
  EXPECT_GT(priority("second"), 0);
  // priority/basic counts down by one with each submission.
  EXPECT_EQ(priority("first"), priority("second") + 1);
  world.patch_job("second", {{"control", {{"hold", true}}}});
  world.run_for(seconds{62});
  EXPECT_EQ(priority("second"), 0);

  json config = linear_config();
  config["spec"]["priority"] = {{"type", "Multifactor"},
                                {"weights", {{"age", 3600}}},
                                {"maxAge", "1h"},
                                {"calcPeriod", "10s"}};
  world.apply(config);
  world.run_for(seconds{130});
  // 3600 points over an hour are one per second. The job is some 200 s old by now, and what is
  // shown may be behind by a period of 10 s and by the minute between two writes.
  const auto aged = priority("first");
  EXPECT_GT(aged, 60);
  EXPECT_LT(aged, 300);
  const auto& points = world.process().writer().points();
  const auto before = std::count(points.begin(), points.end(), WritePoint::kStatus);
  world.run_for(seconds{120});
  EXPECT_GE(priority("first"), aged + 40);
  EXPECT_LE(std::count(points.begin(), points.end(), WritePoint::kStatus), before + 6)
      << "each job once a minute";
}

// --- usage ---

// Usage is counted and kept forever, and recorded once in each `period`.
json multifactor(const std::string& period) {
  json config = linear_config("4s");
  config["spec"]["priority"] = {{"type", "Multifactor"},
                                {"weights", {{"fairShare", 1000}}},
                                {"usageDecay", "Never"},
                                {"calcPeriod", period}};
  return config;
}

// Nothing decays, so that usage is the sum of what the jobs' statuses say: whole seconds of run
// time on nodes of 8 CPUs. "billed" is in thousandths of CPU seconds. The parameter is the kind of
// write after which the operator crashes.
struct Usage : testing::TestWithParam<WritePoint> {
  Usage() {
    world.apply(multifactor("10s"));
    world.apply(partition("batch", force("n[12-16]")));
    world.apply(gang_job("first", 1, "12s"));
    world.run_for(seconds{1});
    world.apply(account("physics", {{"namespaces", {{{"name", world.job("first").metadata.ns}}}}}));
  }
  kube::UsageRecordSpec record() {
    const auto record =
        world.client().get<kube::UsageRecord>({"", std::string{kube::kUsageRecordName}});
    return record.ok() ? record->spec : kube::UsageRecordSpec{};
  }
  // Returns the amount that is billed to the one namespace; -1 if the record has not exactly one.
  std::int64_t recorded() {
    const kube::UsageRecordSpec spec = record();
    return spec.namespaces.size() == 1 ? spec.namespaces[0].billed : -1;
  }
  // Returns the amount that these jobs should have been billed, by their own statuses.
  std::int64_t ran(const std::vector<std::string>& jobs) {
    std::int64_t sum = 0;
    for (const std::string& name : jobs) {
      const kube::JobStatus status = world.job(name).status;
      EXPECT_TRUE(status.run_time.has_value()) << name;
      if (!status.run_time) continue;
      const auto whole = std::chrono::floor<seconds>(status.run_time->elapsed);
      sum += whole.count() * 8 * 1000 * status.allocation->nodes;
    }
    return sum;
  }

  World world{{}};
};

// A crash at the same kind of write in each phase: while jobs start, take turns, are canceled and
// have ended. The record must be what the statuses of the jobs say, to the second. Counted twice, a
// crash would cost users their share; lost, it would give it away.
TEST_P(Usage, IsTheSameAfterACrashAtAnyWrite) {
  const std::vector<std::string> jobs = {"first", "brief", "second", "third", "fourth"};
  world.crash_after(GetParam());
  world.apply(gang_job("brief", 1, "1s"));  // ends before it is ready, and is charged all the same
  world.apply(gang_job("second", 2, "23s"));
  world.apply(gang_job("third", 2, ""));  // takes turns with the second
  world.run_for(seconds{7});
  world.crash_after(GetParam());
  world.apply(gang_job("fourth", 3, ""));
  world.run_for(seconds{21});
  world.crash_after(GetParam());
  world.patch_job("third", {{"control", {{"cancel", true}}}});
  world.run_for(seconds{9});
  world.crash_after(GetParam());
  world.patch_job("fourth", {{"control", {{"cancel", true}}}});
  for (const std::string& name : jobs) {
    ASSERT_TRUE(world.run_until(
        [&] { return kube::is_true(world.job(name).status.conditions, kube::kFinished); },
        seconds{120}))
        << name << world.log_tail();
  }
  world.run_for(seconds{8});
  EXPECT_EQ(recorded(), ran(jobs)) << world.crashes() << " crashes\n" << world.log_tail();
  world.restart_operator();
  world.run_for(seconds{15});
  EXPECT_EQ(recorded(), ran(jobs)) << "a leader that finds nothing to do";
}

INSTANTIATE_TEST_SUITE_P(Points, Usage,
                         testing::Values(WritePoint::kUsage, WritePoint::kStart, WritePoint::kReady,
                                         WritePoint::kEnding, WritePoint::kFinal,
                                         WritePoint::kStatus, WritePoint::kTimetable,
                                         WritePoint::kPodDelete),
                         [](const auto& point) {
                           std::string name{to_string(point.param)};
                           std::erase(name, '-');
                           return name;
                         });

// The next tests need the fixture and no crash: the parameter has one value, which is not read.
struct UsageWrites : Usage {};
INSTANTIATE_TEST_SUITE_P(Once, UsageWrites, testing::Values(WritePoint::kUsage));
// 60 s have six periods of 10 s. Each switch changes the usage, but none is a reason to write.
TEST_P(UsageWrites, AreOneForEachPeriodWhileNothingEnds) {
  world.apply(gang_job("long", 1, ""));
  world.run_for(seconds{60});
  const auto& points = world.process().writer().points();
  const auto before = std::count(points.begin(), points.end(), WritePoint::kUsage);
  world.run_for(seconds{60});
  EXPECT_EQ(std::count(points.begin(), points.end(), WritePoint::kUsage), before + 6);
}

// However many jobs end: a write of usage is as large as what there is, and rests 5 s after it.
TEST_P(UsageWrites, AreFewAndSmallHoweverManyJobsEnd) {
  world.run_for(seconds{20});
  const auto& points = world.process().writer().points();
  const auto before = std::count(points.begin(), points.end(), WritePoint::kUsage);
  for (int i = 0; i < 60; ++i) {
    world.apply(gang_job("short" + std::to_string(i), 1, "1s"));
    world.run_for(seconds{1});
  }
  // 60 s with a rest of 5 s after each write: 12, and one at the edge.
  EXPECT_LE(std::count(points.begin(), points.end(), WritePoint::kUsage), before + 13);
  world.run_for(seconds{20});
  EXPECT_EQ(record().jobs, "") << "of jobs that have ended nothing is kept";
  EXPECT_EQ(record().namespaces.size(), 1U);
}

// A record that could not be written costs the rest of a run that was requeued meanwhile, and no
// more: the second run is not taken for the first, which the record lists.
TEST_P(UsageWrites, ThatAreLostCostTheRestOfARequeuedRun) {
  json config = multifactor("10s");
  config["spec"]["requeue"] = {{"delay", "1s"}};
  world.apply(config);
  world.run_for(seconds{20});
  world.apply(gang_job("again", 1, "20s"));
  ASSERT_TRUE(world.run_until([&] { return !record().jobs.empty(); }, seconds{30}));
  const std::int64_t before = recorded();
  world.server().inject({.verb = "patch", .resource = "usagerecords", .code = 503, .count = 1000});
  world.run_for(seconds{5});
  world.patch_job("again", {{"control", {{"requeueRequest", 1}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("again") == "Completed"; }, seconds{120}))
      << world.log_tail();
  EXPECT_EQ(world.job("again").status.restarts, 1);
  EXPECT_EQ(recorded(), before);
  world.server().clear_faults();
  world.restart_operator();
  world.run_for(seconds{8});
  EXPECT_EQ(recorded(), before + ran({"again"}));
}

// A gang becomes ready, and is charged, while its leader cannot store that. For the next leader it
// is a gang that starts, and what the record has of it is of this very run.
TEST_P(UsageWrites, OfAReadinessThatIsNotStoredAreNotChargedAgain) {
  world.run_for(seconds{20});
  world.apply(gang_job("late", 1, ""));
  ASSERT_TRUE(world.run_until([&] { return world.job("late").status.starts == 1; }, seconds{60}));
  world.server().inject({.verb = "patch", .resource = "jobs", .code = 503, .count = 1000});
  world.run_for(seconds{25});
  ASSERT_NE(record().jobs, "");
  world.server().clear_faults();
  world.restart_operator();
  ASSERT_FALSE(kube::is_true(world.job("late").status.conditions, kube::kReady));
  world.run_for(seconds{40});  // longer than the run that was charged
  world.patch_job("late", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until(
      [&] { return kube::is_true(world.job("late").status.conditions, kube::kFinished); },
      seconds{120}));
  world.run_for(seconds{8});
  EXPECT_EQ(recorded(), ran({"first", "late"})) << world.log_tail();
}

// A gang reaches its limit before its last pod runs, and its nodes slice no more. The next leader
// finds it ending. By the timetable it was off for half of the time since, which does not count.
TEST_P(UsageWrites, AfterADecidedEndTimeWithoutSlicingIsNotCharged) {
  world.run_for(seconds{20});
  world.apply(gang_job("other", 5, ""));
  world.apply(gang_job("half", 5, "", {{"schedule", {{"timeLimit", "20s"}}}},
                       {{"test/waiting", "ContainerCreating"}, {"test/waiting-index", "1"}}));
  // Pods stay after the end is decided.
  world.server().inject({.verb = "delete", .resource = "pods", .code = 503, .count = 1000});
  ASSERT_TRUE(world.run_until([&] { return world.job("half").status.ending.has_value(); },
                              seconds{120}));
  world.take_process().reset();
  for (const char* node : {"n12", "n13", "n14", "n15", "n16"}) world.node(node).open("FailedOpen");
  world.run_for(seconds{30});
  world.server().clear_faults();
  world.restart_operator();
  world.run_for(seconds{5});
  world.patch_job("other", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until(
      [&] { return kube::is_true(world.job("other").status.conditions, kube::kFinished); },
      seconds{120}));
  world.run_for(seconds{8});
  EXPECT_EQ(world.state("half"), "Timeout");
  EXPECT_EQ(recorded(), ran({"first", "other", "half"})) << world.log_tail();
}

// The leader has the sums in memory, so a deletion by hand loses nothing.
TEST_P(UsageWrites, MakeARecordAgainThatWasDeleted) {
  world.run_for(seconds{20});
  const std::int64_t before = recorded();
  ASSERT_GT(before, 0);
  ASSERT_TRUE(
      world.client().remove<kube::UsageRecord>({"", std::string{kube::kUsageRecordName}}, {}).ok());
  world.apply(gang_job("long", 1, ""));
  world.run_for(seconds{12});
  EXPECT_GE(recorded(), before);
}

}  // namespace
}  // namespace control
