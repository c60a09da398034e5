#include "cli/report/what_if_svg.h"

#include <string>

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

// `jobs_count` jobs one after the other, each on four neighbouring nodes of 64 and on a quarter of
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

TEST(WhatIfSvg, FewJobsAreAllShown) {
  const std::string svg = picture_of(20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(svg, testing::HasSubstr("<title>job" + std::to_string(i) + "</title>"));
  }
  EXPECT_EQ(count(svg, "other jobs"), 0U);
}

TEST(WhatIfSvg, HasNoMoreMarksThanItSays) {
  const std::string svg = picture_of(20'000);
  EXPECT_LE(count(svg, "<title>"), kSvgMarksMax);
  EXPECT_GE(count(svg, "other jobs"), 1U);
  EXPECT_LE(svg.size(), 1'500'000U);
}

}  // namespace
}  // namespace cli
