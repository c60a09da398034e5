// Recordings of Slurm 22.05.8 (scheduler/testdata/conformance): the same inputs, the same
// decisions. Timing is given, so every step is compared exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/files.h"
#include "cli/report/told_json.h"
#include "cli/scenario.h"
#include "scheduler/model/legality.h"
#include "scheduler/simulate/told.h"
#include "slurm/text.h"

namespace cli {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kRecordings =
    std::filesystem::path{KUBEGANG_SOURCE_DIR} / "scheduler/testdata/conformance";

// A recording in which Slurm has a defect that is not copied: the steps that differ, and why.
// Everything else of it must agree. A step in the list that agrees is an error as well, so the list
// cannot grow old.
struct KnownDifference {
  std::string defect;  // rule in slurm-semantics.md
  std::string why;
  std::set<std::size_t> steps;
};
const std::map<std::string, KnownDifference>& known_differences() {
  static const std::map<std::string, KnownDifference> kKnown = {
      {"rnd_depend_104",
       {.defect = "13.1",
        .why = "that a job that is held can never start is noticed once a minute alone, so those "
               "that wait for its end start up to a minute later",
        .steps = {18, 21}}}};
  return kKnown;
}

// Returns "0-3,7" as numbers. Compared as a set: how it is written means nothing.
std::set<int> numbers(const std::string& ranges) {
  std::set<int> all;
  for (const std::string& range : slurm::split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const int low = std::stoi(range.substr(0, dash));
    const int high = dash == std::string::npos ? low : std::stoi(range.substr(dash + 1));
    for (int n = low; n <= high; ++n) all.insert(n);
  }
  return all;
}

// A start without what does not matter: {job, partition, {node: [cpu ids, memory]}, {node: {kind of
// device: count}}}.
Json comparable_start(const Json& start) {
  Json nodes = Json::object(), devices = Json::object();
  for (const auto& [name, node] : start.at("nodes").items()) {
    nodes[name] = {numbers(node.value("cpus", "")), node.value("memory", 0)};
  }
  const Json gres = start.value("gres", Json::object());
  for (const auto& [node, kinds] : gres.items()) {
    for (const auto& [kind, count] : kinds.items()) {
      if (count != 0) devices[node][kind] = count;
    }
  }
  return {start.at("job"), start.at("partition"), nodes, devices};
}

// Returns a step as it is compared: starts in order, victims and suspended jobs as sets. Victims of
// one pass have no order that anything depends on.
Json comparable(const Json& step) {
  Json starts = Json::array();
  for (const Json& start : step.value("start", Json::array())) {
    starts.push_back(comparable_start(start));
  }
  std::set<std::string> victims;
  for (const Json& victim : step.value("preempt", Json::array())) {
    victims.insert(victim.at("job").get<std::string>() + " " +
                   victim.at("mode").get<std::string>());
  }
  return {{"start", starts},
          {"preempt", victims},
          {"suspended", step.at("suspended").get<std::set<std::string>>()}};
}

// Some recordings do not say which devices a job got: those of select/linear (Slurm counts them
// without types there, and shows 0), and the first ones. Then the decisions about them are
// compared.
bool tells_devices(const Json& recording) {
  const auto& steps = recording.at("steps");
  return std::any_of(steps.begin(), steps.end(), [](const Json& step) {
    const Json starts = step.value("start", Json::array());
    return std::any_of(starts.begin(), starts.end(),
                       [](const Json& start) { return !comparable_start(start).at(3).empty(); });
  });
}

// Returns a step of which nothing was recorded about devices.
Json without_devices(Json step) {
  if (!step.contains("start")) return step;
  for (Json& start : step["start"]) start.erase("gres");
  return step;
}

// Returns true if a submission's priority under multifactor is within 2 % of Slurm's: Slurm sums
// with fractions, and the scheduler with integers.
bool same_priority(const Json& want, const Json& got) {
  if (!want.contains("priority")) return true;
  const double priority = want["priority"].get<double>();
  return std::abs(priority - got.value("priority", 0.0)) <= std::max(1.0, 0.02 * priority);
}

// When the jobs that wait were expected to start, as squeue --start would show it after a step.
class ExpectedStarts {
 public:
  // The step told them again; jobs that it started wait no longer.
  void take(const Json& step) {
    const Json told = step.value("expected", Json::object());
    for (const auto& [job, start] : told.items()) starts_[job] = start;
    for (const Json& start : step.value("start", Json::array())) {
      starts_.erase(start.at("job").get<std::string>());
    }
  }
  // Returns empty, or a job of the recorded step whose start differs. Slurm's clock has whole
  // seconds, this one begins with the scenario.
  std::string differing(const Json& recorded) const {
    const Json told = recorded.value("expected", Json::object());
    for (const auto& [job, start] : told.items()) {
      const auto here = starts_.find(job);
      const bool known = here != starts_.end() && !here->second.is_null();
      if (known == start.is_null()) return job;
      if (known && std::abs(here->second.get<double>() - start.get<double>()) > 1.5) return job;
    }
    return {};
  }

