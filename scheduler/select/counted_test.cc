#include "scheduler/select/counted.h"

#include <gtest/gtest.h>

namespace sched {
namespace {

// R5.5 and R5.3: 100 MiB for each of 4 CPUs, 100 for the node, or all 8,000 of it. A job without a
// demand is charged nothing.
TEST(CountedDemand, ChargesByCpusNodesOrAllThereIs) {
  EXPECT_EQ((CountedDemand{CountedPer::kCpu, 100}).charge(4, 8000), 400);
  EXPECT_EQ((CountedDemand{CountedPer::kNode, 100}).charge(4, 8000), 100);
  EXPECT_EQ((CountedDemand{CountedPer::kWholeNode, 0}).charge(4, 8000), 8000);
  EXPECT_EQ(CountedDemand{}.charge(4, 8000), 0);
}

// A demand fits while its charge is free; no other job may hold anything of a whole node.
TEST(CountedBook, FitsWhileTheChargeIsFree) {
  CountedBook memory{{8000, 4000}};
  memory.hold(0, 7700);
  EXPECT_EQ(memory.free(0), 300);
  EXPECT_TRUE(memory.fits({CountedPer::kCpu, 100}, 3, 0));
  EXPECT_FALSE(memory.fits({CountedPer::kCpu, 100}, 4, 0));
  EXPECT_FALSE(memory.fits({CountedPer::kWholeNode, 0}, 4, 0));
  EXPECT_TRUE(memory.fits({CountedPer::kWholeNode, 0}, 4, 1));
  memory.hold(0, 1000);  // more than there is: the node has shrunk
  EXPECT_TRUE(memory.fits({}, 4, 0));
  memory.hold(0, -8700);
  EXPECT_EQ(memory.free(0), 8000);
}

}  // namespace
}  // namespace sched
