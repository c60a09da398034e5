#include "operator/jobs/job_record.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"

namespace control {

std::shared_ptr<const sched::JobRequest> JobRecord::no_request() {
  static const auto kNone = std::make_shared<const sched::JobRequest>();
  return kNone;
}

// Takes the slots of a start that begins, or of one that a new leader has found. Pods may have come
// before their slots are known.
void JobRecord::take_slots(std::vector<PodSlot> of_start, std::optional<Members> members) {
  start.slots = std::move(of_start);
  start.members = std::move(members);
  start.slot_pods.assign(start.slots.size(), {});
  start.nodes.clear();
  for (const PodSlot& slot : start.slots) {  // those of a node stand together
    if (start.nodes.empty() || start.nodes.back() != slot.node) start.nodes.push_back(slot.node);
  }
  // The slots decide which pods are stale, so all are sorted in again.
  stale_pods.clear();
  for (const auto& [name, pod] : std::exchange(pods, {})) put_pod(name, pod);
}

void JobRecord::know_successes(const std::vector<int>& indexes) {
  for (const int index : indexes) {
    const auto slot = static_cast<std::size_t>(index);
    // A pod that is there speaks for itself.
    const bool is_unknown = slot < start.slots.size() && start.slot_pods[slot].pod == nullptr;
    if (is_unknown) start.slot_pods[slot] = SlotPod::known_success();
  }
  start.successes_noted = indexes.size();
}

// Without slots each pod that is left is stale.
void JobRecord::clear_start() {
  start = {};
  take_slots({});
}

// Stores the pod by name always, and by slot if it is one of the present start. A pod of neither
// kind is stale, unless it is kept for its log.
void JobRecord::put_pod(const std::string& name, std::shared_ptr<const kube::Pod> pod) {
  if (const PodSlot* slot = slot_named(name)) {
    SlotPod& one = start.slot_pods[static_cast<std::size_t>(slot->index)];
    one = SlotPod{pod, one};
  } else if (!is_done(name, *pod)) {
    stale_pods.insert(name);
  }
  pods[name] = std::move(pod);
}

// The slot stays, and with it what its pod has done: one that had not ended may need to be made
// again.
void JobRecord::erase_pod(const std::string& name) {
  if (const PodSlot* slot = slot_named(name)) {
    SlotPod& one = start.slot_pods[static_cast<std::size_t>(slot->index)];
    one = one.without_object();
    start.success_at_risk = start.success_at_risk || one.has_succeeded;
  }
  stale_pods.erase(name);
  pods.erase(name);
}

// Returns the slots as they were of those places that have a new pod: timetables list pods by name,
// and so need both names.
std::vector<PodSlot> JobRecord::fill_places(
    const std::function<bool(const std::string& node)>& takes_pods) {
  std::vector<PodSlot> before;
  const std::vector<PodSlot> old = start.slots;
  const std::vector<int> filled = start.members->fill(
      [&](int place) { return takes_pods(start.slots[static_cast<std::size_t>(place)].node); });
  name_slots(identity(), *start.members, start.slots);
  for (const int place : filled) {
    const auto index = static_cast<std::size_t>(place);
    before.push_back(old[index]);
    start.slot_pods[index] = {};
    // After a restore of etcd the pod may be there already.
    const auto there = pods.find(start.slots[index].name);
    if (there == pods.end()) continue;
    stale_pods.erase(there->first);
    put_pod(there->first, there->second);
  }
  return before;
}

// Returns true, with members, for the pod of an index that has succeeded, of this start or an
// earlier one: its log is what users look for, and no other pod will write it again.
bool JobRecord::is_done(const std::string& name, const kube::Pod& pod) const {
  if (!start.members || pod.status.phase != kube::PodPhase::kSucceeded) return false;
  const auto index = index_in_name(name);
  return index && start.members->has_succeeded(*index);
}

// Returns true also for a pod that has lost its place to another that follows it.
bool JobRecord::is_of_start(const std::string& name) const {
  if (is_adopted() || !start.members) return slot_named(name) != nullptr;
  const auto index = index_in_name(name);
  return index && pod_name(identity(), *index) == name;
}

// The names of our own pods end with their index; the slots of an adopted gang are sorted by name
// (job_check).
const PodSlot* JobRecord::slot_named(const std::string& name) const {
  if (start.members) {
    const auto index = index_in_name(name);
    const auto place = index ? start.members->place_of(*index) : std::nullopt;
    if (!place || static_cast<std::size_t>(*place) >= start.slots.size()) return nullptr;
    const PodSlot& slot = start.slots[static_cast<std::size_t>(*place)];
    return slot.name == name ? &slot : nullptr;
  }
  if (!is_adopted()) return find_slot(start.slots, name);
  const auto found = std::ranges::lower_bound(start.slots, name, {}, &PodSlot::name);
  return found != start.slots.end() && found->name == name ? &*found : nullptr;
}

bool JobRecord::readiness_is_late() const {
  return start.late_readiness && kube::is_true(wanted().conditions, kube::kReady) &&
         !kube::is_true(status.stored().conditions, kube::kReady);
}

}  // namespace control
