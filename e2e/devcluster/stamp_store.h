// Where the probes of a devcluster stamp: <directory>/<node>/<pod>.stamps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "e2e/devcluster/demo/picture.h"
#include "e2e/probe/analysis.h"

namespace devcluster {

class StampStore {
 public:
  explicit StampStore(std::string directory) : directory_{std::move(directory)} {}

  // Empties it and makes the nodes' folders.
  base::Status prepare(const std::vector<std::string>& nodes);

  // Returns the value of KUBEGANG_STAMP_FILE in containers, for the kubelet to expand.
  std::string file_pattern() const { return directory_ + "/$(NODE)/$(POD).stamps"; }

  // Returns the runs of one job's pods (named "<job>-<hash>-<index>"), by node, and when each was
  // first frozen, as far as `first_freezes` (by pod name) knows. A node without a file is left out.
  probe::Gang gang(const std::string& job,
                   const std::map<std::string, base::Instant>& first_freezes = {}) const;

 private:
  std::string directory_;
};

// Returns which gang ran in each of `columns` cells before `now`, by the stamps.
std::vector<NodeStrip> node_strips(const std::vector<std::string>& nodes,
                                   const std::vector<probe::Gang>& gangs, base::Instant now,
                                   base::Duration cell, std::size_t columns);

}  // namespace devcluster
