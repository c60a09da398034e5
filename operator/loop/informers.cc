#include "operator/loop/informers.h"

#include "api/wellknown.h"
#include "operator/loop/kept_fields.h"
#include "operator/policy/policy_kind.h"

namespace control {
namespace {

// An informer leaves a changed object in the inbox and wakes the loop. All of it runs on the thread
// of that informer, which does nothing else, so a slow loop never holds up a watch.
//
// `gone` is called with the last state of each object that is gone, before the inbox hears of it:
// there an object that came and went between two looks of the loop leaves no trace.
template <typename T>
typename kube::Informer<T>::Handlers handlers(Inbox& inbox, const Informers::OnError& on_error,
                                              bool (*may_wait)(const T&),
                                              std::function<void(const T&)> gone) {
  using Pointer = typename kube::Informer<T>::Pointer;
  return {.on_add = [&inbox, may_wait](
                        const Pointer& object) { inbox.changed<T>(object, may_wait(*object)); },
          .on_update =
              [&inbox, may_wait, gone](const Pointer& before, const Pointer& object) {
                const bool waits = may_wait(*before) && may_wait(*object);
                if (before->metadata.uid == object->metadata.uid) {
                  return inbox.changed<T>(object, waits);
                }
                gone(*before);
                inbox.replaced<T>(*before, object, waits);
              },
          // An object that is deleted and created again between two looks of the loop is one change
          // (inbox.h).
          .on_delete =
              [&inbox, may_wait, gone](const Pointer& last) {
                gone(*last);
                inbox.deleted<T>(last, may_wait(*last));
              },
          // One object that cannot be read must not stop the watch of its kind: it is logged and
          // skipped.
          .on_undecodable =
              [on_error](const kube::Undecodable& bad) {
                on_error(T::kResource.kind, bad.error.with_context(kube::to_string(bad.key)));
              },
          .on_error = [on_error](const base::Error& error) { on_error(T::kResource.kind, error); }};
}

// How a kind is watched: the thread's name, and what of an object is kept (kept_fields.h).
// A policy is kept whole. Any other kind without a specialization does not compile.
template <typename T>
struct Watch {
  static_assert(PolicyKinds::kContains<T>, "a watched kind needs its Watch<T>");
  static constexpr const char* kThread = PolicyKind<T>::kThread;
  static void slim(T&, TemplateBook&) {}
};

template <>
struct Watch<kube::Job> {
  // Names of threads have at most 15 characters in Linux.
  static constexpr const char* kThread = "watch-jobs";
  // Runs on the informer's thread, before anyone else sees the object. So a template of a megabyte
  // is in memory only as long as it is read, and TemplateBook takes calls from several threads.
  static void slim(kube::Job& job, TemplateBook& templates) {
    // A job that has ended makes no more pods.
    if (job.status.state && kube::is_final(*job.status.state)) {
      templates.forget(job.metadata.uid);
    } else {
      // Only facts about the template are kept (TemplateFacts); it is read again when pods are
      // made.
      templates.learn(job.metadata.uid, job.spec.pod_template);
    }
    job.spec.pod_template = {};
    // Only the name of a script is kept, which singletons go by; the rest is read again with the
    // template.
    if (job.spec.batch) *job.spec.batch = kube::JobBatch{.name = std::move(job.spec.batch->name)};
    keep_what_jobs_need(job.metadata);
  }
  static void gone(const kube::Job& job, TemplateBook& templates) {
    templates.forget(job.metadata.uid);
  }
};
template <>
struct Watch<kube::BatchJob> {
  static constexpr const char* kThread = "watch-batch";
  // No selector of the API server tells them apart, and there may be many.
  static bool wants(const kube::JsonView& object) {
    return object.find("spec").find("managedBy").string() == kube::kManagedBy;
  }
  // The whole template is noted first, as long as a kubegang Job may still be made of it.
  static void slim(kube::BatchJob& job, TemplateBook& templates) {
    templates.of_batch_jobs().see(job);
    keep_what_is_read(job);
  }
};
template <>
struct Watch<kube::PodGroup> {
  static constexpr const char* kThread = "watch-groups";
  // The coscheduling plugin's CRD, which most clusters lack, may be installed later.
  static constexpr base::Duration kUnservedRetry = std::chrono::seconds{30};
  static void slim(kube::PodGroup& group, TemplateBook&) { keep_identity(group.metadata); }
};
template <>
struct Watch<kube::Pod> {
  static constexpr const char* kThread = "watch-pods";
  // A cluster may have hundreds of changes per second; for each alone the thread would wake up.
  static constexpr base::Duration kGather = std::chrono::milliseconds{10};
  static const kube::KnownFields& fields() { return fields_of_pods(); }
  // A cluster may have hundreds of such changes per second: a step of the loop for each would cost
  // as much as reading them.
  static bool may_wait(const kube::Pod& pod) { return concerns_only_its_node(pod); }
  static void slim(kube::Pod& pod, TemplateBook&) { keep_what_is_read(pod); }
};
template <>
struct Watch<kube::Node> {
  static constexpr const char* kThread = "watch-nodes";
  static void slim(kube::Node& node, TemplateBook&) { keep_what_is_read(node); }
};
template <>
struct Watch<kube::UsageRecord> {
  static constexpr const char* kThread = "watch-usage";
  static void slim(kube::UsageRecord& record, TemplateBook&) { keep_identity(record.metadata); }
};
template <>
struct Watch<kube::NodeTimetable> {
  static constexpr const char* kThread = "watch-tables";
  static void slim(kube::NodeTimetable& table, TemplateBook&) { keep_identity(table.metadata); }
};
}  // namespace

Informers::Informers(const kube::Client& client, const kube::Clock& clock, Inbox& inbox,
                     TemplateBook& templates, OnError on_error, Adopts adopts) {
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    if (std::is_same_v<T, kube::BatchJob> && !adopts.batch_jobs) return;
    if (std::is_same_v<T, kube::PodGroup> && !adopts.pod_groups) return;
    // The peculiarities of a kind stand in its Watch<T>; a member that is absent there leaves the
    // default.
    typename kube::Informer<T>::Filter wants;
    kube::InformerOptions options;
    if constexpr (requires { Watch<T>::kUnservedRetry; }) {
      options.unserved_retry = Watch<T>::kUnservedRetry;
    }
    if constexpr (requires { Watch<T>::kGather; }) options.gather = Watch<T>::kGather;
    if constexpr (requires { Watch<T>::wants; }) wants = Watch<T>::wants;
    if constexpr (requires { Watch<T>::fields(); }) options.fields = &Watch<T>::fields();
    bool (*may_wait)(const T&) = [](const T&) { return false; };
    if constexpr (requires(const T& object) { Watch<T>::may_wait(object); }) {
      may_wait = Watch<T>::may_wait;
    }
    std::function<void(const T&)> gone = [](const T&) {};
    if constexpr (requires(const T& object) { Watch<T>::gone(object, templates); }) {
      gone = [&templates](const T& object) { Watch<T>::gone(object, templates); };
    }
    std::get<Pointer<T>>(informers_) = std::make_unique<kube::Informer<T>>(
        client, clock, std::move(options), handlers<T>(inbox, on_error, may_wait, std::move(gone)),
        [&templates](T& object) { Watch<T>::slim(object, templates); }, std::move(wants));
  });
}

