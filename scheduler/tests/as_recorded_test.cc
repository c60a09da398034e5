// A replay decides as Slurm 22.05 was recorded to, also where the scheduler otherwise knows better
// (ClusterParameters::quirks, docs/design/differences.md).
#include "scheduler/testing/rule_test.h"

#include <string>
#include <vector>

namespace sched::testing {
namespace {

using AsRecorded = RuleTest;

// P16: a job that the gang has suspended is not a mate.
TEST_F(AsRecorded, P16_AMateRuns) {
  const auto three = nodes("n", 1, 3);
  Configuration c = gang_linear({partition("p", three)});
  c.cluster.quirks = only(&Quirks::mates_run);
  Driver driver{c, three, make_replay()};
  submit_and_pass(driver, 0, job(1, 3));
  submit_and_pass(driver, 1, on(job(2, 2), {"n2", "n3"}));
  ASSERT_EQ(state(driver, 2), JobState::kSuspended);
  submit_and_pass(driver, 2, job(3, 2));
  EXPECT_EQ(driver.nodes_of(3), (std::vector<std::string>{"n1", "n2"}));
}

// R6.31: a higher tier takes cores of jobs that are still exempt.
TEST_F(AsRecorded, R6_31_SuspendingDoesNotAskForExemptTimes) {
  const auto one = nodes("n", 1, 1);
  for (const bool as_recorded : {false, true}) {
    Configuration c = two_tiers(one, PreemptMode::kSuspend, 1);
    c.cluster.quirks = only(&Quirks::suspended_jobs_are_not_exempt, as_recorded);
    c.cluster.preempt_exempt_time = seconds(60);
    Driver driver{c, one, make_replay()};
    submit_and_pass(driver, 0, with_tasks(job(1, 1, "low"), 4));
    submit_and_pass(driver, 10, with_tasks(job(2, 1, "high"), 4));
    EXPECT_EQ(state(driver, 2), as_recorded ? JobState::kRunning : JobState::kPending);
  }
}

// P1: the counts of jobs and shadows alone say whether a tick turns a list. One shadow takes the
// place of another, the job under the new one runs on.
TEST_F(AsRecorded, P1_ATickGoesByTheCounts) {
  const auto two = nodes("n", 1, 2);
  Configuration c = two_tiers(two, PreemptMode::kSuspend, 4);
  c.cluster.select = SelectType::kLinear;
  c.cluster.quirks = only(&Quirks::turns_by_counts);
  Driver driver{c, two, make_replay()};
  submit_and_pass(driver, 0, on(job(1, 1, "low"), {"n2"}));
  submit_and_pass(driver, 1, on(job(2, 1, "high"), {"n1"}));
  submit_and_pass(driver, 2, job(3, 2, "high"));
  driver.step(at(30), SliceEnd{});
  driver.step(at(60), SliceEnd{});
  ASSERT_EQ(state(driver, 2), JobState::kSuspended);
  ASSERT_EQ(state(driver, 3), JobState::kRunning);
  EXPECT_EQ(state(driver, 1), JobState::kRunning);
}

// P17: with any shadow over a partition whose mode is CANCEL, the end of a turn is the end of the
// job.
TEST_F(AsRecorded, P17_AnyShadowMakesATurnTheLast) {
  const auto three = nodes("n", 1, 3);
  Configuration c = two_tiers(three, PreemptMode::kCancel, 4);
  c.cluster.select = SelectType::kLinear;
  c.cluster.gang = true;
  c.cluster.quirks = only(&Quirks::any_shadow_kills);
  Driver driver{c, three, make_replay()};
  submit_and_pass(driver, 0, on(job(1, 1, "low"), {"n1"}));
  submit_and_pass(driver, 1, on(job(2, 1, "low"), {"n1"}));
  submit_and_pass(driver, 2, on(job(3, 1, "high"), {"n3"}));
  driver.step(at(30), SliceEnd{});
  driver.step(at(60), SliceEnd{});
  EXPECT_EQ(state(driver, 1), JobState::kPreempted);
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
}

// P5: when the user of a job suspends it, its nodes have all their memory again, and its resume
// takes all of it.
TEST_F(AsRecorded, P5_AUsersSuspendAndResumeMoveTheMemoryOfTheNodes) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one, OverSubscribe::kForce, 4)});
  c.cluster.memory = true;
  c.cluster.quirks = only(&Quirks::suspension_frees_memory);
  Driver driver{c, one, make_replay()};
  const auto with_memory = [](std::int64_t id, std::int64_t mib) {
    JobRequest request = job(id, 1);
    request.memory = MemoryPerNode{MemoryMiB{mib}};
    return request;
  };
  submit_and_pass(driver, 0, with_memory(1, 5000));
  submit_and_pass(driver, 1, with_memory(2, 5000));
  ASSERT_EQ(state(driver, 2), JobState::kPending);
  driver.step(at(2), UserSuspend{JobId{1}});
  driver.step(at(2), Pass{});
  ASSERT_EQ(state(driver, 2), JobState::kRunning);
  driver.step(at(3), UserResume{JobId{1}});  // 5,000 and 8,000 of 8,000 MiB are held
  submit_and_pass(driver, 4, with_memory(3, 100));
  EXPECT_EQ(state(driver, 3), JobState::kPending);
  driver.step(at(5), JobGone{JobId{1}});
  driver.step(at(5), JobGone{JobId{2}});  // 3,000 stay held
  submit_and_pass(driver, 6, with_memory(4, 5001));
  EXPECT_EQ(state(driver, 4), JobState::kPending);
}

