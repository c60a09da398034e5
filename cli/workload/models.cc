#include "cli/workload/models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/workload/draws.h"

namespace cli {
namespace {

// --- sizes ---

// The distribution of a job's processors: serial, a power of two, or any number; the logarithm of a
// parallel job's size is uniform in two parts, as in both models of models.h.
struct Sizes {
  double serial;             // part of the jobs that are serial
  double power_of_two;       // … that are parallel and have a power of two
  double low, middle, high;  // log2 of the smallest size, of the border between the parts, …
  double lower_part;         // part of the parallel jobs below that border
};

// A uniform exponent makes sizes equally likely by factors: within a part, as many jobs have 2 to 4
// processors as 8 to 16.
int draw_size(base::Prng& prng, const Sizes& sizes) {
  // One draw decides between serial, power of two and any size, so the three parts add up to one.
  const double kind = draw_uniform(prng);
  if (kind < sizes.serial) return 1;
  const bool is_small = draw_uniform(prng) < sizes.lower_part;
  double log2 = is_small ? draw_uniform(prng, sizes.low, sizes.middle)
                         : draw_uniform(prng, sizes.middle, sizes.high);
  if (kind < sizes.serial + sizes.power_of_two) log2 = std::round(log2);
  return std::max(2, static_cast<int>(std::lround(std::exp2(std::min(log2, sizes.high)))));
}

// --- arrivals ---

constexpr std::size_t kHalfHours = 48;
constexpr double kHalfHour = 1'800;

// Returns how many jobs arrive in each half hour of a day, relative to the others: the gamma
// distribution of the model over a day that begins at half past five.
std::array<double, kHalfHours> daily_cycle() {
  constexpr double kShape = 8.1737, kScale = 3.9631;
  constexpr std::size_t kDayBegins = 11;
  std::array<double, kHalfHours> cycle{};
  for (std::size_t i = kDayBegins; i < kDayBegins + kHalfHours; ++i) {
    const auto middle = static_cast<double>(i);
    cycle[i % kHalfHours] =
        gamma_cdf(middle + 0.5, kShape, kScale) - gamma_cdf(middle - 0.5, kShape, kScale);
  }
  return cycle;
}

// Time as arrivals see it: it passes slowly at night. seconds_at() is the inverse of arrivals_by().
// An hour counts for as many arrivals as the model has in it: if three times as many jobs come by
// day, an hour of the day is worth three of the night. arrivals_by() is a line that bends at each
// half hour, and steps by the sum of a day, so both directions cost a look into one day whatever
// the length of a trace.
class DailyCycle {
 public:
  DailyCycle() {
    for (std::size_t i = 0; i < kHalfHours; ++i) sums_[i + 1] = sums_[i] + cycle_[i] * kHalfHour;
  }

  double arrivals_by(double seconds) const {
    const double days = std::floor(seconds / kDay);
    const double rest = seconds - days * kDay;
    const auto slot = std::min(static_cast<std::size_t>(rest / kHalfHour), kHalfHours - 1);
    return days * sums_.back() + sums_[slot] +
           (rest - static_cast<double>(slot) * kHalfHour) * cycle_[slot];
  }

  double seconds_at(double arrivals) const {
    const double days = std::floor(arrivals / sums_.back());
    const double rest = arrivals - days * sums_.back();
    // Without the first and the last sum: a rest at either end then falls into the first or the
    // last half hour instead of outside.
    const auto after = std::upper_bound(sums_.begin() + 1, sums_.end() - 1, rest);
    const auto slot = static_cast<std::size_t>(after - sums_.begin()) - 1;
    return days * kDay + static_cast<double>(slot) * kHalfHour +
           (rest - sums_[slot]) / cycle_[slot];
  }

