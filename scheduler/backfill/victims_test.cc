// Whom a job may preempt: those of partition low, for one of partition high. Nodes a to d.
#include "scheduler/backfill/victims.h"

#include <gtest/gtest.h>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

Configuration tiers(PreemptMode mode) {
  Configuration configuration = PassWorld::one_partition();
  configuration.partitions = {PassWorld::closed("low", "abcd", 1),
                              PassWorld::closed("high", "abcd", 2)};
  configuration.partitions.front().is_default = true;
  configuration.cluster.preempt_type = PreemptType::kPartitionPriority;
  configuration.cluster.preempt_mode = mode;
  configuration.cluster.gang = mode == PreemptMode::kSuspend;
  return configuration;
}

class VictimsTest : public ::testing::Test {
 protected:
  explicit VictimsTest(PreemptMode mode = PreemptMode::kCancel) : world_{tiers(mode)} {}
  const Victims* of(const Job& job, bool by_standing = false) {
    return finder_.of(job, job.queued.in.front().partition, by_standing);
  }

  EndsWorld world_;
  VictimFinder finder_{world_.cluster, world_.books, world_.ends};
};

TEST_F(VictimsTest, JobsOfALowerTierAreVictims) {
  world_.running(7, "a", 60, "high");
  world_.running(8, "b", 30, "low");
  Job& job = world_.submit(1, 1, "high");
  ASSERT_TRUE(finder_.may_be_any(job, world_.in("high")));
  const Victims* const victims = of(job);
  ASSERT_NE(victims, nullptr);
  ASSERT_EQ(victims->jobs.size(), 1U);
  EXPECT_EQ(victims->jobs[0].first->id, JobId{8});
  EXPECT_EQ(victims->jobs[0].second, Selector::Trial::Keep::kNothing);
  // 8 ends first.
  EXPECT_EQ(victims->fates, (std::vector{Victims::Fate::kMustEnd, Victims::Fate::kStays}));
  EXPECT_FALSE(victims->takes_extra_row);
}

TEST_F(VictimsTest, AJobMayHaveNone) {
  world_.running(7, "a", 60, "high");
  Job& low = world_.submit(1, 1, "low");
  Job& high = world_.submit(2, 1, "high");
  EXPECT_FALSE(finder_.may_be_any(low, world_.in("low")));
  EXPECT_FALSE(finder_.may_be_any(high, world_.in("high"))) << "none of a lower tier runs";
  EXPECT_EQ(of(low), nullptr);
  EXPECT_EQ(of(high), nullptr);
}

TEST_F(VictimsTest, AreKeptForAStandingUntilTheyAreForgotten) {
  Job& high = world_.submit(2, 1, "high");
  EXPECT_EQ(of(high, true), nullptr);
  EXPECT_EQ(of(high), nullptr);
  EXPECT_FALSE(finder_.may_be_any(high, world_.in("high")));
  world_.running(8, "b", 30, "low");
  EXPECT_EQ(of(high, true), nullptr) << "what is known of this partition and QOS";
  EXPECT_NE(of(high), nullptr) << "otherwise they are looked up each time";
  finder_.forget();
  world_.ends.forget();
  EXPECT_NE(of(high, true), nullptr);
  EXPECT_TRUE(finder_.may_be_any(high, world_.in("high")));
}

class SuspendedVictimsTest : public VictimsTest {
 protected:
  SuspendedVictimsTest() : VictimsTest{PreemptMode::kSuspend} {}
};

TEST_F(SuspendedVictimsTest, AVictimThatIsOnlySuspendedKeepsItsMemory) {
  world_.running(8, "b", 30, "low");
  const Victims* const victims = of(world_.submit(1, 1, "high"));
  ASSERT_NE(victims, nullptr);
  EXPECT_EQ(victims->jobs[0].second, Selector::Trial::Keep::kMemory);
  EXPECT_EQ(victims->fates, std::vector{Victims::Fate::kIsSuspended});
  EXPECT_TRUE(victims->contains(0));
  EXPECT_FALSE(victims->must_end(0));
}

}  // namespace
}  // namespace sched::testing
