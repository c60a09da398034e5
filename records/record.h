// Record: what is remembered of one run of a job, or of a task of an array, after its object is
// gone. Each has a row in the database, whose columns have the names of these fields
// (record_codec.h). Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "api/job.h"
#include "base/result.h"
#include "base/time.h"
#include "kube/api/enum_names.h"
#include "kube/api/quantity.h"

namespace records {

// The states of a Job, and two that only records have: this run ended and the job waited again; the
// object was gone when kubegang-records came back, so it is not known how the job has ended.
enum class RecordState {
  kPending,
  kRunning,
  kSuspended,
  kCompleted,
  kFailed,
  kCancelled,
  kTimeout,
  kPreempted,
  kNodeFail,
  kOutOfMemory,
  kDeadline,
  kRequeued,
  kLost
};
constexpr auto names_of(std::type_identity<RecordState>) {
  return std::to_array<kube::EnumName<RecordState>>({{RecordState::kPending, "Pending"},
                                                     {RecordState::kRunning, "Running"},
                                                     {RecordState::kSuspended, "Suspended"},
                                                     {RecordState::kCompleted, "Completed"},
                                                     {RecordState::kFailed, "Failed"},
                                                     {RecordState::kCancelled, "Cancelled"},
                                                     {RecordState::kTimeout, "Timeout"},
                                                     {RecordState::kPreempted, "Preempted"},
                                                     {RecordState::kNodeFail, "NodeFail"},
                                                     {RecordState::kOutOfMemory, "OutOfMemory"},
                                                     {RecordState::kDeadline, "Deadline"},
                                                     {RecordState::kRequeued, "Requeued"},
                                                     {RecordState::kLost, "Lost"}});
}

struct Record {
  // The key.
  std::string cluster{};
  std::string job_uid{};
  std::int64_t restart = 0;            // requeues before this run
  std::optional<std::int32_t> task{};  // of an array

  // Identity.
  std::optional<std::int64_t> job_id{};
  std::optional<std::int64_t> array_id{};  // of a task: its array's
  std::string ns{};                        // "namespace"
  std::string object{};                    // the name of the Job
  std::string name{};
  std::string user{};
  std::string account{};
  std::string qos{};
  std::string partition{};

  // Asked for; absent as in the spec.
  std::int32_t nodes = 1;
  std::optional<std::int32_t> tasks{};
  std::optional<std::int32_t> tasks_per_node{};
  std::optional<std::int32_t> cpus_per_task{};
  std::optional<kube::Bytes> memory_per_cpu{};
  std::optional<kube::Bytes> memory_per_node{};
  std::optional<base::Duration> time_limit{};
  std::string devices{};   // on each node, of the job or of each task: "gpu:a100:2,…"
  std::string licenses{};  // "bar:1,foo:2"
  std::string constraint{};
  std::int64_t priority = 0;
  bool is_held = false;  // by its user
  bool is_script = false;
  std::string work_dir{};
  std::string comment{};

  // Got. An empty hostlist: it has not run.
  std::string hostlist{};
  std::int32_t allocated_nodes = 0;
  std::int32_t allocated_cpus = 0;
  kube::Bytes allocated_memory{};  // on all nodes together

  // When. A record has ended if it has an end.
  std::optional<base::Instant> submit_time{};
  std::optional<base::Instant> eligible_time{};
  std::optional<base::Instant> start_time{};
  std::optional<base::Instant> end_time{};
  base::Duration elapsed{};  // without the time in which it was suspended or off its turns
  std::optional<base::Instant> elapsed_as_of{};
  base::Duration suspended{};

  // How it ended.
  RecordState state = RecordState::kPending;
  std::string reason{};
  std::optional<std::int32_t> exit_code{};
  std::string preempted_by{};  // "team-a/urgent"

  // Used, as its launcher said at its end; absent: it has said nothing.
  std::optional<base::Duration> user_cpu{};
  std::optional<base::Duration> system_cpu{};
  std::optional<kube::Bytes> max_rss{};
  std::optional<kube::Bytes> memory_peak{};
  std::string steps{};  // JSON (kube::write_steps); of tasks of arrays the script

  friend bool operator==(const Record&, const Record&) = default;
};

// {"restart": 0, "jobUID": …}
nlohmann::json encode(const Record& record);
base::Result<Record> decode_record(const nlohmann::json& json);

// Returns a Job of which every command says what it would have said of the original: its status is
// that of this run.
kube::Job job_of(const Record& record);

// Returns the CPUs on its first node, where the script runs; 0: that is not known.
std::int32_t cpus_of_script(const kube::Allocation& allocation);

}  // namespace records
