#include "operator/jobs/job_record.h"

#include <utility>

namespace control {

void JobRecord::take_slots(std::vector<PodSlot> of_start) {
  slots = std::move(of_start);
  slot_pods.assign(slots.size(), {});
  nodes.clear();
  for (const PodSlot& slot : slots) {  // those of a node stand together
    if (nodes.empty() || nodes.back() != slot.node) nodes.push_back(slot.node);
  }
  stale_pods.clear();
  for (const auto& [name, pod] : std::exchange(pods, {})) put_pod(name, pod);
}

void JobRecord::put_pod(const std::string& name, std::shared_ptr<const kube::Pod> pod) {
  if (const PodSlot* slot = find_slot(slots, name)) {
    slot_pods[static_cast<std::size_t>(slot->index)] = SlotPod{pod};
  } else {
    stale_pods.insert(name);
  }
  pods[name] = std::move(pod);
}

void JobRecord::erase_pod(const std::string& name) {
  if (const PodSlot* slot = find_slot(slots, name)) {
    slot_pods[static_cast<std::size_t>(slot->index)] = {};
  }
  stale_pods.erase(name);
  pods.erase(name);
}

}  // namespace control
