#include "simulation/campaign.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "simulation/world.h"

namespace simulation {
namespace {

// Every checker must look at something in a campaign.
constexpr std::array kCheckers{
    "all end",
    "array",
    "array at the end",
    "attempts",
    "barrier",
    "batch failure",
    "batch verdict",
    "charged",
    "comes to rest",
    "commit",
    "deleted",
    "dependency",
    "devices",
    "devices of a pod",
    "done again",
    "fail open",
    "forecast",
    "frozen",
    "gang agrees",
    "goes back",
    "held",
    "idle",
    "idle node",
    "index again",
    "index twice",
    "job numbers",
    "known pod",
    "left running",
    "lost",
    "members",
    "never frozen",
    "observed",
    "obeys",
    "overlap",
    "overlap counted",
    "placement",
    "pod bound by kube-scheduler",
    "quiet",
    "start timeout",
    "started twice",
    "stored",
    "stored task",
    "stored timetable",
    "successes",
    "suspended time",
    "table commit",
    "task asked",
    "task at the end",
    "task once",
    "teardown",
    "throttle",
    "time",
    "timetable",
    "usage",
    "verdict",
    "verdict Failed",
    "verdict NodeFail",
    "verdict Timeout",
    "verdict at the end",
    "verdict in time",
    "verdict of a failure",
    "verdict of a loss",
    "verdict of a task",
};

thread_local std::uint64_t round_of_this_thread = 0;

// Prints the seed when a CHECK of the real code fails. Only functions that are safe in a signal
// handler may be called here; snprintf() into a local buffer is in practice.
void on_abort(int) {
  char text[96];
  const int length = std::snprintf(text, sizeof text, "aborted in the round of seed %llu\n",
                                   static_cast<unsigned long long>(round_of_this_thread));
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  std::_Exit(134);
}

// For journals: on a file system in memory where there is one.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const bool memory = std::filesystem::is_directory("/dev/shm", error);
    std::string name = memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    name += "/kubegang-simulation-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Once in a process: no logs, and the seed of the round if a CHECK aborts.
void prepare_process() {
  static const bool kDone = [] {
    spdlog::set_level(spdlog::level::off);
    (void)std::signal(SIGABRT, on_abort);
    return true;
  }();
  (void)kDone;
}

// Returns the plan without the events of these numbers; all else stays, the seed included.
Plan without(Plan plan, const std::vector<std::size_t>& left_out) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < plan.events.size(); ++i) {
    if (std::find(left_out.begin(), left_out.end(), i) == left_out.end()) {
      events.push_back(plan.events[i]);
    }
  }
  plan.events = std::move(events);
  return plan;
}

}  // namespace

// The round is played on this thread. Directory, thread and trace change nothing in it.
std::optional<Finding> run_round(Plan plan, const Breaks& breaks, Tally& tally, bool traced) {
  prepare_process();
  // Journals of one thread's rounds, one round after the other: an agent removes its journal when
  // it is made and when it ends.
  thread_local const Scratch kScratch;
  round_of_this_thread = plan.seed;
  const auto trace = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  World world{std::move(plan), breaks, tally, kScratch.path(), traced ? trace : World::Trace{}};
  const Outcome outcome = world.run();
  if (traced) std::fprintf(stderr, "%s", world.dump().c_str());
  return outcome.finding;
}

// Each thread takes the next round. A round depends on its seed alone, so findings are the same
// with any number of threads.
CampaignResult run_campaign(const CampaignOptions& options) {
  prepare_process();
  CampaignResult result;
  std::mutex mu;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> enough{false};
  const auto work = [&] {
    Tally tally;
    for (;;) {
      const std::int64_t round = next.fetch_add(1);
      // A round that has begun is finished: the same campaign may find more than findings_max on
      // many threads.
      if (round >= options.rounds || enough) break;
      const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(round);
      const auto finding = run_round(plan_of(seed, options.calm), options.breaks, tally, false);
      if (!finding) continue;
      const std::lock_guard lock{mu};
      result.findings.push_back({seed, *finding});
      if (static_cast<std::int64_t>(result.findings.size()) >= options.findings_max) enough = true;
    }
    const std::lock_guard lock{mu};
    result.tally.add(tally);
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.threads; ++i) threads.emplace_back(work);
  }
  std::sort(result.findings.begin(), result.findings.end(),
            [](const FoundIn& a, const FoundIn& b) { return a.seed < b.seed; });
  return result;
}

// Leaves events out as long as the same checker still finds something: first halves of the plan,
// then quarters, and at last single events. A piece that is not needed stays out for all later
// tries. The result is minimal for single events in this order, which is not the smallest set there
// is, but it takes dozens of rounds rather than thousands.
Plan shorten(const Plan& plan, const Breaks& breaks, const Finding& finding) {
  std::vector<std::size_t> left_out;
  const auto still_found = [&](const std::vector<std::size_t>& candidate) {
    Tally tally;
    const auto found = run_round(without(plan, candidate), breaks, tally, false);
    return found && found->checker == finding.checker;
  };
  for (std::size_t piece = std::max<std::size_t>(plan.events.size() / 2, 1);; piece /= 2) {
    for (std::size_t begin = 0; begin < plan.events.size(); begin += piece) {
      std::vector<std::size_t> candidate = left_out;
      for (std::size_t i = begin; i < std::min(begin + piece, plan.events.size()); ++i) {
        if (std::find(left_out.begin(), left_out.end(), i) == left_out.end()) {
          candidate.push_back(i);
        }
      }
      if (candidate.size() > left_out.size() && still_found(candidate)) left_out = candidate;
    }
    if (piece == 1) break;
  }
  return without(plan, left_out);
}

// Columns are aligned for people; the names are those under which the parts have counted.
std::string table_of(const Tally& tally) {
  std::string text;
  const auto line = [&](const std::string& name, std::int64_t count) {
    text += "  " + name + std::string(name.size() < 44 ? 44 - name.size() : 1, ' ') +
            std::to_string(count) + "\n";
  };
  text += "faults\n";
  for (const auto& [name, count] : tally.faults) line(name, count);
  text += "looked at\n";
  for (const auto& [name, count] : tally.looked) line(name, count);
  text += "all in all\n";
  line("rounds", tally.rounds);
  line("requests to the API server", tally.requests);
  line("seconds of virtual time", tally.virtual_seconds);
  return text;
}

std::vector<std::string> unfelt_faults(const Tally& tally) {
  std::vector<std::string> unfelt;
  for (const std::string_view name : felt_faults()) {
    if (!tally.faults.contains(std::string{name})) unfelt.emplace_back(name);
  }
  return unfelt;
}

// A checker that never looked has proved nothing: a renamed checker, a plan that no longer leads to
// its situation, or a condition that is never true would all look like success.
std::vector<std::string> blind_checkers(const Tally& tally) {
  std::vector<std::string> blind;
  for (const char* checker : kCheckers) {
    if (!tally.looked.contains(checker)) blind.emplace_back(checker);
  }
  return blind;
}

}  // namespace simulation
