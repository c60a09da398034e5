// One small world for each quirk (model/quirks.h) that has no test beside the code it is about:
// what it decides alone, and what is decided without any. tools/tidy asks for a test of each.
#include "scheduler/testing/rule_test.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sched::testing {
namespace {

class QuirkRules : public RuleTest {
 protected:
  using Quirk = bool Quirks::*;

  // The quirk alone, then none.
  template <typename Check>
  static void both(Quirk quirk, Check check) {
    for (const bool with : {true, false}) {
      SCOPED_TRACE(with ? "with the quirk" : "without");
      check(only(quirk, with), with);
    }
  }
  static JobRequest on_limit(JobRequest request, int minutes) {
    request.time_limit = std::chrono::minutes{minutes};
    return request;
  }
  // Returns the expected start of a pending job, in seconds; -1 = none is expected.
  static std::int64_t expected(const Driver& driver, std::int64_t id) {
    const auto start = driver.view(id).expected_start;
    return start ? (*start - at(0)) / std::chrono::seconds{1} : -1;
  }
  static void backfill(Driver& driver, double t) {
    driver.step(at(t), Pass{.main = false, .backfill = true});
  }
  // Tiers 1 and 2 on one node; the upper one ends the jobs of the lower one. Job 2 has chosen job 1
  // as its victim, whose pods are not gone yet.
  static Driver with_preemptor(const Quirks& quirks, SchedulerType scheduler) {
    const auto one = nodes("n", 1, 1);
    Configuration c = whole_nodes({closed("low", one, 1), closed("high", one, 2)});
    c.cluster.quirks = quirks;
    c.cluster.scheduler = scheduler;
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    c.cluster.preempt_mode = PreemptMode::kCancel;
    Driver driver{c, one, make_replay()};
    driver.ends_at_once = false;
    submit_and_pass(driver, 0, job(1, 1, "low"));
    submit_and_pass(driver, 1, job(2, 1, "high"));
    return driver;
  }
};

// P14: a job that comes in ahead of the preemptor takes what its victim leaves.
TEST_F(QuirkRules, PreemptorClaimsNothing) {
  both(&Quirks::preemptor_claims_nothing, [](const Quirks& quirks, bool with) {
    Driver driver = with_preemptor(quirks, SchedulerType::kBackfill);
    JobRequest ahead = job(3, 1, "high");
    ahead.priority = Priority{4'294'960'000};
    driver.step(at(2), Submit{ahead});
    driver.step(at(3), JobGone{JobId{1}});
    driver.step(at(3), Pass{});
    EXPECT_EQ(state(driver, with ? 3 : 2), JobState::kRunning);
    EXPECT_EQ(state(driver, with ? 2 : 3), JobState::kPending);
  });
}

// P21: with Slurm's FIFO the job that waited for its victim is passed over until the estimates, 30
// s after slurmctld started, which was 1.85 s before.
TEST_F(QuirkRules, FifoPassesPreemptorsOver) {
  const auto one = nodes("n", 1, 1);
  both(&Quirks::fifo_passes_preemptors_over, [&](const Quirks& quirks, bool with) {
    Configuration c = with_qos({{"low", ""}, {"high", "low"}});
    c.partitions = {closed("p", one)};
    c.cluster.gang = false;
    c.cluster.quirks = quirks;
    c.cluster.scheduler = SchedulerType::kBuiltin;
    c.cluster.preempt_type = PreemptType::kQos;
    c.cluster.preempt_mode = PreemptMode::kCancel;
    c.cluster.backfill.interval = seconds(30);
    Driver driver{c, one, make_replay()};
    JobRequest request = job(1, 1, "p");
    request.qos = "low";
    submit_and_pass(driver, 0, request);
    request = job(2, 1, "p");
    request.qos = "high";
    submit_and_pass(driver, 1, request);
    ASSERT_EQ(ends(driver).size(), 1U);
    driver.step(at(28), Pass{});
    EXPECT_EQ(state(driver, 2), with ? JobState::kPending : JobState::kRunning);
    driver.step(at(28.2), Pass{});
    EXPECT_EQ(state(driver, 2), JobState::kRunning);
  });
}

// 4.4.3: where jobs are not stacked and preemption is on (R4.3), the first node is as good as the
// idle one.
TEST_F(QuirkRules, SuspendedCountAsIdle) {
  const auto two = nodes("n", 1, 2);
  both(&Quirks::suspended_count_as_idle, [&](const Quirks& quirks, bool with) {
    Configuration c = gang_linear({partition("p", two, OverSubscribe::kForce, 1)});
    c.cluster.quirks = quirks;
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    c.cluster.preempt_mode = PreemptMode::kSuspend;
    Driver driver{c, two, make_replay()};
    submit_and_pass(driver, 0, job(1, 1));
    driver.step(at(1), UserSuspend{JobId{1}});
    submit_and_pass(driver, 2, job(2, 1));
    EXPECT_EQ(driver.nodes_of(2), std::vector<std::string>{with ? "n1" : "n2"});
  });
}

// 13.2, T11: a hold and a suspend are one priority 0.
TEST_F(QuirkRules, ReleaseEndsSuspends) {
  const auto one = nodes("n", 1, 1);
  both(&Quirks::release_ends_suspends, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", one)});
    c.cluster.quirks = quirks;
    Driver driver{c, one, make_replay()};
    JobRequest request = job(1, 1);
    request.suspend = true;
    driver.step(at(0), Submit{request});
    driver.step(at(1), Release{JobId{1}});
    driver.step(at(2), Pass{});
    EXPECT_EQ(state(driver, 1), with ? JobState::kRunning : JobState::kPending);
  });
}

// 13.4: with Slurm's FIFO the tasks that are left go behind a job that came later.
TEST_F(QuirkRules, ArraysGoToTheEnd) {
  const auto one = nodes("n", 1, 1);
  both(&Quirks::arrays_go_to_the_end, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", one)});
    c.cluster.quirks = quirks;
    c.cluster.scheduler = SchedulerType::kBuiltin;
    Driver driver{c, one, make_replay()};
    JobRequest array = job(1, 1);
    array.array.emplace().tasks.insert(0, 1);
    driver.step(at(0), Submit{array});
    driver.step(at(0), Submit{job(2, 1)});
    driver.step(at(1), Pass{});
    driver.step(at(2), JobGone{JobId::of_task(JobId{1}, 0)});
    driver.step(at(2), Pass{});
    EXPECT_EQ(state(driver, 2), with ? JobState::kRunning : JobState::kPending);
    EXPECT_EQ(driver.view(1).facts->array->waiting.size(), with ? 1 : 0);
  });
}

