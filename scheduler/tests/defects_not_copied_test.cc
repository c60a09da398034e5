// Slurm's defects of slurm-semantics.md 15.2 that are not copied: one test each, named after its
// number. The other tests are where the code is: P8 and P10 slurm/, P9 and P20 model/legality,
// P11 and P12 select/cons_tres/victims; the node's side of P2 node-agent.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

using Names = std::vector<std::string>;

Configuration preempting(PreemptMode mode, bool gang, std::vector<PartitionConfig> partitions) {
  Configuration c = gang_linear(std::move(partitions));
  c.cluster.preempt_type = PreemptType::kPartitionPriority;
  c.cluster.preempt_mode = mode;
  c.cluster.gang = gang;
  return c;
}

Configuration on_cores(Configuration c) {
  c.cluster.select = SelectType::kConsTres;
  c.cluster.unit = SelectUnit::kCore;
  return c;
}

JobRequest on(JobRequest request, std::vector<std::string> names) {
  request.required_nodes = std::move(names);
  return request;
}

// Submits and passes.
void run(Driver& driver, double t, const JobRequest& request) {
  driver.step(at(t), Submit{request});
  driver.step(at(t), Pass{});
}

// Returns one letter for each job: R runs, S is suspended, "-" is neither.
std::string states(const Driver& driver, const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const std::int64_t id : ids) {
    const JobState state = driver.view(id).state;
    text += state == JobState::kRunning ? "R" : state == JobState::kSuspended ? "S" : "-";
  }
  return text;
}

std::vector<End> ends(Driver& driver) {
  std::vector<End> found;
  for (const Decision& decision : driver.take_log()) {
    if (const auto* end = std::get_if<End>(&decision)) found.push_back(*end);
  }
  return found;
}

// A tick may swap one shadow for another without changing their number: H1 on n1 for H2 on n1 and
// n2. L on n2 stops then, and resumes with H1's turn.
TEST(P1, SwappedShadowStopsWhoIsUnderTheNewOne) {
  const auto two = nodes("n", 1, 2);
  Driver driver{
      gang_linear({partition("low", two), partition("high", two, OverSubscribe::kForce, 4, 2)}),
      two, make_replay()};
  run(driver, 0, on(job(1, 1, "low"), {"n2"}));
  run(driver, 1, on(job(2, 1, "high"), {"n1"}));
  run(driver, 2, job(3, 2, "high"));
  EXPECT_EQ(states(driver, {1, 2, 3}), "RRS");
  driver.step(at(30), SliceEnd{});
  // At 30 job 2 is FILLER and stays; at 60 job 3 takes its turn. One shadow is over `low` before
  // and after.
  driver.step(at(60), SliceEnd{});
  EXPECT_EQ(states(driver, {1, 2, 3}), "SSR");
  driver.step(at(90), SliceEnd{});
  EXPECT_EQ(states(driver, {1, 2, 3}), "RRS");
}

