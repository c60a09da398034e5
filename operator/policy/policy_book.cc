// SchedulerConfig, Partitions and QOS: which specs are in force, job numbers, counts.
#include <algorithm>
#include <type_traits>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"
#include "operator/translate/sentences.h"

namespace control {
namespace {

// Merges a change into what is known. Returns whether the spec, or the object's existence, changed.
template <typename T>
bool merge(std::shared_ptr<const T>& known, const std::shared_ptr<const T>& now) {
  const bool changed =
      (known == nullptr) != (now == nullptr) ||
      (now != nullptr && (known->metadata.uid != now->metadata.uid || !(known->spec == now->spec)));
  known = now;
  return changed;
}

// The stored status follows the object unless a write of ours is under way or newer.
template <typename T>
void follow(StatusMirror<T>& mirror, const T& object) {
  if (mirror.uid() == object.metadata.uid) {
    (void)mirror.saw(object);
  } else {
    mirror = StatusMirror<T>{object};
  }
}

template <typename Spec, typename T>
SpecCandidate<Spec> candidate(const T& object, const std::optional<Spec>& accepted,
                              std::vector<std::string> problems) {
  return {.name = object.metadata.name,
          .created = object.metadata.creation_timestamp.value_or(base::Instant{}),
          .newest = &object.spec,
          .accepted = accepted ? &*accepted : nullptr,
          .problems = std::move(problems)};
}

// Oldest first, ties by name.
template <typename T>
std::vector<const T*> by_age(const std::map<std::string, std::shared_ptr<const T>>& objects) {
  std::vector<const T*> sorted;
  for (const auto& [name, object] : objects) sorted.push_back(object.get());
  std::stable_sort(sorted.begin(), sorted.end(), [](const T* a, const T* b) {
    return a->metadata.creation_timestamp < b->metadata.creation_timestamp;
  });
  return sorted;
}

}  // namespace

void ControlLoop::apply_config_changes(const Inbox::Batch& batch) {
  for (const auto& [key, object] : batch.of<kube::Partition>()) {
    auto& known = partitions_[key.name];
    config_dirty_ = merge(known, object) || config_dirty_;
    if (object == nullptr) {
      partitions_.erase(key.name);
      partition_status_.erase(key.name);
    } else {
      follow(partition_status_[key.name], *object);
    }
  }
  for (const auto& [key, object] : batch.of<kube::Qos>()) {
    auto& known = qos_[key.name];
    config_dirty_ = merge(known, object) || config_dirty_;
    if (object == nullptr) {
      qos_.erase(key.name);
      qos_status_.erase(key.name);
    } else {
      follow(qos_status_[key.name], *object);
    }
  }
  for (const auto& [key, object] : batch.of<kube::SchedulerConfig>()) {
    if (key.name != kube::kSchedulerConfigName) {
      // It does not count, and says so.
      if (object == nullptr) {
        other_config_status_.erase(key.name);
        continue;
      }
      StatusMirror<kube::SchedulerConfig>& mirror = other_config_status_[key.name];
      follow(mirror, *object);
      show_verdict(mirror, *object, SpecVerdict{.problems = check_config(*object)});
      continue;
    }
    config_dirty_ = merge(config_, object) || config_dirty_;
    if (object == nullptr) {
      config_status_ = {};
    } else {
      follow(config_status_, *object);
    }
  }
}

void ControlLoop::reconfigure() {
  config_dirty_ = false;
  AcceptanceInput input;
  if (config_ != nullptr) {
    input.config = candidate<kube::SchedulerConfigSpec>(*config_, config_status_.wanted().accepted,
                                                        check_config(*config_));
  }
  const auto partitions = by_age(partitions_);
  const auto qos = by_age(qos_);
  for (const kube::Partition* partition : partitions) {
    input.partitions.push_back(candidate<kube::PartitionSpec>(
        *partition, partition_status_[partition->metadata.name].wanted().accepted,
        check_partition(*partition)));
  }
  for (const kube::Qos* one : qos) {
    input.qos.push_back(candidate<kube::QosSpec>(
        *one, qos_status_[one->metadata.name].wanted().accepted, check_qos(*one)));
  }
  std::vector<const kube::Node*> nodes;
  for (const auto& [name, record] : nodes_) {
    if (record.node != nullptr) nodes.push_back(record.node.get());
  }
  input.nodes = nodes;

  Acceptance acceptance = accept(input);
  if (config_ != nullptr) show_verdict(config_status_, *config_, acceptance.config);
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    show_verdict(partition_status_[partitions[i]->metadata.name], *partitions[i],
                 acceptance.partitions[i]);
  }
  for (std::size_t i = 0; i < qos.size(); ++i) {
    show_verdict(qos_status_[qos[i]->metadata.name], *qos[i], acceptance.qos[i]);
  }
  if (!(parameters_ == acceptance.parameters)) {
    parameters_ = acceptance.parameters;
    for (auto& [uid, job] : jobs_) touch(uid);
  }
  if (!(configuration_ == acceptance.configuration) || !restored_) {
    configuration_ = std::move(acceptance.configuration);
    log("configuration in force", "partitions=" + std::to_string(configuration_.partitions.size()) +
                                      " qos=" + std::to_string(configuration_.qos.size()));
    tell(sched::Configure{std::make_shared<const sched::Configuration>(configuration_)});
    for (const auto& [name, record] : nodes_) changed_nodes_.insert(name);
    selectors_dirty_ = true;
  }
  show_preempt_modes();
  nodes_dirty_ = counts_dirty_ = true;
}