// 13.6: it runs in q and has the DefaultTime of p, whose node is taken.
TEST_F(QuirkRules, LimitOfFirstPartition) {
  const auto all = nodes("n", 1, 2);
  both(&Quirks::limit_of_first_partition, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", {all[0]}), closed("q", {all[1]})});
    c.cluster.quirks = quirks;
    c.partitions[0].default_time = std::chrono::minutes{10};
    c.partitions[1].default_time = std::chrono::minutes{20};
    Driver driver{c, all, make_replay()};
    submit_and_pass(driver, 0, job(1, 1, "p"));
    JobRequest both_of_them = job(2, 1, "p");
    both_of_them.partitions = {"p", "q"};
    submit_and_pass(driver, 1, both_of_them);
    ASSERT_EQ(driver.nodes_of(2), std::vector<std::string>{"n2"});
    EXPECT_EQ(driver.view(2).time_limit, std::chrono::minutes{with ? 10 : 20});
  });
}

// 4.5.2 test 2.
TEST_F(QuirkRules, OffStacksNothing) {
  const auto one = nodes("n", 1, 1);
  both(&Quirks::off_stacks_nothing, [&](const Quirks& quirks, bool with) {
    Configuration c = two_tiers(one, PreemptMode::kSuspend, 2);
    c.cluster.quirks = quirks;
    c.partitions[0].preempt_mode = PreemptMode::kOff;
    Driver driver{c, one, make_replay()};
    submit_and_pass(driver, 0, with_tasks(job(1, 1, "low"), 4));
    submit_and_pass(driver, 1, with_tasks(job(2, 1, "low"), 4));
    EXPECT_EQ(state(driver, 2), with ? JobState::kPending : JobState::kSuspended);
  });
}

// 3.6 step 4e: n1 and n3 are of one kind, n2 of another, and all of one weight.
TEST_F(QuirkRules, KindsAreTriedApart) {
  auto three = nodes("n", 1, 3);
  three[1] = node("n2", 8);
  both(&Quirks::kinds_are_tried_apart, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", three)});
    c.cluster.quirks = quirks;
    Driver driver{c, three, make_replay()};
    submit_and_pass(driver, 0, job(1, 2));
    EXPECT_EQ(driver.nodes_of(1), (std::vector<std::string>{"n1", with ? "n3" : "n2"}));
  });
}

