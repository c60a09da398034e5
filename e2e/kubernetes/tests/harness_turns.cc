#include "e2e/kubernetes/tests/harness.h"

#include <algorithm>

#include "e2e/probe/analysis.h"
#include "kube/api/time_format.h"

namespace kubernetes {
namespace {

constexpr Duration kSlice = milliseconds{500};  // values.yaml

// Of each overlap of two jobs: the node, and their runs within a slice of it.
std::string overlaps_of(const scenarios::Turns& turns, Instant from,
                        const std::vector<std::string>& job_names) {
  std::string text;
  const auto tell = [&](const std::string& name, const std::vector<probe::Run>& runs,
                        const probe::Interval& piece) {
    text += " " + name;
    for (const probe::Run& run : runs) {
      if (run.begin > piece.to + kSlice || run.end < piece.from - kSlice) continue;
      text += " " + kube::format_micro_time(run.begin) + " to " + kube::format_micro_time(run.end) +
              ";";
    }
  };
  for (std::size_t b = 1; b < job_names.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      const probe::Gang one = turns.stamps().gang(job_names[a]);
      const probe::Gang other = turns.stamps().gang(job_names[b]);
      for (const auto& [node, runs] : one.nodes) {
        const auto theirs = other.nodes.find(node);
        if (theirs == other.nodes.end()) continue;
        for (const probe::Interval& piece : probe::overlaps(runs, theirs->second)) {
          if (piece.to <= from) continue;
          text += node + ":";
          tell(one.name, runs, piece);
          tell(other.name, theirs->second, piece);
          text += "\n";
        }
      }
    }
  }
  return text;
}

}  // namespace

scenarios::Turns Cluster::turns() const {
  return {devcluster::StampStore{stamps_in_}, kSlice};
}

void Cluster::wait_for_turns(const std::vector<std::string>& job_names,
                             const std::vector<std::string>& node_names) {
  const Instant begin = now();
  const auto take_turns = [&] {
    const Instant to = now();
    const Instant from =
        std::max(begin, to - kSlice * static_cast<std::int64_t>(2 * job_names.size() + 2));
    for (const std::string& node_name : node_names) {
      const auto slots = turns().owners_of_slots(node_name, from, to, job_names);
      for (const std::string& name : job_names) {
        if (std::count(slots.begin(), slots.end(), name) < 2) return false;
      }
      if (std::any_of(slots.begin(), slots.end(), [](const std::string& owners) {
            return owners.find('+') != std::string::npos;
          })) {
        return false;
      }
    }
    return true;
  };
  ASSERT_TRUE(eventually(take_turns, kPatience, milliseconds{200}))
      << "they do not take turns on all of these nodes";
}

void Cluster::expect_turns_since(Instant from, const std::vector<std::string>& job_names) {
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(job_names));
  EXPECT_EQ(turns().overlap_since(from, job_names), Duration{})
      << overlaps_of(turns(), from, job_names);
}

void Cluster::expect_turns_between(Instant from, Instant to,
                                   const std::vector<std::string>& job_names,
                                   const std::vector<std::string>& node_names) const {
  for (const std::string& name : node_names) {
    const auto slots = turns().owners_of_slots(name, from, to, job_names);
    const auto wanted = slots.size() / job_names.size() / 2;  // half of its share: others are busy
    ASSERT_GE(wanted, 1U) << "too short a time";
    for (const std::string& job_name : job_names) {
      EXPECT_GE(static_cast<std::size_t>(std::count(slots.begin(), slots.end(), job_name)), wanted)
          << job_name << " on " << name << " in " << slots.size() << " slots";
    }
  }
  // In whole, as far as it is this time's.
  EXPECT_EQ(turns().overlap_between(from, to, job_names, node_names), Duration{})
      << overlaps_of(turns(), from, job_names);
}

void Cluster::expect_ran_without_a_break(Instant from, Instant to, const std::string& name,
                                         const std::string& node_name, Duration pause) const {
  if (pause == Duration{}) pause = kSlice / 2;
  const probe::Gang gang = turns().stamps().gang(name);
  const auto found = gang.nodes.find(node_name);
  ASSERT_NE(found, gang.nodes.end()) << name << " never ran on " << node_name;
  const auto whole = probe::merge_runs(found->second, pause);
  EXPECT_TRUE(std::any_of(
      whole.begin(), whole.end(),
      [&](const probe::Run& run) { return run.begin <= from && run.end >= to - pause; }))
      << name << " on " << node_name << ": " << whole.size() << " turns";
}

void Cluster::expect_undisturbed(const std::string& job_name) {
  const kube::Job found = job(job_name);
  EXPECT_EQ(found.status.starts.value_or(0), 1) << job_name;
  EXPECT_EQ(found.status.restarts.value_or(0), 0) << job_name;
  ASSERT_TRUE(found.status.allocation) << status_text(job_name);
  const std::vector<json> all = pods(job_name);
  EXPECT_EQ(std::ssize(all), found.spec.resources.nodes->min) << job_name;
  for (const json& pod : all) {
    EXPECT_EQ(pod["status"]["phase"], "Running") << pod["metadata"]["name"];
    for (const json& container : pod["status"]["containerStatuses"]) {
      EXPECT_EQ(container["restartCount"], 0) << pod["metadata"]["name"];
    }
  }
}

}  // namespace kubernetes