 private:
  std::map<std::string, Json> starts_;
};

// A recording is a large file: 64 MiB are the bound.
Json read_json(const std::filesystem::path& path) {
  const base::Result<std::string> text = read_file(path.string(), std::size_t{1} << 26U);
  EXPECT_TRUE(text.ok()) << path;
  return Json::parse(text.ok() ? *text : "null");
}

// Plays a recording and returns what `kubectl gang simulate -o json` would print of it.
Json simulated(const std::filesystem::path& path) {
  const base::Result<std::string> text = read_file(path.string(), kScenarioBytesMax);
  EXPECT_TRUE(text.ok()) << path;
  const base::Result<simulate::Scenario> scenario = read_scenario(*text, path.string());
  EXPECT_TRUE(scenario.ok()) << scenario.error().message;
  return Json::parse(told_json(*scenario, simulate::run_told(*scenario)));
}

std::vector<std::string> recording_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{kRecordings / "scenarios"}) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// One test for each recording, named after its file.
class Recording : public testing::TestWithParam<std::string> {};

// Compared are starts with nodes, CPUs and memory, victims and their modes, suspensions,
// priorities, expected starts, and in the end the state of each job. The first step that differs
// ends the comparison, since all that follows has other jobs on other nodes.
TEST_P(Recording, DecidesAsSlurmDid) {
  const Json want = read_json(kRecordings / "expected" / (GetParam() + ".json"));
  const Json got = simulated(kRecordings / "scenarios" / (GetParam() + ".yaml"));
  // One step for each input, also for those that Slurm refused.
  ASSERT_EQ(got.at("steps").size(), want.at("steps").size());
  std::set<std::size_t> differing;
  ExpectedStarts expected;
  const bool devices = tells_devices(want);
  for (std::size_t i = 0; i < want.at("steps").size(); ++i) {
    const Json wanted = comparable(want["steps"][i]);
    const Json decided = comparable(devices ? got["steps"][i] : without_devices(got["steps"][i]));
    EXPECT_TRUE(same_priority(want["steps"][i], got["steps"][i]))
        << "step " << i << ": " << want["steps"][i] << " " << got["steps"][i];
    expected.take(got["steps"][i]);
    EXPECT_EQ(expected.differing(want["steps"][i]), "")
        << "step " << i << ": " << want["steps"][i] << " " << got["steps"][i];
    if (wanted == decided) continue;
    differing.insert(i);
    if (known_differences().count(GetParam()) != 0) continue;
    ADD_FAILURE() << "step " << i << ", t=" << want["steps"][i].at("t") << ", "
                  << want["steps"][i].at("input") << "\n Slurm: " << wanted
                  << "\n here:  " << decided;
    break;  // what follows differs because of this
  }
  const auto known = known_differences().find(GetParam());
  if (known != known_differences().end()) {
    EXPECT_EQ(differing, known->second.steps) << known->second.defect << ": " << known->second.why;
  }
  for (const auto& [job, outcome] : want.at("jobs").items()) {
    ASSERT_TRUE(got.at("jobs").contains(job)) << job;
    EXPECT_EQ(got["jobs"][job].at("state"), outcome.at("state")) << job;
    EXPECT_EQ(got["jobs"][job].at("restarts"), outcome.value("restarts", 0)) << job;
  }
}

INSTANTIATE_TEST_SUITE_P(Slurm2205, Recording, testing::ValuesIn(recording_names()),
                         [](const auto& recording) { return recording.param; });

// --- attribution: production's mode, and which quirk explains what differs from Slurm ---

// A recording, read once and played with any quirks.
class RecordingPlay {
 public:
  explicit RecordingPlay(const std::string& name)
      : want_(read_json(kRecordings / "expected" / (name + ".json"))) {
    const std::string path = (kRecordings / "scenarios" / (name + ".yaml")).string();
    const base::Result<std::string> text = read_file(path, kScenarioBytesMax);
    EXPECT_TRUE(text.ok()) << path;
    base::Result<simulate::Scenario> scenario = read_scenario(*text, path);
    EXPECT_TRUE(scenario.ok()) << path;
    scenario_ = std::move(*scenario);
  }

