// PodIndex: where each pod is, and whose it is.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "base/timers.h"
#include "kube/api/meta.h"
#include "kube/api/pod.h"

namespace control {

struct PodPlace {
  std::string node;
  std::string job_uid;                   // record_key_of; "": not of a kubegang Job
  std::shared_ptr<const kube::Pod> pod;  // null: not of a kubegang Job
};

// Belongs to the loop's thread. Cost: the logarithm of the number of pods.
class PodIndex {
 public:
  struct Change {
    std::optional<PodPlace> before, after;  // nullopt: there is none, or it has no node
  };
  // Null: the pod is gone.
  Change observe(const kube::ObjectKey& key, const std::shared_ptr<const kube::Pod>& pod);

  // Notes a pod that an answer showed, and no watch yet. If the watch had shown its deletion
  // before, it will not show the pod again. No effect if the pod has no place, or no kubegang
  // Job.
  void expect(const kube::ObjectKey& key, base::Instant now);
  // Returns true if nothing has been observed of it since.
  bool is_unseen(const kube::ObjectKey& key) const { return expected_.at(key).has_value(); }
  // Takes the pods that are to be read now, as many as there is `room` for, those that have waited
  // longest first. Each is returned again after a while, until something is observed of it.
  std::vector<kube::ObjectKey> take_unseen(base::Instant now, std::size_t room);
  // Never in the past: a pod that finds no room waits for the outcome of another write.
  base::Instant next_due(base::Instant now) const {
    return expected_.next_after(now).value_or(base::kNever);
  }
  // Null: there is none, or it has no node.
  const PodPlace* find(const kube::ObjectKey& key) const;

  // Calls action(name, pod) for the pods of that job, whose names begin with the job's.
  template <typename Action>
  void for_each_of(const kube::ObjectKey& job, const std::string& job_uid, Action action) const {
    const std::string prefix = job.name + "-";
    for (auto at = places_.lower_bound({job.ns, prefix});
         at != places_.end() && at->first.ns == job.ns && at->first.name.starts_with(prefix);
         ++at) {
      if (at->second.job_uid == job_uid) action(at->first.name, at->second.pod);
    }
  }

  // Calls action(place) for the pods of the tasks of that array.
  template <typename Action>
  void for_each_of_tasks(const kube::ObjectKey& array, const std::string& uid,
                         Action action) const {
    const std::string keys = uid + "/";
    const std::string prefix = array.name + "-";
    for (auto at = places_.lower_bound({array.ns, prefix});
         at != places_.end() && at->first.ns == array.ns && at->first.name.starts_with(prefix);
         ++at) {
      if (at->second.job_uid.starts_with(keys)) action(at->second);
    }
  }

 private:
  std::map<kube::ObjectKey, PodPlace> places_;
  base::Timers<kube::ObjectKey> expected_;
};

// Returns the key of the record that has the pod (task_key.h): the UID of its Job, of a task of an
// array "UID/17"; "" for a foreign pod.
std::string record_key_of(const kube::Pod& pod);
// Returns the UID of the kubegang Job that controls the pod or has adopted it (its label
// kubegang.io/job-uid); "" for a foreign pod.
std::string job_uid_of(const kube::Pod& pod);

}  // namespace control
