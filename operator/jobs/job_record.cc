#include "operator/jobs/job_record.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"

namespace control {

std::shared_ptr<const sched::JobRequest> WishNotes::no_request() {
  static const auto kNone = std::make_shared<const sched::JobRequest>();
  return kNone;
}

// Takes the slots of a start that begins, or of one that a new leader has found. Pods may have come
// before their slots are known.
void JobRecord::take_slots(std::vector<PodSlot> of_start, std::optional<Members> members) {
  StartPods& own = start.edit();
  own.slots = std::move(of_start);
  own.members = std::move(members);
  own.slot_pods.assign(own.slots.size(), {});
  own.nodes.clear();
  for (const PodSlot& slot : own.slots) {  // those of a node stand together
    if (own.nodes.empty() || own.nodes.back() != slot.node) own.nodes.push_back(slot.node);
  }
  // The slots decide which pods are stale, so all are sorted in again.
  stale_pods.edit().clear();
  for (const auto& [name, pod] : std::exchange(pods.edit(), {})) put_pod(name, pod);
}

void JobRecord::know_successes(const std::vector<int>& indexes) {
  StartPods& own = start.edit();
  for (const int index : indexes) {
    const auto slot = static_cast<std::size_t>(index);
    // A pod that is there speaks for itself.
    const bool is_unknown = slot < own.slots.size() && own.slot_pods[slot].pod == nullptr;
    if (is_unknown) own.slot_pods[slot] = SlotPod::known_success();
  }
  own.successes_noted = indexes.size();
}

// Without slots each pod that is left is stale.
void JobRecord::clear_start() {
  start = {};
  gang = {};
  launch = {};
  suspension_waits = {};
  commit_after = {};
  take_slots({});
}

// Stores the pod by name always, and by slot if it is one of the present start. A pod of neither
// kind is stale, unless it is kept for its log.
void JobRecord::put_pod(const std::string& name, std::shared_ptr<const kube::Pod> pod) {
  if (const PodSlot* slot = slot_named(name)) {
    SlotPod& one = start.edit().slot_pods[static_cast<std::size_t>(slot->index)];
    one = SlotPod{pod, one};
  } else if (!is_done(name, *pod)) {
    stale_pods.edit().insert(name);
  }
  pods.edit()[name] = std::move(pod);
}

// The slot stays, and with it what its pod has done: one that had not ended may need to be made
// again.
void JobRecord::erase_pod(const std::string& name) {
  if (const PodSlot* slot = slot_named(name)) {
    SlotPod& one = start.edit().slot_pods[static_cast<std::size_t>(slot->index)];
    one = one.without_object();
    if (one.has_succeeded) start.edit().success_at_risk = true;
  }
  stale_pods.edit().erase(name);
  pods.edit().erase(name);
}

void JobRecord::see_pods(base::Instant now) {
  for (SlotPod& one : start.edit().slot_pods) {
    if (one.pod != nullptr && !one.seen) one.seen = now;
    if (one.first_started && !one.seen_started) one.seen_started = now;
    if (one.newest_start && one.has_started && !one.seen_running) one.seen_running = now;
  }
}

JobRecord::Successes JobRecord::note_successes(std::size_t count) {
  StartPods& own = start.edit();
  return {.are_new = std::exchange(own.successes_noted, count) != count,
          .are_at_risk = std::exchange(own.success_at_risk, false)};
}

// Returns the slots as they were of those places that have a new pod: timetables list pods by name,
// and so need both names.
std::vector<PodSlot> JobRecord::fill_places(
    const std::function<bool(const std::string& node)>& takes_pods) {
  StartPods& own = start.edit();
  std::vector<PodSlot> before;
  const std::vector<PodSlot> old = own.slots;
  const std::vector<int> filled = own.members->fill(
      [&](int place) { return takes_pods(own.slots[static_cast<std::size_t>(place)].node); });
  name_slots(identity(), *own.members, own.slots);
  for (const int place : filled) {
    const auto index = static_cast<std::size_t>(place);
    before.push_back(old[index]);
    own.slot_pods[index] = {};
    // After a restore of etcd the pod may be there already.
    const auto there = pods->find(own.slots[index].name);
    if (there == pods->end()) continue;
    stale_pods.edit().erase(there->first);
    put_pod(there->first, there->second);
  }
  return before;
}

// Returns true, with members, for the pod of an index that has succeeded, of this start or an
// earlier one: its log is what users look for, and no other pod will write it again.
bool JobRecord::is_done(const std::string& name, const kube::Pod& pod) const {
  if (!start->members || pod.status.phase != kube::PodPhase::kSucceeded) return false;
  const auto index = index_in_name(name);
  return index && start->members->has_succeeded(*index);
}

// Returns true also for a pod that has lost its place to another that follows it.
bool JobRecord::is_of_start(const std::string& name) const {
  if (is_adopted() || !start->members) return slot_named(name) != nullptr;
  const auto index = index_in_name(name);
  return index && pod_name(identity(), *index) == name;
}

// The names of our own pods end with their index; the slots of an adopted gang are sorted by name
// (job_check).
const PodSlot* JobRecord::slot_named(const std::string& name) const {
  if (start->members) {
    const auto index = index_in_name(name);
    const auto place = index ? start->members->place_of(*index) : std::nullopt;
    if (!place || static_cast<std::size_t>(*place) >= start->slots.size()) return nullptr;
    const PodSlot& slot = start->slots[static_cast<std::size_t>(*place)];
    return slot.name == name ? &slot : nullptr;
  }
  if (!is_adopted()) return find_slot(start->slots, name);
  const auto found = std::ranges::lower_bound(start->slots, name, {}, &PodSlot::name);
  return found != start->slots.end() && found->name == name ? &*found : nullptr;
}

bool JobRecord::readiness_is_late() const {
  return gang->late_readiness && kube::is_true(wanted().conditions, kube::kReady) &&
         !kube::is_true(status.stored().conditions, kube::kReady);
}

}  // namespace control
