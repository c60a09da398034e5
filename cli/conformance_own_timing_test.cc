// The recordings' inputs with the scheduler's own timing: what production runs, where passes are
// made as they are due, ticks are on the grid of slots, and jobs that are in no conflict with each
// other are turned apart.
//
// Slurm's own instants cannot be met: its passes come when its timers say. So each recording is
// played twice at the same instants: told, with a pass after every input, which is the
// implementation that conformance_test compares with Slurm step by step; and with own timing,
// lead 0. After every input and every slice both must have the same jobs on the same nodes, and the
// same ones of them running. The recorded slices are put on the grid, one after the other, and what
// happens between two of them in between.
//
// Recordings without slices are left out, and those in which a job has a time limit or a begin
// time, a time limit is reached, a job is requeued by command or a node goes down: when these take
// effect is not recorded here; the same holds for PreemptExemptTime. Those are left out, too, in
// which a job is released that is not held: a replay does then as Slurm does (13.2). A recording is
// compared until a job connects others that were turned apart before: then the two differ by design
// (with own timing a job without conflicts has no row, and joins as FILLER). For the same reason
// the two may differ after jobs begin to take turns while others already do, on other cores: told
// timing has one order of rows for both. And after a job loses all its rivals and gets others
// (rnd_cons_4001, rnd_preempt_4003): told timing remembers that it had its turn (ACTIVE), and with
// own timing it is a job without conflicts in between. Its new rival then waits for one slice more.
//
// A job that the gang ends for a higher tier (rnd_preempt_4003): Slurm lets the other run at once,
// over it. With own timing it waits until the pods of the victim are gone, because two jobs on one
// core is what turns are to prevent. So while a victim is on its way out the two may differ; they
// must agree when it is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/files.h"
#include "cli/scenario.h"
#include "scheduler/replay/replay.h"
#include "scheduler/simulate/driver.h"

namespace cli {
namespace {

using simulate::Happening;
using simulate::Scenario;

// One of the two simulations. Carries decisions out as simulate::run_told does: jobs that start are
// ready at once, and jobs that a command ends are gone at once.
class Replay {
 public:
  Replay(const Scenario& scenario, bool told)
      : told_{told},
        driver_{scenario, told ? sched::make_replay() : sched::Scheduler{sched::Options{}}} {}

  void happen(base::Instant now, const Happening& happening) {
    wake_until(now);
    driver_.apply(now, happening);
    settle(now);
    if (told_) {
      driver_.step(now, sched::Pass{.main = true, .backfill = false});
      settle(now);
    }
    wake_until(now);
  }
  void slice(base::Instant now) {
    wake_until(now);
    if (!told_) return;
    driver_.step(now, sched::SliceEnd{});
    settle(now);
  }

  // Returns the jobs on each node, by name.
  std::map<std::string, std::set<sched::JobId>> jobs_on_nodes(base::Instant now) {
    std::map<std::string, std::set<sched::JobId>> jobs;
    for_each_use(now, [&](sched::JobId id, const std::string& node, const sched::CoreSet&) {
      jobs[node].insert(id);
    });
    return jobs;
  }
  // Returns the jobs on each core, by "n1:0".
  std::map<std::string, std::set<sched::JobId>> jobs_on_cores(base::Instant now) {
    std::map<std::string, std::set<sched::JobId>> jobs;
    for_each_use(now, [&](sched::JobId id, const std::string& node, const sched::CoreSet& cores) {
      for (int core = 0; core < sched::kCoresPerNodeMax; ++core) {
        if (cores.test(core)) jobs[node + ":" + std::to_string(core)].insert(id);
      }
    });
    return jobs;
  }
  // Returns true if a job is on its way out.
  bool any_completing(base::Instant now) {
    return std::ranges::any_of(driver_.scheduler().jobs(), [&](sched::JobId id) {
      const std::optional<sched::JobView> view = driver_.scheduler().job(id, now);
      return view && view->completing;
    });
  }
  // Returns a line for each job that holds nodes and is not on its way out: "3 R n1:0-3 n2:0-3".
  std::string show(base::Instant now) {
    std::string text;
    for (const sched::JobId id : driver_.scheduler().jobs()) {
      const std::optional<sched::JobView> view = driver_.scheduler().job(id, now);
      if (!view || view->allocation == nullptr || view->completing) continue;
      text += to_string(id) + (view->state == sched::JobState::kRunning ? " R" : " S");
      for (const sched::NodeAllocation& use : view->allocation->nodes) {
        const std::string& name = driver_.scheduler().node_name(use.node);
        text += " " + name + ":" + simulate::cpu_ids(driver_.node(name), use.cores);
      }
      text += "\n";
    }
    return text;
  }