  // Returns the steps that differ from Slurm's, and one beyond the last if a job's end does. All
  // differ if the configuration is refused.
  std::set<std::size_t> differing(const sched::Quirks& quirks) const {
    simulate::Scenario scenario = scenario_;
    bool is_legal = set(scenario.configuration, quirks);
    for (simulate::Input& input : scenario.inputs) {
      if (!input.happening) continue;
      if (auto* change = std::get_if<simulate::SetConfiguration>(&*input.happening)) {
        is_legal = set(change->configuration, quirks) && is_legal;
      }
    }
    const Json& steps = want_.at("steps");
    std::set<std::size_t> found;
    if (!is_legal) {
      for (std::size_t i = 0; i <= steps.size(); ++i) found.insert(i);
      return found;
    }
    const Json got = Json::parse(told_json(scenario, simulate::run_told(scenario)));
    ExpectedStarts expected;
    const bool devices = tells_devices(want_);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Json told = got.at("steps").at(i);
      const Json step = devices ? told : without_devices(told);
      expected.take(step);
      const bool same = comparable(steps[i]) == comparable(step) && same_priority(steps[i], step) &&
                        expected.differing(steps[i]).empty();
      if (!same) found.insert(i);
    }
    for (const auto& [job, outcome] : want_.at("jobs").items()) {
      const Json& here = got.at("jobs").at(job);
      const bool same = here.at("state") == outcome.at("state") &&
                        here.at("restarts") == outcome.value("restarts", 0);
      if (!same) found.insert(steps.size());
    }
    return found;
  }
  std::optional<std::size_t> first_difference(const sched::Quirks& quirks) const {
    const std::set<std::size_t> found = differing(quirks);
    return found.empty() ? std::nullopt : std::optional{*found.begin()};
  }

 private:
  // Returns false if the operator would refuse the configuration.
  static bool set(sched::Configuration& configuration, const sched::Quirks& quirks) {
    configuration.cluster.quirks = quirks;
    return std::ranges::none_of(sched::check(configuration), [](const sched::ConfigIssue& issue) {
      return issue.severity == sched::IssueSeverity::kError;
    });
  }

  Json want_;
  simulate::Scenario scenario_;
};

using Names = std::set<std::string>;

sched::Quirks quirks_of(const Names& names) {
  sched::Quirks quirks;
  for (const sched::QuirkEntry& each : sched::kQuirks) {
    if (names.contains(std::string{each.name})) quirks.*each.flag = true;
  }
  return quirks;
}

Names all_quirks() {
  Names names;
  for (const sched::QuirkEntry& each : sched::kQuirks) names.insert(std::string{each.name});
  return names;
}

// Without those that the others make needless.
Names needed(const RecordingPlay& replay, Names names) {
  for (const std::string& name : Names{names}) {
    Names without = names;
    without.erase(name);
    if (!replay.first_difference(quirks_of(without))) names = without;
  }
  return names;
}

// Returns quirks that bring the first difference to the end, one after the other: each time the one
// that gets furthest, or two if no single one does. If none does, what is needed of all.
Names explain(const RecordingPlay& replay) {
  Names names;
  auto at = replay.first_difference({});
  const auto beyond = [](const std::optional<std::size_t>& a, const std::optional<std::size_t>& b) {
    return b && (!a || *a > *b);
  };
  while (at) {
    Names best = names;
    auto furthest = at;
    const auto attempt = [&](const Names& more) {
      Names with = names;
      with.insert(more.begin(), more.end());
      const auto to = replay.first_difference(quirks_of(with));
      if (beyond(to, furthest)) {
        furthest = to;
        best = with;
      }
    };
    for (const auto& each : sched::kQuirks) attempt({std::string{each.name}});
    for (std::size_t i = 0; i < sched::kQuirks.size() && best == names; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        attempt({std::string{sched::kQuirks[i].name}, std::string{sched::kQuirks[j].name}});
      }
    }
    if (best == names) return needed(replay, all_quirks());
    names = best;
    at = furthest;
  }
  return needed(replay, names);
}

const std::filesystem::path kAttribution = kRecordings / "quirks.txt";

// Returns "recording: quirk quirk" for each recording that differs in production's mode.
std::map<std::string, Names> attribution() {
  const base::Result<std::string> text = read_file(kAttribution.string(), kScenarioBytesMax);
  EXPECT_TRUE(text.ok()) << kAttribution;
  std::map<std::string, Names> all;
  for (const std::string& line : slurm::split(text.ok() ? *text : "", '\n')) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("#") || colon == std::string::npos) continue;
    for (const std::string& name : slurm::split(line.substr(colon + 2), ' ')) {
      all[line.substr(0, colon)].insert(name);
    }
  }
  return all;
}

