#include "kube/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

namespace kube {
namespace {

// A maximum of 4: "1234" fits, and so do the four bytes of "12" and "34" that have no end yet; the
// fifth does not.
TEST(LineSplitter, RefusesALineAboveItsMaximumAlsoInPieces) {
  LineSplitter lines{4};
  const auto any = [](std::string_view) { return true; };
  EXPECT_EQ(lines.feed("1234\n12", any), LineSplitter::Outcome::kMore);
  EXPECT_EQ(lines.feed("34", any), LineSplitter::Outcome::kMore);
  EXPECT_EQ(lines.feed("5", any), LineSplitter::Outcome::kTooLong);
}

// The line that makes it stop was itself delivered; "three" is not.
TEST(LineSplitter, StopsWhenTold) {
  LineSplitter lines{80};
  std::vector<std::string> seen;
  const auto until_two = [&](std::string_view line) {
    seen.emplace_back(line);
    return line != "two";
  };
  EXPECT_EQ(lines.feed("one\ntw", until_two), LineSplitter::Outcome::kMore);
  EXPECT_EQ(lines.feed("o\nthree\n", until_two), LineSplitter::Outcome::kStopped);
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace kube
