#include "base/number_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace base {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A list keeps its order and may be empty. "0-8,0-8" has more numbers than there can be different
// ones, so no list of a few bytes can ask for much memory.
TEST(NumberList, IsReadAsItIsWritten) {
  EXPECT_THAT(*parse_number_list("0-2,8", 8), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*parse_number_list("4,0", 8), ElementsAre(4, 0));
  EXPECT_THAT(*parse_number_list("", 8), IsEmpty());
  for (const char* wrong :
       {"9", "0-9", "2-1", "-1", "1-", "1,", ",1", "1,,2", "a", "1 ", "0-8,0-8", "99999999999"}) {
    EXPECT_FALSE(parse_number_list(wrong, 8).has_value()) << wrong;
  }
}

// The order is kept, so 0,4,1,5 has no neighbors.
TEST(NumberList, WritesNeighborsAsRanges) {
  EXPECT_EQ(format_number_list({0, 1, 2, 8}), "0-2,8");
  EXPECT_EQ(format_number_list({0, 4, 1, 5}), "0,4,1,5");
  EXPECT_EQ(format_number_list({}), "");
}

}  // namespace
}  // namespace base
