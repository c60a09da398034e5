// WholeTemplates: the templates of batch Jobs for which a kubegang Job is about to be made, as they
// came. The informer drops each template but for what is judged, so that of a new batch Job would
// be read again a moment later. One that does not fit, or comes too late, is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "api/wellknown.h"
#include "kube/api/batch_job.h"
#include "kube/api/raw_json.h"

namespace control {

// Thread-safe: written by the informer's thread before the batch Job itself reaches the loop, taken
// by the loop. Cost: the logarithm of what is kept.
class WholeTemplates {
 public:
  // The bound on all together: thousands of usual ones, or ten of the largest that the API server
  // takes.
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;

  // Called for a batch Job as a watch shows it: keeps its template if its first kubegang Job is
  // still to be made, and else forgets it. The oldest make room.
  void see(const kube::BatchJob& job) {
    const std::lock_guard lock{mu_};
    erase(job.metadata.uid);
    if (!is_new(job)) return;
    bytes_ += job.spec.pod_template.text().size();
    by_age_[++last_] = job.metadata.uid;
    kept_[job.metadata.uid] = {job.spec.pod_template, last_};
    while (bytes_ > kBytesMax) erase(std::string{by_age_.begin()->second});
  }
  // It is not kept any longer. Absent: it must be read.
  kube::RawJson take(const std::string& uid) {
    const std::lock_guard lock{mu_};
    const auto found = kept_.find(uid);
    if (found == kept_.end()) return {};
    kube::RawJson taken = found->second.pod_template;
    erase(uid);
    return taken;
  }
  void forget(const std::string& uid) { (void)take(uid); }

 private:
  struct Kept {
    kube::RawJson pod_template;
    std::int64_t age = 0;
  };

  // Returns false for one that was started, or waits: it has its kubegang Job. A suspended one may
  // get another template.
  static bool is_new(const kube::BatchJob& job) {
    const bool waits = kube::is_true(job.status.conditions, kube::kBatchWaiting);
    return !job.spec.suspend && !job.status.start_time && !waits &&
           !kube::is_finished(job.status);
  }
  void erase(const std::string& uid) {
    const auto found = kept_.find(uid);
    if (found == kept_.end()) return;
    bytes_ -= found->second.pod_template.text().size();
    by_age_.erase(found->second.age);
    kept_.erase(found);
  }

  std::mutex mu_;
  std::map<std::string, Kept> kept_;             // by UID; guarded by mu_
  std::map<std::int64_t, std::string> by_age_;   // UIDs; guarded by mu_
  std::int64_t last_ = 0;                        // guarded by mu_
  std::size_t bytes_ = 0;                        // of kept_; guarded by mu_
};

}  // namespace control
