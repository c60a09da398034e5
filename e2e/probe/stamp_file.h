// The file in which a probe says when it ran: a ring of runs, each a time in which the process was
// seen running again and again, was never stopped (stop_sense.h), and had no longer break. Shared
// memory: a reader may look at any time.
//
// Instants are CLOCK_REALTIME in microseconds, read *after* the process noticed that it runs, so a
// stamp is never from before a freeze that the process has just left (freezer.md 6). A run's `end`
// is the last such instant. Bounded: kRunsMax runs of 32 bytes, then the oldest is overwritten.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace probe {

inline constexpr std::uint32_t kRunsMax = 1U << 16U;  // 2 MiB; two hours at a slice of 100 ms
// A break longer than this begins a new run also when the process was not stopped: above what a
// busy machine's CPU scheduler makes a process wait, far below the shortest slice (100 ms).
inline constexpr base::Duration kRunGapMax = std::chrono::milliseconds{10};

struct Run {
  base::Instant begin{};
  base::Instant end{};        // inclusive
  std::int64_t progress = 0;  // pieces of work done in it
  friend bool operator==(const Run&, const Run&) = default;
};

// The stamps of one probe.
struct Stamps {
  std::vector<Run> runs;       // ascending, disjoint
  std::int64_t runs_lost = 0;  // overwritten
};

// Writes one file. One thread.
class StampWriter {
 public:
  // Creates or replaces `path`.
  static base::Result<StampWriter> create(const std::string& path);
  StampWriter(StampWriter&&) noexcept;
  StampWriter& operator=(StampWriter&&) = delete;
  ~StampWriter();

  // The process runs at t; stopped since the last time, it begins a new run. A clock that stepped
  // back is taken for standing still.
  void stamp(base::Instant t, bool was_stopped = false);
  // It has done a piece of work in the current run. REQUIRES: a stamp.
  void count_progress();

 private:
  struct Memory;
  explicit StampWriter(Memory* memory) : memory_{memory} {}
  Memory* memory_;  // mapped, null when moved from
  base::Instant last_{};

  friend base::Result<Stamps> read_stamps(const std::string& path);
};

// Also while the file is written: then the last run is as of some moment during the call.
// kNotFound: no such file; kInvalidArgument: not a stamp file.
base::Result<Stamps> read_stamps(const std::string& path);

}  // namespace probe
