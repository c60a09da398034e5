// What follows from the policies: the scheduler's configuration, job numbers, counts in statuses.
#include <tuple>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {

void ControlLoop::reconfigure() {
  const PolicyBook::Decided decided = policy_.decide(nodes_.objects(), now_);
  for (const std::string& refused : decided.refused) warn("spec refused", refused);
  if (decided.parameters_changed) {
    for (auto& [uid, job] : jobs_) touch(uid);
  }
  if (decided.configuration_changed) {
    const sched::Configuration& configuration = policy_.configuration();
    log("configuration in force", "partitions=" + std::to_string(configuration.partitions.size()) +
                                      " qos=" + std::to_string(configuration.qos.size()));
    tell(sched::Configure{std::make_shared<const sched::Configuration>(configuration)});
    nodes_.observe_policy();
  }
  choose_taints();
  counts_dirty_ = true;
}

void ControlLoop::count_jobs() {
  counts_dirty_ = false;
  std::map<std::string, kube::PartitionJobCounts> partitions;
  std::map<std::string, std::pair<int, int>> qos;  // running, pending
  counters_.jobs_pending = counters_.jobs_running = counters_.jobs_suspended = 0;
  for (const auto& [uid, job] : unfinished_) {
    if (!job->submitted || job->is_final() || job->deleted) continue;
    // Of a job that waits for several the first.
    const std::string& names = job->wanted().partition;
    kube::PartitionJobCounts& counts = partitions[names.substr(0, names.find(','))];
    auto& [running, pending] = qos[job->request.qos];
    if (!job->is_allocated()) {
      ++counts.pending, ++pending, ++counters_.jobs_pending;
    } else if (job->wanted().state == kube::JobState::kSuspended) {
      ++counts.suspended, ++running, ++counters_.jobs_suspended;
    } else {
      ++counts.running, ++running, ++counters_.jobs_running;
    }
  }
  const auto show = [](auto& mirror, auto wanted) {
    if (wanted == mirror.wanted()) return;
    mirror.wanted() = std::move(wanted);
    mirror.mark(WriteUrgency::kInforms);
  };
  for (const auto& partition : policy_.configuration().partitions) {
    auto* mirror = policy_.find_status<kube::Partition>(partition.name);
    if (mirror == nullptr) continue;
    auto wanted = mirror->wanted();
    wanted.jobs = partitions[partition.name];
    const auto capacity = nodes_.capacity().find(partition.name);
    wanted.nodes = capacity == nodes_.capacity().end() ? 0 : capacity->second.nodes;
    wanted.cpus = nodes_.cpus_of(partition.name);
    show(*mirror, std::move(wanted));
  }
  for (auto& [name, entry] : policy_.entries<kube::Qos>()) {
    auto wanted = entry.status.wanted();
    std::tie(wanted.running, wanted.pending) = qos[name];
    show(entry.status, std::move(wanted));
  }
}

void ControlLoop::write_due_numbers() {
  const auto* config =
      policy_.find_status<kube::SchedulerConfig>(std::string{kube::kSchedulerConfigName});
  const bool exists = config != nullptr && config->exists();
  write(numbers_.due(now_, exists ? &config->version() : nullptr));
}

void ControlLoop::answered(IdsReserved&& outcome) {
  for (const std::string& uid : numbers_.answered(outcome, now_)) touch(uid);
  // What is stored now, as if a watch had told it.
  const auto saw = [this](const kube::SchedulerConfig& object) {
    inbox_.changed<kube::SchedulerConfig>(std::make_shared<const kube::SchedulerConfig>(object));
  };
  if (outcome.result.ok()) {
    saw(*outcome.result);
    auto* config = policy_.find_status<kube::SchedulerConfig>(outcome.result->metadata.name);
    if (config != nullptr) config->wanted().next_job_id = outcome.end;
    return;
  }
  ++counters_.write_failures;
  warn("job numbers not reserved", "error=\"" + outcome.result.error().message + "\"");
  if (outcome.fresh) saw(*outcome.fresh);
}

}  // namespace control