 private:
  // Calls visit(job, name of the node, its cores there) for all that is allocated.
  template <typename Visit>
  void for_each_use(base::Instant now, const Visit& visit) {
    for (const sched::JobId id : driver_.scheduler().jobs()) {
      const std::optional<sched::JobView> view = driver_.scheduler().job(id, now);
      if (!view || view->allocation == nullptr) continue;
      for (const sched::NodeAllocation& use : view->allocation->nodes) {
        visit(id, driver_.scheduler().node_name(use.node), use.cores);
      }
    }
  }
  // Own timing: everything that is due until then, and the plans that are to be published.
  void wake_until(base::Instant now) {
    if (told_) return;
    constexpr int kWakesMax = 10'000;
    int wakes = 0;
    for (auto due = driver_.scheduler().next_due(); due && *due <= now;
         due = driver_.scheduler().next_due()) {
      wake(std::max(*due, now_));
      ASSERT_LT(++wakes, kWakesMax);
    }
    wake(now);
  }
  void wake(base::Instant now) {
    driver_.step(now, sched::Wake{});
    settle(now);
    driver_.scheduler().take_plans(now);
  }
  void settle(base::Instant now) {
    now_ = now;
    constexpr int kRoundsMax = 100'000;
    for (int round = 0; round < kRoundsMax; ++round) {
      const std::vector<sched::Decision> decisions = driver_.scheduler().take_decisions();
      if (decisions.empty()) return;
      for (const sched::Decision& decision : decisions) {
        if (const auto* start = std::get_if<sched::Start>(&decision)) {
          driver_.step(now, sched::JobReady{start->job});
        } else if (const auto* end = std::get_if<sched::End>(&decision)) {
          if (!driver_.commanded(end->job)) continue;
          driver_.step(now, sched::JobGone{end->job, sched::JobState::kCancelled, 0});
        }
      }
    }
    ADD_FAILURE() << "does not settle";
  }

