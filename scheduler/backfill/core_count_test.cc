// The free cores of some nodes as jobs leave. Nodes a to d of 4 cores.
#include "scheduler/backfill/core_count.h"

#include <gtest/gtest.h>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Two jobs on a, one on b and c; d is free and not in question.
class CoreCountTest : public ::testing::Test {
 protected:
  CoreCount count(const Needs& needs) {
    return {world_.cluster, world_.ends_at(1).free(), nodes_, needs};
  }

  EndsWorld world_;
  Job& first_ = world_.running_on_some(7, "a", 2, 30);
  Job& second_ = world_.running_on_some(8, "a", 1, 40);
  Job& wide_ = world_.running(9, "bc", 60);
  const NodeSet nodes_ = world_.set_of("abc");
};

TEST_F(CoreCountTest, ANodeIsReadyWhenItHasWhatIsNeededOnEach) {
  const Needs one{.each = {.cores = 3}}, two{.nodes_min = 2, .each = {.cores = 3}};
  CoreCount for_one = count(one), for_two = count(two);
  EXPECT_FALSE(for_one.may_fit()) << "a has one free core, and d is not in question";
  for (CoreCount* each : {&for_one, &for_two}) each->leave(first_);
  EXPECT_TRUE(for_one.may_fit());
  for_two.leave(second_);
  EXPECT_FALSE(for_two.may_fit()) << "a was ready already, and counts once";
  for_two.leave(wide_);
  EXPECT_TRUE(for_two.may_fit());
}

TEST_F(CoreCountTest, TheCoresInAllMustBeEnoughToo) {
  const Needs needs{.cores = 5, .each_is_enough = false};
  CoreCount counted = count(needs);
  counted.leave(first_);
  counted.leave(second_);
  EXPECT_FALSE(counted.may_fit()) << "4 of a";
  counted.leave(wide_);
  EXPECT_TRUE(counted.may_fit());
}

// The job's cores were free before.
TEST_F(CoreCountTest, AJobThatItsUserHasSuspendedGivesNothingBack) {
  wide_.user_suspended = true;
  const Needs needs{.cores = 10, .each_is_enough = false};
  CoreCount counted = count(needs);
  EXPECT_FALSE(counted.may_fit()) << "1 + 4 + 4";
  counted.leave(wide_);
  EXPECT_FALSE(counted.may_fit());
  counted.leave(second_);
  EXPECT_TRUE(counted.may_fit());
}

}  // namespace
}  // namespace sched::testing