// P3: a job that its user resumes runs at once, over others, and the gang takes it for suspended
// until its turn comes.
TEST_F(AsRecorded, P3_AResumedJobRunsAtOnce) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one)});
  c.cluster.quirks = only(&Quirks::resume_runs_over_others);
  const auto states = [](const Driver& driver) {
    return std::vector<JobState>{state(driver, 1), state(driver, 2)};
  };
  using S = std::vector<JobState>;
  constexpr JobState kR = JobState::kRunning, kS = JobState::kSuspended;
  // Suspended by the gang: the list does not hear of it, and the job's turn comes as before.
  Driver driver{c, one, make_replay()};
  submit_and_pass(driver, 0, job(1, 1));
  submit_and_pass(driver, 1, job(2, 1));
  ASSERT_EQ(states(driver), (S{kR, kS}));
  driver.step(at(2), UserResume{JobId{2}});
  EXPECT_EQ(states(driver), (S{kR, kR}));
  driver.step(at(30), SliceEnd{});
  EXPECT_EQ(states(driver), (S{kR, kR})) << "job 1 is FILLER and keeps its place";
  driver.step(at(60), SliceEnd{});
  EXPECT_EQ(states(driver), (S{kS, kR}));
  driver.step(at(90), SliceEnd{});
  EXPECT_EQ(states(driver), (S{kR, kS}));
  // Suspended by its user while it ran: it comes back to the end of the list.
  driver.step(at(91), UserSuspend{JobId{1}});
  EXPECT_EQ(states(driver), (S{kS, kR}));
  driver.step(at(92), UserResume{JobId{1}});
  EXPECT_EQ(states(driver), (S{kR, kR}));
  driver.step(at(120), SliceEnd{});
  EXPECT_EQ(states(driver), (S{kR, kR})) << "job 2 filled the hole";
  driver.step(at(150), SliceEnd{});
  EXPECT_EQ(states(driver), (S{kR, kS}));
  // Suspended by its user while the gang had it suspended.
  driver.step(at(151), UserSuspend{JobId{2}});
  driver.step(at(152), UserResume{JobId{2}});
  EXPECT_EQ(states(driver), (S{kR, kR}));
}

}  // namespace
}  // namespace sched::testing
