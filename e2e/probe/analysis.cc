#include "e2e/probe/analysis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"

// From stamps to findings:
// 1. Each gang's runs on each node are merged to turns: breaks that are shorter than turn_gap() are
//    the CPU scheduler's, not the freezer's.
// 2. Overlap is measured on the unmerged runs, since a break within a turn is not a time of
//    running.
// 3. A change of gang between two successive turns of a node is a switch. The first one begins the
//    window, which is a whole even number of slices long, so that each of two gangs has the same
//    number of turns in it.
// 4. Skew, shares and lost work are taken within the window.
//
// A newcomer runs beside the others until its pods have settled and are frozen for the first time.
// This overlap is intended and counted apart.
namespace probe {
namespace {

using base::Duration;
using base::Instant;

// A CPU scheduler keeps a probe waiting for less than that on a machine on which anything can be
// measured. If the slice is shorter than two of these, turn_gap() takes half of the slice.
constexpr std::chrono::milliseconds kTurnGapMax{100};
// A rate over less than a second says too little about the machine.
constexpr std::chrono::seconds kUnslicedMin{1};

// base::Duration counts microseconds.
double seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

// A turn begins a little after its boundary, or before it by the error of the clock: the nearest
// one is meant.
Instant nearest_boundary(Instant t, Duration slice) {
  return base::slot_begin(base::slot_of(t + slice / 2, slice), slice);
}

// The runs as far as they are before `until`.
std::vector<Run> clip(const std::vector<Run>& runs, Instant until) {
  std::vector<Run> out;
  for (Run run : runs) {
    if (run.begin >= until) break;
    // Progress is not cut with the run: progress_in() takes a part of it, by time, where that
    // matters.
    run.end = std::min(run.end, until);
    out.push_back(run);
  }
  return out;
}

// Returns when the gang's pod on the node was first frozen. Later than everything if never.
Instant touched_at(const Gang& gang, const std::string& node, const std::vector<Run>& turns) {
  // Seen by a watch of the kernel, if there was one; else from the stamps: its first turn ends when
  // it is frozen for the first time. A gang with a single turn was never frozen.
  if (const auto seen = gang.touched.find(node); seen != gang.touched.end()) return seen->second;
  return turns.size() < 2 ? base::kNever : turns.front().end;
}

// From the end of the outgoing gang's turn to the begin of the incoming one's.
struct Switch {
  Instant out_end{};
  Instant in_begin{};
};

// One node's turns of all gangs in the order of time, and where the gang changed. The turns of a
// newcomer that has not been touched yet are its settling beside the others, no switch.
struct Turn {
  Run run;
  std::size_t gang = 0;
  bool settling = false;
};

// Walks the turns of one node in the order of time. A turn of another gang than the last one's is a
// switch, unless that gang only settles.
std::vector<Switch> switches_of(std::vector<Turn> turns) {
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    return std::tie(a.run.begin, a.gang) < std::tie(b.run.begin, b.gang);
  });
  std::vector<Switch> out;
  std::optional<Turn> last;
  for (const Turn& turn : turns) {
    const bool change = last && last->gang != turn.gang;
    // The gang that runs beside it is still the one whose turn it is, so `last` stays.
    if (change && turn.settling) continue;
    if (change) out.push_back({last->run.end, turn.run.begin});
    last = turn;
  }
  return out;
}

// Returns the nodes of any gang: gangs need not have the same nodes.
std::set<std::string> node_names(const Measurement& measurement) {
  std::set<std::string> out;
  for (const Gang& gang : measurement.gangs) {
    for (const auto& [node, runs] : gang.nodes) out.insert(node);
  }
  return out;
}

// Per gang its merged turns on each node, clipped.
using Turns = std::vector<std::map<std::string, std::vector<Run>>>;

Turns all_turns(const Measurement& measurement) {
  Turns out;
  for (const Gang& gang : measurement.gangs) {
    std::map<std::string, std::vector<Run>> nodes;
    for (const auto& [node, runs] : gang.nodes) {
      nodes[node] = merge_runs(clip(runs, measurement.until), turn_gap(measurement.slice));
    }
    out.push_back(std::move(nodes));
  }
  return out;
}

