#include "cli/workload/draws.h"

#include <cmath>
#include <numbers>

namespace cli {

double draw_uniform(base::Prng& prng) {
  // 53 bits are what a double holds, so every value below 1 is equally likely and 1 never occurs.
  return static_cast<double>(prng.next() >> 11U) * 0x1p-53;
}

double draw_uniform(base::Prng& prng, double from, double to) {
  return from + (to - from) * draw_uniform(prng);
}

double draw_log_uniform(base::Prng& prng, double from, double to) {
  return std::exp(draw_uniform(prng, std::log(from), std::log(to)));
}

// Box and Muller: a radius and an angle make two normal numbers, of which one is used. 1 - u lies
// in (0, 1], so the logarithm is finite.
double draw_normal(base::Prng& prng) {
  const double radius = std::sqrt(-2 * std::log(1 - draw_uniform(prng)));
  return radius * std::cos(2 * std::numbers::pi * draw_uniform(prng));
}

// SOURCE: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: d (1 + c x)³
// with a normal x is nearly gamma-distributed; some draws are rejected to make it exact. REQUIRES:
// shape ≥ 1.
double draw_gamma(base::Prng& prng, double shape, double scale) {
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(prng);
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double log_u = std::log(1 - draw_uniform(prng));
    if (log_u < x * x / 2 + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

// x^a e^-x / Γ(a) × Σ x^n / (a (a + 1) … (a + n)), the series of the incomplete gamma function. Its
// terms grow until n is near x and fall then, so the first one that no longer changes the sum ends
// it.
double gamma_cdf(double x, double shape, double scale) {
  if (x <= 0) return 0;
  x /= scale;
  double term = 1 / shape;
  double sum = term;
  for (int n = 1; n < 2'000 && term > sum * 1e-16; ++n) {
    term *= x / (shape + n);
    sum += term;
  }
  return sum * std::exp(shape * std::log(x) - x - std::lgamma(shape));
}

}  // namespace cli
