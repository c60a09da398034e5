#include "translation/cpu_set.h"

#include <gtest/gtest.h>

namespace control {
namespace {

TEST(CpuSet, FollowsTheTopologysOrder) {
  EXPECT_EQ(cpuset_of("0-1", kube::NodeTopology{1, 4, 1, "0-3"}), "0-1");
  // Threads of a core stand together in cpuIDs.
  EXPECT_EQ(cpuset_of("0,3", kube::NodeTopology{1, 4, 2, "0,4,1,5,2,6,3,7"}), "0,3-4,7");
}

TEST(CpuSet, IsEmptyWhereNothingHasToBeBound) {
  EXPECT_EQ(cpuset_of("", kube::NodeTopology{1, 4, 1, "0-3"}), "");
  EXPECT_EQ(cpuset_of("0-3", kube::NodeTopology{1, 4, 1, "0-3"}), "") << "the whole node";
  EXPECT_EQ(cpuset_of("0", std::nullopt), "");
}

}  // namespace
}  // namespace control
