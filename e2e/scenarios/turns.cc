#include "e2e/scenarios/turns.h"

#include <algorithm>

#include "e2e/probe/analysis.h"

namespace scenarios {
namespace {

// Returns how long any two of them ran at the same time on any node within [from, to), summed up.
Duration overlap(const std::vector<probe::Gang>& gangs, Instant from, Instant to) {
  Duration total{};
  for (std::size_t a = 0; a < gangs.size(); ++a) {
    for (std::size_t b = a + 1; b < gangs.size(); ++b) {
      for (const auto& [node, runs] : gangs[a].nodes) {
        const auto other = gangs[b].nodes.find(node);
        if (other == gangs[b].nodes.end()) continue;
        for (const probe::Interval& piece : probe::overlaps(runs, other->second)) {
          total += std::max(Duration{}, std::min(piece.to, to) - std::max(piece.from, from));
        }
      }
    }
  }
  return total;
}

}  // namespace

// Returns the job that ran most in the slot, and the second one if it ran for two fifths of it:
// less than that is the edge of a late switch, and more means that both ran.
std::vector<std::string> Turns::owners(const std::string& node, std::int64_t slot,
                                       const std::vector<std::string>& job_names) const {
  const Instant from = base::slot_begin(slot, slice_);
  const Instant to = from + slice_;
  std::vector<std::pair<Duration, std::string>> shares;
  for (const std::string& name : job_names) {
    const probe::Gang gang = stamps_.gang(name);
    const auto found = gang.nodes.find(node);
    if (found == gang.nodes.end()) continue;
    Duration ran{};
    for (const probe::Run& run : found->second) {
      ran += std::max(Duration{}, std::min(run.end, to) - std::max(run.begin, from));
    }
    shares.emplace_back(ran, name);
  }
  std::sort(shares.rbegin(), shares.rend());
  // A busy machine may keep a process waiting for much of its slot, but not for all of it.
  std::vector<std::string> out;
  if (!shares.empty() && shares[0].first >= slice_ / 20) out.push_back(shares[0].second);
  if (shares.size() > 1 && shares[1].first >= slice_ * 2 / 5) {
    out.push_back(shares[1].second);
  }
  return out;
}

// Returns "first", "first+second" if both ran, "" if none did; one entry for each slot.
std::vector<std::string> Turns::owners_of_slots(const std::string& node, Instant from, Instant to,
                                                const std::vector<std::string>& job_names) const {
  std::vector<std::string> out;
  const std::int64_t first = base::slot_of(base::boundary_at_or_after(from, slice_), slice_);
  // Whole slots only: the first begins at or after `from`, and the last ends at or before `to`.
  const std::int64_t last = base::slot_of(to, slice_);
  for (std::int64_t slot = first; slot < last; ++slot) {
    std::string text;
    for (const std::string& name : owners(node, slot, job_names)) {
      text += (text.empty() ? "" : "+") + name;
    }
    out.push_back(std::move(text));
  }
  return out;
}

Duration Turns::overlap_since(Instant from, const std::vector<std::string>& job_names) const {
  return overlap(gangs(job_names), from, base::kNever);
}

// Jobs may share only some of their nodes with each other; the others are left out.
Duration Turns::overlap_between(Instant from, Instant to, const std::vector<std::string>& job_names,
                                const std::vector<std::string>& nodes) const {
  std::vector<probe::Gang> there = gangs(job_names);
  for (probe::Gang& gang : there) {
    std::erase_if(gang.nodes, [&](const auto& entry) {
      return std::find(nodes.begin(), nodes.end(), entry.first) == nodes.end();
    });
  }
  return overlap(there, from, to);
}

std::vector<probe::Gang> Turns::gangs(const std::vector<std::string>& job_names) const {
  std::vector<probe::Gang> out;
  for (const std::string& name : job_names) out.push_back(stamps_.gang(name));
  return out;
}

// By the last stamp on each node: a probe that runs stamps every millisecond.
// On every node that it has ever run on: a gang of which one node stands still does not run.
bool Turns::runs_at(Instant at, const std::string& name, Duration patience) const {
  const probe::Gang gang = stamps_.gang(name);
  return !gang.nodes.empty() &&
         std::all_of(gang.nodes.begin(), gang.nodes.end(), [&](const auto& entry) {
           return !entry.second.empty() && at - entry.second.back().end < patience;
         });
}

}  // namespace scenarios
