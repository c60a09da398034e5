#include "operator/loop/informers.h"

#include <nlohmann/json.hpp>

#include "api/wellknown.h"

namespace control {
namespace {

template <typename T>
typename kube::Informer<T>::Handlers handlers(Inbox& inbox, const Informers::OnError& on_error) {
  using Pointer = typename kube::Informer<T>::Pointer;
  return {
      .on_add = [&inbox](const Pointer& object) { inbox.changed<T>(object); },
      .on_update = [&inbox](const Pointer&, const Pointer& object) { inbox.changed<T>(object); },
      .on_delete = [&inbox](const Pointer& last) { inbox.deleted<T>(*last); },
      .on_undecodable =
          [on_error](const kube::Undecodable& bad) {
            on_error(T::kResource.kind, bad.error.with_context(kube::to_string(bad.key)));
          },
      .on_error = [on_error](const base::Error& error) { on_error(T::kResource.kind, error); }};
}

void drop_common(kube::ObjectMeta& metadata) {
  metadata.annotations.clear();
}

// Keeps what memory_request and observe_gang read.
void slim_pod(kube::Pod& pod) {
  const bool ours = pod.metadata.labels.contains(std::string{kube::kLabelJob});
  drop_common(pod.metadata);
  for (auto* containers : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (kube::Container& container : *containers) {
      kube::Container slim;
      slim.name = std::move(container.name);
      slim.resources = std::move(container.resources);
      slim.restart_policy = container.restart_policy;
      if (ours) {  // that webhooks have added: templates have none
        slim.liveness_probe = std::move(container.liveness_probe);
        slim.startup_probe = std::move(container.startup_probe);
        slim.lifecycle = std::move(container.lifecycle);
      }
      container = std::move(slim);
    }
  }
  pod.spec.tolerations.clear();
  pod.spec.affinity = {};
  pod.spec.topology_spread_constraints = {};
  pod.spec.scheduling_gates = {};
}

void slim_timetable(kube::NodeTimetable& timetable) {
  drop_common(timetable.metadata);
}

template <typename T>
Informers::NamedStep named_step(std::string name, kube::Informer<T>& informer) {
  return {std::move(name),
          [&informer](std::stop_token stop) { return informer.step(std::move(stop)); }};
}

}  // namespace

Informers::Informers(const kube::Client& client, const kube::Clock& clock, Inbox& inbox,
                     TemplateBook& templates, OnError on_error)
    : jobs_{client,
            clock,
            {},
            handlers<kube::Job>(inbox, on_error),
            [&templates](kube::Job& job) {
              // What has ended makes no pods any more.
              if (!job.status.state || !kube::is_final(*job.status.state)) {
                templates.learn(job.metadata.uid, job.spec.pod_template);
              }
              job.spec.pod_template = {};
              drop_common(job.metadata);
            }},
      pods_{client, clock, {}, handlers<kube::Pod>(inbox, on_error), slim_pod},
      nodes_{client,
             clock,
             {},
             handlers<kube::Node>(inbox, on_error),
             [](kube::Node& node) { drop_common(node.metadata); }},
      timetables_{
          client, clock, {}, handlers<kube::NodeTimetable>(inbox, on_error), slim_timetable},
      partitions_{client, clock, {}, handlers<kube::Partition>(inbox, on_error)},
      qos_{client, clock, {}, handlers<kube::Qos>(inbox, on_error)},
      configs_{client, clock, {}, handlers<kube::SchedulerConfig>(inbox, on_error)} {}

bool Informers::have_synced() const {
  return jobs_.has_synced() && pods_.has_synced() && nodes_.has_synced() &&
         timetables_.has_synced() && partitions_.has_synced() && qos_.has_synced() &&
         configs_.has_synced();
}

std::vector<Informers::NamedStep> Informers::steps() {
  return {named_step("watch-jobs", jobs_),        named_step("watch-pods", pods_),
          named_step("watch-nodes", nodes_),      named_step("watch-tables", timetables_),
          named_step("watch-parts", partitions_), named_step("watch-qos", qos_),
          named_step("watch-config", configs_)};
}

}  // namespace control