// R8.3: two jobs have the node for 1 and for 2 minutes; a third may share it with one of them in
// the look ahead alone.
TEST_F(QuirkRules, OneRunningJobCountsAsNone) {
  const auto one = nodes("n", 1, 1);
  both(&Quirks::one_running_job_counts_as_none, [&](const Quirks& quirks, bool with) {
    Configuration c = gang_linear({partition("two", one, OverSubscribe::kForce, 2),
                                   partition("one", one, OverSubscribe::kForce, 1)});
    c.cluster.quirks = quirks;
    c.cluster.gang = false;
    c.cluster.scheduler = SchedulerType::kBuiltin;
    Driver driver{c, one, make_replay()};
    submit_and_pass(driver, 0, on_limit(job(1, 1, "two"), 1));
    submit_and_pass(driver, 0, on_limit(job(2, 1, "two"), 2));
    ASSERT_EQ(state(driver, 2), JobState::kRunning);
    driver.step(at(1), Submit{on_limit(job(3, 1, "one"), 1)});
    backfill(driver, 2);
    EXPECT_EQ(expected(driver, 3), with ? 60 : 120);
  });
}

// 8.1 n, bf_max_job_test=2: 2 and 3 are tried before 4, and there are no nodes for 3 in the whole
// window.
TEST_F(QuirkRules, TestsCountWithNodes) {
  const auto all = nodes("n", 1, 3);
  both(&Quirks::tests_count_with_nodes, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", {all[0], all[1]}, 2), closed("q", {all[2]}, 1)});
    c.cluster.quirks = quirks;
    c.cluster.backfill.max_job_test = 2;
    c.cluster.backfill.window = std::chrono::minutes{30};
    Driver driver{c, all, make_replay()};
    submit_and_pass(driver, 0, on_limit(on(job(1, 1, "p"), {"n1"}), 10));
    driver.step(at(1), Submit{on_limit(job(2, 2, "p"), 1000)});
    driver.step(at(1), Submit{on_limit(job(3, 2, "p"), 1000)});
    driver.step(at(1), Submit{on_limit(job(4, 1, "q"), 1)});
    backfill(driver, 2);
    EXPECT_EQ(state(driver, 4), with ? JobState::kRunning : JobState::kPending);
  });
}

// 8.1 m: 3 has until 600 before it is in the way of 2.
TEST_F(QuirkRules, LeastLimitIsKept) {
  const auto two = nodes("n", 1, 2);
  both(&Quirks::least_limit_is_kept, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", two)});
    c.cluster.quirks = quirks;
    Driver driver{c, two, make_replay()};
    submit_and_pass(driver, 0, on_limit(job(1, 1), 10));
    driver.step(at(1), Submit{on_limit(job(2, 2), 1)});
    JobRequest request = on_limit(job(3, 1), 30);
    request.time_min = std::chrono::minutes{2};
    driver.step(at(1), Submit{request});
    backfill(driver, 60);
    ASSERT_EQ(state(driver, 3), JobState::kRunning);
    EXPECT_EQ(driver.view(3).time_limit, std::chrono::minutes{with ? 2 : 9});
  });
}

// R8.3: its user had it suspended for 100 s.
TEST_F(QuirkRules, UnlimitedEndsByTheClock) {
  const auto one = nodes("n", 1, 1);
  constexpr std::int64_t kYear = 365 * 86'400;
  both(&Quirks::unlimited_ends_by_the_clock, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", one)});
    c.cluster.quirks = quirks;
    c.cluster.scheduler = SchedulerType::kBuiltin;
    Driver driver{c, one, make_replay()};
    submit_and_pass(driver, 0, job(1, 1));
    driver.step(at(10), UserSuspend{JobId{1}});
    driver.step(at(110), UserResume{JobId{1}});
    driver.step(at(120), Submit{on_limit(job(2, 1), 1)});
    backfill(driver, 121);
    EXPECT_EQ(expected(driver, 2), with ? kYear : kYear + 100);
  });
}

// 8.3, bf_max_job_test=1.
TEST_F(QuirkRules, EstimatesTakeOneMore) {
  const auto one = nodes("n", 1, 1);
  both(&Quirks::estimates_take_one_more, [&](const Quirks& quirks, bool with) {
    Configuration c = whole_nodes({closed("p", one)});
    c.cluster.quirks = quirks;
    c.cluster.scheduler = SchedulerType::kBuiltin;
    c.cluster.backfill.max_job_test = 1;
    Driver driver{c, one, make_replay()};
    submit_and_pass(driver, 0, on_limit(job(1, 1), 1));
    driver.step(at(1), Submit{on_limit(job(2, 1), 1)});
    driver.step(at(1), Submit{on_limit(job(3, 1), 1)});
    backfill(driver, 2);
    EXPECT_EQ(expected(driver, 2), 60);
    EXPECT_EQ(expected(driver, 3), with ? 120 : -1);
  });
}

}  // namespace
}  // namespace sched::testing
