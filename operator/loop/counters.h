// The counters of the loop, for /metrics; as of the last step.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"

namespace control {

// A histogram of durations, in seconds: how many were up to each bound, and above the last.
template <const auto& kBoundaries>
struct Observed {
  static constexpr const auto& kBounds = kBoundaries;
  std::array<std::int64_t, kBounds.size() + 1> counts{};
  double sum = 0;

  void count(base::Duration duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum += seconds;
  }
};

// Starts by how much later they were than expected; negative: sooner.
inline constexpr std::array<double, 12> kStartErrorBounds = {-3600, -600, -60, -5,  -1,  1,
                                                             5,     30,   60,  300, 600, 3600};
using StartErrors = Observed<kStartErrorBounds>;

struct LicenseUse {
  std::int64_t total = 0;
  std::int64_t in_use = 0;
};

// A status that has to be written at once, and is not stored yet, waits for one of these.
enum class WriteWaitsFor {
  kAnswer,      // it is under way
  kRoom,        // others are before it
  kBackOff,     // the last try has failed
  kRest,        // an array gathers what there is to say of it
  kOtherWrite,  // one that has to be stored first (CommitGate)
};
inline constexpr std::array<const char*, 5> kWriteWaitsForNames = {"Answer", "Room", "BackOff",
                                                                   "Rest", "OtherWrite"};
// The one that has waited longest. No time if none waits.
struct OldestWrite {
  base::Duration time{0};
  WriteWaitsFor waits_for = WriteWaitsFor::kAnswer;
};

// Totals since the process began, but for the numbers of nodes, jobs and licenses, for
// timetable_lag and for oldest_status, which are those of the moment.
struct LoopCounters {
  std::int64_t steps = 0;
  std::int64_t events = 0;     // handed to the scheduler
  std::int64_t decisions = 0;  // taken from it
  base::Duration deciding{0};  // time in the scheduler for these, and for what nodes are to do
  std::int64_t starts = 0;
  std::int64_t backfilled_starts = 0;  // of these, by the backfill
  std::int64_t status_writes = 0;
  std::int64_t timetable_writes = 0;
  std::int64_t pod_creates = 0;
  std::int64_t pod_deletes = 0;
  std::int64_t conflicts = 0;
  std::int64_t write_failures = 0;
  std::int64_t nodes_known = 0;  // of which anything is remembered
  std::int64_t jobs_pending = 0;
  std::int64_t jobs_running = 0;
  std::int64_t jobs_suspended = 0;
  std::int64_t jobs_finished = 0;              // of which nothing but their objects is kept
  std::int64_t jobs_unrecorded = 0;            // whose deletion waits for records
  std::int64_t unrecorded_deletes = 0;         // that did not wait any longer
  std::int64_t unseen_jobs = 0;                // that records have never seen
  std::map<std::string, LicenseUse> licenses;  // by name, as configured
  StartErrors start_errors;                    // of jobs that had an expected start
  base::Duration timetable_lag{0};             // of the node that has not obeyed for longest
  OldestWrite oldest_status;                   // as of about a second ago
  bool clock_trusted = true;                   // false: no job ends because its time is over
};

}  // namespace control
