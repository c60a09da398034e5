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

// The rounds to play. `threads` changes how long a campaign takes, and not what is found in a
// round.
struct CampaignOptions {
  std::uint64_t first_seed = 1;  // of the first round
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

// Plays one round, with a trace on stderr if `traced`. The plan is all that the round depends on.
// Adds what happened to `tally`. Returns nullopt if nothing was found.
std::optional<Finding> run_round(Plan plan, const Breaks& breaks, Tally& tally, bool traced);

// Plays the seeds first_seed … first_seed + rounds − 1 on `threads` threads; each round is on one
// thread. A CHECK that fails in a round prints the round's seed and ends the process.
CampaignResult run_campaign(const CampaignOptions& options);

// Returns the plan without the events that the same checker does not need to find something. Costs
// about twice as many rounds as the plan has events.
Plan shorten(const Plan& plan, const Breaks& breaks, const Finding& finding);

// Returns the tally as a table. blind_checkers() names the checkers that looked at nothing,
// unfelt_faults() the kinds of faults that never took effect.
std::string table_of(const Tally& tally);
std::vector<std::string> unfelt_faults(const Tally& tally);
std::vector<std::string> blind_checkers(const Tally& tally);

}  // namespace simulation
