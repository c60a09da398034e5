// Rules of the life cycle, the queue and preemption (chapters 1 to 3, 6, 7 and 13) that no
// recording shows, one test each, named after the rule.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class EngineRules : public ::testing::Test {
 protected:
  static constexpr Options kToldTiming{.told_timing = true};

  // select/linear without gang, one job per node; the partitions are the test's.
  static Configuration whole_nodes(std::vector<PartitionConfig> partitions) {
    Configuration c = gang_linear(std::move(partitions));
    c.cluster.gang = false;
    return c;
  }

  static PartitionConfig closed(const std::string& name, const std::vector<NodeSpec>& nodes,
                                std::uint16_t tier = 1) {
    return partition(name, nodes, OverSubscribe::kNo, 1, tier);
  }

  // CR_Core, or CR_CPU with task/none; partitions low and high of tiers 1 and 2, FORCE:`share`.
  static Configuration two_tiers(const std::vector<NodeSpec>& nodes, PreemptMode mode, int share) {
    Configuration c = gang_linear({partition("low", nodes, OverSubscribe::kForce, share, 1),
                                   partition("high", nodes, OverSubscribe::kForce, share, 2)});
    c.cluster.select = SelectType::kConsTres;
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    c.cluster.preempt_mode = mode;
    return c;
  }

  static JobRequest with_tasks(JobRequest request, int tasks) {
    request.tasks = tasks;
    return request;
  }

  static void submit(Driver& driver, double t, const JobRequest& request) {
    driver.step(at(t), Submit{request});
    driver.run_until(at(t));
  }

  static void submit_and_pass(Driver& driver, double t, const JobRequest& request) {
    driver.step(at(t), Submit{request});
    driver.step(at(t), Pass{});
  }

  static JobState state(const Driver& driver, std::int64_t id) { return driver.view(id).state; }

  static std::vector<End> ends(Driver& driver) {
    std::vector<End> found;
    for (const Decision& decision : driver.take_log()) {
      if (const auto* end = std::get_if<End>(&decision)) found.push_back(*end);
    }
    return found;
  }

  // Which of jobs 1 (QOS `first`, tier 2, priority 50) and 2 (QOS `second`, tier 1, `priority`) a
  // pass takes; whoever has started stays.
  static std::int64_t taken_first(Configuration c, const std::string& first,
                                  const std::string& second, std::uint32_t priority) {
    const auto one = nodes("n", 1, 1);
    c.partitions = {closed("high", one, 2), closed("low", one, 1)};
    c.cluster.gang = false;
    c.cluster.select = SelectType::kLinear;
    c.cluster.preempt_type = PreemptType::kQos;
    c.cluster.preempt_mode = PreemptMode::kCancel;
    c.cluster.preempt_exempt_time = seconds(1000);
    Driver driver{c, one, kToldTiming};
    JobRequest request = job(1, 1, "high");
    request.qos = first;
    request.priority = Priority{50};
    driver.step(at(0), Submit{request});
    request = job(2, 1, "low");
    request.qos = second;
    request.priority = Priority{priority};
    driver.step(at(0), Submit{request});
    driver.step(at(1), Pass{});
    return state(driver, 1) == JobState::kRunning ? 1 : 2;
  }

  static Configuration with_qos(std::vector<std::pair<std::string, std::string>> preempting) {
    Configuration c = gang_linear({});
    for (auto& [name, victim] : preempting) {
      QosConfig qos;
      qos.name = name;
      if (!victim.empty()) qos.preempt = {victim};
      c.qos.push_back(qos);
    }
    return c;
  }
};

TEST_F(EngineRules, R1_2_ThePartitionsQosLimitsNodes) {
  const auto four = nodes("n", 1, 4);
  Configuration c = whole_nodes({closed("p", four)});
  c.qos.resize(1);
  c.qos[0].name = "of_p";
  c.qos[0].max_nodes_per_job = 2;
  c.partitions[0].qos = "of_p";
  Driver driver{c, four, kToldTiming};
  submit_and_pass(driver, 0, job(1, 3, "p"));
  submit_and_pass(driver, 1, job(2, 2, "p"));
  EXPECT_EQ(state(driver, 1), JobState::kPending);
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
}

