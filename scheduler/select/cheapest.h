// Cheapest victims (15.4, placementPolicy: MinimisePreemption): of all sets of jobs whose absence
// lets a job start, one with the fewest, then the lowest tiers, then the smallest jobs.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sched {

struct VictimCost {
  std::int64_t count = 0;
  std::int64_t tiers = 0;  // sums over the victims
  std::int64_t cpus = 0;
  friend auto operator<=>(const VictimCost&, const VictimCost&) = default;
  VictimCost& operator+=(const VictimCost& other) {
    count += other.count;
    tiers += other.tiers;
    cpus += other.cpus;
    return *this;
  }
};

// Would the job start if the victims taken so far were gone? No job is taken at first.
class VictimQuestion {
 public:
  virtual ~VictimQuestion() = default;
  virtual void take(std::size_t victim) = 0;
  virtual void spare(std::size_t victim) = 0;
  // More victims never turn true into false.
  virtual bool fits() = 0;
};

// `costs` by victim, each with count 1. Returns nullopt if not even all of them suffice. The
// question is left with exactly the result taken. The result is a cheapest one where that can be
// found with at most kVictimQuestionsMax questions; otherwise none of it can be spared.
inline constexpr std::int64_t kVictimQuestionsMax = 4096;
std::optional<std::vector<std::size_t>> cheapest_victims(const std::vector<VictimCost>& costs,
                                                         VictimQuestion& question);

}  // namespace sched