// The user's resume registers a job that runs, not one that the gang takes for suspended.
TEST(P3, ResumedJobIsInTheGangAsWhatItIs) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one, make_replay()};
  run(driver, 0, job(1, 1));
  driver.step(at(1), UserSuspend{JobId{1}});
  driver.step(at(2), UserResume{JobId{1}});
  EXPECT_EQ(states(driver, {1}), "R");
  run(driver, 3, job(2, 1));
  // The gang knows that job 1 runs, so job 2 waits for its turn.
  EXPECT_EQ(states(driver, {1, 2}), "RS") << "two jobs on one node at once";
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// A user's suspend of a job that the gang had stopped, and the resume: no job's cores are
// booked twice.
TEST(P4, SuspendAndResumeAreSymmetric) {
  const auto one = nodes("n", 1, 1);
  Driver driver{on_cores(gang_linear({partition("p", one, OverSubscribe::kForce, 2)})), one,
                make_replay()};
  JobRequest whole = job(1, 1);
  whole.tasks = 4;
  run(driver, 0, whole);
  whole.id = JobId{2};
  run(driver, 1, whole);
  ASSERT_EQ(states(driver, {1, 2}), "RS");
  driver.step(at(2), UserSuspend{JobId{2}});
  driver.step(at(3), UserResume{JobId{2}});
  for (const std::int64_t id : {3, 4}) {
    whole.id = JobId{id};
    run(driver, 4, whole);
  }
  // Each job takes a whole row, and FORCE:2 has two: both are full with jobs 1 and 2. If the resume
  // had not taken back what the suspend gave, job 3 would have started.
  EXPECT_EQ(states(driver, {3, 4}), "--");
  driver.step(at(5), JobGone{JobId{1}});
  driver.step(at(5), Pass{});
  EXPECT_EQ(states(driver, {2, 3, 4}), "RS-");
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// select/linear with memory: suspending, resuming and removing suspended jobs leaves the node's
// memory as it is: 3,000 of 8,000 MiB are the victim's all the time.
TEST(P5, SuspensionLeavesMemoryAlone) {
  const auto one = nodes("n", 1, 1);
  Configuration c = preempting(PreemptMode::kSuspend, true,
                               {partition("low", one, OverSubscribe::kForce, 1),
                                partition("high", one, OverSubscribe::kForce, 1, 2)});
  c.cluster.memory = true;
  Driver driver{c, one, make_replay()};
  const auto with_memory = [](std::int64_t id, const std::string& where, std::int64_t mib) {
    JobRequest request = job(id, 1, where);
    request.memory = MemoryPerNode{MemoryMiB{mib}};
    return request;
  };
  run(driver, 0, with_memory(1, "low", 3000));
  for (int round = 0; round < 3; ++round) {
    const std::int64_t id = 10 + 2 * round;
    // 1 MiB more than is left beside job 1; 5,000 fit exactly, in every round.
    run(driver, 10 + round, with_memory(id, "high", 5001));
    EXPECT_EQ(states(driver, {1, id}), "R-") << round;
    driver.step(at(10 + round), Cancel{JobId{id}});
    run(driver, 10 + round, with_memory(id + 1, "high", 5000));
    EXPECT_EQ(states(driver, {1, id + 1}), "SR") << round;
    driver.step(at(10 + round), JobGone{JobId{id + 1}});
    EXPECT_EQ(states(driver, {1}), "R") << round;
  }
}

// Time that a victim was suspended is not time that it had: its end moves, OverTimeLimit holds for
// it, and it ends as timed out, not as preempted.
TEST(P6, SuspendedVictimKeepsItsTime) {
  const auto one = nodes("n", 1, 1);
  Configuration c = preempting(PreemptMode::kSuspend, true,
                               {partition("low", one, OverSubscribe::kForce, 1),
                                partition("high", one, OverSubscribe::kForce, 1, 2)});
  c.cluster.over_time_limit = seconds(60);
  Driver driver{c, one};
  JobRequest low = job(1, 1, "low");
  low.time_limit = seconds(60);
  driver.step(at(0), Submit{low});
  driver.run_until(at(20));
  driver.step(at(20), Submit{job(2, 1, "high")});
  driver.run_until(at(220));
  ASSERT_EQ(driver.state(1), "S(20)");
  driver.step(at(220), JobGone{JobId{2}});
  // 1 ran 20 s, was suspended for 200, and has 40 s of its limit and 60 s of OverTimeLimit left: it
  // ends at 220 + 100 = 320.
  driver.run_until(at(319));
  EXPECT_EQ(driver.state(1), "R(119)");
  driver.run_until(at(321));
  const std::vector<End> ended = ends(driver);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].verdict, EndingVerdict::kTimeout);
  EXPECT_EQ(driver.view(1).state, JobState::kTimeout);
}

// The gang's kills go the way of all preemption: the victim has its grace time.
TEST(P7, KillUnderAShadowHasItsGraceTime) {
  const auto one = nodes("n", 1, 1);
  PartitionConfig low = partition("low", one, OverSubscribe::kForce, 1);
  low.grace_time = seconds(20);
  Configuration c = on_cores(preempting(
      PreemptMode::kCancel, true, {low, partition("high", one, OverSubscribe::kForce, 1, 2)}));
  Driver driver{c, one, make_replay()};
  driver.ends_at_once = false;
  JobRequest request = job(1, 1, "low");
  request.tasks = 4;
  run(driver, 0, request);
  driver.take_log();
  request.id = JobId{2};
  request.partitions = {"high"};
  run(driver, 10, request);
  const std::vector<End> ended = ends(driver);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].job, JobId{1});
  EXPECT_EQ(ended[0].verdict, EndingVerdict::kPreempted);
  // The grace time is over at 30, and SIGKILL follows KillWait later.
  EXPECT_EQ(ended[0].kill_at, at(10) + seconds(20) + c.cluster.kill_wait);
  EXPECT_FALSE(driver.view(1).completing) << "it may go on until the grace is over";
  driver.step(at(31), Pass{});
  EXPECT_TRUE(driver.view(1).completing);
}

// QOS that may preempt each other: neither is first for that reason; priority decides.
TEST(P13, QosThatPreemptEachOtherKeepTheOrderOfPriority) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one, OverSubscribe::kNo)});
  c.cluster.gang = false;
  c.cluster.preempt_type = PreemptType::kQos;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  c.cluster.preempt_exempt_time = seconds(1000);  // a job that has started stays
  for (const auto& [name, other] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    QosConfig qos;
    qos.name = name;
    qos.preempt = {other};
    c.qos.push_back(qos);
  }
  Driver driver{c, one, make_replay()};
  std::int64_t id = 0;
  for (const char* qos : {"a", "b", "a"}) {
    JobRequest request = job(++id, 1);
    request.qos = qos;
    driver.step(at(0), Submit{request});
  }
  driver.step(at(1), Pass{});
  EXPECT_EQ(states(driver, {1, 2, 3}), "R--");
}

