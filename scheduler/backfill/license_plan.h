// LicensePlan: when licenses are free, given which jobs hold them until when and to which they are
// promised (bf_licenses, R11.8). It is one pass's.
//
// Threads: none. Cost: take O(licenses of the job × log); first_free O(changes of these licenses).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "scheduler/model/licenses.h"

namespace sched {

class LicensePlan {
 public:
  explicit LicensePlan(Licenses total) : total_{std::move(total)} {}

  // Notes licenses that a job holds, or is promised, in [begin, end).
  void take(const Licenses& asked, base::Instant begin, base::Instant end);
  // Returns the first instant from `from` on at which all are free for as long; nullopt if there
  // are never enough.
  std::optional<base::Instant> first_free(const Licenses& asked, base::Instant from,
                                          base::Duration length) const;

 private:
  std::optional<base::Instant> first_free(const std::string& name, int count, base::Instant from,
                                          base::Duration length) const;

  const Licenses total_;
  std::map<std::string, std::map<base::Instant, int>, std::less<>> changes_;  // of those in use
};

}  // namespace sched
