#include "cli/cluster/standing.h"

#include <algorithm>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "api/account.h"
#include "api/node_timetable.h"
#include "api/qos.h"
#include "api/usage_record.h"
#include "api/wellknown.h"
#include "cli/cluster/read.h"
#include "translation/config_acceptance.h"
#include "translation/job_translation.h"
#include "translation/node_translation.h"
#include "translation/usage_translation.h"

namespace cli {
namespace {

// Returns the specs that the operator has accepted, the oldest first: the order of ties. Each
// is its own newest spec, so acceptance has nothing to choose. After an edit that was
// refused, status.accepted has the spec from before, so the object's own spec is never looked
// at.
template <typename Spec, typename T>
std::vector<control::SpecCandidate<Spec>> accepted(const std::vector<T>& objects) {
  std::vector<control::SpecCandidate<Spec>> all;
  for (const T& object : objects) {
    if (!object.status.accepted) continue;
    all.push_back({.name = object.metadata.name,
                   .created = object.metadata.creation_timestamp.value_or(base::Instant{}),
                   .newest = &*object.status.accepted,
                   .accepted = &*object.status.accepted,
                   .problems = {}});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.created, a.name) < std::tie(b.created, b.name);
  });
  return all;
}

// The specs go through the same acceptance as in the operator, and only what it has accepted: what
// a user has written and the operator refused has no effect on priorities.
base::Status read_policies(const Session& session, std::span<const kube::Node* const> nodes,
                           Standing& standing, Output output) {
  const auto partitions = list_all<kube::Partition>(session, "", output);
  if (!partitions) return partitions.error();
  const auto qos = list_all<kube::Qos>(session, "", output);
  if (!qos) return qos.error();
  const auto accounts = list_all<kube::Account>(session, "", output);
  if (!accounts) return accounts.error();
  const auto configs = list_all<kube::SchedulerConfig>(session, "", output);
  if (!configs) return configs.error();
  control::AcceptanceInput input{.config = {},
                                 .partitions = accepted<kube::PartitionSpec>(*partitions),
                                 .qos = accepted<kube::QosSpec>(*qos),
                                 .accounts = accepted<kube::AccountSpec>(*accounts),
                                 .nodes = nodes};
  for (auto& config : accepted<kube::SchedulerConfigSpec>(*configs)) {
    if (config.name == kube::kSchedulerConfigName) input.config = std::move(config);
  }
  standing.configuration = control::accept(input).configuration;
  return {};
}

// Only jobs that wait and that the operator has accepted: the scheduler has no priority of any
// other. In the order of their numbers, as a new leader restores them.
base::Status read_jobs(const Session& session, const std::string& ns, Standing& standing,
                       Output output) {
  auto jobs = list_all<kube::Job>(session, ns, output);
  if (!jobs) return jobs.error();
  for (kube::Job& job : *jobs) {
    const bool waits = job.status.state == kube::JobState::kPending && job.status.job_id &&
                       kube::is_true(job.status.conditions, kube::kAccepted);
    if (waits) standing.waiting.push_back(std::move(job));
  }
  std::sort(standing.waiting.begin(), standing.waiting.end(),
            [](const auto& a, const auto& b) { return *a.status.job_id < *b.status.job_id; });
  return {};
}

// Returns the jobs as a new operator gets them. Requests go through the operator's own translation,
// so that fields which priorities depend on mean the same here. plain_request() and not the
// operator's judgement: a job that was accepted keeps its request, whatever a check would say about
// it today.
std::vector<sched::JobFacts> restored(const std::vector<kube::Job>& waiting, base::Instant now) {
  std::vector<sched::JobFacts> all;
  for (const kube::Job& job : waiting) {
    all.push_back(sched::JobFacts::of(control::plain_request(
        job, sched::JobId{*job.status.job_id}, job.status.submit_time.value_or(now))));
    all.back().eligible_time = job.status.eligible_time.value_or(base::Instant{});
  }
  return all;
}

// Returns true if priorities depend on the nodes' sizes: a job's part of the cluster then counts.
bool counts_nodes(const sched::PriorityParameters& priority) {
  return priority.weight_job_size > 0 || priority.weight_tres != sched::TresWeights{};
}

// Usage as the operator has recorded it. Without a record nothing has been used yet, which is not
// an error.
base::Status restore_usage(const Session& session, Standing& standing, Output output) {
  const auto records = list_all<kube::UsageRecord>(session, "", output);
  if (!records) return records.error();
  for (const kube::UsageRecord& record : *records) {
    if (record.metadata.name != kube::kUsageRecordName) continue;
    standing.scheduler.restore_usage(control::decode_usage(record.spec));
  }
  return {};
}

}  // namespace

// Makes a scheduler in the operator's state, as far as priorities and shares need it:
// 1. jobs and nodes, if jobs are asked for
// 2. the policies that are in force
// 3. the configuration, the nodes, the waiting jobs and the usage go into the scheduler, in the
//    order in which a new operator restores them
// Why a scheduler and not a formula: priorities depend on usage that decays, on the tree of shares
// and on the sizes of all nodes (chapter 9). A second implementation would be another place in
// which each of those rules could be wrong. The price is a handful of lists; nothing is stored in
// the API server for it, and the operator is not asked.
base::Result<Standing> read_standing(const Session& session,
                                     const std::optional<std::string>& jobs_of, Output output) {
  Standing standing;
  const base::Instant now = session.clock.wall();
  std::vector<kube::Node> nodes;
  base::Status read_nodes;
  if (jobs_of) {
    const base::Status jobs = read_jobs(session, *jobs_of, standing, output);
    if (!jobs) return jobs.error();
    base::Result<std::vector<kube::Node>> listed = list_all<kube::Node>(session, "", output);
    read_nodes = listed.status();
    if (listed) nodes = std::move(*listed);
  }
  std::vector<const kube::Node*> pointers;
  for (const kube::Node& node : nodes) pointers.push_back(&node);
  const base::Status policies = read_policies(session, pointers, standing, output);
  if (!policies) return policies.error();
  // Few users may list nodes, and most weights do not need them.
  if (!read_nodes && counts_nodes(standing.configuration.cluster.priority)) {
    return read_nodes.error().with_context("the weights jobSize, cpus, memory, nodes and gpus");
  }

  sched::Scheduler& scheduler = standing.scheduler;
  scheduler.step(
      now, sched::Configure{std::make_shared<const sched::Configuration>(standing.configuration)});
  for (const kube::Node& node : nodes) {
    scheduler.step(now, sched::NodeUpdate{control::translate_node({.node = &node}).spec});
  }
  // Running jobs stay out, since their priorities are not shown; so there are no timetables to
  // give.
  scheduler.restore_from_published(now, restored(standing.waiting, now), {});
  const base::Status usage = restore_usage(session, standing, output);
  if (!usage) return usage.error();
  return standing;
}

}  // namespace cli
