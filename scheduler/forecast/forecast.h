// When and where a job would start if it was submitted now and nothing else happened: jobs run
// until their time limits and are ready at once, and no user submits, cancels or changes anything.
// That is what the backfill assumes, too. The farther away an instant is, the less often it is
// looked at: a start that is a day away may be foretold a twentieth of that time late.
//
// The scheduler that is asked is not touched: a copy of its state is restored as a new leader's
// would be, and goes on in virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/event.h"
#include "scheduler/state_copy.h"

namespace sched {

struct ForecastQuestion {
  StateCopy state;
  JobRequest request;             // a hold counts as taken back
  std::vector<KnownJob> known{};  // of its dependency (Submit)
};

// How far it looks.
struct ForecastBounds {
  base::Duration horizon = std::chrono::hours{24 * 7};
  // Asked before each step of the virtual time.
  std::function<bool()> gives_up = [] { return false; };
};

struct Forecast {
  enum class Outcome {
    kStarts,
    kNever,      // it is turned away, cannot run on the nodes that there are, or ends before
    kNotWithin,  // the horizon, or nothing more happens
    kGaveUp,     // as the bounds say
  };
  enum class Stop { kSuspended, kRequeued, kCancelled };
  struct Stopped {
    JobId job;
    Stop how;
    friend bool operator==(const Stopped&, const Stopped&) = default;
  };

  Outcome outcome = Outcome::kGaveUp;
  // --- kStarts ---
  base::Instant start{};
  std::string partition;
  std::vector<std::string> nodes;
  std::int32_t cpus = 0;
  std::vector<Stopped> stopped;  // jobs that it preempts, by id
  // --- else: why it waits, or is turned away ---
  Reason reason = Reason::kNone;
  std::string message;

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

// REQUIRES: the id of the request is above those of all jobs. For an array: the first of its tasks
// that starts. Cost: O(the state), and what the scheduler does until then.
Forecast forecast(const ForecastQuestion& question, const ForecastBounds& bounds = {});

}  // namespace sched
