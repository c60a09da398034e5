#include "node-agent/program/node_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "base/log_fields.h"

// The API server as the agent sees it. Each object kind has an informer with a thread of its own,
// narrowed by a field selector to this node's objects; the Lease is read by a get, and so is the
// timetable when a quorum read is wanted. All of them only store what came and call notify(); the
// main thread collects everything in read(), as one value. So the policy never sees half of a
// change, and no lock is held while it works.
namespace agent {
namespace {

constexpr char kFreezeKey[] = "kubegang.io/freeze";
constexpr char kFreezeDisabled[] = "disabled";
// The longest pause between two tries of the urgent informers; jitter adds up to half as much again
// (kube/backoff.h), which gives the 6 s of the header.
constexpr base::Duration kUrgentRetryMax = std::chrono::seconds{4};
constexpr base::Duration kLeaseRetryAfter = std::chrono::seconds{10};
// How often a quorum read is made while one is wanted. It costs etcd a round, so thousands of
// agents must not ask at once or often.
constexpr base::Duration kConfirmEvery = std::chrono::seconds{10};
constexpr base::Duration kConfirmRetryAfter = std::chrono::seconds{2};
constexpr base::Duration kConfirmIdle = std::chrono::hours{1};

// The answer to one call is held in memory several times over while it is decoded, and a pod may
// have megabytes: pages are as small as the agent's memory limit asks for.
constexpr std::int32_t kPageItemsMax = 20;

// Uses a field selector, so that the API server sends this node's objects and not the cluster's.
kube::InformerOptions only(const std::string& field_selector, std::uint64_t seed) {
  return {.field_selector = field_selector, .page_items_max = kPageItemsMax, .seed = seed};
}

// Pods and timetable decide which pods are frozen. After an API server was away, the usual 30 s
// until the next try would be 30 s of an old timetable, or the whole grace time of a pod that is
// frozen.
kube::InformerOptions urgent(const std::string& field_selector, std::uint64_t seed) {
  kube::InformerOptions options = only(field_selector, seed);
  options.backoff.max = kUrgentRetryMax;
  return options;
}

// The node's pods. A list of the newest state would be read from etcd, all pods of the cluster for
// each node: after an update of the agents, or when many watches end together, by each of them. So
// they come from the API server's cache. Such a list may be old, as a watch may be late:
// 1. a pod that is gone no longer has a cgroup, and no other pod gets its UID;
// 2. a pod that is missing is in no list of the policy, so it is not frozen, or is thawed if it
// was:
//    it runs beside others until the watch shows it;
// 3. a pod whose state is old may be frozen although it ends or a container of it starts again, as
// it may while a watch is late, and is thawed by the watch's event. The watch begins at the version
// of the list, and brings all that followed as soon as it is open. A later list is never older than
// what was seen. The timetable, which is dangerous if it is old, is confirmed by a quorum read
// (read_timetable).
kube::InformerOptions pods_on(const std::string& node, std::uint64_t seed) {
  kube::InformerOptions options = urgent("spec.nodeName=" + node, seed);
  options.freshness = kube::Freshness::kNotOlderThanSeen;
  return options;
}

bool is_disabled(const kube::Labels& labels) {
  const auto found = labels.find(kFreezeKey);
  return found != labels.end() && found->second == kFreezeDisabled;
}

}  // namespace

// As an annotation or as a label: people use what their tools can set.
bool is_kill_switch_on(const kube::Node& node) {
  return is_disabled(node.metadata.annotations) || is_disabled(node.metadata.labels);
}

// From status.accepted and not from the spec: the operator has judged it, and works by it as well.
TimetableSettings timetable_settings(const kube::SchedulerConfig* config) {
  TimetableSettings settings;
  if (config == nullptr || !config->status.accepted || !config->status.accepted->timetable) {
    return settings;
  }
  const kube::TimetableConfig& given = *config->status.accepted->timetable;
  settings.settle = given.settle.value_or(settings.settle);
  settings.barrier = given.barrier.value_or(settings.barrier);
  settings.fail_open_after = given.fail_open_after.value_or(settings.fail_open_after);
  return settings;
}

template <typename T>
typename kube::Informer<T>::Handlers NodeWatch::handlers(const std::string& what) {
  using Pointer = typename kube::Informer<T>::Pointer;
  typename kube::Informer<T>::Handlers handlers;
  handlers.on_add = [this](const Pointer&) { notify_(); };
  handlers.on_update = [this](const Pointer&, const Pointer&) { notify_(); };
  handlers.on_delete = [this](const Pointer&) { notify_(); };
  handlers.on_undecodable = [what](const kube::Undecodable& object) {
    spdlog::warn("cannot read object kind={} name={} rv={} error={}", what,
                 base::log_value(kube::to_string(object.key)),
                 base::log_value(object.resource_version), base::log_value(object.error.message));
  };
  handlers.on_error = [what](const base::Error& error) {
    spdlog::warn("watch failed kind={} code={} error={}", what, base::to_string(error.code),
                 base::log_value(error.message));
  };
  return handlers;
}

// Seeds differ by one for each informer, so that those of one agent do not retry in step either.
NodeWatch::NodeWatch(kube::Client client, const kube::Clock& clock, NodeWatchOptions options,
                     std::function<void()> notify)
    : options_{std::move(options)},
      notify_{std::move(notify)},
      client_{client},
      clock_{clock},
      pods_{client, clock, pods_on(options_.node, options_.seed), handlers<kube::Pod>("Pod"),
            keep_what_facts_need},
      // The handlers of the timetable also keep why an object could not be read: the status must
      // say so, and the informer drops such an object. Whatever is read afterwards clears the note.
      timetable_{client, clock, urgent("metadata.name=" + options_.node, options_.seed + 1),
                 [this] {
                   auto with_note = handlers<kube::NodeTimetable>("NodeTimetable");
                   const auto note = [this](std::string why) {
                     {
                       const std::lock_guard lock{mu_};
                       undecodable_ = std::move(why);
                     }
                     notify_();
                   };
                   with_note.on_undecodable = [note](const kube::Undecodable& object) {
                     note(object.error.message);
                   };
                   with_note.on_add = [note](const auto&) { note(""); };
                   with_note.on_update = [note](const auto&, const auto&) { note(""); };
                   with_note.on_delete = [note](const auto&) { note(""); };
                   return with_note;
                 }()},
      node_{client, clock, only("metadata.name=" + options_.node, options_.seed + 2),
            handlers<kube::Node>("Node")},
      config_{client, clock,
              only("metadata.name=" + std::string{kube::kSchedulerConfigName}, options_.seed + 3),
              handlers<kube::SchedulerConfig>("SchedulerConfig")},
      prng_{options_.seed + 4},
      fail_open_micros_{TimetableSettings{}.fail_open_after.count()} {}

// Returns the step of one informer, for a thread of its own. The tests and the simulation drive the
// same steps by hand.
template <typename T>
NodeWatch::NamedStep NodeWatch::step_of(const std::string& name, kube::Informer<T>& informer) {
  return {
      .name = name, .step = [this, &informer](std::stop_token stop) {
        const base::Duration wait = informer.step(std::move(stop));
        notify_();  // The first list may have been empty: nothing else tells that it is complete.
        return wait;
      }};
}

std::vector<NodeWatch::NamedStep> NodeWatch::steps() {
  return {step_of("pods", pods_),
          step_of("timetable", timetable_),
          step_of("node", node_),
          step_of("config", config_),
          {"confirm", [this](std::stop_token) { return read_timetable(); }, &confirm_waker_},
          {"lease", [this](std::stop_token stop) { return read_lease(std::move(stop)); },
           &lease_waker_}};
}

void NodeWatch::start(kube::RunLoop& loops) {
  for (NamedStep& step : steps()) loops.start(step.name, std::move(step.step), step.waker);
}

void NodeWatch::confirm_timetable(bool wanted) {
  // A new question needs a new answer: one from an earlier time could confirm a timetable that has
  // been replaced since. That holds for an answer that is still under way, too.
  {
    const std::lock_guard lock{mu_};
    if (confirm_ == wanted) return;
    confirm_ = wanted;
    ++question_;
    confirmed_.reset();
  }
  if (wanted) confirm_waker_.wake();
}

// A get without a resourceVersion is a quorum read: it is not answered from a cache.
// Returns when to ask again. While nothing is in doubt it sleeps for an hour at a time, and
// confirm_waker_ ends that.
base::Duration NodeWatch::read_timetable() {
  std::uint64_t question = 0;
  {
    const std::lock_guard lock{mu_};
    if (!confirm_) return kConfirmIdle;
    question = question_;
  }
  base::Result<kube::NodeTimetable> timetable =
      client_.get<kube::NodeTimetable>({"", options_.node});
  {
    const std::lock_guard lock{mu_};
    if (question != question_) return base::Duration{0};  // Another one came up meanwhile.
    if (timetable) {
      confirmed_ = std::make_shared<const kube::NodeTimetable>(*std::move(timetable));
    }
  }
  if (timetable) {
    notify_();
  } else if (timetable.error().code != base::Code::kCancelled) {
    spdlog::warn("cannot get the timetable code={} error={}",
                 base::to_string(timetable.error().code),
                 base::log_value(timetable.error().message));
    return kConfirmRetryAfter;
  }
  return kConfirmEvery;
}

// Returns when to read again: once a minute, sooner with a fail-open limit below four minutes, and
// after 10 s if the API server did not answer.
base::Duration NodeWatch::read_lease(std::stop_token) {
  // A watch would bring every renewal of the Lease to every node. A get once a minute, or each
  // quarter of the limit if that is less, is enough.
  base::Duration interval = lease_read_interval(base::Duration{fail_open_micros_.load()});
  const base::Duration began = clock_.monotonic();
  const base::Result<kube::Lease> lease = client_.get<kube::Lease>(options_.lease);
  // A Lease that does not exist is an answer too: the API server was reached and no operator has
  // renewed.
  if (lease || lease.error().code == base::Code::kNotFound) {
    LeaseReading reading{.at = clock_.monotonic()};
    if (lease) reading.renew_time = lease->spec.renew_time;
    {
      const std::lock_guard lock{mu_};
      lease_ = reading;
      lease_tried_ = began;
    }
    notify_();
  } else if (lease.error().code != base::Code::kCancelled) {
    spdlog::warn("cannot read the operator's lease code={} error={}",
                 base::to_string(lease.error().code), base::log_value(lease.error().message));
    interval = std::min(interval, kLeaseRetryAfter);
    {
      const std::lock_guard lock{mu_};
      lease_tried_ = began;
    }
    notify_();
  }
  // 10 % of jitter each way, so that thousands of agents do not ask in step.
  return interval * static_cast<std::int64_t>(900 + prng_.below(201)) / 1000;
}

// `before` are the rules that the journal names. They hold until the API server answers: an agent
// that restarts while the API server is away must neither freeze on a node whose kill switch is on,
// nor stop the turns.
void NodeWatch::read(Inputs& inputs, const std::optional<Rules>& before) {
  const bool node_known = node_.has_synced();
  const bool config_known = config_.has_synced();
  inputs.rules_known = before || (node_known && config_known);
  inputs.settings = before ? before->settings : TimetableSettings{};
  inputs.kill_switch = before && before->kill_switch;
  if (config_known) {
    const auto config = config_.find({"", std::string{kube::kSchedulerConfigName}});
    inputs.settings = timetable_settings(config.get());
  }
  // The Lease is read at intervals that depend on this, from either source: with those of a longer
  // limit the node would fail open beside an operator that renews.
  const std::int64_t micros = inputs.settings.fail_open_after.count();
  if (fail_open_micros_.exchange(micros) != micros) lease_waker_.wake();
  if (node_known) {
    const auto node = node_.find({"", options_.node});
    inputs.kill_switch = node && is_kill_switch_on(*node);
  }
  inputs.timetable_known = timetable_.has_synced();
  inputs.timetable = timetable();
  read_pods(inputs);
  const std::lock_guard lock{mu_};
  inputs.timetable_undecodable = undecodable_;
  inputs.confirmed = confirmed_;
}

// Facts are worked out only if a pod or the settle time changed: the loop wakes for many other
// reasons.
void NodeWatch::read_pods(Inputs& inputs) {
  inputs.pods_known = pods_.has_synced();
  std::vector<std::shared_ptr<const kube::Pod>> pods;
  if (inputs.pods_known) pods = pods_.snapshot();
  if (pods == pods_read_ && settle_of_pods_ == inputs.settings.settle) return;
  pods_read_ = std::move(pods);
  settle_of_pods_ = inputs.settings.settle;
  inputs.pods.clear();
  for (const auto& pod : pods_read_) {
    inputs.pods.insert_or_assign(kube::key_of(pod->metadata), pod_facts(*pod, settle_of_pods_));
  }
}

std::shared_ptr<const kube::NodeTimetable> NodeWatch::timetable() const {
  return timetable_.has_synced() ? timetable_.find({"", options_.node}) : nullptr;
}

std::optional<base::Duration> NodeWatch::lease_tried() const {
  const std::lock_guard lock{mu_};
  return lease_tried_;
}

std::optional<LeaseReading> NodeWatch::lease() const {
  const std::lock_guard lock{mu_};
  return lease_;
}

}  // namespace agent
