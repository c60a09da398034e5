// Trackable resources (TRES): what limits are on, what usage is counted in, and what priorities can
// be weighted by. Slurm's names; of GRES the GPUs, of all types and of those that are named;
// licenses and energy are not counted here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace sched {

enum class Tres { kCpu, kMemory, kNode, kBilling, kGpu };
inline constexpr std::size_t kTresCount = 5;
inline constexpr std::array<Tres, kTresCount> kAllTres = {Tres::kCpu, Tres::kMemory, Tres::kNode,
                                                          Tres::kBilling, Tres::kGpu};

// A kind as limits and weights name it: of GPUs also those of one type (gres/gpu:a100).
struct TresKind {
  Tres tres = Tres::kCpu;
  std::string gpu_type{};  // empty: all
};

// One value for each kind: CPUs, MiB, nodes, billing units, GPUs.
template <typename T>
struct PerTres {
  std::array<T, kTresCount> values{};
  // GPUs of one type. Counts have the types that a limit or a weight of the cluster names
  // (Cluster::tres_kinds()), so that nothing is kept where none does.
  std::map<std::string, T, std::less<>> of_gpu_type{};

  T& operator[](const TresKind& kind) {
    return kind.gpu_type.empty() ? (*this)[kind.tres] : of_gpu_type[kind.gpu_type];
  }
  const T& operator[](const TresKind& kind) const {
    static const T kNone{};
    if (kind.gpu_type.empty()) return (*this)[kind.tres];
    const auto at = of_gpu_type.find(kind.gpu_type);
    return at == of_gpu_type.end() ? kNone : at->second;
  }
  T& operator[](Tres kind) { return values[static_cast<std::size_t>(kind)]; }
  const T& operator[](Tres kind) const { return values[static_cast<std::size_t>(kind)]; }
  friend bool operator==(const PerTres&, const PerTres&) = default;
};

using TresCounts = PerTres<std::int64_t>;
using TresLimits = PerTres<std::optional<std::int64_t>>;  // nothing = unlimited
// The unit of a weight is its user's: PriorityWeightTRES as it is written, billing in millionths.
using TresWeights = PerTres<std::int64_t>;

}  // namespace sched
