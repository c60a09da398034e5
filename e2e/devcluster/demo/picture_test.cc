#include "e2e/devcluster/demo/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "e2e/devcluster/demo/report.h"

namespace devcluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// Five cells: two of the first job, one of the second, one in which none ran, one in which both
// did.
Picture two_jobs() {
  return {.title = "demo",
          .jobs = {{"first", "batch", "R", seconds{41}, seconds{30}, 5, "n[12-16]"},
                   {"second", "batch", "S", seconds{30}, seconds{41}, 5, "n[12-16]"}},
          .strips = {{"n12", {{0U}, {0U}, {1U}, {}, {{}, true}}}},
          .cell_length = milliseconds{500},
          .footer = {"look inside"}};
}

// Without color and Unicode, as in a log.
TEST(Picture, ShowsTheTableAsSqueueDoesAndAStripPerNode) {
  EXPECT_THAT(
      render(two_jobs(), {.columns = 80}),
      ElementsAre(
          "demo", "", "JOB        PARTITION ST       TIME  SUSPENDED NODES NODELIST(REASON)",
          "first      batch     R        0:41       0:30     5 n[12-16]",
          "second     batch     S        0:30       0:41     5 n[12-16]", "", "n12 ##=.!",
          "    # first  = second  ! both, while one starts  column = 500 ms", "", "look inside"));
}

// Lines that wrap would break the picture, which is drawn over the last one line by line.
TEST(Picture, FitsIntoEightyColumns) {
  Picture picture = two_jobs();
  picture.jobs[0].nodes_or_reason = std::string(200, 'x');
  picture.footer = {std::string(200, 'y')};
  picture.strips[0].cells.assign(strip_columns({.columns = 80}, 3), StripCell{0U});
  for (const std::string& line : render(picture, {.columns = 80})) EXPECT_LE(line.size(), 80U);
  EXPECT_LE(std::string{kStateLegend}.size(), 80U);
}

// Returns a report of a good run on an idle machine; each test spoils one figure.
Report good_report() {
  Report report{.slice = seconds{2}};
  report.findings = {.slices = 20,
                     .switches = 100,
                     .settling_overlap = milliseconds{2300},
                     .gap_micros = {500, 900},
                     .skew_micros = {1000, 5000},
                     .lost_percent = 0.12345,
                     .jobs = {{"first", 20.0, 20.0, 10}, {"second", 19.5, 20.5, 10}}};
  return report;
}

// Scripts read them; docs and scripts must change with them.
TEST(Report, HasExactlyTheDocumentedKeys) {
  const nlohmann::json json = report_json(good_report());
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(
      keys, ElementsAre("api_writes_per_switch", "gap_us_p50", "gap_us_p99", "jobs", "lost_percent",
                        "overlap_us_max", "overlap_us_total", "settling_overlap_us", "skew_us_p50",
                        "skew_us_p99", "slices", "switches"));
  EXPECT_EQ(json["lost_percent"], 0.123);
  EXPECT_EQ(
      json["jobs"][0],
      (nlohmann::json{
          {"name", "first"}, {"run_seconds", 20.0}, {"suspended_seconds", 20.0}, {"turns", 10}}));
}

// The demo exits with 0 then.
TEST(Report, HasNothingToComplainAboutWhenAllIsAsExpected) {
  EXPECT_THAT(complaints(good_report()), IsEmpty());
}

// No tolerance: two gangs at once on a core is what the product promises not to do.
TEST(Report, FailsOnOneMicrosecondOfOverlap) {
  Report report = good_report();
  report.findings.overlap_total = report.findings.overlap_max = base::Duration{1};
  ASSERT_EQ(complaints(report).size(), 1U);
  EXPECT_TRUE(complaints(report)[0].hard);
}

// Both would leave the other figures as they are: without a switch there is no overlap either.
TEST(Report, FailsWhenNobodySwitchedOrAJobGotMoreThanHalfASliceLess) {
  Report report = good_report();
  report.findings.switches = 0;
  // 20.0 and 18.9 s are 1.1 s apart; half a slice is 1 s.
  report.findings.jobs[1].run_seconds = 18.9;
  EXPECT_EQ(complaints(report).size(), 2U);
}

// A laptop that is busy must not make the first thing that a user tries fail.
TEST(Report, OnlyRemarksOnSkewAndLossOfABusyMachine) {
  Report report = good_report();
  // Above 3 and 20 ms, and above 2 %.
  report.findings.skew_micros = {4000, 30000};
  report.findings.lost_percent = 3;
  ASSERT_EQ(complaints(report).size(), 2U);
  for (const Complaint& complaint : complaints(report)) EXPECT_FALSE(complaint.hard);
  // More work in turns than alone tells nothing of what turns cost.
  report = good_report();
  report.findings.lost_percent = -12.5;
  ASSERT_EQ(complaints(report).size(), 1U);
  EXPECT_FALSE(complaints(report)[0].hard);
}

// A loss of -5.38 % of some work is hard to understand.
TEST(Report, ShowsNoLossBelowNothing) {
  Report report = good_report();
  const auto line = [&] {
    const std::vector<std::string> lines = report_lines(report);
    return *std::ranges::find_if(lines, [](const auto& each) { return each.starts_with("work"); });
  };
  EXPECT_EQ(line(), "work lost 0.12 %, API writes per switch 0.00");
  report.findings.lost_percent = -0.4;
  EXPECT_EQ(line(), "work lost 0.00 %, API writes per switch 0.00");
  report.findings.lost_percent = -5.38;
  EXPECT_EQ(line(), "work lost is not known, API writes per switch 0.00");
}

}  // namespace
}  // namespace devcluster
