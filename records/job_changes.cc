#include "records/job_changes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/annotations.h"
#include "api/array_status.h"
#include "api/job_annotations.h"
#include "slurm/hostlist.h"

namespace records {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

std::string devices_of(const kube::JobResources& asked) {
  std::vector<std::string> parts;
  for (const auto* form : {&asked.devices, &asked.devices_of_job, &asked.devices_per_task,
                           &asked.devices_per_socket}) {
    for (const kube::JobDevice& device : *form) {
      parts.push_back(device.name + ":" + (device.type.empty() ? "" : device.type + ":") +
                      std::to_string(device.count));
    }
  }
  return joined(parts);
}

std::string licenses_of(const kube::JobResources& asked) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : asked.licenses) {
    parts.push_back(name + ":" + std::to_string(count));
  }
  return joined(parts);
}

kube::Bytes memory_of(const kube::Allocation& allocation) {
  std::int64_t bytes = 0;
  for (const kube::NodeShare& share : allocation.shares) {
    const auto nodes = slurm::expand_hostlist(share.hostlist);
    if (!nodes || !share.memory) continue;
    bytes += share.memory->value() * static_cast<std::int64_t>(nodes->size());
  }
  return kube::Bytes{bytes};
}

// Returns the job's identity and request; for an array, those of all its tasks.
Record asked_by(const kube::Job& job, const std::string& cluster) {
  const kube::JobResources& asked = job.spec.resources;
  const auto& batch = job.spec.batch;
  Record record{.cluster = cluster, .job_uid = job.metadata.uid};
  record.ns = job.metadata.ns;
  record.object = job.metadata.name;
  record.name = kube::shown_name(job);
  record.user = kube::annotation_of(job, kube::kAnnotationUser).value_or("");
  record.comment = kube::shown_comment(job);
  record.account = job.spec.schedule.account.value_or("");
  record.qos = job.spec.schedule.qos.value_or("");
  record.nodes = asked.nodes ? asked.nodes->min : 1;
  record.tasks = asked.tasks;
  record.tasks_per_node = asked.tasks_per_node;
  record.cpus_per_task = asked.cpus_per_task;
  record.memory_per_cpu = asked.memory_per_cpu;
  record.memory_per_node = asked.memory_per_node;
  record.devices = devices_of(asked);
  record.licenses = licenses_of(asked);
  record.constraint = job.spec.placement.constraint.value_or("");
  record.is_held = job.spec.control.hold.value_or(false);
  record.is_script = batch.has_value();
  if (batch) record.work_dir = batch->working_directory;
  return record;
}

RecordState recorded(kube::JobState state) {
  return *kube::parse_enum<RecordState>(kube::to_string(state));
}

// Adds what became of the job.
void add_status(Record& record, const kube::JobStatus& status, const kube::JobSpec& spec) {
  record.restart = status.restarts.value_or(0);
  record.job_id = status.job_id;
  record.priority = status.priority.value_or(0);
  record.partition = !status.partition.empty() ? status.partition : joined(spec.partitions);
  record.time_limit = status.time_limit ? status.time_limit : spec.schedule.time_limit;
  if (status.allocation) {
    record.hostlist = status.allocation->hostlist;
    record.allocated_nodes = status.allocation->nodes;
    record.allocated_cpus = status.allocation->cpus;
    record.allocated_memory = memory_of(*status.allocation);
  }
  record.submit_time = status.submit_time;
  record.eligible_time = status.eligible_time;
  record.start_time = status.start_time;
  if (status.run_time) {
    record.elapsed = status.run_time->elapsed;
    record.elapsed_as_of = status.run_time->as_of;
  }
  if (status.suspend_time) record.suspended = status.suspend_time->elapsed;
  if (const auto& state = status.state) record.state = recorded(*state);
  record.reason = status.reason;
  record.exit_code = status.exit_code;
  if (status.ending && status.ending->by) record.preempted_by = to_string(*status.ending->by);
}

// The script's CPUs are those of the job on its node, which only the allocation knows.
std::optional<kube::JobUsage> with_cpus_of_script(
    std::optional<kube::JobUsage> usage, const std::optional<kube::Allocation>& allocation) {
  if (!usage || !allocation) return usage;
  for (kube::StepUsage& step : usage->steps) {
    if (step.id == "batch" && step.cpus == 0) step.cpus = cpus_of_script(*allocation);
  }
  return usage;
}

Record record_of_job(const kube::Job& job, const std::string& cluster, base::Instant seen_at) {
  Record record = asked_by(job, cluster);
  add_status(record, job.status, job.spec);
  if (job.status.state && kube::is_final(*job.status.state)) {
    record.end_time = job.status.end_time.value_or(seen_at);
    set_usage(record, with_cpus_of_script(job.status.usage, job.status.allocation));
  }
  return record;
}

// Reads the ending that was decided before the pods were gone; an outcome alone is one of
// three.
std::optional<RecordState> state_of(const kube::JobEnding& ending) {
  if (ending.verdict == kube::EndingVerdict::kRequeue) return std::nullopt;
  if (ending.verdict == kube::EndingVerdict::kCancel) return RecordState::kCancelled;
  return kube::parse_enum<RecordState>(kube::to_string(ending.verdict));
}