// For each node and pair of gangs: an overlap before the later one was frozen for the first time is
// settling, any other is a failure of the switch.
void find_overlaps(const Measurement& measurement, const Turns& turns, Findings& findings) {
  for (const std::string& node : node_names(measurement)) {
    // The longest on a single node counts, since nodes settle at the same time.
    Duration settling{};
    for (std::size_t a = 0; a < turns.size(); ++a) {
      for (std::size_t b = a + 1; b < turns.size(); ++b) {
        const auto turns_a = turns[a].find(node);
        const auto turns_b = turns[b].find(node);
        if (turns_a == turns[a].end() || turns_b == turns[b].end()) continue;
        if (turns_a->second.empty() || turns_b->second.empty()) continue;
        // The later one settles beside the earlier one; once it is touched they take turns.
        const bool b_is_later = turns_a->second.front().begin <= turns_b->second.front().begin;
        const Instant counted_from = b_is_later
                                         ? touched_at(measurement.gangs[b], node, turns_b->second)
                                         : touched_at(measurement.gangs[a], node, turns_a->second);
        // On the unmerged runs (step 2 above).
        const auto both = overlaps(clip(measurement.gangs[a].nodes.at(node), measurement.until),
                                   clip(measurement.gangs[b].nodes.at(node), measurement.until));
        for (const Interval& piece : both) {
          settling += std::max(Duration{}, std::min(piece.to, counted_from) - piece.from);
          const Duration hard = std::max(Duration{}, piece.to - std::max(piece.from, counted_from));
          findings.overlap_total += hard;
          findings.overlap_max = std::max(findings.overlap_max, hard);
        }
      }
    }
    findings.settling_overlap = std::max(findings.settling_overlap, settling);
  }
}

// The first swap's boundary, if any, and what the switches show.
void find_switches(const Measurement& measurement, const Turns& turns, Findings& findings) {
  std::vector<std::int64_t> gaps;
  std::optional<Instant> first_swap;
  for (const std::string& node : node_names(measurement)) {
    std::vector<Turn> here;
    for (std::size_t gang = 0; gang < turns.size(); ++gang) {
      const auto found = turns[gang].find(node);
      if (found == turns[gang].end()) continue;
      const Instant touched = touched_at(measurement.gangs[gang], node, found->second);
      for (const Run& run : found->second) here.push_back({run, gang, run.begin < touched});
    }
    const std::vector<Switch> switches = switches_of(std::move(here));
    findings.switches += std::ssize(switches);
    for (const Switch& one : switches) {
      // A negative gap is an overlap, which is counted elsewhere.
      gaps.push_back(std::max<std::int64_t>(0, (one.in_begin - one.out_end).count()));
    }
    if (switches.empty()) continue;
    // The window begins when all nodes have switched once, so the latest node decides.
    const Instant swap = nearest_boundary(switches.front().in_begin, measurement.slice);
    first_swap = first_swap ? std::max(*first_swap, swap) : swap;
  }
  findings.gap_micros = percentiles(std::move(gaps));
  if (!first_swap) return;
  const std::int64_t slots =
      // Rounded down to an even number of slices.
      std::max<std::int64_t>(0, (measurement.until - *first_swap) / measurement.slice / 2 * 2);
  findings.slices = slots;
  findings.window = Interval{*first_swap, *first_swap + measurement.slice * slots};
}

// First to last node of a gang to run after a boundary, for each turn in the window.
void find_skew(const Measurement& measurement, const Turns& turns, Findings& findings) {
  std::vector<std::int64_t> skews;
  for (const auto& nodes : turns) {
    // All turns that begin near one boundary are one turn of the gang, whichever node they are on.
    std::map<Instant, std::vector<Instant>> begins;  // by boundary
    for (const auto& [node, node_turns] : nodes) {
      for (const Run& turn : node_turns) {
        const Instant boundary = nearest_boundary(turn.begin, measurement.slice);
        if (boundary < findings.window->from || boundary >= findings.window->to) continue;
        begins[boundary].push_back(turn.begin);
      }
    }
    for (const auto& [boundary, instants] : begins) {
      // A turn that one node did not see, for example because the job ended, says nothing about
      // skew.
      if (instants.size() != nodes.size()) continue;
      const auto [first, last] = std::minmax_element(instants.begin(), instants.end());
      skews.push_back((*last - *first).count());
    }
  }
  findings.skew_micros = percentiles(std::move(skews));
}