// 1.2: a partition's QOS limits its jobs, before their own QOS unless that has OverPartQOS.
TEST_F(EngineRules, R1_2_ThePartitionsQosComesBeforeTheJobs) {
  const auto four = nodes("n", 1, 4);
  for (const bool over : {false, true}) {
    Configuration c = whole_nodes({closed("p", four), closed("q", four)});
    c.qos.resize(2);
    c.qos[0].name = "of_p";
    c.qos[0].max_jobs_per_user = 1;
    c.qos[0].max_time = seconds(60);
    c.qos[1].name = "own";
    c.qos[1].max_jobs_per_user = 2;
    c.qos[1].over_part_qos = over;
    c.partitions[0].qos = "of_p";
    Driver driver{c, four, kToldTiming};
    JobRequest request = job(1, 1, "p");
    request.qos = "own";
    submit_and_pass(driver, 0, request);
    request.id = JobId{2};
    submit_and_pass(driver, 1, request);
    EXPECT_EQ(state(driver, 2) == JobState::kRunning, over);
    request.id = JobId{3};
    request.partitions = {"q"};
    submit_and_pass(driver, 2, request);
    EXPECT_EQ(state(driver, 3) == JobState::kRunning, !over) << "two jobs of its own QOS run";
    request = job(4, 1, "p");
    request.time_limit = seconds(120);
    submit_and_pass(driver, 3, request);
    EXPECT_EQ(driver.view(4).reason, Reason::kQosLimit);
  }
}

// 1.4: DenyOnLimit turns away what a QOS never allows; without it the job waits.
TEST_F(EngineRules, R1_4_DenyOnLimitRefusesTheSubmission) {
  const auto four = nodes("n", 1, 4);
  for (const bool denies : {false, true}) {
    Configuration c = whole_nodes({closed("p", four)});
    c.qos.resize(1);
    c.qos[0].name = "small";
    c.qos[0].deny_on_limit = denies;
    c.qos[0].max_time = seconds(60);
    c.qos[0].group_cpus = 2;
    Driver driver{c, four, kToldTiming};
    JobRequest request = job(1, 1);
    request.qos = "small";
    request.time_limit = seconds(120);
    driver.step(at(0), Submit{request});
    request = with_tasks(job(2, 1), 3);
    request.qos = "small";
    driver.step(at(0), Submit{request});
    request = with_tasks(job(3, 1), 2);
    request.qos = "small";
    request.time_limit = seconds(60);
    driver.step(at(0), Submit{request});
    EXPECT_EQ(driver.scheduler().job(JobId{1}, at(0)).has_value(), !denies);
    EXPECT_EQ(driver.scheduler().job(JobId{2}, at(0)).has_value(), !denies);
    EXPECT_TRUE(driver.scheduler().job(JobId{3}, at(0)).has_value());
  }
}

// 1.8 items 2, 5 and 6: a default is a request like any other.
TEST_F(EngineRules, R1_8_ADefaultAboveTheMaximumWaits) {
  const auto one = nodes("n", 1, 1);
  Configuration c = whole_nodes({closed("p", one), closed("q", one)});
  c.cluster.default_memory.per_node = MemoryMiB{2000};
  c.cluster.max_memory.per_node = MemoryMiB{1000};
  c.partitions[1].default_memory.per_node = MemoryMiB{500};
  Driver driver{c, one, kToldTiming};
  submit_and_pass(driver, 0, job(1, 1, "p"));
  EXPECT_EQ(driver.view(1).reason, Reason::kMaxMemPerLimit);
  submit_and_pass(driver, 1, job(2, 1, "q"));
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
}

// 3.1: sched_interval -1 leaves the backfill's passes; sched/builtin has none.
TEST_F(EngineRules, R3_1_WithoutTheMainLoopOnlyTheBackfillStarts) {
  const auto two = nodes("n", 1, 2);
  Configuration c = whole_nodes({closed("p", two)});
  c.cluster.queue.sched_interval = seconds(-1);
  c.cluster.queue.backfill_interval = seconds(20);
  Driver driver{c, two};
  submit(driver, 0, job(1, 1));  // the first pass
  submit(driver, 1, job(2, 1));
  driver.run_until(at(19));
  EXPECT_EQ(driver.state(2), "PD");
  driver.run_until(at(20));
  EXPECT_EQ(driver.state(2), "R(0)");
  c.cluster.scheduler = SchedulerType::kBuiltin;
  Driver builtin{c, two};
  submit(builtin, 0, job(1, 1));
  builtin.run_until(at(100));
  EXPECT_EQ(builtin.state(1), "PD");
}

