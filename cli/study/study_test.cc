#include "cli/study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/files.h"

namespace cli {
namespace {

// Returns the text of docs/design/does-it-help.md, in which the tables stand between marks.
std::string document() {
  const std::filesystem::path path =
      std::filesystem::path{KUBEGANG_SOURCE_DIR} / "docs/design/does-it-help.md";
  const base::Result<std::string> text = read_file(path.string(), 1U << 20U);
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

// One row, in which everything has a part; it takes seconds. A change of the scheduler that moves
// the figures must change the document in the same commit.
TEST(Study, TheDocumentSaysWhatComesOutToday) {
  const std::string text = document();
  const std::size_t begin = text.find("<!-- ctc-like -->");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = text.substr(begin, text.find("<!-- end -->", begin) - begin);
  const Policy& policy = kPolicies.back();
  const Figures figures = study(kCtcLike, policy, kLoads.front());
  EXPECT_THAT(table, testing::HasSubstr(study_row({kLoads.front(), policy.name, figures})))
      << "docs/design/does-it-help.md is out of date: run `make does-it-help`";
}

// Four panels. The size is bounded because the picture is part of the repository and of a page.
TEST(Study, ThePictureHasAPanelForEachFigureAndALineForEachPolicy) {
  std::vector<Studied> all;
  for (const double load : kLoads) {
    for (const Policy& policy : kPolicies)
      all.push_back({load, policy.name, {.response_mean = load}});
  }
  const std::string svg = study_svg(kCtcLike, all);
  std::size_t lines = 0;
  for (std::size_t i = svg.find("<polyline"); i != std::string::npos;
       i = svg.find("<polyline", i + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 4 * kPolicies.size());
  for (const Policy& policy : kPolicies) {
    EXPECT_THAT(svg, testing::HasSubstr(">" + std::string{policy.name} + "</text>"));
  }
  EXPECT_LT(svg.size(), 20'000U);
}

}  // namespace
}  // namespace cli
