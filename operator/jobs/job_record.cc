#include "operator/jobs/job_record.h"

#include <algorithm>
#include <utility>

namespace control {

void JobRecord::take_slots(std::vector<PodSlot> of_start) {
  start.slots = std::move(of_start);
  start.slot_pods.assign(start.slots.size(), {});
  start.nodes.clear();
  for (const PodSlot& slot : start.slots) {  // those of a node stand together
    if (start.nodes.empty() || start.nodes.back() != slot.node) start.nodes.push_back(slot.node);
  }
  // Which pods are stale depends on the slots, so all are sorted in anew.
  stale_pods.clear();
  for (const auto& [name, pod] : std::exchange(pods, {})) put_pod(name, pod);
}

void JobRecord::clear_start() {
  start = {};
  take_slots({});
}

void JobRecord::put_pod(const std::string& name, std::shared_ptr<const kube::Pod> pod) {
  if (const PodSlot* slot = slot_named(name)) {
    start.slot_pods[static_cast<std::size_t>(slot->index)] = SlotPod{pod};
  } else {
    stale_pods.insert(name);
  }
  pods[name] = std::move(pod);
}

void JobRecord::erase_pod(const std::string& name) {
  if (const PodSlot* slot = slot_named(name)) {
    start.slot_pods[static_cast<std::size_t>(slot->index)] = {};
  }
  stale_pods.erase(name);
  pods.erase(name);
}

// The names of our own pods end with their index; the slots of an adopted gang are sorted by name
// (job_check).
const PodSlot* JobRecord::slot_named(const std::string& name) const {
  if (!is_adopted()) return find_slot(start.slots, name);
  const auto found = std::ranges::lower_bound(start.slots, name, {}, &PodSlot::name);
  return found != start.slots.end() && found->name == name ? &*found : nullptr;
}

bool JobRecord::set_condition(std::string_view type, kube::ConditionStatus value,
                              std::string reason, std::string message, base::Instant now) {
  return kube::set_condition(wanted().conditions,
                             {.type = std::string{type},
                              .status = value,
                              .observed_generation = object->metadata.generation,
                              .last_transition_time = now,
                              .reason = std::move(reason),
                              .message = std::move(message)},
                             now);
}

}  // namespace control
