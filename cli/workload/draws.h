// Random draws of the workload models, by textbook formulas, from a seeded generator: the same on
// every machine whose libm rounds alike.
#pragma once

#include "base/prng.h"

namespace cli {

// Draws a number of at least 0, below 1.
double draw_uniform(base::Prng& prng);
double draw_uniform(base::Prng& prng, double from, double to);
// Returns a point between the two whose logarithm is uniform. REQUIRES: 0 < from <= to.
double draw_log_uniform(base::Prng& prng, double from, double to);
double draw_normal(base::Prng& prng);
// Gamma distribution with mean shape × scale. REQUIRES: shape >= 1.
// SOURCE: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double draw_gamma(base::Prng& prng, double shape, double scale);

// P(a gamma-distributed number <= x). REQUIRES: x / scale is below 500.
double gamma_cdf(double x, double shape, double scale);

}  // namespace cli
