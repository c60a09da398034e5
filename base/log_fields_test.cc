#include "base/log_fields.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(LogFields, AreWordsOrQuoted) {
  EXPECT_EQ(to_text({}), "");
  EXPECT_EQ(to_text({{"job", "team-a/train"}, {"id", 7}, {"usable", false}, {"why", ""}}),
            "job=team-a/train id=7 usable=false why=\"\"");
  EXPECT_EQ(to_text({{"error", "no node: \"n1\" is a\\b"}}), R"(error="no node: \"n1\" is a\\b")");
  EXPECT_EQ(to_text({{"message", "größer"}}), "message=\"größer\"") << "UTF-8 stays readable";
}

// A field of a user's object that a message quotes: it must stay one value in one line.
TEST(LogFields, NoValueEndsItsLineOrLooksLikeAField) {
  const std::string hostile =
      "x\"\n2026-11-28T12:44:39Z warning leads no more\r\tterm=99\x1b[2K\x7f";
  const std::string line = to_text({{"message", hostile}, {"id", 1}});
  EXPECT_EQ(
      line,
      R"(message="x\"\n2026-11-28T12:44:39Z warning leads no more\r\tterm=99\x1b[2K\x7f" id=1)");
  EXPECT_EQ(to_text({{"why", "id=2"}}), "why=\"id=2\"");
}

}  // namespace
}  // namespace base
