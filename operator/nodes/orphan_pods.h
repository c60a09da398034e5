// OrphanPods: pods that run though their jobs are gone, as a new leader may find them, or have
// ended, as pods may show that no watch has shown in time. Garbage collection deletes the former;
// should it be off, and in the other case, the operator does. It stops pods that others have made
// and does not delete them. Their nodes take nothing new until they are gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "base/timers.h"
#include "kube/api/pod.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread.
class OrphanPods {
 public:
  void add(const kube::ObjectKey& pod) {
    if (!tries_.at(pod)) tries_.set(pod, base::Instant{});
  }
  void remove(const kube::ObjectKey& pod) { tries_.clear(pod); }

  // Returns as many as there is `room` for (CountedWriter), those that have waited longest first.
  // Each is tried until the watch says that it is gone: the outcome of a try does not matter.
  // `longest`: the grace period that they may have.
  std::vector<DeleteOrphan> due(base::Instant now, std::chrono::seconds longest, std::size_t room);
  // Never in the past: an orphan that finds no room waits for the outcome of another write.
  base::Instant next_due(base::Instant now) const;

 private:
  base::Timers<kube::ObjectKey> tries_;
};

// --- the verdict, by what the API server says when the pod would be deleted ---

// Returns the Job that the pod would be an orphan without; nullopt: it need not be ended, since it
// has ended, is ending within `longest`, or is not of a kubegang Job.
std::optional<kube::ObjectKey> job_to_ask_for(const kube::Pod& pod, std::chrono::seconds longest);
// `job`: the answer for that one. Another error than kNotFound counts as a Job that is there.
bool is_orphan(const kube::Pod& pod, const base::Result<kube::Job>& job);
// The owner of such a pod decides about its object. REQUIRES: it is of a kubegang Job.
bool is_made_by_others(const kube::Pod& pod);

}  // namespace control
