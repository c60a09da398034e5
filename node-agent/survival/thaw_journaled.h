// Thaws everything that a journal names: what the supervisor does when the worker cannot.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/survival/journal.h"

namespace agent {

struct ThawResult {
  struct Failed {
    PodIdentity pod{};
    std::string why{};
  };
  std::size_t thawed_count = 0;  // asked to thaw, and seen running
  std::size_t gone_count = 0;
  std::vector<Failed> failed{};
};

// Makes one attempt on each pod; call it again for those that failed.
ThawResult thaw_journaled(const std::vector<PodIdentity>& pods, const PodCgroups& cgroups);

}  // namespace agent
