#include "operator/jobs/pod_trials.h"

#include <algorithm>
#include <utility>

namespace control {
namespace {

// Each amount is the smallest possible, so that no quota refuses a trial that would let a real pod
// pass.
// No real pod of the job asks for less.
PodSlot smallest_slot(const JobRecord& job, const std::string& node) {
  PodSlot slot{.name = pod_name(job.key.name, job.object_uid(), 0, 0), .node = node, .cpus = 1};
  const kube::JobSpec& spec = job.object->spec;
  // Memory per CPU counts as that of one CPU.
  const auto memory = spec.resources.memory_per_node ? spec.resources.memory_per_node
                                                     : spec.resources.memory_per_cpu;
  slot.memory = memory;
  return slot;
}

}  // namespace

// Jobs whose pods would be judged alike wait for the answer of the first one: a thousand equal jobs
// are one request.
std::vector<TryPod> PodTrials::due(InformBudget& budget, const FindJob& find,
                                   const sched::Configuration& configuration) {
  std::vector<TryPod> effects;
  for (; !to_try_.empty(); to_try_.pop_front()) {
    const JobRecord* job = find(to_try_.front());
    const bool waits = job != nullptr && job->wishes->submitted && !job->deleted &&
                       !job->is_final() && !job->is_allocated();
    if (!waits) continue;
    auto effect = trial_of(*job, configuration);
    if (!effect) continue;
    Shape shape = shape_of(*job, *effect);
    if (const auto tried = under_way_.find(shape); tried != under_way_.end()) {
      alike_[tried->second].push_back(job->uid);
      continue;
    }
    // The job stays at the head of the list: its turn comes when the budget has been filled again.
    if (!budget.has_one()) break;
    budget.spend_one();
    // Equal jobs now join this trial instead of asking themselves.
    under_way_.emplace(std::move(shape), job->uid);
    effects.push_back(std::move(*effect));
  }
  return effects;
}

PodTrials::Shape PodTrials::shape_of(const JobRecord& job, const TryPod& trial) {
  // The facts that webhooks, quotas and Pod Security look at. Jobs that are equal in them get one
  // answer.
  return {job.key.ns, trial.partition, trial.slot.cpus, trial.slot.memory,
          job.pod_template == nullptr ? 0 : job.pod_template->text_hash};
}

// Returns the jobs for which the answer counts. If it was neither an acceptance nor a refusal (the
// server was away), those that waited for it are tried by themselves.
std::vector<std::string> PodTrials::answered(const PodTried& outcome) {
  // Looked up by UID: the job may have changed its shape since the trial was sent.
  std::erase_if(under_way_, [&](const auto& entry) { return entry.second == outcome.uid; });
  std::vector<std::string> jobs{outcome.uid};
  auto alike = alike_.extract(outcome.uid);
  if (!alike) return jobs;
  const bool was_said = outcome.status.ok() || !refusal_of(outcome).empty();
  for (std::string& uid : alike.mapped()) {
    if (was_said) {
      jobs.push_back(std::move(uid));
    } else {
      to_try_.push_back(std::move(uid));
    }
  }
  return jobs;
}

base::Instant PodTrials::next_due(base::Instant now) const {
  return to_try_.empty() ? base::kNever : now + InformBudget::kLookAgain;
}

std::optional<TryPod> trial_of(const JobRecord& job, const sched::Configuration& configuration) {
  const auto& partitions = configuration.partitions;
  // The first partition that the job names, or the default one: most policies look at the namespace
  // and the template only, so one trial stands for all its partitions.
  const auto named = std::find_if(partitions.begin(), partitions.end(), [&](const auto& partition) {
    const auto& wanted = job.request().partitions;
    return wanted.empty() ? partition.is_default : partition.name == wanted.front();
  });
  // No node to name in the pod. The trial is not repeated when one joins: it would only inform.
  if (named == partitions.end() || named->nodes.empty()) return std::nullopt;
  return TryPod{.job = job.key,
                .uid = job.uid,
                .partition = named->name,
                .slot = smallest_slot(job, named->nodes.front()),
                .options = {.kill_wait = configuration.cluster.kill_wait}};
}

// The message is the API server's own, for example a quota's.
std::string refusal_of(const PodTried& outcome) {
  const bool refused = !outcome.status.ok() && is_refusal(outcome.status.error().code);
  return refused ? outcome.status.error().message : "";
}

}  // namespace control
