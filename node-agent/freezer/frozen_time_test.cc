#include "node-agent/freezer/frozen_time.h"

#include <gtest/gtest.h>

namespace agent {
namespace {

// cgroup.stat.local: a name and a number in a line. Later kernels may add lines before and behind
// it.
TEST(FrozenTime, IsTheLineOfTheKernelsText) {
  EXPECT_EQ(parse_frozen_time("frozen_usec 1500000\n"), base::Duration{1'500'000});
  EXPECT_EQ(parse_frozen_time("other 7\nfrozen_usec 0\nmore 8\n"), base::Duration{0});
  EXPECT_EQ(parse_frozen_time("frozen_usec 5"), base::Duration{5});
}

// Nothing and not 0: a metric of 0 would say that the pods never stood still. Text that is not a
// number, or a number beyond 64 bits, is nothing, too.
TEST(FrozenTime, IsNothingWhereTheKernelDoesNotCountIt) {
  for (const char* text :
       {"", "\n", "frozen 1\n", "frozen_usec\n", "frozen_usec x\n", "frozen_usec 1x\n",
        "frozen_usec -1\n", "not_frozen_usec 1\n", "frozen_usec 99999999999999999999\n"}) {
    EXPECT_FALSE(parse_frozen_time(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace agent