// Without quirks a recording agrees, or the table names those that make it agree. Each of them is
// needed. KUBEGANG_EXPLAIN=1 looks for them and prints the lines of the table.
TEST_P(Recording, DiffersInProductionByNamedQuirksAlone) {
  static const std::map<std::string, Names> kNamed = attribution();
  if (known_differences().contains(GetParam())) return;  // compared above
  const RecordingPlay replay{GetParam()};
  if (std::getenv("KUBEGANG_EXPLAIN") != nullptr) {
    if (!replay.first_difference({})) return;
    std::string line = "EXPLAINED " + GetParam() + ":";
    for (const std::string& name : explain(replay)) line += " " + name;
    std::printf("%s\n", line.c_str());
    return;
  }
  const auto known = kNamed.find(GetParam());
  const Names names = known == kNamed.end() ? Names{} : known->second;
  const auto step = replay.first_difference(quirks_of(names));
  EXPECT_FALSE(step) << "step " << *step << " differs, and no quirk is named for it in "
                     << kAttribution;
  for (const std::string& name : names) {
    Names without = names;
    EXPECT_EQ(without.erase(name), 1U);
    EXPECT_TRUE(replay.first_difference(quirks_of(without))) << name << " explains nothing";
  }
}

// The table names recordings and quirks that exist, and no quirk is a catch-all: without any of
// them alone no more than 15 % of the steps differ that differ without all, but for these.
TEST(Attribution, NoQuirkExplainsTooMuch) {
  const std::map<std::string, std::string> may_be_large = {
      {"mates_run", "a choice of nodes early in two long recordings shows in all steps behind it"},
      {"preemptor_claims_nothing", "one decision that each job that waits for victims shows"}};
  const std::vector<std::string> recordings = recording_names();
  const Names quirks = all_quirks();
  std::map<std::string, std::size_t> steps, times;
  std::size_t all_steps = 0;
  for (const auto& [recording, names] : attribution()) {
    ASSERT_THAT(recordings, testing::Contains(recording));
    const RecordingPlay replay{recording};
    all_steps += replay.differing({}).size();
    for (const std::string& name : names) {
      ASSERT_THAT(quirks, testing::Contains(name));
      Names without = names;
      without.erase(name);
      steps[name] += replay.differing(quirks_of(without)).size();
      ++times[name];
    }
  }
  for (const std::string& name : quirks) {
    EXPECT_GT(times[name], 0U) << name << " is shown by no recording";
    if (std::getenv("KUBEGANG_EXPLAIN") != nullptr) {
      std::printf("%s: %zu recordings, %zu of %zu steps\n", name.c_str(), times[name], steps[name],
                  all_steps);
    }
    if (may_be_large.contains(name)) continue;
    EXPECT_LE(steps[name] * 100, all_steps * 15) << name;
  }
}

// The page about differences says of each quirk how many recordings show it: two by name, and the
// number of the others.
TEST(Attribution, IsWhatThePageAboutDifferencesSays) {
  std::map<std::string, Names> recordings;  // by quirk
  for (const auto& [recording, names] : attribution()) {
    for (const std::string& name : names) recordings[name].insert(recording);
  }
  const base::Result<std::string> page =
      read_file(KUBEGANG_SOURCE_DIR "/docs/design/differences.md", kScenarioBytesMax);
  ASSERT_TRUE(page.ok());
  for (const auto& [quirk, all] : recordings) {
    std::string said = *all.begin();
    if (all.size() > 1) said += ", " + *std::next(all.begin());
    if (all.size() > 2) said += " and " + std::to_string(all.size() - 2) + " more";
    const std::size_t row = page->find("\n| `" + quirk + "` |");
    ASSERT_NE(row, std::string::npos) << quirk;
    const std::size_t end = page->find('\n', row + 1);
    EXPECT_THAT(page->substr(row, end - row), testing::EndsWith("| " + said + " |"));
  }
}

// An entry for a recording that was renamed would excuse nothing, and be there forever.
TEST(KnownDifferences, AreRecordingsThatExist) {
  const std::vector<std::string> names = recording_names();
  for (const auto& [name, difference] : known_differences()) {
    EXPECT_THAT(names, testing::Contains(name));
  }
}

}  // namespace
}  // namespace cli
