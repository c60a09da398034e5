// Many rounds, on several processors; a finding made short, and how to see it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/breaks.h"
#include "simulation/ledger.h"
#include "simulation/plan.h"
#include "simulation/tally.h"

namespace simulation {

struct CampaignOptions {
  std::uint64_t first_seed = 1;
  std::int64_t rounds = 200;
  int threads = 1;
  Breaks breaks{};
  bool calm = false;
  std::int64_t findings_max = 1;  // then it ends
};

struct FoundIn {
  std::uint64_t seed = 0;
  Finding finding;
};

struct CampaignResult {
  Tally tally;
  std::vector<FoundIn> findings;  // by seed
};

// One round of its seed, with a trace on stderr if it is asked for. `left_out`: events, by number.
std::optional<Finding> run_round(std::uint64_t seed, const Breaks& breaks, bool calm,
                                 const std::vector<std::size_t>& left_out, Tally& tally,
                                 bool traced);

// Seeds first_seed … first_seed + rounds − 1, on `threads` threads; a round is on one.
CampaignResult run_campaign(const CampaignOptions& options);

// The events without which the same checker finds something all the same, by number.
std::vector<std::size_t> shorten(std::uint64_t seed, const Breaks& breaks, bool calm,
                                 const Finding& finding);

// The tally as a table. blind_checkers() names the checkers that looked at nothing.
std::string table_of(const Tally& tally);
std::vector<std::string> blind_checkers(const Tally& tally);

}  // namespace simulation
