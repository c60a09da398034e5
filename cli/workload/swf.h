// Traces in the Standard Workload Format 2.2, in which the Parallel Workloads Archive keeps the
// logs of real machines: a line of 18 numbers per job, comments after `;`, -1 for what is not
// known. SOURCE: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Pure.
//
// Read are the fields that say what a user asked for and what the job needed: 1 job number, 2
// submit time, 4 run time, 5 and 8 processors, 9 requested time, 10 requested memory, 11 status, 12
// user, 13 group, 15 queue. The others must be numbers, and are not used: what the machine's own
// scheduler did (3, 16), what was measured of a process (6, 7, 14), and what a job waited for (17,
// 18).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace cli {

inline constexpr std::size_t kSwfBytesMax = 256U << 20U;
inline constexpr std::size_t kSwfJobsMax = 1'000'000;
inline constexpr std::int64_t kSwfSecondsMax = 3'000'000'000;  // 95 years

// A job of a trace. nullopt: it is not known (any negative number in the file).
struct SwfJob {
  std::int64_t number = 0;
  base::Duration submit{};            // since the trace began
  std::optional<base::Duration> run;  // the time that it ran for
  std::optional<int> processors_allocated, processors_requested;
  std::optional<base::Duration> requested_time;
  std::optional<std::int64_t> requested_memory_kib;  // of each processor
  std::optional<int> status;                         // 0 failed, 1 completed, 5 canceled …
  std::optional<int> user, group, queue;
  friend bool operator==(const SwfJob&, const SwfJob&) = default;

  // Returns the processors that it asked for, else those that it got.
  std::optional<int> processors() const {
    return processors_requested ? processors_requested : processors_allocated;
  }
  // A line about a part of a job that was swapped out in between; another line sums the parts up.
  bool is_part() const { return status && *status >= 2 && *status <= 4; }
};

using SwfTrace = std::vector<SwfJob>;  // ascending submit times

// An error names file, line and field. Lines that are not in the order of their submit times are
// put in order. `file` is only for messages.
base::Result<SwfTrace> read_swf(std::string_view text, const std::string& file);

// Writes the trace as a file: read again it is the same, if its times are whole seconds.
std::string write_swf(const SwfTrace& trace, std::string_view comment);

}  // namespace cli
