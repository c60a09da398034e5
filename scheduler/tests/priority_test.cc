// Multifactor priorities and usage (chapter 9) in the whole scheduler.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/priority/usage.h"
#include "scheduler/testing/rule_test.h"

namespace sched::testing {
namespace {

// Two nodes, one partition; ada and bob have an account each, of equal shares.
class PriorityTest : public RuleTest {
 protected:
  PriorityTest() {
    c_ = gang_linear({partition("p", two_, OverSubscribe::kNo)});
    c_.cluster.gang = false;
    c_.cluster.priority.type = PriorityType::kMultifactor;
    c_.cluster.priority.calc_period = seconds(60);
    c_.accounts = {{.name = "a"}, {.name = "b"}};
    c_.users = {{.name = "ada", .account = "a"}, {.name = "bob", .account = "b"}};
  }
  // Made when a test first asks for it, so that the test can change the configuration before.
  Driver& driver() {
    if (!driver_)
      driver_ = std::make_unique<Driver>(c_, two_, is_told_ ? make_replay() : Scheduler{Options{}});
    return *driver_;
  }
  // Returns a job of this user in the user's default account.
  static JobRequest of(const std::string& user, std::int64_t id, int nodes_count) {
    JobRequest request = job(id, nodes_count, "p");
    request.user = user;
    return request;
  }
  std::uint32_t priority(std::int64_t id) { return driver().view(id).priority.value(); }

