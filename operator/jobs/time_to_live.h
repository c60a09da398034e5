// TimeToLive: Jobs that have ended are deleted after their spec.lifecycle.ttlAfterFinished.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread. Remembers only jobs that have ended and have a time to live. Cost:
// the logarithm of their number, and in `due` those that are deleted.
class TimeToLive {
 public:
  // Of a job that has ended, whenever its spec or its status changed.
  void observe(const kube::ObjectKey& key, const std::string& uid, const kube::JobSpec& spec,
               const kube::JobStatus& status);
  // The object is gone.
  void forget(const std::string& uid);

  // Each is tried once a minute until it is forgotten: what became of a try does not matter.
  std::vector<DeleteJob> due(base::Instant now);
  base::Instant next_due() const;

 private:
  struct Entry {
    kube::ObjectKey key;
    base::Instant end{};       // of its life
    base::Instant next_try{};  // its place in order_
  };
  std::map<std::string, Entry> jobs_;  // by UID
  std::set<std::pair<base::Instant, std::string>> order_;
};

}  // namespace control