// 3.2 step 5: partitions of one tier in the order in which the job names them, each once.
TEST_F(EngineRules, R3_2_5_PartitionsOfATierAreTriedInTheJobsOrder) {
  const auto two = nodes("n", 1, 2);
  for (const SchedulerType type : {SchedulerType::kBackfill, SchedulerType::kBuiltin}) {
    Configuration c = whole_nodes({closed("a", {two[0]}), closed("b", {two[1]})});
    c.cluster.scheduler = type;
    Driver driver{c, two, kToldTiming};
    JobRequest request = job(1, 1);
    request.partitions = {"b", "a", "b"};
    submit_and_pass(driver, 0, request);
    EXPECT_EQ(driver.nodes_of(1), std::vector<std::string>{"n2"});
    request = job(2, 2);
    request.partitions = {"b", "b"};  // one partition: it can never run
    submit_and_pass(driver, 1, request);
    EXPECT_EQ(driver.view(2).reason, Reason::kBadConstraints);
    EXPECT_EQ(driver.view(2).priority, Priority{0});
  }
}

// 3.3 step 2: whoever may preempt the other goes first, by the test of 7.2.
TEST_F(EngineRules, R3_3_2_PriorityIsAConditionOfTheOrderToo) {
  Configuration c = with_qos({{"b", ""}, {"a", "b"}});
  EXPECT_EQ(taken_first(c, "b", "a", 40), 2);
  c.qos[1].preempt_priority = true;
  EXPECT_EQ(taken_first(c, "b", "a", 40), 1);
  EXPECT_EQ(taken_first(c, "b", "a", 50), 1);
  EXPECT_EQ(taken_first(c, "b", "a", 60), 2);
  c.qos[1].preempt_priority = false;
  c.cluster.preempt_priority = true;
  EXPECT_EQ(taken_first(c, "b", "a", 40), 1);
}

TEST_F(EngineRules, R3_3_2_WithinOrdersAQosByPriority) {
  Configuration c = with_qos({{"a", ""}});
  EXPECT_EQ(taken_first(c, "a", "a", 60), 1) << "the tier comes before the priority";
  c.qos[0].preempt_within = true;
  EXPECT_EQ(taken_first(c, "a", "a", 60), 2);
  EXPECT_EQ(taken_first(c, "a", "a", 50), 1);
}

// 1.4: to preempt is not transitive.
TEST_F(EngineRules, R3_3_2_WhoMayPreemptThroughOthersOnlyIsNotFirst) {
  const Configuration c = with_qos({{"c", ""}, {"b", "c"}, {"a", "b"}});
  EXPECT_EQ(taken_first(c, "c", "a", 90), 1);
  EXPECT_EQ(taken_first(c, "c", "b", 10), 2);
}

