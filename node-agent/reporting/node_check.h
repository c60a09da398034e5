// The rights that this node grants the agent, and how a person can change them: a table for
// `kubegang-agent check`, and a condition of the NodeTimetable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node-agent/reporting/clock_check.h"
#include "node-agent/switching/assignment.h"

namespace agent {

enum class Grade : std::uint8_t {
  kGood,
  kWeak,     // gangs are switched, but less well
  kMissing,  // gangs cannot be switched
};

struct Grant {
  std::string what{};
  Grade grade = Grade::kGood;
  std::string found{};   // in a few words
  std::string change{};  // what to change; "" = nothing

  friend bool operator==(const Grant&, const Grant&) = default;
};

// Two for each pod under control, and some for watches, probes and the journal. Container runtimes
// give 1024, and more only to those that ask.
inline constexpr std::uint64_t kFilesPerPod = 2;
inline constexpr std::uint64_t kOtherFilesMax = 256;
inline constexpr std::uint64_t kOpenFilesWanted =
    kFilesPerPod * kControlledPodsMax + kOtherFilesMax;

struct NodeCheckInputs {
  std::string cgroup_root{};  // "" = none was found
  std::string kubelet_root{};
  std::string run_directory{};
  bool fifo_wanted = true;
  bool fifo = false;  // granted
  bool memory_locked = false;
  std::uint64_t open_files_max = 0;  // as far as the limit can be raised
  ClockReading clock{};
};

// Reads the file systems only. Always the same grants in the same order: hierarchy, driver,
// freezer, cpuset, run directory, FIFO, locked memory, open files, clock. Cost: some ten system
// calls.
std::vector<Grant> check_node(const NodeCheckInputs& inputs);

// Returns true if gangs can be switched here: nothing is missing.
bool can_switch(const std::vector<Grant>& grants);

// Prints one grant a line; below it what to change.
std::string format_grants(const std::vector<Grant>& grants);

// Return true if this process is granted them, as the agent in the same container is. Both undo it.
bool probe_fifo();
bool probe_locked_memory();

}  // namespace agent