// Means over the nodes of the gang, which all have the same turns.
JobShare share_of(const std::string& name, const std::map<std::string, std::vector<Run>>& nodes,
                  Interval window, Duration turn_min) {
  JobShare out{.name = name};
  if (nodes.empty()) return out;
  Duration ran{};
  std::int64_t turns = 0;
  for (const auto& [node, node_turns] : nodes) {
    for (const Run& turn : node_turns) {
      const Duration inside = std::min(turn.end, window.to) - std::max(turn.begin, window.from);
      // A turn outside the window.
      if (inside <= Duration{}) continue;
      ran += inside;
      // A turn that merely reaches into the window by a late switch does not belong to it.
      if (inside >= turn_min) ++turns;
    }
  }
  const double count = static_cast<double>(nodes.size());
  out.run_seconds = seconds(ran) / count;
  // All of the window in which it did not run, including the gaps at switches.
  out.suspended_seconds = seconds(window.to - window.from) - out.run_seconds;
  out.turns = std::llround(static_cast<double>(turns) / count);
  return out;
}

// Returns the part of the work that taking turns costs, in percent: the work of all gangs together
// on one node and second, against the first gang's while it was alone.
double lost_percent(const Measurement& measurement, Interval window) {
  // Units per second if no time before the turns was measured: a probe counts one each millisecond.
  double expected_rate = 1e6 / static_cast<double>(Duration{std::chrono::milliseconds{1}}.count());
  const auto mean_rate = [&](const Gang& gang, Interval interval) {
    double progress = 0;
    for (const auto& [node, runs] : gang.nodes) progress += progress_in(runs, interval);
    return progress / static_cast<double>(gang.nodes.size()) / seconds(interval.to - interval.from);
  };
  const auto& unsliced = measurement.unsliced;
  if (unsliced && unsliced->to - unsliced->from >= kUnslicedMin &&
      !measurement.gangs.front().nodes.empty()) {
    expected_rate = mean_rate(measurement.gangs.front(), *unsliced);
  }
  double rate = 0;
  for (const Gang& gang : measurement.gangs) {
    if (!gang.nodes.empty()) rate += mean_rate(gang, window);
  }
  return expected_rate > 0 ? 100.0 * (1.0 - rate / expected_rate) : 0.0;
}

}  // namespace

Duration turn_gap(Duration slice) {
  return std::min<Duration>(slice / 2, kTurnGapMax);
}

// REQUIRES: the runs are in the order of time, as stamp files have them. Progress adds up.
std::vector<Run> merge_runs(const std::vector<Run>& runs, Duration gap) {
  std::vector<Run> out;
  for (const Run& run : runs) {
    if (!out.empty() && run.begin - out.back().end < gap) {
      out.back().end = std::max(out.back().end, run.end);
      out.back().progress += run.progress;
    } else {
      out.push_back(run);
    }
  }
  return out;
}

// REQUIRES: both lists are sorted and disjoint in themselves. Two fingers, one for each list.
std::vector<Interval> overlaps(const std::vector<Run>& a, const std::vector<Run>& b) {
  std::vector<Interval> out;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const Instant from = std::max(a[i].begin, b[k].begin);
    const Instant to = std::min(a[i].end, b[k].end);
    if (from < to) out.push_back({from, to});
    // The run that ends first cannot overlap with anything later of the other list. Cost: linear.
    (a[i].end < b[k].end ? i : k) += 1;
  }
  return out;
}

Percentiles percentiles(std::vector<std::int64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  // Nearest rank: an observed value, not an interpolated one.
  const auto at_share = [&](std::size_t percent) {
    // The rank is rounded up; minus one because indexes begin at 0.
    return values[(values.size() * percent + 99) / 100 - 1];
  };
  return {at_share(50), at_share(99)};
}

double progress_in(const std::vector<Run>& runs, Interval interval) {
  double sum = 0;
  for (const Run& run : runs) {
    const Duration inside = std::min(run.end, interval.to) - std::max(run.begin, interval.from);
    const Duration whole = run.end - run.begin;
    if (inside < Duration{}) continue;
    // A run of one instant has no length; its progress counts whole.
    const double part = whole <= Duration{} ? 1.0 : seconds(inside) / seconds(whole);
    sum += part * static_cast<double>(run.progress);
  }
  return sum;
}

// Without a window (no gang has changed) only overlaps and switches are said.
Findings analyse(const Measurement& measurement) {
  CHECK(measurement.slice > Duration{});
  const Turns turns = all_turns(measurement);
  Findings findings;
  find_overlaps(measurement, turns, findings);
  find_switches(measurement, turns, findings);
  if (!findings.window || findings.slices == 0) return findings;
  find_skew(measurement, turns, findings);
  findings.lost_percent = lost_percent(measurement, *findings.window);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    findings.jobs.push_back(share_of(measurement.gangs[i].name, turns[i], *findings.window,
                                     turn_gap(measurement.slice)));
  }
  return findings;
}

}  // namespace probe
