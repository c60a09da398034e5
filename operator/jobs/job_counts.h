// JobCounts: how many jobs wait, run and are suspended, in all, by partition and by QOS.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "api/partition.h"
#include "operator/jobs/job_record.h"

namespace control {

// Belongs to the loop's thread. Cost: the logarithm of the number of jobs for each that changed.
class JobCounts {
 public:
  // Counts the job as it is now. One that has ended, is deleted or was not accepted counts nowhere.
  void observe_job(const JobRecord& job);
  void drop_job(const std::string& job_uid);

  const kube::PartitionJobCounts& all() const { return all_; }
  kube::PartitionJobCounts of_partition(const std::string& name) const;
  // Running (suspended ones, too) and pending.
  std::pair<int, int> of_qos(const std::string& name) const;

  // Returns true if any of them changed since the last call.
  bool take_changed() { return std::exchange(changed_, false); }

 private:
  enum class Kind { kPending, kRunning, kSuspended };
  struct Place {
    Kind kind;
    std::string partition;  // of a job that waits for several the first
    std::string qos;
    friend bool operator==(const Place&, const Place&) = default;
  };
  static std::optional<Place> place_of(const JobRecord& job);
  void add(const Place& place, int by);

  std::map<std::string, Place> jobs_;  // by UID
  kube::PartitionJobCounts all_;
  std::map<std::string, kube::PartitionJobCounts> partitions_;
  std::map<std::string, std::pair<int, int>> qos_;
  bool changed_ = false;
};

}  // namespace control
