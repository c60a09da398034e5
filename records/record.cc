#include "records/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/annotations.h"
#include "api/wellknown.h"
#include "records/record_codec.h"
#include "slurm/hostlist.h"

namespace records {

nlohmann::json encode(const Record& record) {
  nlohmann::json json = nlohmann::json::object();
  kube::codec::Encoder encoder{json};
  visit(encoder, record);
  return json;
}

base::Result<Record> decode_record(const nlohmann::json& json) {
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  static const kube::KnownFields kFields = kube::codec::list_fields<Record>();
  const auto read = kube::JsonText::read(text, kFields);
  if (!read || !read->root().is_object()) return base::invalid_argument("record: want an object");
  Record record;
  std::optional<std::string> failure;
  kube::codec::Decoder decoder{read->root(), nullptr, failure};
  visit(decoder, record);
  if (failure) return base::invalid_argument("record: " + *failure);
  return record;
}

namespace {

kube::JobSpec spec_of(const Record& record) {
  kube::JobSpec spec;
  if (!record.partition.empty()) spec.partitions = {record.partition};
  spec.resources = {.nodes = kube::JobNodes{.min = record.nodes},
                    .tasks = record.tasks,
                    .tasks_per_node = record.tasks_per_node,
                    .cpus_per_task = record.cpus_per_task,
                    .memory_per_cpu = record.memory_per_cpu,
                    .memory_per_node = record.memory_per_node};
  if (!record.constraint.empty()) spec.placement.constraint = record.constraint;
  if (!record.account.empty()) spec.schedule.account = record.account;
  if (!record.qos.empty()) spec.schedule.qos = record.qos;
  if (record.is_held) spec.control.hold = true;
  if (record.is_script) {
    spec.batch = kube::JobBatch{.name = record.name, .working_directory = record.work_dir};
  }
  return spec;
}

std::optional<kube::JobUsage> usage_of(const Record& record) {
  if (!record.user_cpu || !record.system_cpu) return std::nullopt;
  kube::JobUsage usage{.user_cpu = *record.user_cpu,
                       .system_cpu = *record.system_cpu,
                       .max_rss = record.max_rss.value_or(kube::Bytes{}),
                       .memory_peak = record.memory_peak.value_or(kube::Bytes{})};
  (void)kube::read_steps(record.steps, usage);
  return usage;
}

kube::JobStatus status_of(const Record& record) {
  kube::JobStatus status;
  // For the two states that no Job has, commands say more than for a job that was canceled.
  status.state = kube::parse_enum<kube::JobState>(kube::to_string(record.state))
                     .value_or(kube::JobState::kCancelled);
  status.reason = record.reason;
  status.job_id = record.job_id;
  status.priority = record.priority;
  status.restarts = record.restart;
  status.partition = record.partition;
  status.submit_time = record.submit_time;
  status.eligible_time = record.eligible_time;
  status.start_time = record.start_time;
  status.end_time = record.end_time;
  status.time_limit = record.time_limit;
  status.exit_code = record.exit_code;
  status.usage = usage_of(record);
  if (!record.hostlist.empty()) {
    status.allocation = kube::Allocation{.hostlist = record.hostlist,
                                         .nodes = record.allocated_nodes,
                                         .cpus = record.allocated_cpus};
  }
  if (record.start_time) {
    const base::Instant as_of = record.elapsed_as_of ? *record.elapsed_as_of
                                : record.end_time    ? *record.end_time
                                                     : *record.start_time;
    status.run_time = kube::RunTime{.elapsed = record.elapsed, .as_of = as_of};
    kube::set_condition(status.conditions,
                        {.type = std::string{kube::kReady},
                         .status = kube::ConditionStatus::kTrue,
                         .last_transition_time = record.start_time},
                        *record.start_time);
  }
  if (record.suspended > base::Duration{}) {
    status.suspend_time = kube::RunTime{.elapsed = record.suspended};
  }
  return status;
}

}  // namespace

std::int32_t cpus_of_script(const kube::Allocation& allocation) {
  if (allocation.nodes == 1) return allocation.cpus;
  const auto all = slurm::expand_hostlist(allocation.hostlist);
  if (!all || all->empty()) return 0;
  for (const kube::NodeShare& share : allocation.shares) {
    const auto nodes = slurm::expand_hostlist(share.hostlist);
    const bool is_first = nodes && std::ranges::find(*nodes, all->front()) != nodes->end();
    if (is_first) return share.cpus.value_or(0);
  }
  return 0;
}

kube::Job job_of(const Record& record) {
  kube::Job job;
  job.metadata.name = record.object;
  job.metadata.ns = record.ns;
  job.metadata.uid = record.job_uid;
  auto& annotations = job.metadata.annotations;
  if (!record.user.empty()) annotations[std::string{kube::kAnnotationUser}] = record.user;
  annotations[std::string{kube::kAnnotationName}] = record.name;
  if (!record.comment.empty()) annotations[std::string{kube::kAnnotationComment}] = record.comment;
  job.spec = spec_of(record);
  job.status = status_of(record);
  return job;
}

}  // namespace records
