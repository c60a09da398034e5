// TrackedGang: Components over TrackedJobs, as the engine drives them, with drawings of what they
// say. Slices of 30 s, so slot n is [30n, 30n + 30).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/gang/components.h"
#include "scheduler/testing/tracked_jobs.h"

namespace sched::testing {

class TrackedGang {
 public:
  explicit TrackedGang(std::string_view partitions, double lead = 0,
                       gang::Unit unit = gang::Unit::kCore);

  TrackedJobs stage;
  gang::Components components;

  // Events, at a time in seconds that is not before the last one's.
  void start(double t, std::int64_t id, char partition, std::string_view where);
  void leave(double t, std::int64_t id);
  void advance(double t);

  // Jobs that are in one component together: "1 2 | 4 5". Jobs without conflicts are in none.
  std::string groups();
  // Draws which jobs run in `slots` slots from `first` on, read off 15 s after each begins: a line
  // "1 ##.#" for each job that is there. REQUIRES: that is not before the last event.
  std::string draw(int first, int slots);
  bool runs(std::int64_t id, double t);
  // Returns the nodes whose timetables may have changed since this was last asked, as letters.
  std::string dirty_nodes();

 private:
  void to(double t);

  base::Instant now_{};
};

}  // namespace sched::testing