// Behind a head of higher tier: the whole lane counts, not its first record alone.
TEST_F(EngineRules, R3_3_2_WhoIsMoreImportantCountsBehindItsHead) {
  const auto two = nodes("n", 1, 2);
  Configuration c = with_qos({{"b", ""}, {"a", "b"}});
  c.qos[1].preempt_priority = true;
  c.partitions = {closed("high", {two[0]}, 2), closed("low", {two[1]}, 1)};
  c.cluster.gang = false;
  c.cluster.preempt_type = PreemptType::kQos;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  c.cluster.preempt_exempt_time = seconds(1000);
  Driver driver{c, two, kToldTiming};
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

// 3.4 step 5: sched_max_job_start.
TEST_F(EngineRules, R3_4_5_APassStartsNoMoreThanItMay) {
  const auto three = nodes("n", 1, 3);
  Configuration c = whole_nodes({closed("p", three)});
  c.cluster.queue.max_job_start = 2;
  Driver driver{c, three, kToldTiming};
  for (std::int64_t id = 1; id <= 3; ++id) driver.step(at(0), Submit{job(id, 1)});
  driver.step(at(1), Pass{});
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
  EXPECT_EQ(state(driver, 3), JobState::kPending);
  driver.step(at(2), Pass{});
  EXPECT_EQ(state(driver, 3), JobState::kRunning);
}

// 4.5.2 test 2: a tier's shadow falls on jobs whatever PreemptType there is; until their time is
// over it must not. The waiting job is tried again at that instant.
TEST_F(EngineRules, R4_5_2_ExemptJobsAreNotSuspendedByATierUnderPreemptQosEither) {
  const auto one = nodes("n", 1, 1);
  for (const PreemptType type : {PreemptType::kPartitionPriority, PreemptType::kQos}) {
    Configuration c = two_tiers(one, PreemptMode::kSuspend, 1);
    c.cluster.preempt_type = type;
    c.cluster.preempt_exempt_time = seconds(60);
    Driver driver{c, one};
    submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
    submit(driver, 10, with_tasks(job(2, 1, "high"), 4));
    driver.run_until(at(59));
    EXPECT_EQ(driver.state(1), "R(59)");
    EXPECT_EQ(driver.state(2), "PD");
    driver.run_until(at(61));
    EXPECT_EQ(driver.state(1), "S(60)");
    EXPECT_EQ(driver.state(2), "R(1)");
  }
}

// P17 where CPUs are counted: a job that would fit beside the shadows merely waits for its turn.
TEST_F(EngineRules, P17_CountedCpusKillOnlyWhereTheShadowsLeaveTooFew) {
  const auto one = nodes("n", 1, 1, 8);
  Configuration c = two_tiers(one, PreemptMode::kCancel, 2);
  c.cluster.unit = SelectUnit::kCpu;
  c.cluster.task_affinity = false;
  Driver driver{c, one, kToldTiming};
  driver.ends_at_once = false;
  submit_and_pass(driver, 0, with_tasks(job(1, 1, "low"), 4));
  submit_and_pass(driver, 1, with_tasks(job(2, 1, "low"), 4));
  submit_and_pass(driver, 2, with_tasks(job(3, 1, "high"), 2));
  EXPECT_TRUE(ends(driver).empty());
  EXPECT_EQ(state(driver, 1), JobState::kRunning);
  EXPECT_EQ(state(driver, 2), JobState::kSuspended);
  EXPECT_EQ(driver.view(2).reason, Reason::kTimeslice);
  submit_and_pass(driver, 3, with_tasks(job(4, 1, "high"), 4));
  const std::vector<End> killed = ends(driver);  // 2 + 4 CPUs of 8: none is left for 4 more
  ASSERT_EQ(killed.size(), 1U) << "job 2 is stopped already (R7.42)";
  EXPECT_EQ(killed[0].job, JobId{1});
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// Two nodes that refuse a start do not have it by turns.
TEST_F(EngineRules, NodesThatRefusedAStartAreAvoidedTogether) {
  const auto three = nodes("n", 1, 3);
  Driver driver{whole_nodes({closed("p", three)}), three};
  driver.ready_after.reset();
  submit(driver, 0, job(1, 1));
  for (const std::string node : {"n1", "n2"}) {
    ASSERT_EQ(driver.nodes_of(1), std::vector<std::string>{node});
    const base::Instant later = driver.now() + seconds(10);
    driver.step(later,
                StartRefused{.job = JobId{1}, .avoid_nodes = {node}, .avoid_for = seconds(60)});
    driver.run_until(later + seconds(5));
  }
  EXPECT_EQ(driver.nodes_of(1), std::vector<std::string>{"n3"});
}

// R9.2: nice lowers what a job has already, too.
TEST_F(EngineRules, R9_2_AChangeOfNiceChangesThePriority) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one, kToldTiming};
  JobRequest first = job(1, 1);
  driver.step(at(0), Submit{first});
  driver.step(at(0), Submit{job(2, 1)});
  const Priority before = driver.view(1).priority;
  first.nice = 100;
  driver.step(at(1), Update{first});
  EXPECT_EQ(driver.view(1).priority.value(), before.value() - 100);
  driver.step(at(2), Pass{});
  EXPECT_EQ(state(driver, 2), JobState::kRunning);
  first.nice = 0;
  driver.step(at(3), Update{first});
  EXPECT_EQ(driver.view(1).priority, before);
}

// R9.1: a priority that is not zero holds nobody.
TEST_F(EngineRules, R9_1_APriorityReleases) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one, kToldTiming};
  JobRequest request = job(1, 1);
  driver.step(at(0), Submit{request});
  driver.step(at(0), Hold{.job = JobId{1}, .by_admin = true});
  request.time_limit = seconds(60);
  driver.step(at(1), Update{request});
  EXPECT_EQ(driver.view(1).priority, Priority{0});
  request.priority = Priority{7};
  driver.step(at(2), Update{request});
  EXPECT_EQ(driver.view(1).priority, Priority{7});
  driver.step(at(2), Pass{});
  EXPECT_EQ(state(driver, 1), JobState::kRunning);
}

