#include "cli/workload/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "cli/workload/draws.h"

namespace cli {
namespace {

constexpr WorkloadModel kModels[] = {kLublinFeitelson, kCtcLike};

double as_seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double part_of(const SwfTrace& trace, const std::function<bool(const SwfJob&)>& condition) {
  return static_cast<double>(std::count_if(trace.begin(), trace.end(), condition)) /
         static_cast<double>(trace.size());
}

// The mean of a gamma distribution is shape × scale. Its standard deviation is √shape × scale,
// nearly 2, so that of the mean of 100,000 draws is 0.006. The bound is five times that.
TEST(Draws, GammaHasItsMeanAndItsDistribution) {
  base::Prng prng{1};
  double sum = 0;
  int below = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw_gamma(prng, 4.2, 0.94);
    sum += x;
    if (x <= 3) ++below;
  }
  EXPECT_NEAR(sum / kDraws, 4.2 * 0.94, 0.03);
  EXPECT_NEAR(static_cast<double>(below) / kDraws, gamma_cdf(3, 4.2, 0.94), 0.005);
}

// With shape 1 it is the exponential distribution, with shape 2 that of a sum of two.
TEST(Draws, GammaCdfAgreesWithTheClosedForms) {
  EXPECT_NEAR(gamma_cdf(3, 1, 2), 1 - std::exp(-1.5), 1e-12);
  EXPECT_NEAR(gamma_cdf(5, 2, 1), 1 - std::exp(-5) * 6, 1e-12);
  EXPECT_EQ(gamma_cdf(0, 2, 1), 0);
}

// The tables of docs/design/does-it-help.md can be made again only if traces do not depend on the
// machine or the day.
TEST(WorkloadModels, TheSameSeedGivesTheSameTrace) {
  for (const WorkloadModel& model : kModels) {
    EXPECT_EQ(model.make({.seed = 3, .jobs_count = 50}), model.make({.seed = 3, .jobs_count = 50}));
    EXPECT_NE(model.make({.seed = 3, .jobs_count = 50}), model.make({.seed = 4, .jobs_count = 50}));
  }
}

// The load is work ÷ (processors × time to the last submission), and is met exactly but for the
// rounding of submit times to seconds.
TEST(WorkloadModels, TheLoadIsMetAndJobsAreLegal) {
  for (const WorkloadModel& model : kModels) {
    const SwfTrace trace = model.make({.seed = 1, .jobs_count = 3'000, .load = 0.7});
    ASSERT_EQ(trace.size(), 3'000U);
    double work = 0;
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const SwfJob& job = trace[i];
      work += as_seconds(*job.run) * *job.processors();
      EXPECT_GE(*job.processors(), 1);
      EXPECT_LE(*job.processors(), model.processors);
      EXPECT_GE(*job.requested_time, *job.run);
      EXPECT_TRUE(i == 0 || trace[i - 1].submit <= job.submit);
    }
    EXPECT_NEAR(work / (model.processors * as_seconds(trace.back().submit)), 0.7, 0.001)
        << model.name;
  }
}

// The parts are those of the paper: 24.4% serial jobs, and 57.6% of a power of two besides; "any"
// sizes may be powers of two by chance, so that part has a lower bound only.
TEST(WorkloadModels, SizesAreSerialPowersOfTwoAndOthers) {
  const SwfTrace trace = lublin_feitelson_trace({.seed = 1, .jobs_count = 20'000});
  EXPECT_NEAR(part_of(trace, [](const SwfJob& job) { return job.processors() == 1; }), 0.244, 0.01);
  EXPECT_GE(part_of(trace,
                    [](const SwfJob& job) {
                      return std::has_single_bit(static_cast<unsigned>(*job.processors()));
                    }),
            0.244 + 0.576 - 0.01);
}

// More jobs arrive in an hour of the afternoon than in one of the night.
TEST(WorkloadModels, ArrivalsFollowTheDay) {
  const SwfTrace trace = lublin_feitelson_trace({.seed = 1, .jobs_count = 20'000});
  const auto between = [&](int from, int to) {
    return part_of(trace, [&](const SwfJob& job) {
      const double hour = std::fmod(as_seconds(job.submit), 86'400) / 3'600;
      return hour >= from && hour < to;
    });
  };
  // Three times as many is far below what the model says and far above chance.
  EXPECT_GT(between(12, 18), 3 * between(0, 6));
}

// The part of its limit that a job runs for is uniform, on the average 1/2, and limits are rounded
// up: so the mean is below a half.
TEST(WorkloadModels, LimitsAreOnTheAverageTwiceAsLongAtLeast) {
  for (const WorkloadModel& model : kModels) {
    const SwfTrace trace = model.make({.seed = 1, .jobs_count = 5'000});
    double sum = 0;
    for (const SwfJob& job : trace) sum += as_seconds(*job.run) / as_seconds(*job.requested_time);
    const double mean = sum / static_cast<double>(trace.size());
    EXPECT_GT(mean, 0.25) << model.name;
    EXPECT_LT(mean, 0.5) << model.name;
  }
}

}  // namespace
}  // namespace cli
