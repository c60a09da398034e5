// PassSchedule: when a pass is due under the scheduler's own timing, and how deep it goes (3.1).
//
// An event pass is due at once when something changed that may let a job start; it tries
// default_queue_depth records. A full pass follows every sched_interval, if the last pass did not
// see an unchanged state to the end of the queue.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/pass/main_pass.h"
#include "scheduler/queue/job_queue.h"

namespace sched {

class PassSchedule {
 public:
  PassSchedule(const Cluster& cluster, const JobBooks& books, const JobQueue& queue, MainPass& pass)
      : cluster_{cluster}, books_{books}, queue_{queue}, pass_{pass} {}

  bool is_due(base::Instant now) const;
  // Not before now; nullopt = no pass is due unless something changes.
  std::optional<base::Instant> next_due(base::Instant now) const;
  // REQUIRES: a pass is due.
  void run(base::Instant now);

 private:
  bool has_main_loop() const;
  base::Instant full_due() const;

  const Cluster& cluster_;
  const JobBooks& books_;
  const JobQueue& queue_;
  MainPass& pass_;
  std::uint64_t seen_version_ = 0;  // the books' when the last pass had ended
  base::Instant next_full_{};
};

}  // namespace sched
