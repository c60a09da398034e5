// When a process of the operator is over, or says that it is not well.
#include <gtest/gtest.h>

#include "kube/testing/manual_clock.h"
#include "operator/process/beat.h"
#include "operator/process/list_patience.h"

namespace control {
namespace {

using std::chrono::seconds;

// A leader that cannot list would keep others from leading.
TEST(ListPatience, EndsTheProcessAfterTwoMinutesWithTheNamesOfTheKinds) {
  kube::ManualClock clock;
  clock.advance(seconds{1'000});
  const ListPatience patience{clock};
  EXPECT_EQ(patience.end("Job"), std::nullopt);
  clock.advance(seconds{119});
  clock.step_wall(seconds{3'600});  // which says nothing of how long it waited
  EXPECT_EQ(patience.end("Job"), std::nullopt);
  clock.advance(seconds{1});
  EXPECT_EQ(patience.end("Job, Node"),
            "cannot list Job, Node within 120 s (is the CRD there, and may this "
            "account list it?); ending");
}

// /healthz is answered by another thread, so the server alone says nothing of the loop.
TEST(Beat, IsNotWellWhileTheMainThreadStandsStill) {
  kube::ManualClock clock;
  clock.advance(seconds{1'000});
  Beat beat{clock};
  const base::Duration age_max = seconds{10};
  clock.advance(age_max);
  clock.step_wall(seconds{3'600});
  EXPECT_TRUE(beat.is_fresh(age_max));
  EXPECT_TRUE(beat.alive(age_max).ok());
  clock.advance(base::Duration{1});
  EXPECT_FALSE(beat.is_fresh(age_max));
  ASSERT_FALSE(beat.alive(age_max).ok());
  EXPECT_EQ(beat.alive(age_max).error().message, "the main thread stands still");
  beat.beat();
  EXPECT_TRUE(beat.alive(age_max).ok());
}

}  // namespace
}  // namespace control
