// The walk of the backfill by itself: which jobs start behind others that wait, which promises are
// made, and where a pass ends (8.1). Nodes a to d, one job on each. After a pass each job that
// waited is written as "2 runs c", "1 at 60 abcd" (its promise) or "3 waits".
#include "scheduler/backfill/backfill_pass.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "scheduler/gang/own_turns.h"
#include "scheduler/testing/no_turn_events.h"
#include "scheduler/testing/pass_world.h"

namespace sched::testing {
namespace {

constexpr int kAllRecords = 1'000;

class BackfillPassTest : public ::testing::Test {
 protected:
  // Job 9 has a and b until 60; what the tests are about comes behind it.
  void begin(BackfillParameters parameters = {}) {
    Configuration configuration = PassWorld::one_partition();
    // bf_resolution rounds all times. One second leaves the numbers of the tests as they are.
    parameters.resolution = seconds(1);
    configuration.cluster.backfill = parameters;
    begin_with(configuration);
    world_->run(9, "ab").time_limit = seconds(60);
  }
  void begin_with(const Configuration& configuration) {
    world_ = std::make_unique<PassWorld>(configuration);
    turns_ = std::make_unique<gang::OwnTurns>(world_->cluster, world_->books, events_, true);
    limits_ = std::make_unique<TimeLimits>(world_->cluster, world_->books, *turns_);
    pass_ = std::make_unique<BackfillPass>(world_->cluster, world_->groups, world_->books,
                                           world_->limits, world_->admission, *limits_, *turns_,
                                           *world_);
  }
  void submit(std::int64_t id, int nodes_count, double limit) {
    JobRequest request = job(id, nodes_count);
    request.time_limit = seconds(limit);
    world_->submit(request);
  }
  // 1 must wait for all nodes; 2 is over by then, 3 is not.
  void submit_three() {
    submit(1, 4, 60);
    submit(2, 1, 30);
    submit(3, 1, 120);
  }
  std::string after_pass(double now) {
    world_->now = at(now);
    pass_->begin(at(now));
    while (!pass_->step(at(now), kAllRecords)) {
    }
    return look();
  }
  void begin_and_step_once() {
    world_->now = at(1);
    pass_->begin(at(1));
    ASSERT_FALSE(pass_->step(at(1), 1));
  }
  void finish() {
    while (!pass_->step(at(1), 1)) {
    }
  }
  std::string look() {
    std::string text;
    for (const auto& [order, job] : world_->books.table().all()) {
      if (job->id == JobId{9} || job->id == JobId{9'000}) continue;
      text += (text.empty() ? "" : ", ") + to_string(job->id) + " ";
      if (job->running()) {
        text += "runs " + world_->letters(job->allocation);
      } else if (job->plan) {
        text +=
            "at " + std::to_string(base::micros_since_epoch(job->plan->start) / 1'000'000) + " ";
        for (const NodeIndex node : job->plan->nodes) text += world_->cluster.node(node).name;
      } else {
        text += "waits";
      }
    }
    return text;
  }

  std::unique_ptr<PassWorld> world_;
  NoTurnEvents events_;
  std::unique_ptr<gang::Turns> turns_;
  std::unique_ptr<TimeLimits> limits_;
  std::unique_ptr<BackfillPass> pass_;
};

// 3 gets d after 1: among the nodes free of promises then, it is free of jobs already.
TEST_F(BackfillPassTest, AJobStartsBehindAnotherOnlyIfItIsOverByTheOthersStart) {
  begin();
  submit_three();
  // 2 would end at 31. 3 would end at 121, while all nodes are promised to 1 from 60 to 120.
  EXPECT_EQ(after_pass(1), "1 at 60 abcd, 2 runs c, 3 at 120 d");
}

// The promise begins at 60, and a job of 59 s ends just then: both ends of a job count (Slurm).
TEST_F(BackfillPassTest, AJobThatEndsWithThePromiseIsTooLong) {
  begin();
  submit(1, 4, 60);
  submit(2, 1, 59);
  submit(3, 1, 58);
  // Started at 1: 59 s end at 60, 58 s at 59.
  EXPECT_EQ(after_pass(1), "1 at 60 abcd, 2 at 120 c, 3 runs c");
}

// 8.1 c: without a promise it holds up no other job.
TEST_F(BackfillPassTest, AJobOfTooLowAPriorityGetsNoPromise) {
  begin({.min_prio_reserve = Priority{1000}});
  submit_three();
  // Job priorities fall with their numbers and are all below 1000.
  EXPECT_EQ(after_pass(1), "1 waits, 2 runs c, 3 runs d");
}

// A start of 1 has just failed on a, where it may try again at 90. Nothing stays idle for it until
// then, and the next pass is due.
TEST_F(BackfillPassTest, NodesThatRefusedAJobAreNotPromisedToIt) {
  begin();
  submit_three();
  Job& refused = *world_->books.find(JobId{1});
  refused.retry.nodes = {world_->cluster.find_node("a").value()};
  refused.retry.nodes_until = at(90);
  EXPECT_EQ(after_pass(1), "1 waits, 2 runs c, 3 runs d");
  EXPECT_EQ(pass_->passed_until(), at(90));
}

// Nor does one that has not waited for long enough.
TEST_F(BackfillPassTest, AJobThatIsTooYoungGetsNoPromise) {
  begin({.min_age_reserve = std::chrono::hours{1}});
  submit_three();
  EXPECT_EQ(after_pass(1), "1 waits, 2 runs c, 3 runs d");
}

// bf_job_part_count_reserve: 1 has the one promise. 2 is over before it begins and starts; 3 would
// need a promise of its own.
TEST_F(BackfillPassTest, OnlySoManyJobsOfAPartitionGetAPromise) {
  begin({.job_part_count_reserve = 1});
  submit_three();
  EXPECT_EQ(after_pass(1), "1 at 60 abcd, 2 runs c, 3 waits");
}

// bf_max_job_test counts places of the queue, also of jobs that start.
TEST_F(BackfillPassTest, APassLooksAtSoManyPlacesOfTheQueue) {
  begin({.max_job_test = 1, .node_space_size = 100});
  submit_three();
  EXPECT_EQ(after_pass(1), "1 at 60 abcd, 2 waits, 3 waits");
}

// bf_node_space_size, which is as large as bf_max_job_test unless it is set: a promise of 1 needs
// room for its beginning and its end.
TEST_F(BackfillPassTest, APassEndsWhenThePlanIsFull) {
  begin({.node_space_size = 1});
  submit_three();
  EXPECT_EQ(after_pass(1), "1 waits, 2 waits, 3 waits");
  begin({.node_space_size = 2});
  submit_three();
  EXPECT_EQ(after_pass(1), "1 at 60 abcd, 2 runs c, 3 waits");
}

// bf_max_job_start is for each pass: the next one starts job 3.
TEST_F(BackfillPassTest, APassStartsSoManyJobs) {
  begin({.max_job_start = 1});
  submit(1, 4, 60);
  submit(2, 1, 30);
  submit(3, 1, 30);
  EXPECT_EQ(after_pass(1), "1 at 60 abcd, 2 runs c, 3 waits");
  EXPECT_EQ(after_pass(2), "1 at 60 abcd, 2 runs c, 3 runs d");
}

// Job 1 could start at 60, which is behind 1 + 50 s: without a promise it holds nothing back from 2
// and 3.
TEST_F(BackfillPassTest, NothingIsPromisedBehindTheWindow) {
  begin({.window = seconds(50)});
  submit_three();
  EXPECT_EQ(after_pass(1), "1 waits, 2 runs c, 3 runs d");
}

// A job of a user who is at a limit is not tried, however many of them there are (8.1 n).
TEST_F(BackfillPassTest, JobsOverALimitUseUpNoPlaces) {
  Configuration configuration = PassWorld::one_partition();
  configuration.cluster.backfill = {.max_job_test = 2, .node_space_size = 100};
  QosConfig none;
  none.name = "none";
  none.limits.user_jobs = 0;
  configuration.qos = {none};
  begin_with(configuration);
  world_->run(9, "ab").time_limit = seconds(60);
  for (std::int64_t id = 11; id < 100; ++id) {
    JobRequest request = job(id, 1);
    request.qos = "none";
    request.priority = Priority{5000};
    world_->submit(request);
  }
  submit_three();
  world_->now = at(1);
  pass_->begin(at(1));
  while (!pass_->step(at(1), kAllRecords)) {
  }
  EXPECT_TRUE(world_->books.find(JobId{1})->plan);
  EXPECT_TRUE(world_->books.find(JobId{2})->running());
  EXPECT_FALSE(world_->books.find(JobId{3})->plan) << "the third place";
}

// A job became ready, or one came in behind: what was promised can be kept. The next pass comes all
// the same, since the records before the change might find something better now.
TEST_F(BackfillPassTest, APassGoesOnAfterAChangeThatTakesNoPromisedNodes) {
  begin();
  submit_three();
  begin_and_step_once();
  world_->books.changed();
  finish();
  EXPECT_EQ(look(), "1 at 60 abcd, 2 runs c, 3 at 120 d");
  EXPECT_NE(pass_->passed_version(), world_->books.version());
}

// The pass made promises in view of nodes that are taken now.
TEST_F(BackfillPassTest, APassEndsWhenPromisedNodesWereTaken) {
  const auto expect_end = [&](const auto& take) {
    begin();
    submit_three();
    begin_and_step_once();
    take();
    EXPECT_TRUE(pass_->step(at(1), 1));
    EXPECT_FALSE(pass_->active());
    EXPECT_EQ(look(), "1 at 60 abcd, 2 waits, 3 waits");
    EXPECT_NE(pass_->passed_version(), world_->books.version());
  };
  // A start of the main pass, without a limit.
  expect_end([&] { world_->run(9'000, "c"); });
  // A claim of a preemptor.
  expect_end([&] {
    Allocation claim{.nodes = {{.node = world_->cluster.find_node("c").value()}}};
    world_->books.set_claim(*world_->books.find(JobId{3}), claim, at(100));
  });
  expect_end([&] { world_->set_state("d", NodeState::kDown); });
}

// A start on other nodes, or one that is over before, is in no promise's way.
TEST_F(BackfillPassTest, APassGoesOnAfterAStartOnOtherNodes) {
  begin();
  submit(1, 3, 60);
  submit(2, 1, 30);
  begin_and_step_once();
  ASSERT_EQ(look(), "1 waits, 2 waits");
  world_->run(8, "d");
  finish();
  EXPECT_EQ(look(), "1 at 60 abc, 2 runs c, 8 runs d");
}

// 1 starts before its promise begins, since 9 has ended: the promise was for 1 itself.
TEST_F(BackfillPassTest, APassGoesOnAfterAStartOfAJobOnItsOwnPromisedNodes) {
  begin();
  submit_three();
  begin_and_step_once();
  world_->end(9);
  Job& first = *world_->books.find(JobId{1});
  const PartitionIndex where = first.queued.in.front().partition;
  Allocation all{.whole_nodes = true};
  for (const char* name : {"a", "b", "c", "d"}) {
    const NodeIndex node = world_->cluster.find_node(name).value();
    all.nodes.push_back({.node = node, .cores = CoreSet::first(4), .cpus = 4});
  }
  world_->admission.withdraw(first);
  world_->books.begin(first, where, all, {.whole_nodes = true, .shares_nodes = false}, at(1));
  EXPECT_FALSE(pass_->step(at(1), 1));
  EXPECT_TRUE(pass_->active());
}

// bf_continue: the promises made so far may be a little wrong, but jobs far behind in the queue are
// reached.
TEST_F(BackfillPassTest, APassWithWrongPromisesGoesOnIfItIsTold) {
  begin({.continues = true});
  submit_three();
  begin_and_step_once();
  world_->run(8, "c");
  finish();
  EXPECT_EQ(look(), "1 at 60 abcd, 2 runs d, 3 at 120 d, 8 runs c");
}

// A record that comes in before those that the pass has come to is the next one: what starts after
// it does not delay it.
TEST_F(BackfillPassTest, AJobThatComesInGoesBeforeThoseBehindIt) {
  begin();
  world_->run(8, "c").time_limit = seconds(600);
  submit(1, 4, 60);
  submit(2, 1, 30);
  begin_and_step_once();
  JobRequest urgent = job(3, 1);
  urgent.time_limit = seconds(30);
  urgent.priority = Priority{5000};
  world_->submit(urgent);
  finish();
  EXPECT_EQ(look(), "8 runs c, 1 at 600 abcd, 2 at 2 d, 3 runs d");
}

// A pass over the same state would find the same until the first promise begins.
TEST_F(BackfillPassTest, AnAnswerHoldsUntilTheFirstPromise) {
  begin();
  submit(1, 4, 60);
  EXPECT_EQ(after_pass(1), "1 at 60 abcd");
  EXPECT_EQ(pass_->passed_version(), world_->books.version());
  EXPECT_EQ(pass_->passed_until(), at(60));
}

// If plans are not reported, the pass is over with the last job that can start: 2, on c. Before, 1
// was promised its nodes, or 2 might be in its way.
TEST_F(BackfillPassTest, WithoutPlansAPassEndsWithTheLastJobThatCanStart) {
  begin();
  pass_->tell_no_plans();
  submit_three();
  submit(4, 1, 120);
  EXPECT_EQ(after_pass(1), "1 waits, 2 runs c, 3 waits, 4 waits");
  EXPECT_EQ(pass_->passed_until(), at(60)) << "3 was not promised d from 120 on";
}

// c and d are promised to 1 from 60 on, and neither 2 nor 3 is over by then. Their kind could start
// if 1 were promised nothing, so 1 is tried; then the pass is over.
TEST_F(BackfillPassTest, WithoutPlansOnlyPromisesThatMayMatterAreMade) {
  begin();
  pass_->tell_no_plans();
  submit(1, 4, 60);
  EXPECT_EQ(after_pass(1), "1 waits");
  EXPECT_EQ(pass_->passed_until(), base::kNever) << "no job behind, so not even 1 was tried";
  submit(2, 1, 120);
  submit(3, 1, 180);
  EXPECT_EQ(after_pass(31), "1 waits, 2 waits, 3 waits");
  EXPECT_EQ(pass_->passed_until(), at(60)) << "1 was promised its nodes";
  submit(4, 1, 20);
  EXPECT_EQ(after_pass(32), "1 waits, 2 waits, 3 waits, 4 runs c");
}

// Two jobs that ask for the same are one kind: if the first of them takes what there is, the second
// is looked at again.
TEST_F(BackfillPassTest, WithoutPlansAStartChangesWhatCanStart) {
  begin();
  pass_->tell_no_plans();
  submit(1, 4, 60);
  for (std::int64_t id = 2; id <= 5; ++id) submit(id, 1, 20);
  EXPECT_EQ(after_pass(1), "1 waits, 2 runs c, 3 runs d, 4 waits, 5 waits");
}

// A plan that holds no longer is taken back.
TEST_F(BackfillPassTest, AJobWhosePromiseWentLosesItsPlan) {
  begin();
  submit(1, 4, 60);
  EXPECT_EQ(after_pass(1), "1 at 60 abcd");
  world_->set_state("d", NodeState::kDown);
  EXPECT_EQ(after_pass(2), "1 waits");
}

// 8.1 i: its victims end once; their nodes are claimed, and kept from the jobs behind.
TEST_F(BackfillPassTest, APreemptorClaimsItsNodesAndKeepsThem) {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                              PassWorld::closed("high", "abcd", 2)};
  configuration.partitions.front().is_default = true;
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = PreemptMode::kCancel;
  configuration.cluster.backfill = {};
  begin_with(configuration);
  world_->run(9, "abcd", "low").time_limit = seconds(60);
  world_->submit(1, 2, "high");
  world_->now = at(1);
  pass_->begin(at(1));
  while (!pass_->step(at(1), kAllRecords)) {
  }
  const Job& preemptor = *world_->books.find(JobId{1});
  ASSERT_TRUE(preemptor.claim.has_value());
  EXPECT_EQ(world_->letters(*preemptor.claim), "ab");
  EXPECT_TRUE(preemptor.pending());
}

// 1 has claimed all nodes, and its victim, 9, has a grace time of ten minutes on a. Until then b, c
// and d are for jobs that are over by then: 2 is, 3 is not. A job of a lower tier preempts none for
// it.
TEST_F(BackfillPassTest, ClaimedNodesThatAreFreeAreForJobsThatAreOverInTime) {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                              PassWorld::closed("high", "abcd", 2)};
  configuration.partitions.front().is_default = true;
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = PreemptMode::kCancel;
  configuration.cluster.backfill = {.resolution = seconds(1)};
  configuration.cluster.kill_wait = seconds(30);
  configuration.cluster.message_timeout = seconds(10);
  begin_with(configuration);
  Job& victim = world_->run(9, "a", "low");
  victim.time_limit = std::chrono::hours{1};
  JobRequest wide = job(1, 4, "high");
  wide.time_limit = std::chrono::hours{1};
  Job& preemptor = world_->submit(wide);
  Allocation claim;
  for (const char* name : {"a", "b", "c", "d"}) {
    claim.nodes.push_back({.node = world_->cluster.find_node(name).value()});
  }
  world_->books.set_claim(preemptor, claim, at(600 + 30 + 10));
  world_->books.set_ending(victim, Ending{.final_state = JobState::kPreempted,
                                          .verdict = EndingVerdict::kPreempted,
                                          .grace_end = at(600),
                                          .preemptor = preemptor.id});
  submit(2, 1, 300);
  submit(3, 1, 900);
  submit(4, 2, 500);
  after_pass(1);
  EXPECT_EQ(world_->letters(world_->books.find(JobId{2})->allocation), "b");
  EXPECT_TRUE(world_->books.find(JobId{3})->pending());
  EXPECT_EQ(world_->letters(world_->books.find(JobId{4})->allocation), "cd");
  // 2 would be over too late now.
  submit(5, 1, 590);
  world_->end(2);
  after_pass(20);
  EXPECT_TRUE(world_->books.find(JobId{5})->pending());
}

}  // namespace
}  // namespace sched::testing
