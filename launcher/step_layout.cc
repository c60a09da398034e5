#include "launcher/step_layout.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace launcher {
namespace {

// Returns the tasks for which the step has CPUs among `cpus`. A node of the step has one at least,
// as in Slurm, which counts the CPUs of all nodes together. Tasks that share CPUs take one each.
std::uint32_t slots_in(const StepRequest& request, std::uint32_t cpus) {
  const std::uint32_t each = request.overcommits ? 1 : request.cpus_per_task;
  std::uint32_t slots = std::max(cpus / each, 1U);
  const bool is_bounded = request.tasks_per_node > 0 && request.packing != Packing::kFewest;
  if (is_bounded) slots = std::min(slots, request.tasks_per_node);
  return slots;
}

// Returns the nodes of a step, in the job's order: those that it must be on, then the first of
// `candidates`. Empty: too few.
std::vector<std::uint32_t> choose(const StepRequest& request,
                                  const std::vector<std::uint32_t>& candidates) {
  std::vector<std::uint32_t> chosen;
  const auto is_chosen = [&](std::uint32_t node) {
    return std::ranges::find(chosen, node) != chosen.end();
  };
  for (const std::uint32_t node : request.required) {
    if (std::ranges::find(candidates, node) == candidates.end()) return {};
    if (!is_chosen(node)) chosen.push_back(node);
  }
  const std::size_t count = std::max<std::size_t>(request.nodes, chosen.size());
  for (const std::uint32_t node : candidates) {
    if (chosen.size() >= count) break;
    if (std::ranges::find(request.excluded, node) != request.excluded.end()) continue;
    if (node >= request.relative && !is_chosen(node)) chosen.push_back(node);
  }
  if (chosen.size() < count) return {};
  std::ranges::sort(chosen);
  return chosen;
}

// Returns the CPUs of a node that the step may have now.
std::uint32_t free_cpus(const StepRequest& request, const NodeRoom& room) {
  if (request.overlaps) return room.cpus;
  if (request.is_exact) return room.cpus - std::min(room.used, room.cpus);
  return room.used == 0 ? room.cpus : 0;
}

// Returns the nodes of a step that hold its tasks now: the first with room, or else those with the
// most room.
std::vector<std::uint32_t> nodes_now(const StepRequest& request, std::span<const NodeRoom> rooms) {
  const bool may_crowd = request.overcommits && !request.is_exact;
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t node = 0; node < rooms.size(); ++node) {
    const NodeRoom& room = rooms[node];
    const bool is_lost = !room.is_here && !room.is_coming;
    if (is_lost || (!request.is_exact && !request.overlaps && room.used > 0)) continue;
    if (may_crowd || free_cpus(request, room) > 0) candidates.push_back(node);
  }
  // Nodes without a step come before those that have room left, as in Slurm.
  std::stable_partition(candidates.begin(), candidates.end(),
                        [&](std::uint32_t node) { return rooms[node].used == 0; });
  for (int round = 0; round < 2; ++round) {
    std::vector<std::uint32_t> nodes = choose(request, candidates);
    std::uint64_t capacity = 0;
    for (const std::uint32_t node : nodes) {
      capacity += free_cpus(request, rooms[node]);
    }
    const std::uint64_t needed = std::uint64_t{request.tasks} * request.cpus_per_task;
    if (!nodes.empty() && (may_crowd || capacity >= needed)) return nodes;
    std::ranges::stable_sort(candidates, [&](std::uint32_t a, std::uint32_t b) {
      return free_cpus(request, rooms[a]) > free_cpus(request, rooms[b]);
    });
  }
  return {};
}

// As few as hold its tasks, for a request that wants that, where the job has as many CPUs on each
// node. SOURCE: recorded (session srun_pack_nodes).
std::vector<std::uint32_t> fewest_nodes_now(StepRequest request, std::span<const NodeRoom> rooms) {
  const std::uint32_t most = request.nodes;
  const auto is_as_first = [&](const NodeRoom& room) { return room.cpus == rooms[0].cpus; };
  if (request.packing == Packing::kFewest && std::ranges::all_of(rooms, is_as_first)) {
    const std::uint32_t slots = slots_in(request, rooms[0].cpus);
    request.nodes = std::min(most, (request.tasks + slots - 1) / slots);
  }
  std::vector<std::uint32_t> nodes = nodes_now(request, rooms);
  while (nodes.empty() && ++request.nodes <= most) nodes = nodes_now(request, rooms);
  return nodes;
}

