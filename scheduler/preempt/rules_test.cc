// WITHIN and PRIORITY, the conditions on which jobs may preempt which (7.2); C10.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

// One node; job 1 runs with priority 50, then job 2 comes with the priority given. Whether it
// preempts.
bool preempts(Configuration c, JobRequest first, JobRequest second, std::uint32_t priority) {
  const auto one = nodes("n", 1, 1);
  Driver driver{std::move(c), one, make_replay()};
  first.priority = Priority{50};
  second.priority = Priority{priority};
  driver.step(at(0), Submit{first});
  driver.step(at(0), Pass{});
  driver.take_log();
  driver.step(at(1), Submit{second});
  driver.step(at(1), Pass{});
  bool ended = false;
  for (const Decision& decision : driver.take_log()) {
    const auto* end = std::get_if<End>(&decision);
    ended = ended || (end != nullptr && end->job == first.id);
  }
  return ended;
}

// Makes one node in partitions of two tiers, and two QOS. Victims are canceled.
Configuration cancelling(PreemptType type) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("low", one, OverSubscribe::kNo, 1, 1),
                                 partition("high", one, OverSubscribe::kNo, 1, 2)});
  c.cluster.gang = false;
  c.cluster.preempt_type = type;
  c.cluster.preempt_mode = PreemptMode::kCancel;
  // high may preempt normal, and neither its own kind nor the other way round.
  QosConfig normal;
  normal.name = "normal";
  QosConfig high;
  high.name = "high";
  high.preempt = {"normal"};
  c.qos = {normal, high};
  return c;
}

JobRequest with_qos(std::int64_t id, const std::string& qos) {
  JobRequest request = job(id, 1, "low");
  request.qos = qos;
  return request;
}

// 7.2: with PRIORITY a tier may preempt a job of equal priority but not one of higher. The flag may
// be the cluster's or that of the preemptor's partition.
TEST(PreemptRules, PriorityForbidsTiersToPreemptWhoIsMoreImportant) {
  Configuration c = cancelling(PreemptType::kPartitionPriority);
  EXPECT_TRUE(preempts(c, job(1, 1, "low"), job(2, 1, "high"), 10));
  c.cluster.preempt_priority = true;
  EXPECT_FALSE(preempts(c, job(1, 1, "low"), job(2, 1, "high"), 49));
  EXPECT_TRUE(preempts(c, job(1, 1, "low"), job(2, 1, "high"), 50)) << "equal is enough here";
  c.cluster.preempt_priority = false;
  c.partitions[1].preempt_priority = true;
  EXPECT_FALSE(preempts(c, job(1, 1, "low"), job(2, 1, "high"), 49));
}

// 7.2: between QOS equal is not enough, unlike between tiers.
TEST(PreemptRules, PriorityForbidsQosToPreemptWhoIsAsImportant) {
  Configuration c = cancelling(PreemptType::kQos);
  EXPECT_TRUE(preempts(c, with_qos(1, "normal"), with_qos(2, "high"), 10));
  c.qos[1].preempt_priority = true;
  EXPECT_FALSE(preempts(c, with_qos(1, "normal"), with_qos(2, "high"), 50));
  EXPECT_TRUE(preempts(c, with_qos(1, "normal"), with_qos(2, "high"), 51));
}

// Strictly lower: two jobs of equal priority would preempt each other in turn.
TEST(PreemptRules, WithinLetsAQosPreemptItsOwnJobsOfLowerPriority) {
  Configuration c = cancelling(PreemptType::kQos);
  EXPECT_FALSE(preempts(c, with_qos(1, "normal"), with_qos(2, "normal"), 90));
  c.cluster.preempt_within = true;
  EXPECT_TRUE(preempts(c, with_qos(1, "normal"), with_qos(2, "normal"), 51));
  EXPECT_FALSE(preempts(c, with_qos(1, "normal"), with_qos(2, "normal"), 50));
  c.cluster.preempt_within = false;
  c.qos[0].preempt_within = true;
  EXPECT_TRUE(preempts(c, with_qos(1, "normal"), with_qos(2, "normal"), 51));
}

// From a lower tier a QOS stops no job of a higher one, from the same tier it takes turns (C10).
TEST(PreemptRules, AQosDoesNotSuspendWhoIsOfAHigherTier) {
  const auto one = nodes("n", 1, 1);
  Configuration c = cancelling(PreemptType::kQos);
  c.cluster.select = SelectType::kConsTres;
  c.cluster.gang = true;
  c.cluster.preempt_mode = PreemptMode::kSuspend;
  for (PartitionConfig& each : c.partitions) {
    each.over_subscribe = OverSubscribe::kForce;
    each.max_share = 1;
  }
  for (const bool above : {true, false}) {
    Driver driver{c, one, make_replay()};
    JobRequest first = with_qos(1, "normal");
    JobRequest second = with_qos(2, "high");
    // Both want all four CPUs, so they cannot run beside each other.
    first.tasks = second.tasks = 4;
    first.partitions = {above ? "high" : "low"};
    driver.step(at(0), Submit{first});
    driver.step(at(0), Pass{});
    driver.step(at(1), Submit{second});
    driver.step(at(1), Pass{});
    // Three ticks: a job that takes turns has waited for one of them at the latest (FILLER, R6.6).
    for (int tick = 1; tick <= 3; ++tick) driver.step(at(30 * tick), SliceEnd{});
    EXPECT_EQ(driver.view(1).suspend_time > seconds(0), !above);
  }
}

}  // namespace
}  // namespace sched::testing
