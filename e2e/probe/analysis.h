// The analysis of who really ran when: conclusions of a demo or a test from the stamps of the
// probes of several gangs that took turns on the same nodes. Pure functions; the only source are
// the stamps.
//
// Words: a *turn* is a time in which a gang ran on a node without having been frozen in between; a
// *switch* is the change from one gang to another on one node; a pod is *touched* when the
// timetable has frozen or thawed it for the first time, before that it is settling (a pod cannot be
// frozen while it starts, architecture.md 2).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "e2e/probe/stamp_file.h"

namespace probe {

// [from, to).
struct Interval {
  base::Instant from{};
  base::Instant to{};
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct Gang {
  std::string name;
  std::map<std::string, std::vector<Run>> nodes;  // by node name
  // When its pod on a node was frozen for the first time, where that was observed. Elsewhere the
  // end of its first turn is taken for it, which a machine that stands still can feign.
  std::map<std::string, base::Instant> touched;
};

struct Measurement {
  base::Duration slice{};
  std::vector<Gang> gangs;
  base::Instant until{};  // stamps after this instant do not count
  // When the first gang ran alone and unsliced: the work that the others are compared with. Absent
  // or shorter than a second: one piece of work per probe::kPeriod.
  std::optional<Interval> unsliced;
};

struct JobShare {
  std::string name;
  double run_seconds = 0;        // mean over its nodes
  double suspended_seconds = 0;  // the rest of the window
  std::int64_t turns = 0;        // begun in the window, mean over its nodes, rounded
  friend bool operator==(const JobShare&, const JobShare&) = default;
};

struct Percentiles {
  std::int64_t p50 = 0;
  std::int64_t p99 = 0;
  friend bool operator==(const Percentiles&, const Percentiles&) = default;
};

struct Findings {
  // From the first swap on, over an even number of slots. Empty: there was no swap.
  std::optional<Interval> window;
  std::int64_t slices = 0;    // boundaries in the window
  std::int64_t switches = 0;  // per node, summed, from the first swap on
  base::Duration overlap_total{};
  base::Duration overlap_max{};
  base::Duration settling_overlap{};  // longest on one node
  Percentiles gap_micros;
  Percentiles skew_micros;
  double lost_percent = 0;
  std::vector<JobShare> jobs;  // as in the measurement
};

Findings analyse(const Measurement& measurement);

// Runs that are less than `gap` apart become one.
std::vector<Run> merge_runs(const std::vector<Run>& runs, base::Duration gap);

// Returns a break that cannot be mistaken for a busy CPU: half a slice, at most 100 ms.
base::Duration turn_gap(base::Duration slice);

// Returns how long both ran at the same time, in pieces.
std::vector<Interval> overlaps(const std::vector<Run>& a, const std::vector<Run>& b);

// Returns the percentile of values in any order: the smallest value that at least that share of
// them does not exceed.
Percentiles percentiles(std::vector<std::int64_t> values);

// Pieces of work in `interval`, a run that reaches beyond it counted in proportion.
double progress_in(const std::vector<Run>& runs, Interval interval);

}  // namespace probe