class ArrayChanges {
 public:
  ArrayChanges(const kube::Job* before, const kube::Job& now, const std::string& cluster,
               base::Instant seen_at)
      : now_{now}, asked_{asked_by(now, cluster)}, seen_at_{seen_at} {
    if (before == nullptr || !before->status.array) return;
    for (const kube::ArrayTask& entry : before->status.array->tasks) before_[entry.task] = &entry;
    for (const kube::TaskEnd& end : before->status.array->ended) told_.insert(end.task);
    outcomes_before_ = kube::TaskOutcomes{*before->status.array};
  }

  std::vector<Change> changes() {
    if (!now_.status.array) return {};
    for (const kube::ArrayTask& entry : now_.status.array->tasks) add_entry(entry);
    std::set<int> told;
    for (const kube::TaskEnd& end : now_.status.array->ended) {
      told.insert(end.task);
      if (!told_.contains(end.task)) add_told_end(end);
    }
    const kube::TaskOutcomes outcomes{*now_.status.array};
    for (const kube::TaskOutcome outcome :
         {kube::TaskOutcome::kSucceeded, kube::TaskOutcome::kFailed,
          kube::TaskOutcome::kCancelled}) {
      for (const int task : outcomes.tasks(outcome)) {
        if (outcomes_before_.of(task) != outcome && !told.contains(task)) add_end(task, outcome);
      }
    }
    return std::move(changes_);
  }

 private:
  Record record_of(int task) const {
    Record record = asked_;
    record.task = task;
    record.array_id = now_.status.job_id;
    return record;
  }

  // An entry without a start says only why its task waits.
  void add_entry(const kube::ArrayTask& entry) {
    if (!entry.starts) return;
    const auto found = before_.find(entry.task);
    if (found != before_.end() && *found->second == entry) return;
    Record record = record_of(entry.task);
    add_status(record, kube::task_status(entry, now_.status), now_.spec);
    Written written{.record = std::move(record)};
    if (entry.usage) written.used_before = *entry.usage;
    changes_.emplace_back(std::move(written));
  }

  // Adds an end as its array shows it until it is recorded.
  void add_told_end(const kube::TaskEnd& end) {
    Record record = record_of(end.task);
    add_status(record, kube::task_status(end, now_.status), now_.spec);
    record.end_time = end.end_time.value_or(seen_at_);
    set_usage(record, with_cpus_of_script(end.usage, end.allocation));
    changes_.emplace_back(Written{std::move(record)});
  }

  void add_end(int task, kube::TaskOutcome outcome) {
    Record record = record_of(task);
    add_status(record,
               kube::JobStatus{.job_id = now_.status.job_id,
                               .priority = now_.status.priority,
                               .partition = now_.status.partition,
                               .submit_time = now_.status.submit_time,
                               .eligible_time = now_.status.eligible_time},
               now_.spec);
    record.state = recorded(kube::state_of(outcome));
    record.end_time = now_.status.end_time.value_or(seen_at_);
    if (outcome == kube::TaskOutcome::kSucceeded) record.exit_code = 0;
    const auto found = before_.find(task);
    if (found != before_.end() && found->second->ending) {
      const kube::JobEnding& ending = *found->second->ending;
      record.exit_code = ending.exit_code ? ending.exit_code : record.exit_code;
      record.state = state_of(ending).value_or(record.state);
    }
    changes_.emplace_back(TaskEnded{std::move(record)});
  }

  const kube::Job& now_;
  const Record asked_;
  const base::Instant seen_at_;
  std::map<int, const kube::ArrayTask*> before_;
  std::set<int> told_;  // before
  kube::TaskOutcomes outcomes_before_;
  std::vector<Change> changes_;
};

}  // namespace

void set_usage(Record& record, const std::optional<kube::JobUsage>& usage) {
  record.user_cpu.reset();
  record.system_cpu.reset();
  record.max_rss.reset();
  record.memory_peak.reset();
  record.steps.clear();
  if (!usage) return;
  record.user_cpu = usage->user_cpu;
  record.system_cpu = usage->system_cpu;
  record.max_rss = usage->max_rss;
  if (usage->memory_peak > kube::Bytes{}) record.memory_peak = usage->memory_peak;
  record.steps = kube::write_steps(*usage);
}

std::vector<Change> changes_of(const kube::Job* before, const kube::Job& now,
                               const std::string& cluster, base::Instant seen_at) {
  std::vector<Change> changes;
  const bool is_other = before != nullptr && before->metadata.uid != now.metadata.uid;
  if (is_other) {
    changes.emplace_back(
        JobGone{.cluster = cluster, .job_uid = before->metadata.uid, .at = seen_at});
    before = nullptr;
  }
  // No operator has seen it yet.
  if (!now.status.state || !now.status.job_id) return changes;
  if (now.spec.array) {
    std::vector<Change> tasks = ArrayChanges{before, now, cluster, seen_at}.changes();
    changes.insert(changes.end(), std::make_move_iterator(tasks.begin()),
                   std::make_move_iterator(tasks.end()));
    return changes;
  }
  Record record = record_of_job(now, cluster, seen_at);
  if (before != nullptr && record_of_job(*before, cluster, seen_at) == record) return changes;
  Written written{.record = std::move(record)};
  if (!written.record.end_time && !now.status.allocation) written.used_before = now.status.usage;
  changes.emplace_back(std::move(written));
  return changes;
}

}  // namespace records