std::optional<StepPlacement> place_now(const StepRequest& request,
                                       std::span<const NodeRoom> rooms) {
  StepPlacement placement;
  placement.layout.nodes = fewest_nodes_now(request, rooms);
  if (placement.layout.nodes.empty()) return std::nullopt;
  std::vector<std::uint32_t> slots;
  for (const std::uint32_t node : placement.layout.nodes) {
    slots.push_back(slots_in(request, free_cpus(request, rooms[node])));
  }
  placement.layout.places = distribute(request, slots);
  placement.tasks.resize(placement.layout.nodes.size());
  for (const std::uint32_t place : placement.layout.places) ++placement.tasks[place];
  for (std::size_t i = 0; i < placement.layout.nodes.size(); ++i) {
    const NodeRoom& room = rooms[placement.layout.nodes[i]];
    const std::uint64_t needed = std::uint64_t{placement.tasks[i]} * request.cpus_per_task;
    const std::uint32_t free = free_cpus(request, room);
    const auto exact = static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, free));
    placement.cpus.push_back(request.overlaps ? 0 : request.is_exact ? exact : room.cpus);
  }
  return placement;
}

// Puts one task on each node in turn that has CPUs left, and on all when none has.
std::vector<std::uint32_t> deal(std::uint32_t tasks, const std::vector<std::uint32_t>& slots) {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> counts(slots.size());
  bool is_full = false;
  while (order.size() < tasks) {
    bool has_room = false;
    for (std::uint32_t place = 0; place < slots.size() && order.size() < tasks; ++place) {
      if (counts[place] >= slots[place] && !is_full) continue;
      order.push_back(place);
      if (++counts[place] < slots[place]) has_room = true;
    }
    if (!has_room) is_full = true;
  }
  return order;
}

// Puts one task on each node, then fills node after node, and goes on when none has CPUs left.
std::vector<std::uint32_t> fill(std::uint32_t tasks, const std::vector<std::uint32_t>& slots) {
  std::vector<std::uint32_t> counts(slots.size(), 1);
  std::uint32_t left = tasks - static_cast<std::uint32_t>(slots.size());
  for (std::size_t place = 0; place < slots.size(); ++place) {
    const std::uint32_t more = std::min(left, slots[place] - 1);
    counts[place] += more;
    left -= more;
  }
  for (std::size_t place = 0; left > 0; place = (place + 1) % slots.size(), --left) ++counts[place];
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < counts.size(); ++place) {
    places.insert(places.end(), counts[place], place);
  }
  return places;
}

// Puts one task on each node in turn, as long as it has CPUs. If there are more tasks than CPUs,
// each node takes as many more as it would be if they were spread evenly.
std::vector<std::uint32_t> deal_in_turn(std::uint32_t tasks,
                                        const std::vector<std::uint32_t>& slots) {
  const std::uint64_t all = std::accumulate(slots.begin(), slots.end(), std::uint64_t{0});
  const std::uint64_t over = tasks > all ? (tasks - all + slots.size() - 1) / slots.size() : 0;
  std::vector<std::uint32_t> order;
  for (std::uint64_t turn = 0; order.size() < tasks; ++turn) {
    for (std::uint32_t place = 0; place < slots.size() && order.size() < tasks; ++place) {
      if (turn < slots[place] + over) order.push_back(place);
    }
  }
  return order;
}

