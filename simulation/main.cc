// kubegang-simulation: campaigns of rounds, and single rounds seen again.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "simulation/campaign.h"
#include "simulation/plan_text.h"

namespace {

using simulation::Breaks;
using simulation::Finding;
using simulation::FoundIn;
using simulation::Plan;

// Rounds in which every kind of fault is felt: the rarest one takes effect once in 100.
constexpr std::int64_t kAllFeltIn = 1'000;

// The arguments of the command line.
struct Asked {
  simulation::CampaignOptions options;
  std::string broken;       // name of the break; "" = none
  std::string replay;       // a seed, or the file of a plan; "" = a campaign
  std::string save;         // file for the plan of a replay
  std::string findings_to;  // folder for the plans of findings
  std::int64_t findings_allowed = 0;
};

// Returns the seed of the first round of a campaign that was not given one: the time in UTC as
// YYMMDDhhmm and five digits, so that each campaign plays other rounds and a seed tells its day.
std::uint64_t seed_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::uint64_t seed = 0;
  for (const int part :
       {utc.tm_year % 100, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, 0}) {
    seed = seed * 100 + static_cast<std::uint64_t>(part);
  }
  return seed * 1'000 + 1;
}

std::string text_of(const Finding& finding) {
  return finding.checker + " at " + std::to_string(finding.at / std::chrono::milliseconds{1}) +
         " ms: " + finding.text;
}

// Writes a plan to a file, with a comment above it. Returns false if that fails.
bool write_plan(const std::string& path, const std::string& comment, const Plan& plan) {
  std::ofstream file{path};
  file << "# " << comment << "\n" << to_string(plan);
  file.close();
  if (!file) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return !file.fail();
}

// Prints a finding at once, and then what remains of its plan: making it short takes dozens of
// rounds.
void tell(const FoundIn& found, const Asked& asked) {
  const std::string seed = std::to_string(found.seed);
  const std::string text = "seed " + seed + ": " + text_of(found.finding);
  std::printf("FINDING %s\n", text.c_str());
  std::fflush(stdout);
  const Plan plan = simulation::shorten(simulation::plan_of(found.seed, asked.options.calm),
                                        asked.options.breaks, found.finding);
  std::printf("%s", to_string(plan).c_str());
  const std::string path = asked.findings_to + "/" + seed + ".plan";
  const bool saved = !asked.findings_to.empty() && write_plan(path, text, plan);
  std::printf("  again: build/bin/kubegang-simulation --replay %s%s%s\n",
              saved ? path.c_str() : seed.c_str(), asked.options.calm && !saved ? " --calm" : "",
              (asked.broken.empty() ? "" : " --break " + asked.broken).c_str());
  std::fflush(stdout);
}

// Returns the plan of a seed, or of a file.
base::Result<Plan> plan_to_replay(const Asked& asked) {
  if (asked.replay.find_first_not_of("0123456789") == std::string::npos) {
    return simulation::plan_of(std::stoull(asked.replay), asked.options.calm);
  }
  std::ifstream file{asked.replay, std::ios::binary};
  if (!file) return base::invalid_argument("cannot read " + asked.replay);
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return simulation::parse_plan(text);
}

// Plays one round and traces it on stderr. The plan that is saved has only the events that its
// finding needs, if there is one.
int replay(const Asked& asked) {
  const auto plan = plan_to_replay(asked);
  if (!plan.ok()) {
    return std::fprintf(stderr, "%s: %s\n", asked.replay.c_str(), plan.error().message.c_str()), 2;
  }
  simulation::Tally tally;
  const auto finding = simulation::run_round(*plan, asked.options.breaks, tally, true);
  const std::string text = finding ? text_of(*finding) : "no finding";
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  if (!asked.save.empty()) {
    const Plan kept = finding ? simulation::shorten(*plan, asked.options.breaks, *finding) : *plan;
    if (!write_plan(asked.save, "seed " + std::to_string(plan->seed) + ": " + text, kept)) return 2;
  }
  return finding ? 1 : 0;
}

// Plays a campaign, prints its tally and its findings.
int play(const Asked& asked) {
  const simulation::CampaignOptions& options = asked.options;
  std::printf("seeds from %llu, %lld rounds\n", static_cast<unsigned long long>(options.first_seed),
              static_cast<long long>(options.rounds));
  std::fflush(stdout);
  // Real time is for people only. Nothing in a round reads it.
  const auto began = std::chrono::steady_clock::now();
  const simulation::CampaignResult result = simulation::run_campaign(options);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%s", simulation::table_of(result.tally).c_str());
  // Findings come after the table, because shortening them takes longer than the campaign itself.
  std::error_code ignored;  // write_plan() tells
  if (!result.findings.empty() && !asked.findings_to.empty()) {
    std::filesystem::create_directories(asked.findings_to, ignored);
  }
  for (const FoundIn& found : result.findings) tell(found, asked);
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
  const auto found = static_cast<std::int64_t>(result.findings.size());
  return found <= asked.findings_allowed && blind.empty() && unfelt.empty() ? 0 : 1;
}

}  // namespace

// Exits with 0 if no more was found than is allowed; 1 after more findings, or if a checker had
// nothing to look at or a kind of fault never took effect; with 2 if the command line names an
// unknown break or a plan that cannot be read or written.
int main(int argc, char** argv) {
  CLI::App app{"Simulates the whole system, in virtual time and with faults."};
  Asked asked;
  asked.options.first_seed = 0;
  app.add_option("--rounds", asked.options.rounds, "how many rounds");
  app.add_option("--seed", asked.options.first_seed, "of the first round; else from the time");
  app.add_option("--threads", asked.options.threads, "how many rounds at a time");
  app.add_option("--findings", asked.options.findings_max, "ends after this many findings");
  app.add_option("--allow", asked.findings_allowed, "how many findings it may have (default 0)");
  app.add_option("--findings-to", asked.findings_to, "folder for the plans of findings");
  app.add_flag("--calm", asked.options.calm, "users only, no faults");
  app.add_option("--break", asked.broken, "breaks a rule on purpose (docs/design/faults.md)");
  CLI::Option* again =
      app.add_option("--replay", asked.replay, "one round, of a seed or a plan, with a trace");
  app.add_option("--save", asked.save, "writes the plan of the replay to a file")->needs(again);
  CLI11_PARSE(app, argc, argv);
  if (!asked.broken.empty()) {
    const auto which = simulation::parse_break(asked.broken);
    if (!which) return std::fprintf(stderr, "no break %s\n", asked.broken.c_str()), 2;
    asked.options.breaks.active = *which;
  }
  if (asked.options.first_seed == 0) asked.options.first_seed = seed_of_now();
  return asked.replay.empty() ? play(asked) : replay(asked);
}