 private:
  static constexpr double kDay = kHalfHours * kHalfHour;
  std::array<double, kHalfHours> cycle_ = daily_cycle();
  std::array<double, kHalfHours + 1> sums_{};  // arrivals before each half hour
};

// Gives the jobs submit times so that the load is met exactly:
// 1. the gaps between them as in the rush hours, drawn one by one
// 2. the span of time in which all their work is `load` of what the machine can do
// 3. the gaps are scaled to that span along the daily cycle, in which time passes slowly at night
void submit(SwfTrace& trace, base::Prng& prng, double load, int processors) {
  // log of the gap in seconds, in the rush hours; the shape holds for all hours (× 1.0225).
  constexpr double kShape = 10.2303 * 1.0225, kScale = 0.4871;
  constexpr double kLogMax = 13;  // five days
  std::vector<double> sums;
  double sum = 0;
  double work = 0;
  for (const SwfJob& job : trace) {
    double log = draw_gamma(prng, kShape, kScale);
    // Cut off, as in the model: one gap of weeks would decide the load of the whole trace.
    while (log > kLogMax) log = draw_gamma(prng, kShape, kScale);
    sum += std::exp(log);
    sums.push_back(sum);
    work += std::chrono::duration<double>(*job.run).count() * *job.processors();
  }
  const DailyCycle cycle;
  const double arrivals = cycle.arrivals_by(work / (processors * load));
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const double at = cycle.seconds_at(sums[i] / sum * arrivals);
    trace[i].submit = std::chrono::seconds{std::llround(at)};
  }
}

// --- limits ---

// Draws a time limit. Users ask for a round number, on the average twice what they need: the part
// of it that the job runs for is uniform (Mu'alem and Feitelson, "Utilization, predictability,
// workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling", 2001). The
// limit is the next round number above that.
base::Duration draw_limit(base::Prng& prng, base::Duration run, base::Duration longest) {
  constexpr std::array<int, 21> kMinutes = {5,   10,  15,  20,   30,   45,   60,
                                            90,  120, 180, 240,  300,  360,  480,
                                            600, 720, 900, 1080, 1440, 1800, 2160};
  const double asked = std::chrono::duration<double>(run).count() / (1 - draw_uniform(prng));
  for (const int minutes : kMinutes) {
    const std::chrono::minutes limit{minutes};
    if (limit >= longest) break;
    if (static_cast<double>(std::chrono::seconds{limit}.count()) >= asked) return limit;
  }
  return longest;
}

// Without a submit time and a limit, which are drawn later. Whole seconds, as the format has them,
// and at least one.
SwfJob job_of(std::int64_t number, int processors, double seconds) {
  return {.number = number,
          .run = std::chrono::seconds{std::max(1LL, std::llround(seconds))},
          .processors_requested = processors};
}

}  // namespace

SwfTrace lublin_feitelson_trace(const ModelOptions& options) {
  constexpr Sizes kSizes{.serial = 0.244,
                         .power_of_two = 0.576,
                         .low = 0.8,
                         .middle = 4.5,
                         .high = 7,
                         .lower_part = 0.86};
  constexpr double kLogMax = 12;  // 45 hours
  constexpr base::Duration kLongest = std::chrono::hours{48};
  base::Prng prng{options.seed};
  SwfTrace trace;
  for (int i = 1; i <= options.jobs_count; ++i) {
    const int size = draw_size(prng, kSizes);
    // The log of the run time is of one of two gamma distributions; the larger the job, the more
    // often of that of the long ones.
    const double part_short = 0.78 - 0.0054 * size;
    double log = kLogMax + 1;
    while (log > kLogMax) {
      log = draw_uniform(prng) < part_short ? draw_gamma(prng, 4.2, 0.94)
                                            : draw_gamma(prng, 312, 0.03);
    }
    trace.push_back(job_of(i, size, std::exp(log)));
    trace.back().requested_time = draw_limit(prng, *trace.back().run, kLongest);
  }
  submit(trace, prng, options.load, kLublinFeitelson.processors);
  return trace;
}

// Run times are uniform in their logarithm, from ten seconds to the longest (models.h).
SwfTrace ctc_like_trace(const ModelOptions& options) {
  const Sizes sizes{.serial = 0.333,
                    .power_of_two = 0.5,
                    .low = 0.8,
                    .middle = 5,
                    .high = std::log2(kCtcLike.processors),
                    .lower_part = 0.9};
  constexpr std::chrono::hours kLongest{18};
  base::Prng prng{options.seed};
  SwfTrace trace;
  for (int i = 1; i <= options.jobs_count; ++i) {
    const int size = draw_size(prng, sizes);
    // The mean is two hours.
    const double run =
        draw_log_uniform(prng, 10, static_cast<double>(std::chrono::seconds{kLongest}.count()));
    trace.push_back(job_of(i, size, run));
    trace.back().requested_time = draw_limit(prng, *trace.back().run, kLongest);
  }
  submit(trace, prng, options.load, kCtcLike.processors);
  return trace;
}

}  // namespace cli
