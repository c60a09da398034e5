#include "cli/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace cli {
namespace {

// The first and the last code points of each length, beside the surrogates, and zeros, which are
// characters like others.
TEST(Utf8, ValidTextHasNoSuchLine) {
  for (const char* text : {"", "a\nb\n", "caf\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80"}) {
    EXPECT_EQ(line_that_is_not_utf8(text), std::nullopt) << text;
  }
  EXPECT_EQ(line_that_is_not_utf8(std::string(3, '\0')), std::nullopt);
}

// Latin-1, a lone continuation byte, characters that are cut off, overlong forms of '/' and of
// U+0800, a surrogate, and a code point above U+10FFFF.
TEST(Utf8, NamesTheFirstLineThatIsNotValid) {
  for (const char* text :
       {"caf\xE9", "\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC0\xAF", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82("}) {
    EXPECT_EQ(line_that_is_not_utf8(text), 1U) << text;
    EXPECT_EQ(line_that_is_not_utf8(std::string{"a\n\xC3\xA9\n"} + text + "\n\xFF"), 3U) << text;
  }
}

}  // namespace
}  // namespace cli
