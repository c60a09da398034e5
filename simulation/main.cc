// kubegang-simulation: campaigns of rounds, and single rounds seen again.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "simulation/campaign.h"

namespace {

using simulation::Breaks;
using simulation::FoundIn;

// So many rounds feel every kind of fault.
constexpr std::int64_t kAllFeltIn = 200;

// Returns the command that plays the round again, without the events that do not matter.
std::string command_of(const FoundIn& found, const std::string& broken, bool calm,
                       const std::vector<std::size_t>& left_out) {
  std::string command = "build/bin/kubegang-simulation --replay " + std::to_string(found.seed);
  if (calm) command += " --calm";  // the same seed has another plan without it
  if (!broken.empty()) command += " --break " + broken;
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    command += (i == 0 ? " --without " : ",") + std::to_string(left_out[i]);
  }
  return command;
}

// Prints a finding at once, and then what remains of its plan: making it short takes dozens of
// rounds.
void tell(const FoundIn& found, const Breaks& breaks, const std::string& broken, bool calm) {
  std::printf("FINDING seed %llu, %lld ms: %s: %s\n", static_cast<unsigned long long>(found.seed),
              static_cast<long long>(found.finding.at / std::chrono::milliseconds{1}),
              found.finding.checker.c_str(), found.finding.text.c_str());
  std::fflush(stdout);
  const auto left_out = simulation::shorten(found.seed, breaks, calm, found.finding);
  const simulation::Plan plan = simulation::plan_of(found.seed, calm);
  std::printf("  %d nodes, slice %lld s, preemption by %s; its events:\n", plan.nodes,
              static_cast<long long>(plan.slice / std::chrono::seconds{1}),
              plan.preempt_mode.c_str());
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    if (std::find(left_out.begin(), left_out.end(), i) != left_out.end()) continue;
    std::printf("  %s\n", to_string(plan.events[i]).c_str());
  }
  std::printf("  again: %s\n", command_of(found, broken, calm, left_out).c_str());
  std::fflush(stdout);
}

}  // namespace

// Exits with 0 if nothing was found, 1 if there was a finding, a checker had nothing to look at or
// a kind of fault never took effect, 2 if the command line names an unknown break.
int main(int argc, char** argv) {
  CLI::App app{"Simulates the whole system, in virtual time and with faults."};
  simulation::CampaignOptions options;
  std::string broken;
  std::uint64_t replay = 0;
  std::vector<std::size_t> without;
  app.add_option("--rounds", options.rounds, "how many rounds");
  app.add_option("--seed", options.first_seed, "of the first round");
  app.add_option("--threads", options.threads, "how many rounds at a time");
  app.add_option("--findings", options.findings_max, "ends after so many findings");
  app.add_flag("--calm", options.calm, "users only, no faults");
  app.add_option("--break", broken, "breaks a rule on purpose (docs/design/faults.md)");
  app.add_option("--replay", replay, "one round, of this seed, with a trace");
  app.add_option("--without", without, "events of it to leave out")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  if (!broken.empty()) {
    const auto which = simulation::parse_break(broken);
    if (!which) return std::fprintf(stderr, "no break %s\n", broken.c_str()), 2;
    options.breaks.active = *which;
  }
  // One round, told on stderr; the campaign's options do not count.
  if (replay != 0) {
    simulation::Tally tally;
    const auto finding =
        simulation::run_round(replay, options.breaks, options.calm, without, tally, true);
    if (!finding)
      return std::printf("seed %llu: no finding\n", static_cast<unsigned long long>(replay)), 0;
    std::printf("%s at %lld ms: %s\n", finding->checker.c_str(),
                static_cast<long long>(finding->at / std::chrono::milliseconds{1}),
                finding->text.c_str());
    return 1;
  }
  // Real time is for people only. Nothing in a round reads it.
  const auto began = std::chrono::steady_clock::now();
  const simulation::CampaignResult result = simulation::run_campaign(options);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%s", simulation::table_of(result.tally).c_str());
  // Findings come after the table, because shortening them takes longer than the campaign itself.
  for (const FoundIn& found : result.findings) tell(found, options.breaks, broken, options.calm);
  const auto blind = simulation::blind_checkers(result.tally);
  for (const std::string& checker : blind) {
    std::printf("the checker \"%s\" looked at nothing\n", checker.c_str());
  }
  // A few rounds cannot feel all.
  const auto unfelt = result.tally.rounds >= kAllFeltIn && !options.calm
                          ? simulation::unfelt_faults(result.tally)
                          : std::vector<std::string>{};
  for (const std::string& fault : unfelt) {
    std::printf("the fault \"%s\" never took effect\n", fault.c_str());
  }
  std::printf(
      "%lld rounds in %.1f s, %lld without a finding\n",
      static_cast<long long>(result.tally.rounds), took,
      static_cast<long long>(result.tally.rounds) - static_cast<long long>(result.findings.size()));
  return result.findings.empty() && blind.empty() && unfelt.empty() ? 0 : 1;
}
