// Tests of which jobs a pass tries first (3.2, 3.3, 9).
#include "scheduler/testing/rule_test.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sched::testing {
namespace {

using QueueOrder = RuleTest;

// 3.2 step 5: partitions of one tier in the order in which the job names them, each once.
TEST_F(QueueOrder, R3_2_5_PartitionsOfATierAreTriedInTheJobsOrder) {
  const auto two = nodes("n", 1, 2);
  for (const SchedulerType type : {SchedulerType::kBackfill, SchedulerType::kBuiltin}) {
    Configuration c = whole_nodes({closed("a", {two[0]}), closed("b", {two[1]})});
    c.cluster.scheduler = type;
    Driver driver{c, two, make_replay()};
    JobRequest request = job(1, 1);
    request.partitions = {"b", "a", "b"};
    submit_and_pass(driver, 0, request);
    EXPECT_EQ(driver.nodes_of(1), std::vector<std::string>{"n2"});
    request = job(2, 2);
    request.partitions = {"b", "b"};  // one partition: it can never run
    submit_and_pass(driver, 1, request);
    EXPECT_EQ(driver.view(2).reason, Reason::kBadConstraints);
  }
}

// 3.3 step 2: a job that may preempt the other goes first, by the test of 7.2.
TEST_F(QueueOrder, R3_3_2_PriorityIsAConditionOfTheOrderToo) {
  Configuration c = with_qos({{"b", ""}, {"a", "b"}});
  // Job 2 may preempt job 1, with PRIORITY only if its priority is above 50. If it may not, the
  // tier of job 1 decides.
  EXPECT_EQ(taken_first(c, "b", "a", 40), 2);
  c.qos[1].preempt_priority = true;
  EXPECT_EQ(taken_first(c, "b", "a", 40), 1);
  EXPECT_EQ(taken_first(c, "b", "a", 50), 1);
  EXPECT_EQ(taken_first(c, "b", "a", 60), 2);
  c.qos[1].preempt_priority = false;
  c.cluster.preempt_priority = true;
  EXPECT_EQ(taken_first(c, "b", "a", 40), 1);
}

// Job 1 has tier 2 and priority 50, job 2 tier 1. With WITHIN a higher priority may preempt, so it
// goes before the tier; an equal one may not (7.2).
TEST_F(QueueOrder, R3_3_2_WithinOrdersAQosByPriority) {
  Configuration c = with_qos({{"a", ""}});
  EXPECT_EQ(taken_first(c, "a", "a", 60), 1) << "the tier comes before the priority";
  c.qos[0].preempt_within = true;
  EXPECT_EQ(taken_first(c, "a", "a", 60), 2);
  EXPECT_EQ(taken_first(c, "a", "a", 50), 1);
}

// 1.4: to preempt is not transitive. a may preempt b and b may preempt c, but a not c.
TEST_F(QueueOrder, R3_3_2_WhoMayPreemptThroughOthersOnlyIsNotFirst) {
  const Configuration c = with_qos({{"c", ""}, {"b", "c"}, {"a", "b"}});
  // Whatever its priority, a has no right over c; b has, whatever its own.
  EXPECT_EQ(taken_first(c, "c", "a", 90), 1);
  EXPECT_EQ(taken_first(c, "c", "b", 10), 2);
}

// The head of lane a (job 2, priority 10) may not preempt job 1 (50) of lane b, but job 3 (60)
// behind it may: the whole lane counts.
TEST_F(QueueOrder, R3_3_2_WhoIsMoreImportantCountsBehindItsHead) {
  const auto two = nodes("n", 1, 2);
  Configuration c = with_qos({{"b", ""}, {"a", "b"}});
  c.qos[1].preempt_priority = true;
  c.partitions = {closed("high", {two[0]}, 2), closed("low", {two[1]}, 1)};
  c.cluster.gang = false;
  c.cluster.preempt_type = PreemptType::kQos;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  c.cluster.preempt_exempt_time = seconds(1000);
  Driver driver{c, two, make_replay()};
  const auto add = [&](std::int64_t id, const char* where, const char* qos,
                       std::uint32_t priority) {
    JobRequest request = job(id, 1, where);
    request.qos = qos;
    request.priority = Priority{priority};
    driver.step(at(0), Submit{request});
  };
  add(1, "low", "b", 50);
  add(2, "high", "a", 10);
  add(3, "low", "a", 60);
  driver.step(at(1), Pass{});
  EXPECT_EQ(state(driver, 1), JobState::kPending);
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
  EXPECT_EQ(state(driver, 3), JobState::kRunning);
}

// R9.2: nice lowers what a job has already, too.
TEST_F(QueueOrder, R9_2_AChangeOfNiceChangesThePriority) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one, make_replay()};
  JobRequest first = job(1, 1);
  driver.step(at(0), Submit{first});
  driver.step(at(0), Submit{job(2, 1)});
  const Priority before = driver.view(1).priority;
  first.nice = 100;
  driver.step(at(1), Update{first});
  EXPECT_EQ(driver.view(1).priority.value(), before.value() - 100);
  // Job 2 was behind and is now in front.
  driver.step(at(2), Pass{});
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
  first.nice = 0;
  driver.step(at(3), Update{first});
  EXPECT_EQ(driver.view(1).priority, before);
}

}  // namespace
}  // namespace sched::testing
