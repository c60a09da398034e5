#include "scheduler/simulate/run_span.h"

#include <gtest/gtest.h>

#include "scheduler/simulate/history.h"

namespace simulate {
namespace {

using std::chrono::seconds;

TEST(RunSpan, WithoutTimetableRunsAllTheTime) {
  const RunSpan span{.from = base::Instant{seconds{10}}, .to = base::Instant{seconds{20}}};
  // From 10 s, where the span begins, to 15 s.
  EXPECT_EQ(run_time(span, base::Instant{}, base::Instant{seconds{15}}), seconds{5});
  EXPECT_TRUE(runs_at(span, base::Instant{seconds{19}}));
  EXPECT_FALSE(runs_at(span, base::Instant{seconds{20}}));
}

TEST(RunSpan, WhatIsSimpleIsKeptSimple) {
  auto table = std::make_shared<timetable::Timeline>();
  table->pods_count = 2;
  table->slice = seconds{10};
  // Pod 0, whose spans these are, has the slots from 0, 20 and 40 s; pod 1 the others.
  table->cycle = {{0}, {1}};
  const auto at = [](int t) { return base::Instant{seconds{t}}; };
  Placement placement;
  const auto add = [&](int from, int to, bool turns) {
    add_span(placement, {.from = at(from), .to = at(to), .timetable = turns ? table : nullptr});
  };
  add(0, 3, false);
  add(3, 8, true);    // all of it in the pod's slot
  add(12, 18, true);  // nothing of it
  add(18, 25, true);  // 20 to 25
  ASSERT_EQ(placement.spans.size(), 2U);
  EXPECT_EQ(placement.spans[0].timetable, nullptr);
  EXPECT_EQ(placement.spans[0].to, at(8));
  EXPECT_EQ(placement.spans[1].timetable, table);
  // 8 s of the joined first span, 5 s of the last.
  EXPECT_EQ(run_time(placement, at(0), at(25)), seconds{13});
}

}  // namespace
}  // namespace simulate
