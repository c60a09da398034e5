#include "operator/loop/informers.h"

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/gang/pod_pin.h"
#include "operator/policy/policy_kind.h"

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

// Keeps what memory_request, node_of and observe_gang read.
void slim_pod(kube::Pod& pod) {
  if (has_gang_gate(pod)) {  // translate_pod_gang reads it
    std::erase_if(pod.metadata.annotations, [](const auto& annotation) {
      return !annotation.first.starts_with(kube::kAnnotationPrefix);
    });
    return;
  }
  const bool ours = pod.metadata.labels.contains(std::string{kube::kLabelJob});
  drop_common(pod.metadata);
  for (auto* containers : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (kube::Container& container : *containers) {
      kube::Container slim;
      // Made anew from the few fields that are needed: whatever else a container has or will have
      // is dropped. Pods are most of what the operator holds in memory.
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
  if (!ours || pod.spec.node_name) pod.spec.affinity = {};  // what pins one that is not bound yet
  pod.spec.topology_spread_constraints = {};
  pod.spec.scheduling_gates = {};
}

// How a kind is watched: the thread's name, and what of an object is dropped before it is kept.
// A policy is kept whole. Any other kind without a specialization does not compile.
template <typename T>
struct Watch {
  static_assert(PolicyKinds::kContains<T>, "a watched kind needs its Watch<T>");
  static constexpr const char* kThread = PolicyKind<T>::kThread;
  static void slim(T&, TemplateBook&) {}
};

template <>
struct Watch<kube::Job> {
  static constexpr const char* kThread = "watch-jobs";
  static void slim(kube::Job& job, TemplateBook& templates) {
    // What has ended makes no pods any more.
    if (!job.status.state || !kube::is_final(*job.status.state)) {
      // Only facts about the template are kept (TemplateFacts); it is read again when pods are
      // made.
      templates.learn(job.metadata.uid, job.spec.pod_template);
    }
    job.spec.pod_template = {};
    drop_common(job.metadata);
  }
};
template <>
struct Watch<kube::BatchJob> {
  static constexpr const char* kThread = "watch-batch";
  // No selector of the API server tells them apart, and there may be many.
  static bool wants(const nlohmann::json& object) {
    const auto spec = object.find("spec");
    return spec != object.end() && spec->value("managedBy", "") == kube::kManagedBy;
  }
  // Its template is needed until the last attempt has been made.
  static void slim(kube::BatchJob& job, TemplateBook&) {
    if (kube::is_finished(job.status)) job.spec.pod_template = {};
    job.metadata.labels.clear();
    std::erase_if(job.metadata.annotations, [](const auto& annotation) {
      return !annotation.first.starts_with(kube::kAnnotationPrefix);
    });
  }
};
template <>
struct Watch<kube::Pod> {
  static constexpr const char* kThread = "watch-pods";
  static void slim(kube::Pod& pod, TemplateBook&) { slim_pod(pod); }
};
template <>
struct Watch<kube::Node> {
  static constexpr const char* kThread = "watch-nodes";
  static void slim(kube::Node& node, TemplateBook&) { drop_common(node.metadata); }
};
template <>
struct Watch<kube::UsageRecord> {
  static constexpr const char* kThread = "watch-usage";
  static void slim(kube::UsageRecord& record, TemplateBook&) { drop_common(record.metadata); }
};
template <>
struct Watch<kube::NodeTimetable> {
  static constexpr const char* kThread = "watch-tables";
  static void slim(kube::NodeTimetable& table, TemplateBook&) { drop_common(table.metadata); }
};
}  // namespace

Informers::Informers(const kube::Client& client, const kube::Clock& clock, Inbox& inbox,
                     TemplateBook& templates, OnError on_error, bool adopts_batch_jobs) {
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    if (std::is_same_v<T, kube::BatchJob> && !adopts_batch_jobs) return;
    typename kube::Informer<T>::Filter wants;
    if constexpr (requires { Watch<T>::wants; }) wants = Watch<T>::wants;
    std::get<Pointer<T>>(informers_) = std::make_unique<kube::Informer<T>>(
        client, clock, kube::InformerOptions{}, handlers<T>(inbox, on_error),
        [&templates](T& object) { Watch<T>::slim(object, templates); }, std::move(wants));
  });
}

bool Informers::have_synced() const {
  bool all = true;
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    const auto& informer = std::get<Pointer<T>>(informers_);
    all = all && (informer == nullptr || informer->has_synced());
  });
  return all;
}

std::vector<Informers::NamedStep> Informers::steps() {
  std::vector<NamedStep> steps;
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    kube::Informer<T>* informer = std::get<Pointer<T>>(informers_).get();
    if (informer == nullptr) return;
    steps.push_back({Watch<T>::kThread,
                     [informer](std::stop_token stop) { return informer->step(std::move(stop)); }});
  });
  return steps;
}

}  // namespace control
