// The consequences of the verdicts in a pass: which jobs it starts, which jobs a job that has to
// wait holds up, and what a pass need not look at again (3.4). The notation is PassWorld's: nodes a
// to d, and for each job what the pass did with it or why it waits.
#include "scheduler/pass/main_pass.h"

#include <gtest/gtest.h>

#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

// p has all nodes, q the nodes c and d.
Configuration two_partitions() {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions.push_back(PassWorld::closed("q", "cd"));
  return configuration;
}

// Victims in low are canceled for jobs in high.
Configuration preempting_tiers() {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                              PassWorld::closed("high", "abcd", 2)};
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = PreemptMode::kCancel;
  return configuration;
}

JobRequest on_nodes(JobRequest request, const std::string& letters) {
  for (const char letter : letters) request.required_nodes.emplace_back(1, letter);
  return request;
}

// Strict order: 3 would fit beside 1.
TEST(MainPass, AJobThatHasToWaitFailsItsPartitionForThoseBehind) {
  PassWorld world;
  world.submit(1, 3);
  world.submit(2, 2);
  world.submit(3, 1);
  // One node is left behind 1. 2 needs two and fails p; 3 is behind it in p.
  EXPECT_EQ(world.after_pass(at(1)), "1 runs abc, 2 Resources, 3 Priority");
}

// 3.4 step 10: a blocked job takes all nodes of its partition out of the pass, also from partitions
// that share them: R3.1, one blocked job holds up all overlapping partitions behind it.
TEST(MainPass, AFailedPartitionWithholdsItsNodesFromOthersThatHaveThem) {
  PassWorld world{two_partitions()};
  world.run(9, "a", "p");
  world.submit(1, 4, "p");
  world.submit(2, 1, "q");
  // q has not failed, but all its nodes are p's too: none of them is left for 2.
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources, 2 Resources");
  world.end(9);
  EXPECT_EQ(world.after_pass(at(2)), "1 runs abcd, 2 Resources");
}

// The other way round: a smaller partition fails, and a larger one goes on with what is left.
TEST(MainPass, AFailedPartitionLeavesTheNodesThatItHasNot) {
  PassWorld world{two_partitions()};
  world.run(9, "c", "q");
  world.submit(1, 2, "q");
  world.submit(2, 2, "p");
  // q withholds c and d; p has a and b besides.
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources, 2 runs ab");
}

// 10a: what is behind it may have all others.
TEST(MainPass, AJobThatNamesItsNodesWithholdsThoseAlone) {
  PassWorld world;
  world.run(9, "a");
  world.submit(on_nodes(job(1, 2), "ab"));
  world.submit(2, 2);
  world.submit(3, 1);
  // 1 waits for a, so a and b are withheld, also b, which is idle. c and d go to 2.
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources, 2 runs cd, 3 Resources");
}

// 3.4 step 9: "required node down" does not fail the partition, since no end of a job could
// help.
TEST(MainPass, AJobWhoseNodeIsDownIsInNobodysWay) {
  PassWorld world;
  world.set_state("a", NodeState::kDown);
  world.submit(on_nodes(job(1, 1), "a"));
  world.submit(2, 3);
  EXPECT_EQ(world.after_pass(at(1)), "1 ReqNodeNotAvail, 2 runs bcd");
}

// 3.4 step 9: held with reason BadConstraints, and out of the queue until something changes.
TEST(MainPass, AJobThatCanNeverRunIsHeldAndLeavesTheQueue) {
  PassWorld world;
  Job& never = world.submit(1, 5);
  world.submit(2, 4);
  // Five of four nodes. 2 is not behind a blocked job, as nothing is kept for one that never runs.
  EXPECT_EQ(world.after_pass(at(1)), "1 BadConstraints, 2 runs abcd");
  EXPECT_EQ(never.held.shown(), Reason::kBadConstraints);
  EXPECT_TRUE(never.queued.in.empty());
}

// Slurm refuses it at submission, also behind other jobs.
TEST(MainPass, AJobWithDevicesThatNoNodeHasIsHeldBehindAFailedPartition) {
  PassWorld world;
  world.run(9, "abcd");
  world.submit(1, 4);
  JobRequest gpus = job(2, 1);
  gpus.devices = {{.kind = {.name = "gpu", .type = "a100"}, .count = 1}};
  Job& never = world.submit(gpus);
  world.submit(3, 1);
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources, 2 BadConstraints, 3 Priority");
  EXPECT_TRUE(never.queued.in.empty());
}

// R9.8: a limit lets the job wait with its own reason, and those behind it may start.
TEST(MainPass, AJobOverALimitLetsOthersPass) {
  Configuration configuration = PassWorld::one_partition();
  configuration.qos = {{.name = "one"}};
  configuration.qos.front().limits.group_jobs = 1;
  PassWorld world{configuration};
  for (int id = 1; id <= 2; ++id) {
    JobRequest request = job(id, 1);
    request.qos = "one";
    world.submit(request);
  }
  world.submit(3, 1);
  EXPECT_EQ(world.after_pass(at(1)), "1 runs a, 2 QOSGrpJobsLimit, 3 runs b");
}

