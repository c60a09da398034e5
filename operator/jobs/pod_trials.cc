// A job that waits has one of its pods tried at the API server (dryRun=All, architecture.md 5):
// what a quota, a LimitRange or Pod Security would refuse is said while it waits, not only at its
// start. It only informs: the job stays in the queue, since what refuses it may change.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/gang/pod_builder.h"
#include "operator/loop/control_loop.h"

namespace control {
namespace {

// No real pod of the job asks for less.
PodSlot smallest_slot(const JobRecord& job, const std::string& node) {
  PodSlot slot{.name = pod_name(job.key.name, job.uid, 0, 0), .node = node, .cpus = 1};
  const kube::JobSpec& spec = job.object->spec;
  const auto memory = spec.memory_per_node ? spec.memory_per_node : spec.memory_per_cpu;
  if (memory && *memory > kube::Bytes{0}) slot.memory = memory;
  return slot;
}

bool is_refusal(base::Code code) {
  return code == base::Code::kInvalidArgument || code == base::Code::kPermissionDenied ||
         code == base::Code::kTooLarge;
}

}  // namespace

void ControlLoop::try_due_pods() {
  while (tokens_ >= 1 && !to_try_.empty()) {
    JobRecord* job = find_job(to_try_.front());
    to_try_.pop_front();
    const bool waits = job != nullptr && job->submitted && !job->deleted && !job->is_final() &&
                       !job->is_allocated();
    if (!waits) continue;
    tokens_ -= 1;
    try_pod(*job);
  }
}

void ControlLoop::try_pod(const JobRecord& job) {
  const auto& partitions = configuration_.partitions;
  const auto named = std::find_if(partitions.begin(), partitions.end(), [&](const auto& partition) {
    const auto& wanted = job.request.partitions;
    return wanted.empty() ? partition.is_default : partition.name == wanted.front();
  });
  if (named == partitions.end() || named->nodes.empty()) return;
  const PodSlot slot = smallest_slot(job, named->nodes.front());
  const PodOptions options{.kill_wait = configuration_.cluster.kill_wait};
  writer_.submit(
      {.point = "pod-try",
       .run = [this, client = client_, key = job.key, uid = job.uid, partition = named->name, slot,
               options] {
         base::Status status;
         auto object = client.get<kube::Job>(key);
         if (object.ok() && object->metadata.uid == uid) {
           object->status.partition = partition;
           object->status.allocation = kube::Allocation{.node_list = slot.node};
           const auto pod = build_pod(*object, slot, gang_layout({&slot, 1}), options);
           status = pod.ok()
                        ? client.create_json<kube::Pod>(key.ns, *pod, {.dry_run = true}).status()
                        : pod.status();
         }
         return [this, uid, status] { on_pod_tried(uid, status); };
       }});
}

void ControlLoop::on_pod_tried(const std::string& uid, const base::Status& status) {
  JobRecord* job = find_job(uid);
  if (job == nullptr || job->is_final() || job->is_allocated()) return;
  const std::string warning =
      !status.ok() && is_refusal(status.error().code) ? status.error().message : "";
  if (warning == job->pod_warning) return;
  job->pod_warning = warning;
  show_accepted(*job);
  if (!warning.empty()) event(*job, true, "PodsWouldBeRefused", warning.substr(0, 1000));
}

}  // namespace control
