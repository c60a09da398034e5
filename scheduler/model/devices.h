// Devices: what a node has some of and a job gets whole, such as GPUs (Slurm's GRES; chapter 11).
// They are counted by kind. Which of them a job gets is not the scheduler's matter. Pure.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/model/ids.h"

namespace sched {

struct DeviceKind {
  std::string name;  // of the GRES: "gpu"
  // "a100"; empty: of no type, and in a request of any. A request is met by a type of which it is a
  // word, or some words that stand together.
  std::string type;
  friend auto operator<=>(const DeviceKind&, const DeviceKind&) = default;
};

struct DeviceCount {
  DeviceKind kind;
  int count = 0;
  friend bool operator==(const DeviceCount&, const DeviceCount&) = default;
};

// The devices of a node, or asked of each node of a job. Each kind is named once, and none with 0;
// a request has a name with types or without, not both (recorded: Slurm refuses gpu:a:1,gpu:1).
using Devices = std::vector<DeviceCount>;

// The request of a job with each of its GPUs (the devices of this name); 0 = unset.
inline constexpr std::string_view kGpuName = "gpu";
struct PerGpu {
  int cpus = 0;         // --cpus-per-gpu
  int tasks = 0;        // --ntasks-per-gpu
  MemoryMiB memory{0};  // --mem-per-gpu
  friend bool operator==(const PerGpu&, const PerGpu&) = default;
};

// Devices of one kind that a job holds on one of its nodes.
struct DevicesOnNode {
  NodeIndex node;
  DeviceKind kind;
  int count = 0;
  friend bool operator==(const DevicesOnNode&, const DevicesOnNode&) = default;
};

// Adds `count` devices of the kind; a negative count takes away. A kind of which none is left is
// removed.
void add_devices(Devices& to, const DeviceKind& kind, int count);

// Returns what is held in the words of the node. A node that is given another name for its devices,
// because its product's label came or went, has them all the same: what jobs hold of a kind that it
// does not name is of the kind of which that is a word, or that is a word of it; else of those that
// begin with the same word (the maker's).
Devices in_words_of(const Devices& all, const Devices& held);

// Returns what is left of these devices. A node of which devices have gone may hold more than it
// has: then nothing is left of that kind.
Devices devices_left(const Devices& all, const Devices& held);

// Returns true if all that is asked is there at the same time.
bool have_devices(const Devices& there, const Devices& asked);

// Returns how many there are that meet the kind.
int count_of(const Devices& there, const DeviceKind& kind);

// Returns what a job gets that asks so, without a type in the order of the node (recorded:
// con_gres_mix). REQUIRES: have_devices(there, asked).
Devices devices_given(const Devices& there, const Devices& asked);

// Returns "gpu:a100:4", as Slurm writes it; several with commas.
std::string to_string(const DeviceCount& devices);
std::string to_string(const Devices& devices);

}  // namespace sched