  std::vector<NodeSpec> two_ = nodes("n", 1, 2);
  bool is_told_ = false;
};

// R9.3: the mean of half the nodes and of two of eight CPUs: (1/2 + 1/4) / 2 × 1000 = 375. Nice is
// subtracted, 1 is the least, and a priority that the request names is kept.
TEST_F(PriorityTest, SumsItsWeightedFactors) {
  c_.cluster.priority.weight_job_size = 1000;
  JobRequest request = with_tasks(of("ada", 1, 1), 2);
  driver().step(at(1), Submit{request});
  EXPECT_EQ(priority(1), 375U);
  request.id = JobId{2};
  request.nice = 75;
  driver().step(at(1), Submit{request});
  EXPECT_EQ(priority(2), 300U);
  request.id = JobId{3};
  request.nice = 1000;
  driver().step(at(1), Submit{request});
  EXPECT_EQ(priority(3), 1U);
  request.id = JobId{4};
  request.priority = Priority{7};
  driver().step(at(1), Submit{request});
  EXPECT_EQ(priority(4), 7U) << "R9.1";
}

// R9.3 as recorded: of 4 nodes and 24 CPUs a node is worth 3,000 of 24,000 and a CPU 500. The first
// priority counts the CPUs that the tasks ask for, and after the job was tested, here with another
// nice value, those of the nodes that it would get.
TEST_F(PriorityTest, SizeCountsWholeNodesOnceTheJobWasTested) {
  two_ = nodes("n", 1, 2, 4);
  for (const NodeSpec& node : nodes("n", 3, 4, 8)) two_.push_back(node);
  c_.partitions = {partition("p", two_, OverSubscribe::kNo)};
  c_.cluster.priority.weight_job_size = 24'000;
  const JobRequest one = of("ada", 2, 1);
  JobRequest range = of("ada", 3, 1);
  range.max_nodes = 3;
  range.nodes_given = true;
  JobRequest named = of("ada", 4, 1);
  named.required_nodes = {"n3"};
  struct Sizes {
    JobRequest request;
    std::uint32_t first, then;
  };
  for (auto& [request, first, then] :
       std::vector<Sizes>{{one, 3'500, 4'999},
                          {range, 3'500, 10'999},
                          {named, 3'500, 6'999},
                          {with_tasks(of("ada", 6, 1), 5), 5'500, 6'999},
                          {with_tasks(of("ada", 7, 1), 10), 8'000, 10'999}}) {
    driver().step(at(1), Submit{request});
    EXPECT_EQ(priority(request.id.number()), first) << request.id.number();
    request.nice = 1;
    driver().step(at(1), Update{request});
    EXPECT_EQ(priority(request.id.number()), then) << request.id.number();
  }
  // A job that is held is not tested.
  JobRequest held = of("ada", 8, 1);
  held.hold = true;
  driver().step(at(1), Submit{held});
  driver().step(at(1), Release{JobId{8}});
  EXPECT_EQ(priority(8), 3'500U);
  // One whose user gives its priority is.
  JobRequest given = of("ada", 9, 1);
  given.priority = Priority{7};
  driver().step(at(1), Submit{given});
  given.priority.reset();
  driver().step(at(1), Update{given});
  EXPECT_EQ(priority(9), 5'000U);
}

// The same at the end of a period, from which on the sum is kept.
TEST_F(PriorityTest, SizeCountsWholeNodesFromTheFirstPeriodOn) {
  c_.cluster.priority.weight_job_size = 1000;
  driver().step(at(0), Submit{of("ada", 1, 2)});
  driver().run_until(at(1));
  driver().step(at(2), Submit{with_tasks(of("ada", 2, 1), 2)});
  EXPECT_EQ(priority(2), 375U);
  for (const int period_end : {60, 120}) {
    driver().run_until(at(period_end));
    EXPECT_EQ(priority(2), 500U);
  }
}

// R9.1: a priority that is given replaces those that the job had in its partitions.
TEST_F(PriorityTest, AGivenPriorityCountsInAllPartitions) {
  c_.cluster.priority.weight_job_size = 1000;
  c_.partitions.push_back(partition("q", two_, OverSubscribe::kNo));
  driver().step(at(1), Submit{of("ada", 1, 2)});
  driver().run_until(at(1));
  JobRequest request = of("ada", 2, 2);
  request.partitions = {"p", "q"};
  driver().step(at(2), Submit{request});
  driver().step(at(3), Submit{of("bob", 3, 1)});
  EXPECT_GT(priority(2), priority(3));
  request.priority = Priority{2};
  driver().step(at(4), Update{request});
  EXPECT_EQ(priority(2), 2U);
  driver().step(at(5), JobGone{JobId{1}});
  driver().run_until(at(5));
  EXPECT_EQ(driver().view(3).state, JobState::kRunning);
  EXPECT_EQ(driver().view(2).state, JobState::kPending);
}

// INCREASE_ONLY is about the recalculation at the end of a period: the first priority, and what a
// user changes, are as they are worked out (recorded).
TEST_F(PriorityTest, IncreaseOnlyIsAboutPeriods) {
  c_.cluster.priority.increase_only = true;
  c_.cluster.priority.weight_job_size = 1000;
  JobRequest request = of("ada", 1, 2);
  driver().step(at(1), Submit{request});
  EXPECT_EQ(priority(1), 625U);
  request.nice = 475;
  driver().step(at(2), Update{request});
  EXPECT_EQ(priority(1), 525U) << "tested meanwhile: all nodes and CPUs";
}

// R9.3: it grows until PriorityMaxAge, from when the job may start. At 120 job 2 has waited 120 of
// 300 s, and job 3, which may start from 60 on, 60 of them.
TEST_F(PriorityTest, GrowsWithAgeOnceInAPeriod) {
  c_.cluster.priority.weight_age = 1000;
  c_.cluster.priority.max_age = seconds(300);
  driver().step(at(0), Submit{of("ada", 1, 2)});
  driver().step(at(0), Submit{of("ada", 2, 2)});
  JobRequest later = of("ada", 3, 2);
  later.begin_time = at(60);
  driver().step(at(0), Submit{later});
  driver().run_until(at(59));
  // Nothing has grown before the first period ends at 60, and 1 is the least.
  EXPECT_EQ(priority(2), 1U);
  driver().run_until(at(120));
  EXPECT_EQ(priority(2), 400U);
  EXPECT_EQ(priority(3), 200U);
  driver().run_until(at(600));
  EXPECT_EQ(priority(2), 1000U);
}

// A job of ada's is the first in the queue, until her usage counts: then bob's comes before it.
TEST_F(PriorityTest, APeriodChangesTheOrderOfTheQueue) {
  c_.cluster.priority.weight_fair_share = 1000;
  // Job 1 has both nodes, and the other two wait for it.
  driver().step(at(1), Submit{of("ada", 1, 2)});
  driver().run_until(at(1));
  driver().step(at(2), Submit{of("ada", 2, 2)});
  driver().step(at(3), Submit{of("bob", 3, 2)});
  driver().run_until(at(59));
  EXPECT_EQ(priority(2), priority(3));
  driver().run_until(at(60));
  EXPECT_LT(priority(2), priority(3));
  driver().step(at(61), JobGone{JobId{1}});
  driver().run_until(at(61));
  EXPECT_EQ(driver().view(3).state, JobState::kRunning);
  EXPECT_EQ(driver().view(2).state, JobState::kPending);
}

// All get older together: nothing follows from that, so nothing is due before the next period.
// Where passes look at priorities themselves the backfill is.
TEST_F(PriorityTest, AfterAPeriodThatKeepsTheOrderAPassIsDueOnlyIfItReadsPriorities) {
  c_.cluster.backfill.interval = seconds(30);
  c_.cluster.priority.weight_age = 1000;
  c_.cluster.priority.max_age = seconds(300);
  for (const bool reads : {false, true}) {
    if (reads) c_.cluster.backfill.min_prio_reserve = Priority{1};
    driver_.reset();
    for (const std::int64_t id : {1, 2, 3}) driver().step(at(0), Submit{of("ada", id, 2)});
    driver().run_until(at(59));
    const std::uint32_t before = priority(3);
    driver().scheduler().step(at(60), Wake{});
    EXPECT_GT(priority(3), before);
    EXPECT_EQ(driver().scheduler().next_due(), reads ? at(60) : at(120));
  }
}

// R9.4: after a half-life half of it is left.
TEST_F(PriorityTest, UsageDecaysAndIsResetAtMidnight) {
  c_.cluster.priority.decay_half_life = seconds(600);
  driver().step(at(0), Submit{of("ada", 1, 1)});
  driver().run_until(at(0));
  driver().step(at(60), JobGone{JobId{1}});
  const std::int64_t used = driver().scheduler().usage().users.at(0).used.billed;
  EXPECT_NEAR(static_cast<double>(used), 4 * 60 * 1000 * 0.933, 1000);  // four CPUs, 2^(-60/600)
  driver().step(at(600), Submit{of("bob", 2, 2)});
  driver().run_until(at(660));
  const UsageState later = driver().scheduler().usage();
  EXPECT_EQ(later.as_of, at(660));
  // From 60 to 660 is one half-life.
  EXPECT_NEAR(static_cast<double>(later.users.at(0).used.billed) / static_cast<double>(used), 0.5,
              0.04);

  // 86,400 s is the first midnight: what ada used on the day before is forgotten then.
  c_.cluster.priority.usage_reset = UsageReset::kDaily;
  driver_.reset();
  driver().step(at(86'000), Submit{of("ada", 1, 1)});
  driver().run_until(at(86'000));
  driver().step(at(86'100), JobGone{JobId{1}});
  EXPECT_EQ(driver().scheduler().usage().users.size(), 1U);
  driver().step(at(86'300), Submit{of("bob", 2, 2)});
  driver().run_until(at(86'400));
  const UsageState reset = driver().scheduler().usage();
  for (const UserUsage& user : reset.users) EXPECT_EQ(user.user, "bob");
}

// PriorityUsageResetPeriod on the UTC calendar, from a Friday in November: the next day, Sunday,
// month, quarter and year. The quarter and the year end together.
TEST(UsageReset, IsAtTheBeginOfAPeriodOfTheCalendar) {
  using std::chrono::days;
  const auto date = [](int y, unsigned m, unsigned d) {
    return base::Instant{
        std::chrono::sys_days{std::chrono::year{y} / std::chrono::month{m} / std::chrono::day{d}}};
  };
  const base::Instant friday = date(2026, 11, 20) + seconds(5000);
  EXPECT_EQ(next_reset(UsageReset::kNever, friday), std::nullopt);
  EXPECT_EQ(next_reset(UsageReset::kDaily, friday), date(2026, 11, 21));
  EXPECT_EQ(next_reset(UsageReset::kWeekly, friday), date(2026, 11, 22));  // a Sunday
  EXPECT_EQ(next_reset(UsageReset::kMonthly, friday), date(2026, 12, 1));
  EXPECT_EQ(next_reset(UsageReset::kQuarterly, friday), date(2027, 1, 1));
  EXPECT_EQ(next_reset(UsageReset::kYearly, friday), date(2027, 1, 1));
}

// R9.4: two gangs that take turns for 100 s have run for 100 s together, not for 200 as recorded
// (rnd_fairshare_5102), at the end of a period and at the end of a run.
TEST_F(PriorityTest, TimeInSuspensionIsNotCharged) {
  c_.cluster.gang = true;
  c_.cluster.time_slice = seconds(10);
  // Without decay the sum is exact.
  c_.cluster.priority.decay_half_life = base::Duration{0};
  c_.partitions[0].over_subscribe = OverSubscribe::kForce;
  // Returns what both have used, in thousandths of a CPU second.
  const auto used = [&] {
    std::int64_t sum = 0;
    for (const UserUsage& user : driver().scheduler().usage().users) sum += user.used.billed;
    return sum;
  };
  for (const bool as_recorded : {false, true}) {
    c_.cluster.quirks = only(&Quirks::suspended_time_is_charged, as_recorded);
    driver_.reset();
    driver().step(at(0), Submit{of("ada", 1, 2)});
    driver().step(at(0), Submit{of("bob", 2, 2)});
    driver().run_until(at(60));
    EXPECT_EQ(used(), 8 * 60 * 1000 * (as_recorded ? 2 : 1));
    driver().run_until(at(100));
    driver().step(at(100), JobGone{JobId{1}});
    driver().step(at(100), JobGone{JobId{2}});
    EXPECT_EQ(used(), 8 * 100 * 1000 * (as_recorded ? 2 : 1));
  }
}

// Init containers work for a minute, and the start is undone: it does not count, but the time does.
// Otherwise nothing that is done there would cost anything.
TEST_F(PriorityTest, WhatRanOfAStartThatIsUndoneIsCharged) {
  c_.cluster.priority.decay_half_life = base::Duration{0};
  driver().ready_after.reset();
  driver().step(at(0), Submit{of("ada", 1, 1)});
  driver().run_until(at(0));
  driver().step(at(60), JobRan{JobId{1}, seconds(60)});
  driver().step(at(60), StartRefused{.job = JobId{1}, .hold = true});
  EXPECT_EQ(driver().scheduler().usage().users.at(0).used.billed, 4 * 60 * 1000);
}

// UsageFactor: what a QOS makes cheaper, or free.
TEST_F(PriorityTest, AQosMayMakeUsageCheaper) {
  c_.qos = {QosConfig{.name = "half", .usage_factor_milli = 500}};
  c_.cluster.priority.decay_half_life = base::Duration{0};
  JobRequest request = of("ada", 1, 1);
  request.qos = "half";
  driver().step(at(0), Submit{request});
  driver().run_until(at(0));
  driver().step(at(10), JobGone{JobId{1}});
  // Four CPUs for 10 s, of which half counts.
  EXPECT_EQ(driver().scheduler().usage().users.at(0).used.billed, 4 * 5 * 1000);
}

// A scheduler that is given the usage of the one before it goes on as that one does.
TEST_F(PriorityTest, UsageThatIsKeptIsGoneOnWith) {
  c_.cluster.priority.weight_fair_share = 1000;
  c_.cluster.priority.fair_tree = false;
  c_.cluster.priority.decay_half_life = seconds(500);
  driver().step(at(1), Submit{of("ada", 1, 1)});
  driver().step(at(1), Submit{of("bob", 2, 1)});
  driver().run_until(at(10));
  driver().step(at(10), JobGone{JobId{2}});
  driver().run_until(at(75));
  const UsageState kept = driver().scheduler().usage();
  // Job 1, which still runs: how much of its run time has been charged is part of the state.
  ASSERT_EQ(kept.jobs.size(), 1U);

  Driver next{c_, two_};
  JobFacts running = JobFacts::of(of("ada", 1, 1));
  running.state = JobState::kRunning;
  running.partition = next.scheduler().find_partition("p");
  running.allocation = *driver().view(1).allocation;
  running.allocated_at = at(1);
  running.ready = true;
  running.start_time = at(1);
  // From 1 to 75, as its object would say.
  running.clock.run = seconds(74);
  running.clock.as_of = at(75);
  next.scheduler().restore_from_published(at(75), {running}, {});
  next.scheduler().restore_usage(kept);
  EXPECT_EQ(next.scheduler().usage(), kept);
  // The same events for both: the usage decays over two more periods, and the new jobs' priorities
  // follow from it.
  for (Driver* each : {&driver(), &next}) {
    each->run_until(at(200));
    each->step(at(200), Submit{of("ada", 5, 2)});
    each->step(at(200), Submit{of("bob", 6, 2)});
    each->run_until(at(300));
  }
  EXPECT_EQ(next.scheduler().usage(), driver().scheduler().usage());
  for (const std::int64_t id : {5, 6})
    EXPECT_EQ(next.view(id).priority, driver().view(id).priority);
}

// INCREASE_ONLY: a change of leader lowers no priority that was stored, as the end of a period
// lowers none. Both jobs are worth 1000 now; of one no priority is stored.
TEST_F(PriorityTest, ANewLeaderOnlyIncreasesThem) {
  c_.cluster.priority.weight_job_size = 1000;
  for (const bool increase_only : {true, false}) {
    c_.cluster.priority.increase_only = increase_only;
    driver_.reset();
    JobFacts stored = JobFacts::of(of("ada", 1, 2));
    stored.priority = Priority{1500};
    driver().scheduler().restore_from_published(at(0), {stored, JobFacts::of(of("bob", 2, 2))}, {});
    driver().scheduler().restore_usage(UsageState{.as_of = at(0)});
    EXPECT_EQ(priority(1), increase_only ? 1500U : 1000U);
    EXPECT_EQ(priority(2), 1000U);
  }
}

// A priority that has been worked out before usage is restored comes out again with that usage.
TEST_F(PriorityTest, UsageThatIsRestoredCountsForJobsThatAreThere) {
  c_.cluster.priority.weight_fair_share = 1000;
  JobRequest request = of("bob", 1, 3);
  driver().step(at(0), Submit{request});
  request.nice = 1;
  driver().step(at(0), Update{request});
  const std::uint32_t before = priority(1);
  UsageState used{.as_of = at(0)};
  used.users.push_back({.account = "b", .user = "bob", .used = {.billed = 1'000'000}});
  driver().scheduler().restore_usage(used);
  EXPECT_LT(priority(1), before);
}

// From the saved usage and the jobs that ended after it the next scheduler counts the same,
// whether a job's end came before the state was saved or after.
TEST_F(PriorityTest, AJobThatEndedAfterUsageWasSavedIsChargedForTheRest) {
  c_.cluster.priority.decay_half_life = base::Duration{0};
  driver().step(at(1), Submit{of("ada", 1, 1)});
  driver().step(at(1), Submit{of("bob", 2, 1)});
  driver().run_until(at(70));  // both are charged at 60
  const UsageState kept = driver().scheduler().usage();
  ASSERT_EQ(kept.jobs.size(), 2U);
  // The period ended at 60, and both jobs have run since 1.
  ASSERT_EQ(kept.jobs[0].run, seconds(59));
  const Allocation on_one_node = *driver().view(1).allocation;
  const auto partition = driver().scheduler().find_partition("p");
  EXPECT_TRUE(driver().scheduler().take_charged_ends().empty());
  driver().step(at(80), JobGone{JobId{1}});
  driver().step(at(81), JobGone{JobId{2}});
  const std::vector<JobCharged> ends = driver().scheduler().take_charged_ends();
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0], (JobCharged{JobId{1}, seconds(79)}));
  EXPECT_TRUE(driver().scheduler().take_charged_ends().empty());
  EXPECT_TRUE(driver().scheduler().usage().jobs.empty());

  Driver next{c_, two_};
  next.scheduler().restore_from_published(at(82), {}, {});
  const auto ended = [&](const std::string& user, std::int64_t id, base::Duration run) {
    return EndedJob{.request = of(user, id, 1),
                    .partition = *partition,
                    .allocation = on_one_node,
                    .run = run,
                    .charged = seconds(59)};
  };
  next.scheduler().restore_usage(kept,
                                 {ended("ada", 1, seconds(79)), ended("bob", 2, seconds(80))});
  EXPECT_EQ(next.scheduler().usage().users, driver().scheduler().usage().users);
}

// Fair share counts in the first pass of a new scheduler: stored priorities are of another period.
TEST_F(PriorityTest, RestoredUsageDecidesTheOrderOfTheQueueAtOnce) {
  c_.cluster.priority.weight_fair_share = 1000;
  JobFacts of_ada = JobFacts::of(of("ada", 1, 2));
  of_ada.priority = Priority{900};
  JobFacts of_bob = JobFacts::of(of("bob", 2, 2));
  of_bob.priority = Priority{100};
  driver().scheduler().restore_from_published(at(1), {of_ada, of_bob}, {});
  driver().scheduler().restore_usage(
      // Stored priorities say that ada is first; her usage says that bob is.
      {.as_of = at(1), .users = {{"a", "ada", {.billed = 1'000'000}}}, .qos = {}, .jobs = {}});
  EXPECT_LT(priority(1), priority(2));
  driver().run_until(at(2));
  EXPECT_EQ(driver().view(2).state, JobState::kRunning);
  EXPECT_EQ(driver().view(1).state, JobState::kPending);
}

// 13.2, R6.3a (recording rnd_linear_114): a job that runs may be held; it gets no turn until it is
// released.
TEST_F(PriorityTest, AHeldJobGetsNoTurnUntilItIsReleased) {
  c_.cluster.gang = true;
  c_.partitions[0].over_subscribe = OverSubscribe::kForce;
  is_told_ = true;
  driver().step(at(0), Submit{of("ada", 1, 2)});
  driver().step(at(0), Submit{of("bob", 2, 2)});
  driver().step(at(1), Pass{});
  driver().step(at(2), Hold{JobId{1}});
  EXPECT_EQ(priority(1), 0U);
  EXPECT_EQ(driver().view(1).state, JobState::kRunning) << "its turn goes on";
  // Two jobs take turns: without the hold job 1 would have had two of these five.
  for (int tick = 1; tick < 6; ++tick) driver().step(at(2 + tick), SliceEnd{});
  EXPECT_EQ(driver().view(1).state, JobState::kSuspended);
  EXPECT_EQ(driver().view(2).state, JobState::kRunning);
  driver().step(at(8), Release{JobId{1}});
  EXPECT_GT(priority(1), 0U);
  driver().step(at(9), SliceEnd{});
  driver().step(at(10), SliceEnd{});
  driver().step(at(11), SliceEnd{});
  bool ran = driver().view(1).state == JobState::kRunning;
  driver().step(at(12), SliceEnd{});
  ran = ran || driver().view(1).state == JobState::kRunning;
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace sched::testing
