// DeviceBooks: how many devices of each kind jobs hold on each node (chapter 11), for both
// selectors; by rank. The devices of nodes are read from the cluster at each question. A suspended
// job keeps its devices (R11.3), so only add and remove of a job come here.
//
// Threads: none. Cost: of a question about a job without devices O(1); otherwise O(kinds on the
// node × kinds asked).
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/job.h"

namespace sched {

// The devices that a job wants on each of its nodes.
struct DeviceDemand {
  Devices asked;
  // Whole nodes, with all their devices, so no other job may hold any there (R11.3).
  bool all = false;
  friend bool operator==(const DeviceDemand&, const DeviceDemand&) = default;
};

class DeviceBooks {
 public:
  // `cluster` must be settled and outlive this.
  explicit DeviceBooks(const Cluster& cluster)
      : cluster_{&cluster}, held_(static_cast<std::size_t>(cluster.node_count())) {}

  // Gives back with `sign` −1.
  void hold(const Allocation& allocation, int sign);
  // Returns true if the job finds on the node what it wants.
  bool fit(const DeviceDemand& demand, int rank) const {
    if (demand.asked.empty() && (!demand.all || nodes_holding_ == 0)) return true;
    return fit_on(demand, rank);
  }
  // Returns how many of the kind are free there, or would be on an empty node.
  int count_free(const DeviceKind& kind, int rank, bool on_empty_node) const;
  // Appends what the job gets on the node, of what is free there, or of all that it has.
  void give(const DeviceDemand& demand, int rank, bool on_empty_node, Allocation& to) const;

 private:
  bool fit_on(const DeviceDemand& demand, int rank) const;
  const Devices& of(int rank) const { return cluster_->spec_at(rank).devices; }
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  const Cluster* cluster_;
  std::vector<Devices> held_;
  int nodes_holding_ = 0;
};

// Returns true if the node, were it empty, had the devices that are asked.
inline bool has_devices(const NodeSpec& node, const Devices& asked) {
  return asked.empty() || have_devices(node.devices, asked);
}
inline bool has_devices(const NodeSpec& node, const JobRequest& request) {
  return !asks_for_devices(request) || have_devices(node.devices, least_devices(request));
}

}  // namespace sched