// The modes in force, also where a spec leaves them to what it inherits.
void ControlLoop::show_preempt_modes() {
  const auto show = [](auto& mirror, sched::PreemptMode mode) {
    if (mirror.wanted().preempt_mode == preempt_mode_of(mode)) return;
    mirror.wanted().preempt_mode = preempt_mode_of(mode);
    mirror.mark(WriteUrgency::kUrgent);
  };
  const sched::PreemptMode cluster = configuration_.cluster.preempt_mode;
  if (config_ != nullptr) show(config_status_, cluster);
  for (const auto& partition : configuration_.partitions) {
    show(partition_status_[partition.name], partition.preempt_mode.value_or(cluster));
  }
  for (const auto& qos : configuration_.qos) {
    show(qos_status_[qos.name], qos.preempt_mode.value_or(cluster));
  }
}

template <typename T>
void ControlLoop::show_verdict(StatusMirror<T>& mirror, const T& object,
                               const SpecVerdict& verdict) {
  auto wanted = mirror.wanted();
  wanted.observed_generation = object.metadata.generation;
  if (verdict.newest_in_force) wanted.accepted = object.spec;
  kube::Condition condition{.type = std::string{kube::kAccepted},
                            .observed_generation = object.metadata.generation};
  if (verdict.newest_in_force) {
    condition.status = kube::ConditionStatus::kTrue;
    condition.reason = verdict.warnings.empty() ? "InForce" : "InForceWithWarning";
    condition.message =
        verdict.warnings.empty() ? "the spec is in force" : joined(verdict.warnings);
  } else {
    condition.status = kube::ConditionStatus::kFalse;
    condition.reason = "Invalid";
    condition.message = joined(verdict.problems) +
                        (verdict.any_in_force ? "; the last accepted spec stays in force" : "");
  }
  const std::string message = condition.message;
  // Of a partition whose spec was and is in force only what is said about it can have changed, as
  // with each of its nodes that comes.
  const kube::Condition* before = kube::find_condition(mirror.wanted().conditions, kube::kAccepted);
  const bool only_informs = std::is_same_v<T, kube::Partition> && verdict.newest_in_force &&
                            before != nullptr && before->status == condition.status &&
                            before->observed_generation == condition.observed_generation &&
                            wanted.accepted == mirror.wanted().accepted;
  const bool changed = kube::set_condition(wanted.conditions, std::move(condition), now_);
  if (!changed && wanted == mirror.wanted()) return;
  mirror.wanted() = std::move(wanted);
  mirror.mark(only_informs ? WriteUrgency::kInforms : WriteUrgency::kUrgent);
  if (!verdict.newest_in_force) {
    warn("spec refused", std::string{"kind="} + std::string{T::kResource.kind} +
                             " name=" + object.metadata.name + " message=\"" + message + "\"");
  }
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
  for (const auto& partition : configuration_.partitions) {
    auto& mirror = partition_status_[partition.name];
    auto wanted = mirror.wanted();
    wanted.jobs = partitions[partition.name];
    wanted.nodes = capacity_[partition.name].nodes;
    std::int32_t cpus = 0;
    for (const std::string& name : partition.nodes) {
      const auto node = nodes_.find(name);
      if (node != nodes_.end() && node->second.node != nullptr) cpus += node->second.told.cpus;
    }
    wanted.cpus = cpus;
    if (wanted == mirror.wanted()) continue;
    mirror.wanted() = std::move(wanted);
    mirror.mark(WriteUrgency::kInforms);
  }
  for (auto& [name, mirror] : qos_status_) {
    auto wanted = mirror.wanted();
    std::tie(wanted.running, wanted.pending) = qos[name];
    if (wanted == mirror.wanted()) continue;
    mirror.wanted() = std::move(wanted);
    mirror.mark(WriteUrgency::kInforms);
  }
}

void ControlLoop::write_due_numbers() {
  const bool exists = config_ != nullptr && config_status_.exists();
  write(numbers_.due(now_, exists ? &config_status_.version() : nullptr));
}

void ControlLoop::answered(IdsReserved&& outcome) {
  for (const std::string& uid : numbers_.answered(outcome, now_)) touch(uid);
  // What is stored now, as if a watch had told it.
  const auto saw = [this](const kube::SchedulerConfig& object) {
    inbox_.changed<kube::SchedulerConfig>(std::make_shared<const kube::SchedulerConfig>(object));
  };
  if (outcome.result.ok()) {
    saw(*outcome.result);
    config_status_.wanted().next_job_id = outcome.end;
    return;
  }
  ++counters_.write_failures;
  warn("job numbers not reserved", "error=\"" + outcome.result.error().message + "\"");
  if (outcome.fresh) saw(*outcome.fresh);
}

}  // namespace control