// A preemptor that waits for its victims keeps the nodes until it starts: a job of another
// partition that is sorted before it, of the same tier, does not get them.
TEST(P14, WaitingPreemptorKeepsItsNodes) {
  const auto one = nodes("n", 1, 1);
  Driver driver{preempting(PreemptMode::kCancel, false,
                           {partition("low", one, OverSubscribe::kNo, 1, 1),
                            partition("high", one, OverSubscribe::kNo, 1, 2),
                            partition("other", one, OverSubscribe::kNo, 1, 2)}),
                one, make_replay()};
  driver.ends_at_once = false;
  run(driver, 0, job(1, 1, "low"));
  run(driver, 1, job(2, 1, "high"));
  ASSERT_EQ(ends(driver).size(), 1U);
  JobRequest favourite = job(3, 1, "other");
  favourite.priority = Priority{0xffffff00U};
  driver.step(at(2), Submit{favourite});
  driver.step(at(3), JobGone{JobId{1}});
  driver.step(at(3), Pass{});
  EXPECT_EQ(states(driver, {2, 3}), "R-");
}

// … but not forever: after KillWait + MessageTimeout it competes again.
TEST(P14, TheClaimEnds) {
  const auto one = nodes("n", 1, 1);
  Driver driver{preempting(PreemptMode::kCancel, false,
                           {partition("low", one, OverSubscribe::kNo, 1, 1),
                            partition("high", one, OverSubscribe::kNo, 1, 2)}),
                one, make_replay()};
  driver.ends_at_once = false;
  run(driver, 0, job(1, 1, "low"));
  run(driver, 1, job(2, 1, "high"));
  driver.take_log();
  // KillWait of 30 s and MessageTimeout of 10 s since 1: the claim ended at 41.
  driver.step(at(100), Pass{});
  bool given_up = false;
  for (const Decision& decision : driver.take_log()) {
    const auto* claim = std::get_if<Claim>(&decision);
    given_up = given_up || (claim != nullptr && !claim->claim);
  }
  EXPECT_TRUE(given_up);
}

// An attempt that fails leaves nothing behind: H1 cannot start even with all victims gone and takes
// none, H2 takes the one that it needs.
TEST(P15, FailedAttemptMarksNobody) {
  for (const bool cores : {false, true}) {
    const auto three = nodes("n", 1, 3);
    Configuration c = preempting(PreemptMode::kCancel, false,
                                 {partition("low", three, OverSubscribe::kNo, 1, 1),
                                  partition("high", three, OverSubscribe::kNo, 1, 2),
                                  partition("top", {three[0]}, OverSubscribe::kNo, 1, 4),
                                  partition("wide", three, OverSubscribe::kNo, 1, 3)});
    if (cores) c = on_cores(c);
    Driver driver{c, three, make_replay()};
    driver.ends_at_once = false;
    const auto whole = [](std::int64_t id, int count, const std::string& where) {
      JobRequest request = job(id, count, where);
      request.sharing = Sharing::kNode;
      return request;
    };
    run(driver, 0, on(whole(9, 1, "top"), {"n1"}));  // no victim of any job
    run(driver, 0, on(whole(1, 1, "low"), {"n2"}));
    run(driver, 0, on(whole(2, 1, "low"), {"n3"}));
    driver.step(at(1), Submit{whole(3, 3, "wide")});
    driver.step(at(1), Pass{});
    EXPECT_TRUE(ends(driver).empty()) << "3 nodes can never be free now";
    driver.step(at(2), Cancel{JobId{3}});
    run(driver, 2, whole(4, 1, "high"));
    const std::vector<End> ended = ends(driver);
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].preemptor, JobId{4});
  }
}

// The mate of an equal-sized newcomer may be a job that is just suspended: where it goes does not
// depend on whose turn it is.
TEST(P16, SuspendedJobIsAMateToo) {
  const auto three = nodes("n", 1, 3);
  Driver driver{gang_linear({partition("p", three)}), three, make_replay()};
  run(driver, 0, job(1, 3));
  run(driver, 1, on(job(2, 2), {"n2", "n3"}));
  ASSERT_EQ(states(driver, {1, 2}), "RS");
  run(driver, 2, job(3, 2));
  // n1 has one job, n2 and n3 have two each. Where two jobs may be below, all three nodes are
  // eligible (4.4.3), and job 2 is an equal-sized mate; best fit would have begun at n1.
  EXPECT_EQ(driver.nodes_of(3), (Names{"n2", "n3"}));
}

