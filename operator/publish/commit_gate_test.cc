// The rules of commit_gate.h hold in every history of a small world: a job `low` runs on one node
// until a job `high` preempts it and runs there. Every order in which the operator may decide,
// write, and hear of its writes is tried, as far as the gate lets it; what is stored at any moment
// is what a new leader would find after a crash then.
#include "operator/publish/commit_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <tuple>

namespace control {
namespace {

// How far the life of a job has come: as decided, or as stored.
enum class Life { kWaits, kClaims, kStarted, kEnding, kEnded };

enum Who : std::size_t { kLow, kHigh };
const std::array<std::string, 2> kUids{"low", "high"};

// A state of the small world, reached by some order of steps. Two orders that lead to the same
// state go on alike, so each state is looked at once.
struct History {
  std::array<Life, 2> decided{Life::kWaits, Life::kWaits};
  std::array<Life, 2> stored{Life::kWaits, Life::kWaits};
  std::array<bool, 2> writing{};  // a write of its status is under way
  std::array<Life, 2> written{};  // what that write says
  std::array<bool, 2> pods{};
  std::array<bool, 2> published{};   // listed by the timetable as it is stored
  bool publishing = false;           // a write of the timetable is under way
  std::array<bool, 2> to_publish{};  // what that write says

  // The answers to the gate and the wanted timetable follow from the state, as they do in the
  // operator.
  bool is_uncommitted(Who who) const { return decided[who] != stored[who]; }
  bool is_allocated(Who who) const {
    return decided[who] == Life::kStarted || decided[who] == Life::kEnding;
  }
  std::array<bool, 2> wanted() const {
    return {decided[kLow] == Life::kStarted, decided[kHigh] == Life::kStarted};
  }
  auto as_tuple() const {
    return std::tie(decided, stored, writing, written, pods, published, publishing, to_publish);
  }
  bool operator<(const History& other) const { return as_tuple() < other.as_tuple(); }
};

// Returns the timetable of the node, as far as the gate reads it: which jobs have pods in it.
kube::NodeTimetableSpec spec_of(const std::array<bool, 2>& listed) {
  kube::NodeTimetableSpec spec;
  for (const Who who : {kLow, kHigh}) {
    if (listed[who]) spec.pods.push_back({.job_uid = kUids[who]});
  }
  return spec;
}

// With a view that lies, some rule must break: otherwise this test could not see it.
// kAllIsStored: the gate believes that each decision is stored at once; kAllIsPublished: the same
// of timetables.
enum class Lie { kNone, kAllIsStored, kAllIsPublished };

CommitGate gate_of(const History& now, Lie lie) {
  return CommitGate{{.is_stored =
                         [&now, lie](const std::string& uid) {
                           return lie == Lie::kAllIsStored ||
                                  !now.is_uncommitted(uid == kUids[kLow] ? kLow : kHigh);
                         },
                     .is_published =
                         [&now, lie](const std::string&) {
                           return lie == Lie::kAllIsPublished ||
                                  (!now.publishing && now.published == now.wanted());
                         }}};
}

// The decisions that may come next: high claims once low runs, and gets what low leaves.
void decide(const History& now, std::vector<History>& next) {
  const auto step = [&](Who who, Life to) {
    next.push_back(now);
    next.back().decided[who] = to;
  };
  if (now.decided[kLow] == Life::kWaits) step(kLow, Life::kStarted);
  if (now.decided[kLow] == Life::kStarted && now.decided[kHigh] == Life::kWaits) {
    step(kHigh, Life::kClaims);
    next.back().decided[kLow] = Life::kEnding;  // both in one pass
  }
  if (now.decided[kLow] == Life::kEnding && !now.pods[kLow] && !now.is_uncommitted(kLow)) {
    step(kLow, Life::kEnded);
  }
  if (now.decided[kLow] == Life::kEnded && now.decided[kHigh] == Life::kClaims) {
    step(kHigh, Life::kStarted);
  }
}

// Status writes begin and arrive as two steps, so that everything else may happen in between.
void write(const History& now, const CommitGate& gate, std::vector<History>& next) {
  for (const Who who : {kLow, kHigh}) {
    if (now.writing[who]) {  // it reaches the API server
      next.push_back(now);
      next.back().stored[who] = now.written[who];
      next.back().writing[who] = false;
      continue;
    }
    if (!now.is_uncommitted(who)) continue;
    const bool is_ending = who == kLow && now.decided[who] == Life::kEnding;
    if (is_ending && !gate.may_write_ending(kUids[kHigh])) continue;
    next.push_back(now);
    next.back().writing[who] = true;
    next.back().written[who] = now.decided[who];
  }
  if (now.publishing) {
    next.push_back(now);
    next.back().published = now.to_publish;
    next.back().publishing = false;
    return;
  }
  std::set<std::string> there;
  for (const Who who : {kLow, kHigh}) {
    if (now.is_allocated(who)) there.insert(kUids[who]);
  }
  if (now.published == now.wanted()) return;
  if (!gate.may_publish(there, spec_of(now.wanted()), spec_of(now.published))) return;
  next.push_back(now);
  next.back().publishing = true;
  next.back().to_publish = now.wanted();
}

// Pods are made and deleted at once: the gate is asked before, and nothing is asked afterwards.
void act_on_pods(const History& now, const CommitGate& gate, std::vector<History>& next) {
  for (const Who who : {kLow, kHigh}) {
    if (now.decided[who] == Life::kStarted && !now.pods[who] &&
        gate.may_create_pods(kUids[who], {"n1"})) {
      next.push_back(now);
      next.back().pods[who] = true;
    }
    if (now.decided[who] == Life::kEnding && now.pods[who] && gate.may_delete_pods(kUids[who])) {
      next.push_back(now);
      next.back().pods[who] = false;
    }
  }
}

// Checks the rules as they are numbered in commit_gate.h, each looked at in the one step that could
// break it.
std::vector<std::string> broken_rules(const History& before, const History& now) {
  std::vector<std::string> broken;
  for (const Who who : {kLow, kHigh}) {
    const bool starts = now.stored[who] >= Life::kStarted;
    if (now.published[who] && !before.published[who] && !starts) {
      broken.push_back("1: listed before its start is stored: " + kUids[who]);
    }
    if (!now.published[who] && before.published[who] && now.stored[who] < Life::kEnding) {
      broken.push_back("1: left out before its end is stored: " + kUids[who]);
    }
    if (now.pods[who] && !before.pods[who] && !(starts && now.published[who])) {
      broken.push_back("2: pods before the start is stored and published: " + kUids[who]);
    }
    if (!now.pods[who] && before.pods[who] && now.stored[who] < Life::kEnding) {
      broken.push_back("3: pods deleted before the ending is stored: " + kUids[who]);
    }
  }
  if (now.stored[kLow] == Life::kEnding && now.stored[kHigh] == Life::kWaits) {
    broken.push_back("4: an ending is stored before the claim that it is for");
  }
  if (now.pods[kLow] && now.pods[kHigh]) broken.push_back("2: two gangs on the node at once");
  return broken;
}

// The findings of all histories. all_go_on: in no state did the gate leave nothing to do before
// high runs.
struct Tried {
  std::set<std::string> broken;  // rules, by their numbers
  std::size_t histories = 0;
  bool high_runs = false;
  bool all_go_on = true;
};

// Depth first through all histories that can be reached; `seen` makes it end. A rule is looked at
// for each step, also for one that leads to a state that is known already.
Tried try_all(Lie lie) {
  Tried tried;
  std::set<History> seen{History{}};
  std::vector<History> to_do{History{}};
  while (!to_do.empty()) {
    const History now = to_do.back();
    to_do.pop_back();
    std::vector<History> next;
    decide(now, next);
    const CommitGate gate = gate_of(now, lie);
    write(now, gate, next);
    act_on_pods(now, gate, next);
    tried.high_runs = tried.high_runs || now.pods[kHigh];
    tried.all_go_on = tried.all_go_on && (!next.empty() || now.pods[kHigh]);
    for (const History& one : next) {
      for (const std::string& rule : broken_rules(now, one)) tried.broken.insert(rule.substr(0, 1));
      if (seen.insert(one).second) to_do.push_back(one);
    }
  }
  tried.histories = seen.size();
  return tried;
}

// A gate that lets nothing through breaks no rule either: so high must get its pods in the end,
// from every state that can be reached.
TEST(CommitGate, HoldsItsRulesInAllSmallHistoriesAndStopsNone) {
  const Tried tried = try_all(Lie::kNone);
  EXPECT_EQ(tried.broken, std::set<std::string>{});
  EXPECT_TRUE(tried.all_go_on);
  EXPECT_TRUE(tried.high_runs);
  // All orders were tried, and not only a few since some gate was shut.
  EXPECT_GT(tried.histories, 90U);
}

// With a gate that believes too much, each rule must break in some order: so each is needed, and
// this test can see a break of each.
TEST(CommitGate, EachRuleIsBrokenSomewhereWithoutIt) {
  EXPECT_EQ(try_all(Lie::kAllIsStored).broken, (std::set<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(try_all(Lie::kAllIsPublished).broken, (std::set<std::string>{"2"}));
}

}  // namespace
}  // namespace control
