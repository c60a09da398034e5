#include "cli/report/what_if_svg.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace cli {
namespace {

using sched::testing::at;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + 1)) ++found;
  return found;
}

// `jobs_count` jobs one after the other, each on four neighboring nodes of 64 and on a quarter of
// their cores, eight at a time on a node.
std::string picture_of(int jobs_count) {
  constexpr int kNodes = 64;
  simulate::Scenario scenario;
  scenario.nodes = sched::testing::nodes("n", 1, kNodes, 16);
  simulate::WhatIf result;
  for (int i = 0; i < jobs_count; ++i) {
    scenario.jobs.push_back({.label = "job" + std::to_string(i)});
    simulate::Placement placement{.from = at(i), .to = at(i + 128), .partition = "p"};
    placement.spans.push_back({.from = placement.from});
    for (int k = 0; k < 4; ++k) {
      placement.parts.push_back({.node = static_cast<std::size_t>((i * 4 + k) % kNodes),
                                 .cores = sched::CoreSet::first(4),
                                 .cpus = 4});
    }
    result.jobs.push_back({.placements = {placement}});
  }
  result.end = at(jobs_count + 128);
  return what_if_svg(scenario, result);
}

// A picture of a small scenario must not leave out anything: a job under "other jobs" could not be
// found in it.
TEST(WhatIfSvg, FewJobsAreAllShown) {
  const std::string svg = picture_of(20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(svg, testing::HasSubstr("<title>job" + std::to_string(i) + "</title>"));
  }
  EXPECT_EQ(count(svg, "other jobs"), 0U);
}

// 20,000 jobs on four nodes each are 80,000 marks with other jobs in nearly every column, so
// joining columns does not help.
TEST(WhatIfSvg, HasNoMoreMarksThanItSays) {
  const std::string svg = picture_of(20'000);
  EXPECT_LE(count(svg, "<title>"), kSvgMarksMax);
  EXPECT_GE(count(svg, "other jobs"), 1U);
  EXPECT_LE(svg.size(), 1'500'000U);
}

// Returns the jobs of these labels one after the other, each for `each` on the whole of one node.
std::string row_of(const std::vector<std::string>& labels, int seconds_each) {
  simulate::Scenario scenario;
  scenario.nodes = sched::testing::nodes("n", 1, 1, 16);
  simulate::WhatIf result;
  for (const std::string& label : labels) {
    const int from = static_cast<int>(result.jobs.size()) * seconds_each;
    scenario.jobs.push_back({.label = label});
    simulate::Placement placement{
        .from = at(from), .to = at(from + seconds_each), .partition = "p"};
    placement.spans.push_back({.from = placement.from});
    placement.parts.push_back({.node = 0, .cores = sched::CoreSet::first(16), .cpus = 16});
    result.jobs.push_back({.placements = {placement}});
    result.end = at(from + seconds_each);
  }
  return what_if_svg(scenario, result);
}

// More jobs than the palette has colors, or the legend has room for.
std::vector<std::string> labels(int count) {
  std::vector<std::string> labels;
  for (int i = 0; i < count; ++i) labels.push_back("job" + std::to_string(i));
  return labels;
}

// Three marks, each a third of the width; two names fit, and only those are written.
TEST(WhatIfSvg, NamesStandInTheirMarks) {
  const std::string svg = row_of(
      {"first", "a-name-that-has-no-room-in-a-third-of-the-width-" + std::string(60, 'x'), "last"},
      60);
  EXPECT_THAT(svg, testing::ContainsRegex("<text [^>]*class=\"w\">first</text>"));
  EXPECT_THAT(svg, testing::ContainsRegex("<text [^>]*class=\"w\">last</text>"));
  EXPECT_EQ(count(svg, "class=\"w\">") + count(svg, "class=\"b\">"), 2U);
}

// The first two colors of the palette. 28 of 40 jobs have an entry in the legend, and 12 are
// counted.
TEST(WhatIfSvg, TheLegendNamesTheJobsWithTheirPaint) {
  const std::string svg = row_of({"A", "B"}, 60);
  EXPECT_THAT(svg, testing::ContainsRegex("width=\"12\" height=\"12\" fill=\"#0072B2\"/>\n"
                                          "<text [^>]*>A</text>"));
  EXPECT_THAT(svg, testing::ContainsRegex("width=\"12\" height=\"12\" fill=\"#E69F00\"/>\n"
                                          "<text [^>]*>B</text>"));
  EXPECT_EQ(count(svg, " more</text>"), 0U);
  EXPECT_THAT(row_of(labels(40), 60), testing::HasSubstr(">and 12 more</text>"));
}

// Fourteen paints: each color, plain and striped. The stripes are there only if they are used.
TEST(WhatIfSvg, TheSecondRoundOfColorsIsStriped) {
  EXPECT_EQ(count(row_of(labels(7), 60), "<pattern"), 0U);
  const std::string svg = row_of(labels(15), 60);
  EXPECT_EQ(count(svg, "<pattern"), 7U);
  EXPECT_EQ(count(svg, "height=\"18.0\" fill=\"#0072B2\""), 2U) << "jobs 0 and 14";
  EXPECT_EQ(count(svg, "height=\"18.0\" fill=\"url(#s0)\""), 1U) << "job 7";
}

// At most ten marks: an hour is marked every 10 minutes, nine days every day.
TEST(WhatIfSvg, TimeMarksAreRound) {
  const std::string svg = row_of({"A"}, 3'700);  // an hour, a minute and more
  for (const char* mark : {">0:00<", ">10:00<", ">20:00<", ">1:00:00<"}) {
    EXPECT_THAT(svg, testing::HasSubstr(mark));
  }
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr(">1:01:40<")));
  const std::string days = row_of({"A"}, 9 * 86'400);
  EXPECT_THAT(days, testing::HasSubstr(">1-00:00:00<"));
  EXPECT_THAT(days, testing::HasSubstr(">9-00:00:00<"));
}

}  // namespace
}  // namespace cli
