#include "base/cut_text.h"

#include <gtest/gtest.h>

namespace base {
namespace {

// "é" has two bytes: three of them and three dots are nine, and a cut at eight would split one.
TEST(Shortened, EndsWithDotsAndAtACharacter) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("longer", 5), "lo...");
  EXPECT_EQ(shortened("éééééé", 8), "éé...");
  EXPECT_EQ(shortened(shortened("longer", 5), 5), "lo...") << "once is enough";
}

}  // namespace
}  // namespace base
