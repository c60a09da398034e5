// QosLimits: what the limits of a job's QOS and of its partition's QOS allow (1.4), given what the
// allocated jobs hold. A limit that counts something else (licenses, a user's share) belongs beside
// it.
//
// Cost: over() is O(allocated jobs) for each QOS that has limits, and O(1) without any.
#pragma once

#include <string>

#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"

namespace sched {

class QosLimits {
 public:
  QosLimits(const Cluster& cluster, const JobBooks& books) : cluster_{cluster}, books_{books} {}

  // Returns the sentence that names the limit which forbids the job to start in the partition with
  // so many CPUs; empty if none does.
  std::string over(const JobRequest& request, PartitionIndex partition, int cpus) const;

 private:
  struct Use {
    int cpus = 0;
    int user_jobs = 0;
    int user_cpus = 0;
  };
  Use use_of(const QosConfig& qos, const std::string& user) const;

  const Cluster& cluster_;
  const JobBooks& books_;
};

}  // namespace sched
