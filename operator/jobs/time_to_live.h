// TimeToLive: Jobs that have ended are deleted after their spec.lifecycle.ttlAfterFinished, and
// those that only ask (spec.testOnly) a minute after their answer.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "base/timers.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread. Remembers only jobs that have ended, or have their answer, and have
// a time to live. Cost: the logarithm of their number, and in `due` those that are
// deleted.
class TimeToLive {
 public:
  // Called for a job that has ended, or has its answer, whenever its object or status changed.
  void observe(const kube::Job& object, const kube::JobStatus& status);
  // The object is gone.
  void forget(const std::string& uid);

  // As many as there is `room` for (CountedWriter), those whose time was over first. Each is tried
  // once a minute until a watch shows that it is being deleted, or gone: what became of a try does
  // not matter.
  std::vector<DeleteJob> due(base::Instant now, std::size_t room);
  // Never in the past: a job that finds no room waits for the outcome of another write.
  base::Instant next_due(base::Instant now) const;

 private:
  struct Entry {
    kube::ObjectKey key;
    base::Instant end{};  // of its life
  };
  std::map<std::string, Entry> jobs_;  // by UID
  base::Timers<std::string> tries_;    // of the same
};

}  // namespace control
