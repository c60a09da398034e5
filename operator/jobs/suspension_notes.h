// SuspensionNotes: a pod that stands still for long says so. kubelet shows a frozen pod as running,
// so people and tools that look at pods only would be misled. The pods of a job that is suspended
// by its user or by jobs of higher priority get a condition, which goes away when the job is
// resumed; turns of the rotation get none. Writes of it only inform: they are paid from
// InformBudget.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/api/pod.h"
#include "operator/jobs/job_record.h"
#include "operator/publish/inform_budget.h"
#include "operator/write/effect.h"

namespace control {

struct Suspension {
  std::string reason;   // of the job's status: User or Preempted
  std::string message;  // whole sentence
  friend bool operator==(const Suspension&, const Suspension&) = default;
};

// Returns the suspension of a job that is suspended otherwise than by its turns, while its pods can
// be frozen; else nullopt. Pure.
std::optional<Suspension> suspension_of(const JobRecord& job);

// Belongs to the loop's thread. Remembers only jobs that are suspended and pods that have to be
// written.
class SuspensionNotes {
 public:
  // A suspension that is over sooner is not worth a write for each pod.
  static constexpr base::Duration kNotedAfter = std::chrono::seconds{30};

  using Pods = std::map<std::string, std::shared_ptr<const kube::Pod>>;  // by name
  // Returns null for a job that is no longer known.
  using PodsOf = std::function<const Pods*(const std::string& job_uid)>;

  void observe_job(const JobRecord& job, base::Instant now) {
    observe(job.uid, suspension_of(job), now);
  }
  // nullopt: the job is not suspended, or only by its turns.
  void observe(const std::string& job_uid, const std::optional<Suspension>& suspension,
               base::Instant now);
  // Takes a pod of the job that is new or changed.
  void observe_pod(const std::string& job_uid, const kube::Pod& pod, base::Instant now);
  void drop_job(const std::string& job_uid);

  // Returns the writes that are due, as far as half of the budget goes: statuses have the other
  // half. Cost: the pods of the jobs concerned.
  std::vector<Effect> due(InformBudget& budget, base::Instant now, const PodsOf& pods_of);
  void answered(const PodNoted& outcome, base::Instant now);
  // Never in the past: what is due waits for the budget.
  base::Instant next_due(base::Instant now) const;

 private:
  struct Suspended {
    Suspension why;
    base::Instant since{};
  };
  std::optional<NotePod> next(base::Instant now, const PodsOf& pods_of);
  std::optional<NotePod> next_of(const std::string& job_uid, const Pods& pods, base::Instant now);

  std::map<std::string, Suspended> suspended_;    // by job UID
  std::map<std::string, base::Instant> look_at_;  // jobs of which pods may need to be written
  bool gives_way_ = false;                        // of one token every other is the statuses'
  std::set<std::string> in_flight_;               // UIDs of pods
};

}  // namespace control
