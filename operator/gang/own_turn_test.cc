#include "operator/gang/own_turn.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Instant at(base::Duration t) {
  return base::Instant{t};
}

// Slots of 10 s: other, own, own, other, and so on. "a" has pods 1 and 2 of three.
kube::NodeTimetableSpec four_slots() {
  kube::NodeTimetableSpec spec;
  spec.pods = {{.name = "b-0", .job_uid = "b"},
               {.name = "a-0", .job_uid = "a"},
               {.name = "a-1", .job_uid = "a"}};
  spec.timetable.slice = seconds{10};
  spec.timetable.pods_count = 3;
  spec.timetable.cycle = {{0}, {1, 2}, {1, 2}, {0}};
  return spec;
}

// The turn is from 10 s to 30 s of each 40 s. A pod that needs 3 s is made up to 27 s; at 27.001 s
// the next one would be frozen in the turn of the other gang before it had settled, that is to say
// it would not be frozen.
TEST(OwnTurn, LastsUntilAPodHasSettled) {
  const auto next = [](base::Duration now, base::Duration settle = seconds{3}) {
    return *next_turn_to_settle_in(four_slots(), "a", at(now), settle) - at(seconds{0});
  };
  EXPECT_EQ(next(seconds{0}), seconds{10});
  EXPECT_EQ(next(seconds{10}), seconds{10});
  EXPECT_EQ(next(seconds{19}), seconds{19}) << "the next slot is its own, too";
  EXPECT_EQ(next(seconds{27}), seconds{27});
  EXPECT_EQ(next(milliseconds{27'001}), seconds{50});
  EXPECT_EQ(next(seconds{35}), seconds{50});
  // Pods take longer to settle than a slice lasts: they are made in the first half of a slot.
  EXPECT_EQ(next(seconds{25}, seconds{60}), seconds{25});
  EXPECT_EQ(next(milliseconds{25'001}, seconds{60}), seconds{50});
}

TEST(OwnTurn, OfAJobThatRunsAllTheTimeIsNow) {
  kube::NodeTimetableSpec spec = four_slots();
  EXPECT_EQ(next_turn_to_settle_in(spec, "c", at(seconds{5}), seconds{3}), std::nullopt);
  spec.timetable.cycle = {{0, 1, 2}};
  EXPECT_EQ(next_turn_to_settle_in(spec, "a", at(seconds{5}), seconds{3}), at(seconds{5}));
}

TEST(OwnTurn, OfAJobThatIsSuspendedIsNever) {
  kube::NodeTimetableSpec spec = four_slots();
  spec.timetable.cycle = {{0}};
  EXPECT_EQ(next_turn_to_settle_in(spec, "a", at(seconds{5}), seconds{3}), base::kNever);
  // Until then by the plan, and again afterwards.
  spec.timetable.plan = {{.until = at(seconds{100}), .run = {}}};
  spec.timetable.cycle = {{0, 1, 2}};
  EXPECT_EQ(next_turn_to_settle_in(spec, "a", at(seconds{5}), seconds{3}), at(seconds{100}));
}

}  // namespace
}  // namespace control
