// UnseenJobs: counts the jobs that kubegang-records has never seen, since they were made and
// deleted while it did not watch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "api/records_lease.h"

namespace control {

// Belongs to the loop's thread. Remembers the jobs that are not known to be recorded. Cost: the
// logarithm of their number.
class UnseenJobs {
 public:
  // Records show a Job from the version on in which it has a number. `recorded`: the version up
  // to which all is.
  void observe(const kube::Job& job, std::int64_t recorded);
  // Notes that it was deleted in that version.
  void gone(const std::string& uid, std::int64_t version);
  void answered(const kube::RecordedVersions& said);

  // Nothing but an answer says whether these jobs were seen, or how many are not recorded.
  bool awaits() const { return !gone_.empty() || unrecorded_.size() > kAskAt; }
  std::int64_t count() const { return count_; }

 private:
  static constexpr std::size_t kAskAt = 1'000;
  struct Life {
    std::int64_t first = 0;
    std::int64_t gone = 0;
  };

  std::map<std::string, std::int64_t> unrecorded_;           // by UID; the version seen first
  std::set<std::pair<std::int64_t, std::string>> by_first_;  // the same
  std::vector<Life> gone_;                                   // of those that were deleted
  std::int64_t count_ = 0;
};

}  // namespace control
