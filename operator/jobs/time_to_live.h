// TimeToLive: Jobs that have ended are deleted after their spec.lifecycle.ttlAfterFinished, and
// those that only ask (spec.testOnly) a minute after their answer.
//
// With records, a Job that has ended is not deleted before kubegang-records has stored it, or its
// time is over for a day.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "base/timers.h"
#include "operator/jobs/recorded.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread. Remembers only jobs that have ended, or have their answer, and have
// a time to live. Cost: the logarithm of their number, and in `due` those that are
// deleted or begin to wait.
class TimeToLive {
 public:
  explicit TimeToLive(const Recorded& recorded) : recorded_{recorded} {}

  // Called for a job that has ended, or has its answer, whenever its object or status changed.
  void observe(const kube::Job& object, const kube::JobStatus& status);
  // Forgets an object that is gone.
  void forget_job(const std::string& uid);

  // Returns as many as there is `room` for (CountedWriter), those whose time was over first. Each
  // is tried once a minute until a watch shows that it is being deleted, or gone: what became of a
  // try does not matter.
  std::vector<DeleteJob> due(base::Instant now, std::size_t room);
  // More may be recorded than before.
  void look_again(base::Instant now);
  // Never in the past: a job that finds no room waits for the outcome of another write.
  base::Instant next_due(base::Instant now) const {
    return tries_.next_after(now).value_or(base::kNever);
  }

  // Counts jobs whose time is over and that are not recorded yet.
  std::size_t waiting_count() const { return waiting_.size(); }
  // Counts jobs that were deleted although they were not recorded.
  std::int64_t unrecorded_count() const { return unrecorded_count_; }

 private:
  struct Entry {
    kube::ObjectKey key;
    base::Instant end{};       // of its life
    bool is_recorded = false;  // by kubegang-records, some day
    bool is_counted = false;   // among those that were deleted without it
    // The version of the object that says how it has ended; "" = none was seen.
    std::string version{};
    std::int64_t number = 0;  // of that version; above all others if it is not known
  };
  bool may_go(const Entry& entry, base::Instant now) const;
  DeleteJob deletion_of(const std::string& uid, Entry& entry);

  const Recorded& recorded_;
  std::map<std::string, Entry> jobs_;                       // by UID
  base::Timers<std::string> tries_;                         // of the same
  std::set<std::pair<std::int64_t, std::string>> waiting_;  // version and UID
  std::int64_t unrecorded_count_ = 0;
};

}  // namespace control
