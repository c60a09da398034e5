// Choice among nodes (4.8): consecutive best fit with cuts at weights, or least loaded first. Pure.
#pragma once

#include <functional>
#include <vector>

#include "scheduler/select/cons_tres/core_view.h"
#include "scheduler/select/cons_tres/device_limits.h"
#include "scheduler/select/cons_tres/occupancy.h"
#include "scheduler/select/cons_tres/offer.h"
#include "scheduler/select/cons_tres/shape.h"

namespace sched::cons_tres {

struct Chosen {
  int rank;
  int cpus;  // the most that are for the job here
};

// The part of a node's offer that devices leave, by rank.
using DeviceChoice = std::function<DeviceLimits(int rank)>;

struct ChoiceRequest {
  const Shape& shape;
  const Occupancy& occupancy;          // for the nodes' hardware and weights
  const CoreView& view;                // what the offer was made of: the least loaded has most free
  const NodeSet& required;             // --nodelist
  bool any_required;                   // `required` is not empty
  const NodeSet* idle_last = nullptr;  // bf_busy_nodes: other nodes are taken before these
  DeviceChoice devices{};              // of a job that asks for devices; empty: it does not
};

// Returns the nodes by ascending rank; empty = the offer does not hold the job. Cost: O(nodes / 64
// + runs × rounds), and again for each CPU count that has to be left out (a choice that got stuck
// on small nodes).
std::vector<Chosen> choose(const Offer& offer, const ChoiceRequest& request);

}  // namespace sched::cons_tres
