#include "slurm/text.h"

#include <gtest/gtest.h>

#include "slurm/exit_code.h"

namespace slurm {
namespace {

// Quotes within a word join what they enclose to it; a backslash outside of them keeps a blank. An
// empty pair of quotes is a word. A quote that is not closed is refused: the rest of the line would
// be one word.
TEST(SplitWords, SplitsAsAShellDoes) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {}},
      {"  -N2  -p hi ", {"-N2", "-p", "hi"}},
      {"-C 'gpu&fast' \"a b\" c\\ d", {"-C", "gpu&fast", "a b", "c d"}},
      {"''", {""}},
      {"a'b'c", {"abc"}},
  };
  for (const auto& [line, want] : cases) {
    const auto got = split_words(line);
    ASSERT_TRUE(got.ok()) << line;
    EXPECT_EQ(*got, want) << line;
  }
  EXPECT_FALSE(split_words("a 'b").ok());
}

// SOURCE: recorded (sessions directives and backslashes).
TEST(SplitDirective, ReadsAsSbatchDoes) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {" -N2 # two", {"-N2"}},
      {" -N2\t# two", {"-N2"}},
      {"# all", {}},
      {" -J 'a #b'", {"-J", "a #b"}},
      {" -J a#b", {"-J", "a"}},
      {" -a 1-1# 2000", {"-a", "1-1"}},
      {" -n2 \\#x", {"-n2", "#x"}},
      {" -n2 \\", {"-n2"}},
      {" -n2\\", {"-n2"}},
      {" -J a\\ b", {"-J", "a", "b"}},
      {" -J 'a\\'b'", {"-J", "a'b"}},
      {" -J \"a\\\"b\" a\\\\b", {"-J", "a\"b", "a\\b"}},
      {" -n2 \"\" -c2", {"-n2"}},
      {" \\ -n2", {}},
  };
  for (const auto& [line, want] : cases) {
    const auto got = split_directive(line);
    ASSERT_TRUE(got.ok()) << line;
    EXPECT_EQ(*got, want) << line;
  }
  for (const char* line : {" -J 'a", " -n2 : -c2", ":"}) {
    const auto got = split_directive(line);
    ASSERT_FALSE(got.ok()) << line;
    EXPECT_EQ(got.error().code, kEndsWithOne);
  }
  EXPECT_EQ(*split_words("# all"), (std::vector<std::string>{"#", "all"}));
}

// The whole text must be the number: "1x" and "" are refused.
TEST(ParseInteger, NamesTheRange) {
  EXPECT_EQ(*parse_integer("--nodes", "12", {.min = 1}), 12);
  EXPECT_EQ(parse_integer("--nodes", "0", {.min = 1, .max = 9}).error().message,
            "--nodes \"0\": must be from 1 to 9");
  EXPECT_EQ(parse_integer("--nodes", "1x", {}).error().message,
            "--nodes \"1x\": not a whole number");
  // More than 64 bits hold.
  EXPECT_FALSE(parse_integer("--nodes", "99999999999999999999", {}).ok());
  EXPECT_FALSE(parse_integer("--nodes", "", {}).ok());
}

// A word that is neither must not count as NO.
TEST(ParseBoolean, KnowsSlurmsSpellings) {
  EXPECT_TRUE(*parse_boolean("Default", "YES"));
  EXPECT_FALSE(*parse_boolean("Default", "0"));
  EXPECT_EQ(parse_boolean("Default", "maybe").error().message, "Default \"maybe\": say YES or NO");
}

}  // namespace
}  // namespace slurm