  const bool told_;
  simulate::Driver driver_;
  base::Instant now_{};
};

// Returns the groups of jobs that are connected by places (nodes or cores) that they share: for
// each job the first job of its group. Two jobs of one place have one group, and so have all that
// either is connected with; that is what merges two groups in the inner loop.
std::map<sched::JobId, sched::JobId> groups_of(
    const std::map<std::string, std::set<sched::JobId>>& jobs_on_places) {
  std::map<sched::JobId, sched::JobId> first_of;
  for (const auto& [place, jobs] : jobs_on_places) {
    for (const sched::JobId job : jobs) {
      const sched::JobId one = first_of.try_emplace(job, job).first->second;
      const sched::JobId other = first_of.try_emplace(*jobs.begin(), *jobs.begin()).first->second;
      for (auto& [each, first] : first_of) {
        if (first == one || first == other) first = std::min(one, other);
      }
    }
  }
  return first_of;
}

// Returns true if two jobs are in one group now that were in different ones before.
bool grew_together(const std::map<sched::JobId, sched::JobId>& before,
                   const std::map<sched::JobId, sched::JobId>& now) {
  for (const auto& [a, of_a] : before) {
    for (const auto& [b, of_b] : before) {
      if (of_a == of_b || !now.contains(a) || !now.contains(b)) continue;
      if (now.at(a) == now.at(b)) return true;
    }
  }
  return false;
}

// Returns true if a job is connected with others now and was not before, when others already were.
bool began_beside(const std::map<sched::JobId, sched::JobId>& before,
                  const std::map<sched::JobId, sched::JobId>& now) {
  const auto connected = [](const std::map<sched::JobId, sched::JobId>& groups) {
    std::map<sched::JobId, std::set<sched::JobId>> members;
    for (const auto& [job, first] : groups) members[first].insert(job);
    std::erase_if(members, [](const auto& group) { return group.second.size() < 2; });
    return members;
  };
  const auto taking_turns = connected(before);
  if (taking_turns.empty()) return false;
  std::set<sched::JobId> known;
  for (const auto& [first, jobs] : taking_turns) known.insert(jobs.begin(), jobs.end());
  return std::ranges::any_of(connected(now), [&](const auto& group) {
    return std::ranges::none_of(group.second,
                                [&](sched::JobId job) { return known.contains(job); });
  });
}

using Rivals = std::map<sched::JobId, std::set<sched::JobId>>;

// For each job those that it has a place in common with.
Rivals rivals_of(const std::map<std::string, std::set<sched::JobId>>& jobs_on_places) {
  Rivals rivals;
  for (const auto& [place, jobs] : jobs_on_places) {
    for (const sched::JobId job : jobs) {
      rivals[job].insert(jobs.begin(), jobs.end());
      rivals[job].erase(job);
    }
  }
  return rivals;
}

// Returns true if a job has rivals now and had some before, but none of these is left: in between
// it had none.
bool changed_all_rivals(const Rivals& before, const Rivals& now) {
  return std::ranges::any_of(now, [&](const auto& of) {
    const auto had = before.find(of.first);
    if (had == before.end() || had->second.empty() || of.second.empty()) return false;
    return std::ranges::none_of(of.second,
                                [&](sched::JobId rival) { return had->second.contains(rival); });
  });
}

// Returns true if own timing can do what the recording told (the reasons are at the top of the
// file), and there is a slice to compare.
bool is_compared(const Scenario& scenario) {
  const sched::Configuration& configuration = scenario.configuration;
  const auto exempts = [](const sched::QosConfig& qos) {
    return qos.preempt_exempt_time.has_value();
  };
  if (configuration.cluster.preempt_exempt_time ||
      std::ranges::any_of(configuration.qos, exempts)) {
    return false;
  }
  bool has_slice = false;
  std::set<sched::JobId> held;
  for (const simulate::Input& input : scenario.inputs) {
    if (!input.happening) continue;
    if (const auto* submit = std::get_if<simulate::SubmitJob>(&*input.happening)) {
      const sched::JobRequest& request = scenario.job(submit->job).request;
      if (request.time_limit || request.begin_time) return false;
    }
    has_slice = has_slice || std::holds_alternative<simulate::TellSlice>(*input.happening);
    if (std::holds_alternative<simulate::TellTimeLimit>(*input.happening)) return false;
    if (std::holds_alternative<simulate::SetNodeState>(*input.happening)) return false;
    const auto* command = std::get_if<simulate::Command>(&*input.happening);
    if (command == nullptr) continue;
    if (command->kind == simulate::CommandKind::kRequeue) return false;
    if (command->kind == simulate::CommandKind::kHold) held.insert(command->job);
    if (command->kind == simulate::CommandKind::kRelease && held.erase(command->job) == 0) {
      return false;
    }
  }
  return has_slice;
}

// Returns true if a job is held that has nodes: with own timing that is refused
// (docs/design/differences.md).
bool holds_a_running_job(const Happening& happening,
                         const std::map<std::string, std::set<sched::JobId>>& jobs_on_nodes) {
  const auto* command = std::get_if<simulate::Command>(&happening);
  if (command == nullptr || command->kind != simulate::CommandKind::kHold) return false;
  return std::ranges::any_of(jobs_on_nodes,
                             [&](const auto& of) { return of.second.contains(command->job); });
}

struct Duel {
  int slices = 0;          // compared
  int suspended = 0;       // lines of suspended jobs among what was compared
  bool apart = false;      // from here on the two differ by design: nothing more is compared
  bool held = false;       // a job that runs was held: nothing more is compared
  std::string difference;  // empty = none
};

// Plays a recording twice, side by side:
// 1. Inputs between two recorded slices are collected.
// 2. At the next slice they are played at equal distances within one slot of the grid, and both
//    simulations are compared after each.
// 3. Both end the slot, and are compared again.
// 4. The groups of jobs at the slice are kept: with them the next comparison sees whether jobs grew
//    together, from which on the two differ by design.
Duel duel(const Scenario& scenario) {
  const base::Duration slice = scenario.configuration.cluster.time_slice;
  Replay told{scenario, true};
  Replay own{scenario, false};
  Duel result;
  std::map<sched::JobId, sched::JobId> groups;       // as of the last slice, by nodes
  std::map<sched::JobId, sched::JobId> core_groups;  // the same by cores
  Rivals rivals;                                     // by cores, as of the last comparison
  bool may_differ = false;                           // the reasons are at the top of the file
  const auto compare = [&](base::Instant now, const std::string& when) {
    result.apart = result.apart || grew_together(groups, groups_of(told.jobs_on_nodes(now)));
    const auto jobs_on_cores = told.jobs_on_cores(now);
    const Rivals rivals_now = rivals_of(jobs_on_cores);
    may_differ = may_differ || began_beside(core_groups, groups_of(jobs_on_cores)) ||
                 changed_all_rivals(rivals, rivals_now);
    rivals = rivals_now;
    if (result.apart || result.held) return;
    const std::string wanted = told.show(now);
    const std::string got = own.show(now);
    result.suspended += static_cast<int>(std::count(wanted.begin(), wanted.end(), 'S'));
    if (wanted != got && told.any_completing(now)) return;
    if (wanted != got && may_differ) {
      result.apart = true;
    } else if (wanted != got && result.difference.empty()) {
      result.difference = when + "\n told:\n" + wanted + " own:\n" + got;
    }
  };
  // Inputs between two slices, at equal distances.
  std::vector<Happening> between;
  const auto play = [&] {
    const base::Instant begin = base::slot_begin(result.slices, slice);
    for (std::size_t i = 0; i < between.size(); ++i) {
      const base::Instant now = begin + slice * static_cast<std::int64_t>(i + 1) /
                                            static_cast<std::int64_t>(between.size() + 1);
      result.held = result.held || holds_a_running_job(between[i], told.jobs_on_nodes(now));
      told.happen(now, between[i]);
      own.happen(now, between[i]);
      compare(now, "slot " + std::to_string(result.slices) + ", input " + std::to_string(i));
    }
    between.clear();
  };
  for (const simulate::Input& input : scenario.inputs) {
    if (!input.happening) continue;
    if (std::holds_alternative<simulate::TellPass>(*input.happening)) continue;
    if (!std::holds_alternative<simulate::TellSlice>(*input.happening)) {
      between.push_back(*input.happening);
      continue;
    }
    play();
    const base::Instant now = base::slot_begin(++result.slices, slice);
    told.slice(now);
    own.slice(now);
    compare(now, "slice " + std::to_string(result.slices));
    groups = groups_of(told.jobs_on_nodes(now));
    core_groups = groups_of(told.jobs_on_cores(now));
    if (result.apart) break;
  }
  if (!result.apart) play();
  return result;
}

// Switches the backfill off. With own timing it makes passes every bf_interval, and told timing has
// none between the recorded ones: the main pass alone is compared.
void without_backfill(Scenario& scenario) {
  scenario.configuration.cluster.backfill.interval = std::chrono::seconds{-1};
  for (simulate::Input& input : scenario.inputs) {
    if (!input.happening) continue;
    if (auto* const set = std::get_if<simulate::SetConfiguration>(&*input.happening)) {
      set->configuration.cluster.backfill.interval = std::chrono::seconds{-1};
    }
  }
}

// Both decide as in production, where no slurm.conf rules (docs/design/differences.md).
void as_in_production(Scenario& scenario) {
  scenario.configuration.cluster.quirks = {};
  for (simulate::Input& input : scenario.inputs) {
    if (!input.happening) continue;
    if (auto* const set = std::get_if<simulate::SetConfiguration>(&*input.happening)) {
      set->configuration.cluster.quirks = {};
    }
  }
}

TEST(OwnTiming, AgreesWithToldTimingOnTheRecordings) {
  const std::filesystem::path folder =
      std::filesystem::path{KUBEGANG_SOURCE_DIR} / "scheduler/testdata/conformance/scenarios";
  int recordings = 0, slices = 0, suspended = 0, cut_short = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    const base::Result<std::string> text = read_file(entry.path().string(), kScenarioBytesMax);
    ASSERT_TRUE(text.ok()) << entry.path();
    base::Result<Scenario> scenario = read_scenario(*text, entry.path().string());
    ASSERT_TRUE(scenario.ok()) << scenario.error().message;
    if (!is_compared(*scenario)) continue;
    without_backfill(*scenario);
    as_in_production(*scenario);
    const Duel result = duel(*scenario);
    EXPECT_EQ(result.difference, "") << entry.path().stem();
    ++recordings;
    slices += result.slices;
    suspended += result.suspended;
    cut_short += result.apart ? 1 : 0;
  }
  // Lower bounds of what was compared, so that the test cannot pass by looking at nothing.
  EXPECT_GE(recordings, 159);
  EXPECT_GE(slices, 2100);
  EXPECT_GE(suspended, 2700);
  EXPECT_LE(cut_short, 21);
}

}  // namespace
}  // namespace cli
