#include "translation/sentences.h"

#include <gtest/gtest.h>

namespace control {
namespace {

TEST(Joined, NamesAsManyAsFitAndCountsTheRest) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"a: is wrong", "b: is wrong"}), "a: is wrong; b: is wrong");
  const std::vector<std::string> many(1'000, std::string(98, 'x'));
  const std::string text = joined(many);
  // 39 of 98 characters and 38 separators are 3,898; the next one would make 3,998 of 3,968.
  EXPECT_TRUE(text.ends_with("xx; and 961 more")) << text.substr(3'800);
  EXPECT_LE(text.size(), kube::kStatusMessageBytesMax);
}

// The first one is cut if it alone is too long.
TEST(Joined, SaysSomethingOfASentenceThatIsTooLong) {
  const std::string text = joined({std::string(600'000, 'x'), "b: is wrong"});
  EXPECT_TRUE(text.ends_with("xx...; and 1 more"));
  EXPECT_LE(text.size(), kube::kStatusMessageBytesMax);
}

}  // namespace
}  // namespace control