// How many tasks each node has: one, then in each turn as many as are in a row, as long as the node
// has CPUs, and on all when none has. Planes of one task are dealt as if there were CPUs for all.
std::vector<std::uint32_t> counts_of_planes(const StepRequest& request,
                                            const std::vector<std::uint32_t>& slots) {
  std::vector<std::uint32_t> counts(slots.size());
  std::uint32_t left = request.tasks;
  for (std::size_t place = 0; place < slots.size() && left > 0; ++place, --left) ++counts[place];
  bool is_full = request.plane == 1;
  for (bool is_first = true; left > 0; is_first = false) {
    const std::uint32_t before = left;
    for (std::size_t place = 0; place < slots.size(); ++place) {
      for (std::uint32_t i = is_first ? 1 : 0; i < request.plane && left > 0; ++i) {
        if (!is_full && counts[place] >= slots[place]) break;
        ++counts[place];
        --left;
      }
    }
    if (!is_first && left == before) is_full = true;
  }
  return counts;
}

// Deals in each turn as many in a row as are asked for, until each node has its count.
std::vector<std::uint32_t> deal_planes(const StepRequest& request,
                                       const std::vector<std::uint32_t>& slots) {
  std::vector<std::uint32_t> left = counts_of_planes(request, slots);
  std::vector<std::uint32_t> order;
  while (order.size() < request.tasks) {
    for (std::uint32_t place = 0; place < slots.size(); ++place) {
      for (std::uint32_t i = 0; i < request.plane && left[place] > 0; ++i, --left[place]) {
        order.push_back(place);
      }
    }
  }
  return order;
}

// Puts each rank where it was arranged to be. The nodes of the step are those that it must be on.
std::vector<std::uint32_t> arrange(const StepRequest& request) {
  std::vector<std::uint32_t> nodes = request.required;
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<std::uint32_t> order;
  for (const std::uint32_t node : request.arranged) {
    const auto place = std::ranges::lower_bound(nodes, node) - nodes.begin();
    order.push_back(static_cast<std::uint32_t>(place));
  }
  return order;
}

}  // namespace

bool packs(const StepRequest& request) {
  return request.packing == Packing::kPack || request.packing == Packing::kFewest;
}

Distribution effective_distribution(const StepRequest& request) {
  if (request.distribution != Distribution::kDefault) return request.distribution;
  const bool is_dealt = request.tasks <= request.nodes && !packs(request);
  return is_dealt ? Distribution::kCyclic : Distribution::kBlock;
}

std::vector<std::uint32_t> distribute(const StepRequest& request,
                                      const std::vector<std::uint32_t>& slots) {
  const Distribution distribution = effective_distribution(request);
  if (distribution == Distribution::kArbitrary) return arrange(request);
  if (distribution == Distribution::kPlane) return deal_planes(request, slots);
  if (distribution == Distribution::kCyclic) return deal_in_turn(request.tasks, slots);
  if (packs(request) && slots.size() <= request.tasks) return fill(request.tasks, slots);
  // Block: counts as dealt, but one node after the other.
  std::vector<std::uint32_t> places = deal(request.tasks, slots);
  std::ranges::sort(places);
  return places;
}

// 1. could it ever run: on the job's nodes, all of them here and free
// 2. does it fit now
// 3. if not: is it for want of room, or of launchers; for one that comes a step waits, so that
//    which nodes it gets does not depend on whose launcher was first
StepDecision place_step(const StepRequest& request, std::span<const NodeRoom> rooms) {
  std::vector<std::uint32_t> all(rooms.size());
  std::iota(all.begin(), all.end(), 0U);
  if (choose(request, all).empty()) {
    return StepIsImpossible{"Requested node configuration is not available"};
  }
  std::vector<NodeRoom> free;
  for (const NodeRoom& room : rooms) free.push_back({.cpus = room.cpus});
  if (!place_now(request, free)) {
    return StepIsImpossible{"More processors requested than permitted"};
  }
  if (auto placement = place_now(request, rooms)) {
    const auto is_here = [&](std::uint32_t node) { return rooms[node].is_here; };
    if (std::ranges::all_of(placement->layout.nodes, is_here)) return std::move(*placement);
    return StepMustWait{.is_for_launchers = true};
  }
  std::vector<NodeRoom> here{rooms.begin(), rooms.end()};
  for (NodeRoom& room : here) room.is_here = true;
  return StepMustWait{.is_for_launchers = place_now(request, here).has_value()};
}

}  // namespace launcher
