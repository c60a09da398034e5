#include "scheduler/select/device_books.h"

namespace sched {

// A node that is gone has nothing to give back.
void DeviceBooks::hold(const Allocation& allocation, int sign) {
  for (const DevicesOnNode& use : allocation.devices) {
    if (!cluster_->exists(use.node)) continue;
    Devices& held = held_[index(cluster_->rank(use.node))];
    nodes_holding_ -= held.empty() ? 0 : 1;
    add_devices(held, use.kind, sign * use.count);
    nodes_holding_ += held.empty() ? 0 : 1;
  }
}

bool DeviceBooks::fit_on(const DeviceDemand& demand, int rank) const {
  const Devices& held = held_[index(rank)];
  if (demand.all) return held.empty() && has_devices(cluster_->spec_at(rank), demand.asked);
  return have_devices(held.empty() ? of(rank) : devices_left(of(rank), held), demand.asked);
}

int DeviceBooks::count_free(const DeviceKind& kind, int rank, bool on_empty_node) const {
  const Devices& held = held_[index(rank)];
  if (on_empty_node || held.empty()) return count_of(of(rank), kind);
  return count_of(devices_left(of(rank), held), kind);
}

void DeviceBooks::give(const DeviceDemand& demand, int rank, bool on_empty_node,
                       Allocation& to) const {
  const Devices& there = of(rank);
  if (there.empty() || (demand.asked.empty() && !demand.all)) return;
  const Devices left = on_empty_node ? there : devices_left(there, held_[index(rank)]);
  for (const DeviceCount& given : demand.all ? there : devices_given(left, demand.asked)) {
    to.devices.push_back({cluster_->node_at(rank), given.kind, given.count});
  }
}

}  // namespace sched
