// `kubectl gang prio`: where the priorities of waiting jobs come from, as sprio shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/cluster/standing.h"
#include "cli/program.h"

namespace cli {

// One factor of priority: what it is called, its weight, its value. A factor is in parts per
// billion, so that it is an integer; 0 to 10^9 unless a NO_NORMAL_… flag is set (R9.3).
// For example a weight of 1,000 and an age of a quarter of maxAge, 250,000,000 ppb, are 250 points.
struct PrioTerm {
  std::string title;
  std::string name;  // in JSON
  std::int64_t weight = 0;
  std::int64_t factor_ppb = 0;

  // Returns the points that it adds to the priority, rounded down.
  std::int64_t points() const;
};

// Returns the factors in sprio's order, each with its weight. With factors of zero the result still
// has the titles and the weights.
std::vector<PrioTerm> terms_of(const sched::PriorityParameters& parameters,
                               const sched::PriorityFactors& factors);

// The job's priority in one of its partitions.
struct PrioLine {
  const kube::Job* job = nullptr;
  std::string partition;
  std::int64_t priority = 0;
  std::vector<PrioTerm> terms;
};

// Returns a line for each waiting job and each of its partitions, the highest priority first.
std::vector<PrioLine> prio_lines(const Standing& standing, base::Instant now);

struct PrioOptions {
  bool all_namespaces = false;
  bool weights = false;  // those of the configuration instead
  bool json = false;
};
int run_prio(const Session& session, const PrioOptions& options, Output output);

}  // namespace cli
