// Limits of QOS and accounts, grouped by what they are on. In a QOS, as in Slurm, `perNamespace` is
// about users. Absent = no limit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/api/quantity.h"

namespace kube {

// Amounts of what a job may have. CPUs, nodes and GPUs are whole numbers.
struct ResourceAmounts {
  std::optional<std::int64_t> cpus{};
  std::optional<Bytes> memory{};
  std::optional<std::int64_t> nodes{};
  std::optional<std::int64_t> billing{};               // billing units
  std::optional<std::int64_t> gpus{};                  // gres/gpu, of all types
  std::map<std::string, std::int64_t> gpus_of_type{};  // gres/gpu:a100

  friend bool operator==(const ResourceAmounts&, const ResourceAmounts&) = default;
};

// On all jobs together.
struct GroupLimits {
  std::optional<ResourceAmounts> resources{};
  std::optional<std::int32_t> jobs{};            // with an allocation
  std::optional<std::int32_t> submitted_jobs{};  // those that wait, too
  std::optional<base::Duration> run_time{};      // of all of them, decayed like usage

  friend bool operator==(const GroupLimits&, const GroupLimits&) = default;
};

// On each job.
struct JobLimits {
  std::optional<ResourceAmounts> resources{};
  std::optional<ResourceAmounts> resources_per_node{};
  std::optional<base::Duration> time{};  // the longest time limit

  friend bool operator==(const JobLimits&, const JobLimits&) = default;
};

// On the jobs of each namespace, or of each account.
struct HolderLimits {
  std::optional<ResourceAmounts> resources{};
  std::optional<std::int32_t> jobs{};
  std::optional<std::int32_t> submitted_jobs{};

  friend bool operator==(const HolderLimits&, const HolderLimits&) = default;
};
// The part of HolderLimits that accounts have.
struct JobCountLimits {
  std::optional<std::int32_t> jobs{};
  std::optional<std::int32_t> submitted_jobs{};

  friend bool operator==(const JobCountLimits&, const JobCountLimits&) = default;
};

}  // namespace kube
