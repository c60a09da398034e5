#include "operator/fuzz/targets.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/account.h"
#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "api/usage_record.h"
#include "base/check.h"
#include "kube/api/batch_job.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/pod_group.h"
#include "operator/gang/pod_builder.h"
#include "operator/gang/pod_pin.h"
#include "operator/loop/kept_fields.h"
#include "scheduler/model/legality.h"
#include "translation/batch_job_translation.h"
#include "translation/config_acceptance.h"
#include "translation/config_translation.h"
#include "translation/job_translation.h"
#include "translation/pod_gang_translation.h"
#include "translation/template_check.h"
#include "translation/usage_translation.h"

namespace control {
namespace {

void check_sentences(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) CHECK(!problem.empty());
}

// Decoded, written and decoded again it is the same. Null: it is refused.
template <typename T>
std::optional<T> decoded(std::string_view text) {
  const auto read = kube::JsonText::read(text, kube::known_fields<T>());
  if (!read) return std::nullopt;
  base::Result<T> first = kube::decode<T>(read->root());
  if (!first.ok()) {
    CHECK(!first.error().message.empty());
    return std::nullopt;
  }
  const base::Result<T> again = kube::decode<T>(kube::encode(*first));
  CHECK(again.ok(), again.ok() ? "" : again.error().message);
  CHECK(*again == *first);
  return std::move(*first);
}

// Returns a partition `batch` of eight nodes.
const sched::Configuration& some_configuration() {
  static const sched::Configuration kConfiguration = [] {
    static const kube::PartitionSpec kSpec{.nodes = {.hostlist = "n[1-8]"}, .is_default = true};
    AcceptanceInput input;
    input.partitions.push_back({.name = "batch", .newest = &kSpec});
    return accept(input).configuration;
  }();
  return kConfiguration;
}

// Whatever a Job says, it is either a request or has problems, and never crashes the operator.
void check_job(const kube::Job& job) {
  static const std::map<std::string, PartitionCapacity> kCapacity{
      {"batch", {.nodes = 8, .cpus_per_node_max = 8}}};
  static const OperatorParameters kParameters;
  const TemplateFacts facts = check_template(job.spec.pod_template);
  check_sentences(facts.problems);
  const JobVerdict verdict = translate_job(job, facts, sched::JobId{1}, base::Instant{},
                                           {some_configuration(), kCapacity, {}, kParameters});
  check_sentences(verdict.problems);
  CHECK(verdict.request.has_value() == verdict.problems.empty());
  // It is asked of jobs that run, whose spec may be worth nothing by now: any spec must give a
  // request.
  (void)plain_request(job, sched::JobId{1}, base::Instant{});
  // Pods are made only from templates without problems.
  if (!facts.problems.empty()) return;
  kube::Job started = job;
  started.status.allocation = kube::Allocation{.hostlist = "n1"};
  const PodSlot slot{.name = "a-0", .node = "n1", .cpus = 2, .memory = kube::Bytes{1 << 30}};
  // A template that was found legal may still not go with the memory of the slot, which is an
  // error.
  const auto pod = build_pod(started, slot, gang_layout({&slot, 1}), {});
  CHECK(pod.ok() || !pod.error().message.empty());
}

// The part of an object that an informer keeps is judged as the whole is, and nothing of it is
// dropped by keeping again.
template <typename T>
T kept(const T& object) {
  T once = object;
  keep_what_is_read(once);
  T twice = once;
  keep_what_is_read(twice);
  CHECK(twice == once);
  return once;
}

// The same for batch Jobs, and for the part of them that is kept.
void check_batch_job(const kube::BatchJob& batch) {
  if (batch.spec.pod_template.empty()) return;
  const BatchVerdict verdict = translate_batch_job(batch, {});
  check_sentences(verdict.problems);
  const kube::BatchJob left = kept(batch);
  if (!kube::is_finished(batch.status)) {
    // A Job that was accepted as a whole must not be refused by what is kept of it, or the other
    // way round.
    CHECK(translate_batch_job(left, {}).problems.empty() == verdict.problems.empty());
    CHECK(!verdict.problems.empty() || pod_template_of(batch, left.spec.pod_template).ok());
  }
  if (verdict.problems.empty()) check_job(verdict.job);
  // A status that is worked out from itself says the same, or the operator would write it forever.
  const kube::BatchJobStatus status =
      batch_status_after(batch.spec, batch.status, {}, base::Instant{});
  CHECK(status == batch_status_after(batch.spec, status, {}, base::Instant{}));
}

// Only pods behind our gate are judged.
void check_pod(const kube::Pod& pod) {
  const kube::Pod left = kept(pod);
  CHECK(has_gang_gate(left) == has_gang_gate(pod));
  if (!has_gang_gate(pod)) return;
  const std::vector<std::shared_ptr<const kube::Pod>> gang{std::make_shared<kube::Pod>(left)};
  const PodGangVerdict verdict =
      translate_pod_gang(gang, gang_of(left.metadata.labels, /*heeds_groups=*/true));
  if (verdict.kind == PodGangVerdict::Kind::kComplete) {
    check_job(verdict.job);
    // Made of the whole pod, whose lists it repeats.
    (void)pin_patch(kube::encode(pod)["spec"], verdict.job, {}, "0-3");
  } else {
    CHECK(!verdict.message.empty());
  }
}

// All in one cluster, as the newest specs. The configuration in force is legal.
void check_policies(std::string_view text) {
  const auto config = decoded<kube::SchedulerConfig>(text);
  const auto partition = decoded<kube::Partition>(text);
  const auto qos = decoded<kube::Qos>(text);
  const auto account = decoded<kube::Account>(text);
  AcceptanceInput input;
  if (config) {
    input.config = SpecCandidate<kube::SchedulerConfigSpec>{
        .name = "default", .newest = &config->spec, .problems = check_config(*config)};
  }
  if (partition) {
    input.partitions.push_back(
        {.name = "batch", .newest = &partition->spec, .problems = check_partition(*partition)});
  }
  if (qos) {
    input.qos.push_back({.name = "normal", .newest = &qos->spec, .problems = check_qos(*qos)});
  }
  if (account) {
    input.accounts.push_back(
        {.name = "physics", .newest = &account->spec, .problems = check_account(*account)});
  }
  const Acceptance acceptance = accept(input);
  check_sentences(acceptance.config.problems);
  for (const auto* verdicts : {&acceptance.partitions, &acceptance.qos, &acceptance.accounts}) {
    for (const SpecVerdict& verdict : *verdicts) check_sentences(verdict.problems);
  }
  CHECK(sched::is_legal(sched::check(acceptance.configuration)));
}

}  // namespace

void fuzz_objects(std::string_view text) {
  // The text is tried as each kind: kinds have many fields in common, so what the fuzzer finds for
  // one of them serves the others.
  if (const auto job = decoded<kube::Job>(text)) check_job(*job);
  if (const auto batch = decoded<kube::BatchJob>(text)) check_batch_job(*batch);
  if (const auto record = decoded<kube::UsageRecord>(text)) (void)decode_usage(record->spec);
  (void)decoded<kube::NodeTimetable>(text);
  (void)decoded<kube::PodGroup>(text);
  if (const auto pod = decoded<kube::Pod>(text)) check_pod(*pod);
  if (auto node = decoded<kube::Node>(text)) (void)kept(*node);
  check_policies(text);
}

}  // namespace control