// The victims' ends are decided once. Until the claim ends, its nodes are for the preemptor, and
// the jobs of its tier and below wait.
TEST(MainPass, APreemptorClaimsTheNodesOnceAndKeepsThemUntilTheClaimEnds) {
  PassWorld world{preempting_tiers()};
  world.run(8, "abcd", "low");
  world.submit(1, 4, "high");
  world.submit(2, 1, "low");
  EXPECT_EQ(world.after_pass(at(1)), "1 preempts on abcd, 2 Resources");
  EXPECT_EQ(world.after_pass(at(2)), "1 Resources, 2 Resources");
  // The claim was made at 1 and has run out after a minute, so the ends are decided again.
  EXPECT_EQ(world.after_pass(at(61)), "1 preempts on abcd, 2 Resources");
  world.end(8);
  EXPECT_EQ(world.after_pass(at(62)), "1 runs abcd, 2 Resources");
}

// 5 has claimed all nodes for when its victim, 9, is gone from a. Jobs ahead of it have b to d
// until then, if they are over in time.
TEST(MainPass, ClaimedNodesAreForJobsThatAreOverInTime) {
  Configuration configuration = preempting_tiers();
  configuration.partitions.push_back(PassWorld::closed("other", "abcd", 2));
  PassWorld world{configuration};
  Job& victim = world.run(9, "a", "low");
  Job& claimant = world.submit(5, 4, "high");
  Allocation claim;
  for (const char* name : {"a", "b", "c", "d"}) {
    claim.nodes.push_back({.node = world.cluster.find_node(name).value()});
  }
  const ClusterParameters& parameters = world.cluster.parameters();
  world.books.set_claim(claimant, std::move(claim),
                        at(600) + parameters.kill_wait + parameters.message_timeout);
  world.books.set_ending(victim, Ending{.final_state = JobState::kPreempted,
                                        .verdict = EndingVerdict::kPreempted,
                                        .grace_end = at(600),
                                        .preemptor = claimant.id});
  const auto submit = [&](std::int64_t id, int nodes, double limit) -> Job& {
    JobRequest request = job(id, nodes, "other");
    request.time_limit = seconds(limit);
    return world.submit(request);
  };
  Job& brief = submit(1, 1, 300);
  world.after_pass(at(1));
  EXPECT_EQ(world.letters(brief.allocation), "b");
  Job& too_long = submit(2, 1, 900);
  world.after_pass(at(2));
  EXPECT_TRUE(too_long.pending());
  EXPECT_FALSE(too_long.claim);
}

// A job before the preemptor waits for nodes that are claimed, and fails the partition for it.
TEST(MainPass, AJobWithAClaimIsReachedThoughItsPartitionHasFailed) {
  PassWorld world{preempting_tiers()};
  world.run(8, "abcd", "low");
  world.submit(2, 4, "high");
  EXPECT_EQ(world.after_pass(at(1)), "2 preempts on abcd");
  world.submit(1, 4, "high");
  world.submit(3, 1, "high");
  // 1 goes first, finds the nodes claimed by 2 and fails high. 2 is tried all the same, because its
  // claim counts more than the failure; 3 has no claim.
  EXPECT_EQ(world.after_pass(at(2)), "2 Resources, 1 Resources, 3 Priority");
  world.end(8);
  EXPECT_EQ(world.after_pass(at(3)), "2 runs abcd, 1 Resources, 3 Priority");
}

// 13.3: it can no longer end before its deadline, so it ends with state Deadline.
TEST(MainPass, AJobPastItsLatestStartIsOver) {
  PassWorld world;
  JobRequest late = job(1, 1);
  late.deadline = at(20);
  late.time_limit = seconds(15);
  world.submit(late);
  // The latest start is 20 - 15 = 5.
  EXPECT_EQ(world.after_pass(at(6)), "1 is over");
  EXPECT_EQ(world.admission.queue().size(), 0U);
}

// 10c: a job of so low a priority gets no promise, so it holds up no job behind it.
TEST(MainPass, AJobOfTooLowAPriorityForAPromiseHoldsUpNoOther) {
  Configuration configuration = PassWorld::one_partition();
  configuration.cluster.backfill.min_prio_reserve = Priority{500};
  PassWorld world{configuration};
  world.run(9, "a");
  JobRequest low = job(1, 4);
  low.priority = Priority{499};
  JobRequest behind = job(2, 1);
  behind.priority = Priority{1};
  world.submit(low);
  world.submit(behind);
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources, 2 runs b");
}

// 10c: nor does one that is too young; when it has come of age, the answer is another one.
TEST(MainPass, AJobThatIsTooYoungForAPromiseHoldsUpNoOtherYet) {
  Configuration configuration = PassWorld::one_partition();
  configuration.cluster.backfill.min_age_reserve = seconds(60);
  PassWorld world{configuration};
  world.run(9, "a");
  world.submit(1, 4);
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources");
  EXPECT_EQ(world.pass.passed_until(), at(60));
  world.submit(2, 1);
  EXPECT_EQ(world.after_pass(at(59)), "1 Resources, 2 runs b");
  world.submit(3, 1);
  EXPECT_EQ(world.after_pass(at(60)), "1 Resources, 3 Priority");
}

