#include "operator/write/crash_points.h"

#include <gtest/gtest.h>

namespace control {
namespace {

// WHEN:WRITE:COUNT; the empty text means no crash, which is how production runs.
TEST(CrashPoints, AreNamedByTheWritesThatThereAre) {
  for (const char* text :
       {"", "before:start", "after:pod-create:3", "after:taint", "before:pod-try"}) {
    EXPECT_TRUE(CrashPoints::parse(text).ok()) << text;
  }
}

// A test whose crash point never comes would pass for the wrong reason.
TEST(CrashPoints, AMisspeltWriteIsRefusedWithTheNamesThatExist) {
  const auto misspelt = CrashPoints::parse("before:pod-craete");
  ASSERT_FALSE(misspelt.ok());
  EXPECT_NE(misspelt.error().message.find("no write is called \"pod-craete\""), std::string::npos);
  EXPECT_NE(misspelt.error().message.find("pod-create, "), std::string::npos);
  for (const char* text :
       {"start", "during:start", "before:", "before:start:0", "before:start:x"}) {
    EXPECT_FALSE(CrashPoints::parse(text).ok()) << text;
  }
}

// A write without a name could not be crashed at, and the tests of crashes would pass it over.
TEST(CrashPoints, EveryWriteHasAName) {
  for (int i = 0; i <= static_cast<int>(WritePoint::kConfigStatus); ++i) {
    const auto point = static_cast<WritePoint>(i);
    EXPECT_EQ(parse_write_point(to_string(point)), point);
  }
}

}  // namespace
}  // namespace control
