#include "translation/timetable_translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

// The scheduler plans with jobs, the agent switches pods: indexes of jobs become indexes of pods
// and back. A new leader reads its predecessor's plan from the timetable, so that turns go on where
// they were.
TEST(Timetables, ComeBackAndNamePods) {
  sched::NodePlan plan;
  plan.node = sched::NodeIndex{0};
  plan.as_of = base::Instant{seconds{100}};
  plan.entries = {{sched::JobId{1}, sched::Row::kActive, seconds{41}},
                  {sched::JobId{2}, sched::Row::kWaiting, seconds{0}}};
  plan.timetable = {.slice = seconds{30},
                    .pods_count = 2,
                    .plan = {{base::Instant{seconds{120}}, {0}}},
                    .cycle = {{1}, {0}}};
  const std::vector<PodSlot> one{{.name = "a-0", .node = "n1"}};
  // Job 2 has two pods here (PerTask): both have its turns.
  const std::vector<PodSlot> two{
      {.name = "b-0", .node = "n1"}, {.name = "b-1", .node = "n1"}, {.name = "b-2", .node = "n2"}};
  const auto find = [&](sched::JobId id) -> std::optional<ListedJob> {
    if (id == sched::JobId{1}) return ListedJob{"ns", "u1", one};
    return ListedJob{"ns", "u2", two};
  };
  const auto spec = encode_plan(plan, "n1", find);
  ASSERT_EQ(spec.pods.size(), 3U);
  EXPECT_EQ(spec.pods[2].name, "b-1");
  EXPECT_EQ(spec.timetable.cycle, (std::vector<timetable::PodSet>{{1, 2}, {0}}));
  EXPECT_TRUE(timetable::validate(spec.timetable).ok());
  const auto back = decode_plan(spec, plan.node, [](const kube::TimetablePod& pod) {
    return std::optional{sched::JobId{pod.job_uid == "u1" ? 1 : 2}};
  });
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, plan);
  // A job that is no longer known is left out, with its turns.
  const auto without = decode_plan(spec, plan.node, [](const kube::TimetablePod& pod) {
    return pod.job_uid == "u1" ? std::optional{sched::JobId{1}} : std::nullopt;
  });
  EXPECT_EQ(without->entries.size(), 1U);
  EXPECT_EQ(without->timetable.cycle, (std::vector<timetable::PodSet>{{}, {0}}));
}

}  // namespace
}  // namespace control
