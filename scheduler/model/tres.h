// Trackable resources (TRES): what limits are on, what usage is counted in, and what priorities can
// be weighted by. Slurm's names; of GRES the GPUs of all types; licenses and energy are not counted
// here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sched {

enum class Tres { kCpu, kMemory, kNode, kBilling, kGpu };
inline constexpr std::size_t kTresCount = 5;
inline constexpr std::array<Tres, kTresCount> kAllTres = {Tres::kCpu, Tres::kMemory, Tres::kNode,
                                                          Tres::kBilling, Tres::kGpu};

// One value for each kind: CPUs, MiB, nodes, billing units, GPUs.
template <typename T>
struct PerTres {
  std::array<T, kTresCount> values{};

  T& operator[](Tres kind) { return values[static_cast<std::size_t>(kind)]; }
  const T& operator[](Tres kind) const { return values[static_cast<std::size_t>(kind)]; }
  friend bool operator==(const PerTres&, const PerTres&) = default;
};

using TresCounts = PerTres<std::int64_t>;
using TresLimits = PerTres<std::optional<std::int64_t>>;  // nothing = unlimited
// The unit of a weight is its user's: PriorityWeightTRES as it is written, billing in millionths.
using TresWeights = PerTres<std::int64_t>;

}  // namespace sched
