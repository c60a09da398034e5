#include "translation/judged_spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translation/devices.h"
#include "translation/kept_text.h"
#include "translation/template_check.h"
#include "translation/uncounted.h"

namespace control {
namespace {

// How a pod's spec of any size becomes a small one that is judged the same. Only the part of each
// field that a check reads is kept: a bounded beginning of a text, the fact that a field is there,
// one entry more than is allowed of a list. A field that would be refused stays refused, with the
// same sentence as far as it names no more than the kept beginning.

using Json = nlohmann::json;

constexpr std::size_t kImageBytesMax = 1025;  // one more than the CRD allows

// Only whether the field is there is read. The value is one constant, so a probe of a megabyte
// costs no more than an empty one.
kube::RawJson presence(const kube::RawJson& field) {
  static const kube::RawJson kPresent{Json{{"dropped", true}}};
  return field.empty() ? kube::RawJson{} : kPresent;
}

// Keeps exec alone of hooks that stop a container (freeze_hazards.h); of hooks that start one only
// their presence is judged (template_check.cc).
std::optional<kube::LifecycleHandler> judged_pre_stop(
    const std::optional<kube::LifecycleHandler>& hook) {
  if (!hook || hook->exec.empty()) return std::nullopt;
  return kube::LifecycleHandler{.exec = presence(hook->exec)};
}
std::optional<kube::LifecycleHandler> judged_post_start(
    const std::optional<kube::LifecycleHandler>& hook) {
  if (!hook) return std::nullopt;
  if (!hook->exec.empty()) return kube::LifecycleHandler{.exec = presence(hook->exec)};
  // One kind stands for the others; without any the hook would be lost in the JSON.
  return kube::LifecycleHandler{.sleep = kube::RawJson{Json{{"dropped", true}}}};
}

// Keeps what is counted, and as much of the rest as is refused by name. One kind of devices more
// than possible is kept, which is refused as all of them would be.
kube::ResourceList judged_resources(const kube::ResourceList& all) {
  kube::ResourceList kept;
  std::size_t uncounted = 0, devices = 0;
  for (const auto& [name, quantity] : all) {
    if (is_counted(name)) {
      kept.emplace(name, quantity);
    } else if (kube::is_extended(name)) {
      if (quantity.milli() == 0 || devices++ > kDeviceKindsPerContainerMax) continue;
      kept.emplace(name, quantity);
    } else if (uncounted < kUncountedToldMax && quantity.milli() != 0) {
      kept.emplace(head(name), quantity);
      ++uncounted;
    }
  }
  return kept;
}

// Keeps the first port that is refused.
std::vector<kube::ContainerPort> judged_ports(const kube::Container& container, bool host_network) {
  const kube::ContainerPort* port = port_of_node(container, host_network);
  return port == nullptr ? std::vector<kube::ContainerPort>{} : std::vector{*port};
}

kube::Container judged_container(const kube::Container& container, bool host_network) {
  kube::Container kept{.name = head(container.name),
                       .image = head(container.image, kImageBytesMax)};
  // The command itself may be long. The name of the launcher is all that the check takes from it,
  // and a command that consists of that name is judged alike.
  if (const auto launcher = launcher_of(container)) kept.command.emplace_back(*launcher);
  kept.ports = judged_ports(container, host_network);
  kept.resources.requests = judged_resources(container.resources.requests);
  kept.resources.limits = judged_resources(container.resources.limits);
  keep_hazards(container, kept);
  return kept;
}

std::vector<kube::Container> judged_containers(const std::vector<kube::Container>& all,
                                               bool host_network) {
  // One more than is possible is refused as all of them would be.
  const std::size_t count = std::min(all.size(), kTemplateContainersMax + 1);
  std::vector<kube::Container> kept;
  kept.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    kept.push_back(judged_container(all[i], host_network));
  }
  return kept;
}

// Messages say only that such a selector has too many entries or is too long, so any one that is
// too large stands for it; judged_tolerations() likewise.
kube::Labels judged_selector(kube::Labels selector) {
  if (is_small(selector)) return selector;
  kube::Labels too_many;
  for (std::size_t i = 0; i <= kTemplateListMax; ++i) too_many.emplace(std::to_string(i), "");
  return too_many;
}

std::vector<kube::Toleration> judged_tolerations(std::vector<kube::Toleration> tolerations) {
  if (is_small(tolerations)) return tolerations;
  return std::vector<kube::Toleration>(kTemplateListMax + 1);
}

}  // namespace

// Every field here is one that freeze_hazards() or check_container() reads. A new hazard must be
// kept here, too: otherwise a pod that has it would pass in its judged form.
void keep_hazards(const kube::Container& from, kube::Container& to) {
  to.restart_policy = head(from.restart_policy);
  to.liveness_probe = presence(from.liveness_probe);
  to.startup_probe = presence(from.startup_probe);
  if (!from.lifecycle) return;
  kube::Lifecycle hooks{.post_start = judged_post_start(from.lifecycle->post_start),
                        .pre_stop = judged_pre_stop(from.lifecycle->pre_stop)};
  if (hooks.post_start || hooks.pre_stop) to.lifecycle = std::move(hooks);
}

// A field that is left out here counts as absent, so the check of it would be silent: a new check
// needs its field here.
kube::PodSpec judged_spec(kube::PodSpec spec) {
  kube::PodSpec kept;
  kept.node_name = head(spec.node_name);
  kept.init_containers = judged_containers(spec.init_containers, spec.host_network);
  kept.containers = judged_containers(spec.containers, spec.host_network);
  kept.host_network = spec.host_network;
  // Only whether they are there is read.
  if (spec.resources) kept.resources.emplace();
  kept.resource_claims = presence(spec.resource_claims);
  kept.restart_policy = head(spec.restart_policy);
  kept.termination_grace_period_seconds = spec.termination_grace_period_seconds;
  kept.active_deadline_seconds = spec.active_deadline_seconds;
  kept.node_selector = judged_selector(std::move(spec.node_selector));
  kept.tolerations = judged_tolerations(std::move(spec.tolerations));
  kept.affinity = presence(spec.affinity);
  kept.topology_spread_constraints = presence(spec.topology_spread_constraints);
  kept.scheduler_name = head(spec.scheduler_name);
  kept.priority_class_name = head(spec.priority_class_name);
  kept.priority = spec.priority;
  kept.preemption_policy = head(spec.preemption_policy);
  kept.runtime_class_name = head(spec.runtime_class_name);
  kept.host_pid = spec.host_pid;
  kept.scheduling_gates = presence(spec.scheduling_gates);
  return kept;
}

kube::RawJson judged_template(const kube::RawJson& pod_template) {
  auto decoded = kube::decode_template(pod_template);
  kube::Pod pod;
  // Otherwise no template that the API server has accepted; without containers it is refused.
  if (decoded.ok()) pod.spec = judged_spec(std::move(decoded->spec));
  return kube::RawJson{Json{{"spec", kube::encode(pod)["spec"]}}};
}

}  // namespace control