// Returns false until all is known: a leader that knew some pods and not others would take jobs for
// lost.
bool Informers::have_synced() const {
  bool all = true;
  // A kind that is not watched is a null pointer and never waited for.
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    const auto& informer = std::get<Pointer<T>>(informers_);
    all = all && (informer == nullptr || informer->has_synced());
  });
  return all;
}

std::string Informers::missing() const {
  std::string kinds;
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    const auto& informer = std::get<Pointer<T>>(informers_);
    if (informer == nullptr || informer->has_synced()) return;
    kinds += (kinds.empty() ? "" : ", ") + std::string{T::kResource.kind};
  });
  return kinds;
}

void Informers::list_again() {
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    if (auto& informer = std::get<Pointer<T>>(informers_)) informer->list_again();
  });
}

std::vector<Informers::NamedStep> Informers::steps() {
  std::vector<NamedStep> steps;
  WatchedKinds::for_each([&]<typename T>(std::type_identity<T>) {
    kube::Informer<T>* informer = std::get<Pointer<T>>(informers_).get();
    if (informer == nullptr) return;
    // Each step waits for the API server, hence one thread for each kind. The informers outlive the
    // threads (process.cc), so a plain pointer will do.
    steps.push_back({Watch<T>::kThread,
                     [informer](std::stop_token stop) { return informer->step(std::move(stop)); }});
  });
  return steps;
}

}  // namespace control