// An unrelated shadow does not turn a time slice into a kill.
TEST(P17, SliceKillsNobodyWhoIsUnderNoShadow) {
  const auto three = nodes("n", 1, 3);
  Driver driver{preempting(PreemptMode::kCancel, true,
                           {partition("low", three, OverSubscribe::kForce, 4, 1),
                            partition("high", three, OverSubscribe::kForce, 4, 2)}),
                three, make_replay()};
  driver.ends_at_once = false;
  run(driver, 0, on(job(1, 1, "low"), {"n1"}));
  run(driver, 1, on(job(2, 1, "low"), {"n1"}));
  run(driver, 2, on(job(3, 1, "high"), {"n3"}));
  for (int tick = 1; tick <= 4; ++tick) driver.step(at(30 * tick), SliceEnd{});
  EXPECT_TRUE(ends(driver).empty());
  // They have taken turns: one of the two was stopped all the time.
  // From 1 to the last tick at 120 one of them is stopped at each instant: 119 s together.
  EXPECT_GT(driver.view(1).suspend_time + driver.view(2).suspend_time, seconds(60));
}

// The plan of a node is published as a whole, not as one message: the next leader repeats what did
// not arrive.
TEST(P2, WhatWasLostIsSaidAgain) {
  const auto one = nodes("n", 1, 1);
  const Configuration c = gang_linear({partition("p", one)});
  Driver driver{c, one};
  driver.step(at(1), Submit{job(1, 1)});
  driver.run_until(at(1));
  driver.step(at(2), Submit{job(2, 1)});
  driver.run_until(at(2));
  ASSERT_EQ(driver.published().size(), 1U);
  // A scheduler that takes over at 3, to which these plans have come. Returns what it wants
  // written.
  const auto taken_over_with = [&](std::vector<NodePlan> arrived) {
    Scheduler other{Options{}};
    other.step(at(3), Configure{std::make_shared<const Configuration>(c)});
    other.step(at(3), NodeUpdate{one.front()});
    std::vector<JobFacts> jobs;
    for (const std::int64_t id : {1, 2}) {
      const JobView view = driver.view(id);
      JobFacts restored = JobFacts::of(job(id, 1));
      restored.state = view.state;
      restored.partition = other.find_partition("p");
      restored.allocation = *view.allocation;
      restored.ready = true;
      restored.start_time = view.start_time;
      restored.clock.run = view.run_time;
      restored.clock.suspended = view.suspend_time;
      restored.clock.as_of = driver.now();
      jobs.push_back(std::move(restored));
    }
    other.restore_from_published(at(3), jobs, std::move(arrived));
    return other.take_plans(at(3));
  };
  // With the node's plan there is nothing to say; without it the whole plan is said again.
  EXPECT_TRUE(taken_over_with({driver.published().begin()->second}).empty());
  const std::vector<NodePlan> again = taken_over_with({});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().entries.size(), 2U);
}

// A stopped job keeps its cores for its own partition's peers: the books know one truth.
TEST(P18, StoppedJobsKeepTheirCores) {
  const auto one = nodes("n", 1, 1);
  Configuration c = on_cores(preempting(PreemptMode::kSuspend, true,
                                        {partition("low", one, OverSubscribe::kForce, 1, 1),
                                         partition("high", one, OverSubscribe::kForce, 1, 2)}));
  Driver driver{c, one, make_replay()};
  JobRequest whole = job(1, 1, "low");
  whole.tasks = 4;
  run(driver, 0, whole);
  whole.id = JobId{2};
  whole.partitions = {"high"};
  run(driver, 1, whole);
  ASSERT_EQ(states(driver, {1, 2}), "SR");
  whole.id = JobId{3};
  whole.partitions = {"low"};
  run(driver, 2, whole);
  EXPECT_EQ(states(driver, {1, 2, 3}), "SR-");
  driver.step(at(3), JobGone{JobId{2}});
  driver.step(at(3), Pass{});
  EXPECT_EQ(states(driver, {1, 3}), "R-");
}

// Ticks are at absolute instants, however late the caller looks.
TEST(P19, TicksDoNotDrift) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  driver.step(at(1), Submit{job(1, 1)});
  driver.run_until(at(1));
  driver.step(at(2), Submit{job(2, 1)});
  driver.run_until(at(2));
  driver.run_until(at(3 * 3600 + 7.5));
  const base::Duration ran = driver.view(1).run_time + driver.view(2).run_time;
  EXPECT_EQ(ran, at(3 * 3600 + 7.5) - at(1));
  // Job 1 until the second tick at 60, then turns of 30 s: 179 each, and 7.5 s of one of job 2.
  EXPECT_EQ(driver.view(1).run_time - driver.view(2).run_time, seconds(59 - 7.5));
}

}  // namespace
}  // namespace sched::testing
