#include "e2e/kubernetes/bench/fake_kubelets.h"

#include <nlohmann/json.hpp>

#include "kube/api/time_format.h"

namespace kubernetes_bench {
namespace {

using nlohmann::json;

// Several, so that pods do not wait for each other to run.
constexpr int kPodThreads = 4;

json true_condition(const char* type, const std::string& now) {
  return {{"type", type}, {"status", "True"}, {"lastTransitionTime", now}};
}

// As a real kubelet reports a pod all of whose containers run.
// Complete, because the operator decodes each of these as it would a real one.
json status_of(const kube::Pod& pod, const std::string& now) {
  json containers = json::array();
  for (const kube::Container& container : pod.spec.containers) {
    containers.push_back({{"name", container.name},
                          {"image", container.image},
                          {"imageID", ""},
                          {"ready", true},
                          {"started", true},
                          {"restartCount", 0},
                          {"state", {{"running", {{"startedAt", now}}}}}});
  }
  return {{"phase", "Running"},
          {"startTime", now},
          {"hostIP", "172.30.0.1"},
          {"podIP", "10.0.0.1"},
          {"podIPs", {{{"ip", "10.0.0.1"}}}},
          {"conditions",
           {true_condition("Initialized", now), true_condition("Ready", now),
            true_condition("ContainersReady", now), true_condition("PodScheduled", now)}},
          {"containerStatuses", std::move(containers)}};
}

}  // namespace

// The queues stand between the watches and the writes, so that no watch waits for an answer: a
// watch that lags behind would make pods look late that are not.
FakeKubelets::FakeKubelets(kube::Transport& transport, const kube::Clock& clock)
    : clock_{clock},
      client_{transport, clock, sleeper_, {.rate = {.per_second = 100'000, .burst = 100'000}}},
      nodes_{
          client_,
          clock,
          {},
          // Only additions: a node or a pod must be looked at once. A pod is bound when it is
          // made here.
          {.on_add = [this](const auto& node) { nodes_queue_.add(kube::key_of(node->metadata)); }}},
      pods_{client_, clock, {}, {.on_add = [this](const auto& pod) {
              pods_queue_.add(kube::key_of(pod->metadata));
            }}} {
  loops_.start("nodes", [this](std::stop_token stop) { return nodes_.step(std::move(stop)); });
  loops_.start("pods", [this](std::stop_token stop) { return pods_.step(std::move(stop)); });
  // One loop takes keys from a queue and works them off; a key that is added meanwhile comes again.
  const auto serve = [this](WorkQueue<kube::ObjectKey>& queue, const auto& what) {
    loops_.start("kubelet", [&queue, what](std::stop_token stop) {
      if (const auto key = queue.get(std::move(stop))) {
        what(*key);
        queue.done(*key);
      }
      return base::Duration{};
    });
  };
  serve(nodes_queue_, [this](const kube::ObjectKey& key) { make_ready(key); });
  for (int i = 0; i < kPodThreads; ++i) {
    serve(pods_queue_, [this](const kube::ObjectKey& key) { run_pod(key); });
  }
}

// The threads use the informers and the queues, which are members: they must be gone before those.
FakeKubelets::~FakeKubelets() {
  loops_.request_stop();
  loops_.join();
}

// By the informer's cache, which follows the server by a moment.
std::size_t FakeKubelets::running() const {
  std::size_t count = 0;
  for (const auto& pod : pods_.snapshot()) {
    if (pod->status.phase == kube::PodPhase::kRunning) ++count;
  }
  return count;
}

// A failure is not tried again: the wait for ready nodes would show it.
void FakeKubelets::make_ready(const kube::ObjectKey& node) {
  const std::string now = kube::format_time(clock_.wall());
  (void)client_.patch_status<kube::Node>(
      node, {{"status", {{"conditions", {true_condition("Ready", now)}}, {"phase", "Running"}}}});
}

// A pod that is gone, that has no node yet or that runs needs nothing.
void FakeKubelets::run_pod(const kube::ObjectKey& key) {
  const auto pod = pods_.find(key);
  if (pod == nullptr || !pod->spec.node_name || pod->status.phase == kube::PodPhase::kRunning) {
    return;
  }
  const std::string now = kube::format_time(clock_.wall());
  (void)client_.patch_status<kube::Pod>(key, {{"status", status_of(*pod, now)}});
}

}  // namespace kubernetes_bench