// Only the job's least time limit is allowed: the backfill may cut the limit, a pass may not.
TEST(MainPass, AJobWhoseLimitTheBackfillHasToCutWaitsForIt) {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions.front().max_time = seconds(100);
  PassWorld world{configuration};
  JobRequest request = job(1, 1);
  request.time_limit = seconds(200);
  request.time_min = seconds(50);
  world.submit(request);
  world.submit(2, 1);
  EXPECT_EQ(world.after_pass(at(1)), "1 PartitionTimeLimit, 2 runs a");
}

// A job that can never run in one partition may run in another one.
TEST(MainPass, AJobThatAnotherPartitionCanHoldIsNotHeld) {
  Configuration configuration = two_partitions();
  configuration.partitions.back().priority_tier = 2;
  PassWorld world{configuration};
  world.run(9, "a", "p");
  JobRequest either = job(1, 3);
  either.partitions = {"q", "p"};
  Job& waits = world.submit(either);
  EXPECT_EQ(world.after_pass(at(1)), "1 runs bcd");
  EXPECT_EQ(waits.held, Holds{});
}

// --- how far a pass goes ---

// default_queue_depth (3.1). A pass has not seen records beyond its depth, so the next one must not
// be spared as unchanged.
TEST(MainPass, TriesNoMoreRecordsThanItsDepth) {
  PassWorld world;
  for (int id = 1; id <= 3; ++id) world.submit(id, 1);
  // The third record is not reached, and the pass says nothing about it: its reason stays None.
  EXPECT_EQ(world.after_pass(at(1), 2), "1 runs a, 2 runs b, 3 None");
  EXPECT_LT(world.pass.passed_version(), world.books.version());
  EXPECT_EQ(world.after_pass(at(1)), "3 runs c");
}

// partition_job_depth (3.4 step 6): the second record of p gets reason Priority, and q has a count
// of its own.
TEST(MainPass, TriesNoMoreRecordsOfAPartitionThanItsDepth) {
  Configuration configuration = two_partitions();
  configuration.cluster.queue.partition_job_depth = 1;
  PassWorld world{configuration};
  world.submit(1, 1, "p");
  world.submit(2, 1, "p");
  world.submit(3, 1, "q");
  EXPECT_EQ(world.after_pass(at(1)), "1 runs a, 2 Priority, 3 runs c");
}

// sched_max_job_start (3.4 step 5) ends the pass; the others are looked at by the next one.
TEST(MainPass, StartsNoMoreJobsThanItMay) {
  Configuration configuration = PassWorld::one_partition();
  configuration.cluster.queue.max_job_start = 1;
  PassWorld world{configuration};
  world.submit(1, 1);
  world.submit(2, 1);
  EXPECT_EQ(world.after_pass(at(1)), "1 runs a, 2 None");
}

// 1 fails p; it starts through its record in q, which is of a lower tier, so 2 need not wait for
// it.
TEST(MainPass, AnotherPassIsDueWhenABlockerStartedElsewhere) {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions = {PassWorld::closed("p", "ab", 2), PassWorld::closed("q", "cd", 1)};
  PassWorld world{configuration};
  world.run(9, "a", "p");
  JobRequest either = job(1, 2);
  either.partitions = {"p", "q"};
  world.submit(either);
  world.submit(2, 1, "p");
  EXPECT_EQ(world.after_pass(at(1)), "1 runs cd, 2 Priority");
  EXPECT_TRUE(world.more);
  EXPECT_EQ(world.after_pass(at(1)), "2 runs b");
  EXPECT_FALSE(world.more);
}

// A node that comes back without a word to the books is not seen until something changes.
TEST(MainPass, AnUnchangedStateIsNotLookedAtAgain) {
  PassWorld world;
  world.set_state("a", NodeState::kDown);
  world.submit(1, 4);
  EXPECT_EQ(world.after_pass(at(1)), "1 Resources");
  EXPECT_EQ(world.after_pass(at(2)), "1 Resources");
  EXPECT_EQ(world.pass.passed_version(), world.books.version());
  world.set_state("a", NodeState::kUp);
  EXPECT_EQ(world.after_pass(at(3)), "1 Resources");
  world.books.changed();
  EXPECT_EQ(world.after_pass(at(4)), "1 runs abcd");
}

// Nothing changes, but time passes: the claim runs out.
TEST(MainPass, TheAnswersHoldUntilTheFirstOfThemMayChange) {
  PassWorld world{preempting_tiers()};
  world.run(8, "abcd", "low");
  world.submit(1, 4, "high");
  world.after_pass(at(1));
  world.after_pass(at(2));
  EXPECT_EQ(world.pass.passed_until(), at(61));
}

}  // namespace
}  // namespace sched::testing
