// The nodes of its job that a step runs on, and the tasks of each of them. Pure.
// SOURCE: Slurm 22.05, step manager and step layout, as recorded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "launcher/message.h"

namespace launcher {

// A node of the job.
struct NodeRoom {
  std::uint32_t cpus = 0;  // of the job there
  std::uint32_t used = 0;  // by steps that run
  bool is_here = true;     // its launcher can be asked for tasks
  bool is_coming = false;  // not now, but soon: it has not begun, or comes back from a step
  friend bool operator==(const NodeRoom&, const NodeRoom&) = default;
};

struct StepPlacement {
  StepLayout layout;
  std::vector<std::uint32_t> cpus;   // that the step takes of each of layout.nodes
  std::vector<std::uint32_t> tasks;  // on each of layout.nodes
  friend bool operator==(const StepPlacement&, const StepPlacement&) = default;
};
struct StepMustWait {
  bool is_for_launchers = false;  // there is room, but not all launchers are here
  friend bool operator==(const StepMustWait&, const StepMustWait&) = default;
};
struct StepIsImpossible {
  std::string message;
  friend bool operator==(const StepIsImpossible&, const StepIsImpossible&) = default;
};
using StepDecision = std::variant<StepPlacement, StepMustWait, StepIsImpossible>;

// Chooses the first nodes of the job that have room, in the job's order; required ones come first.
// A step has all CPUs of its nodes, unless it says --exact.
StepDecision place_step(const StepRequest& request, std::span<const NodeRoom> rooms);

// Returns the place of each rank on nodes that have these numbers of CPUs for tasks.
std::vector<std::uint32_t> distribute(const StepRequest& request,
                                      const std::vector<std::uint32_t>& slots);

// -m pack, which means block unless something else is asked for.
bool packs(const StepRequest& request);

// Returns the distribution that a request means: cyclic if no node has two tasks, else block.
Distribution effective_distribution(const StepRequest& request);

}  // namespace launcher