// 13.2: a resume takes back what a suspend did, and no hold.
TEST_F(EngineRules, R13_2_AResumeReleasesNoHold) {
  const auto one = nodes("n", 1, 1);
  for (const bool by_admin : {false, true}) {
    Driver driver{whole_nodes({closed("p", one)}), one, kToldTiming};
    driver.step(at(0), Submit{job(1, 1)});
    driver.step(at(0), Hold{.job = JobId{1}, .by_admin = by_admin});
    driver.step(at(1), UserSuspend{JobId{1}});
    driver.step(at(2), UserResume{JobId{1}});
    driver.step(at(2), Pass{});
    EXPECT_EQ(driver.view(1).reason, by_admin ? Reason::kJobHeldAdmin : Reason::kJobHeldUser);
    EXPECT_EQ(state(driver, 1), JobState::kPending);
    driver.step(at(3), Release{JobId{1}});
    driver.step(at(4), UserSuspend{JobId{1}});
    driver.step(at(4), Pass{});
    EXPECT_EQ(driver.view(1).reason, Reason::kJobHeldUser);
    driver.step(at(5), UserResume{JobId{1}});
    driver.step(at(5), Pass{});
    EXPECT_EQ(state(driver, 1), JobState::kRunning);
  }
}

// T10: a suspend ends a resume that found no room yet.
TEST_F(EngineRules, T10_ASuspendTakesAResumeBackThatStillWaits) {
  const auto one = nodes("n", 1, 1);
  Configuration c = two_tiers(one, PreemptMode::kSuspend, 1);
  c.partitions.pop_back();
  Driver driver{c, one};
  submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
  driver.step(at(1), UserSuspend{JobId{1}});
  submit(driver, 2, with_tasks(job(2, 1, "low"), 4));
  driver.step(at(3), UserResume{JobId{1}});
  driver.run_until(at(3));
  ASSERT_EQ(driver.state(1), "S(1)");
  driver.step(at(4), UserSuspend{JobId{1}});
  driver.step(at(5), JobGone{JobId{2}});
  driver.run_until(at(10));
  EXPECT_EQ(driver.state(1), "S(1)");
}

// 13.3: the limit ends with the deadline.
TEST_F(EngineRules, R13_3_TheLimitIsShortenedToTheDeadline) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  submit(driver, 0, job(1, 1));
  JobRequest request = job(2, 1);
  request.time_limit = seconds(100);
  request.time_min = seconds(20);
  request.deadline = at(150);
  submit(driver, 1, request);
  driver.step(at(100), JobGone{JobId{1}});
  driver.run_until(at(149));
  EXPECT_EQ(driver.state(2), "R(49)");
  driver.run_until(at(150));
  EXPECT_EQ(state(driver, 2), JobState::kTimeout);
}

// 13.3: it is over when no pass comes to the job, either.
TEST_F(EngineRules, R13_3_TheDeadlineWakesTheScheduler) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  submit(driver, 0, job(1, 1));
  submit(driver, 0, job(2, 1));
  JobRequest request = job(3, 1);
  request.time_limit = seconds(30);
  request.deadline = at(50);
  submit(driver, 1, request);
  driver.run_until(at(20));
  EXPECT_EQ(state(driver, 3), JobState::kPending);
  driver.run_until(at(21));
  EXPECT_EQ(state(driver, 3), JobState::kDeadline);
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// R13.21: whose turn comes early, because its rival has ended, times out so much earlier.
TEST_F(EngineRules, R13_21_TheLimitOfASlicedJobIsExact) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  JobRequest limited = job(1, 1);
  limited.time_limit = seconds(70);
  submit(driver, 0, limited);
  submit(driver, 1, job(2, 1));
  submit(driver, 65, job(3, 1));  // somebody looks while job 1 is stopped, from 60 on
  ASSERT_EQ(driver.state(1), "S(60)");
  driver.run_until(at(72));  // past 70, when it would have been over
  driver.step(at(75), Cancel{JobId{3}});
  driver.step(at(75), JobGone{JobId{2}});
  driver.run_until(at(84));
  EXPECT_EQ(driver.state(1), "R(69)");
  driver.run_until(at(85));
  EXPECT_EQ(state(driver, 1), JobState::kTimeout);
}

}  // namespace
}  // namespace sched::testing
