// Turns, by the stamps of the probes: which gang ran in which slot. For the scenarios and for the
// tests on a real Kubernetes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "e2e/devcluster/stamp_store.h"
#include "e2e/probe/analysis.h"

namespace scenarios {

using base::Duration;
using base::Instant;

class Turns {
 public:
  Turns(devcluster::StampStore stamps, Duration slice)
      : stamps_{std::move(stamps)}, slice_{slice} {}

  const devcluster::StampStore& stamps() const { return stamps_; }
  Duration slice() const { return slice_; }

  // Returns the jobs that ran on the node in the slot (number floor(t / slice)): the one that ran
  // most, and a second one if it had a good part of the slot too.
  std::vector<std::string> owners(const std::string& node, std::int64_t slot,
                                  const std::vector<std::string>& job_names) const;
  // Returns the owners of every whole slot in [from, to): one text per slot, "first" or
  // "first+third" or "".
  std::vector<std::string> owners_of_slots(const std::string& node, Instant from, Instant to,
                                           const std::vector<std::string>& job_names) const;
  // Overlap of any two of the jobs on any node since `from`; in [from, to) on the nodes.
  Duration overlap_since(Instant from, const std::vector<std::string>& job_names) const;
  Duration overlap_between(Instant from, Instant to, const std::vector<std::string>& job_names,
                           const std::vector<std::string>& nodes) const;
  // Returns true if the job made progress on all its nodes in the last `patience` before `at`.
  bool runs_at(Instant at, const std::string& name, Duration patience) const;

 private:
  std::vector<probe::Gang> gangs(const std::vector<std::string>& job_names) const;

  devcluster::StampStore stamps_;
  Duration slice_;
};

}  // namespace scenarios
