// Counts of what happened and of what was looked at: a campaign that tried nothing, or a checker
// that saw nothing, must not look like a success.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace simulation {

// The counts of one run, or of a campaign as the sum of its runs.
struct Tally {
  std::map<std::string, std::int64_t> faults;  // that took effect, by name
  std::map<std::string, std::int64_t> looked;  // by checker
  std::int64_t rounds = 0;
  std::int64_t requests = 0;
  std::int64_t virtual_seconds = 0;

  void add(const Tally& other) {
    for (const auto& [name, count] : other.faults) faults[name] += count;
    for (const auto& [name, count] : other.looked) looked[name] += count;
    rounds += other.rounds;
    requests += other.requests;
    virtual_seconds += other.virtual_seconds;
  }
};

}  // namespace simulation
