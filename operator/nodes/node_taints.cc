#include "operator/nodes/node_taints.h"

#include <algorithm>

#include "api/wellknown.h"

namespace control {
namespace {

constexpr BackOff kTaintBackOff{.first = std::chrono::seconds{10}, .max = std::chrono::seconds{10}};
// After an answer the watch tells whether anything is left to do.
constexpr base::Duration kTaintRest = std::chrono::seconds{1};

// Key and effect together are what makes a taint one of its kind in Kubernetes.
bool is_our_taint(const kube::Taint& taint) {
  return taint.key == kube::kTaintManaged && taint.effect == kube::kTaintManagedEffect;
}

}  // namespace

// Returns true if the node has our taint and should not, or the other way round.
bool NodeTaints::differs(const kube::Node& node) const {
  const auto& taints = node.spec.taints;
  return std::any_of(taints.begin(), taints.end(), is_our_taint) != wants(node.metadata.name);
}

void NodeTaints::observe(const kube::Node& node) {
  if (differs(node)) to_write_.try_emplace(node.metadata.name, kTaintBackOff);
}

std::vector<SetTaints> NodeTaints::due(base::Instant now, const FindNode& find, std::size_t room) {
  std::vector<SetTaints> effects;
  for (auto at = to_write_.begin(); at != to_write_.end();) {
    auto& [name, attempts] = *at;
    // A node that is as it should be needs no write, unless an answer is still to come that will
    // say otherwise.
    const kube::Node* node = find(name);
    if ((node == nullptr || !differs(*node)) && !attempts.is_under_way()) {
      at = to_write_.erase(at);
      continue;
    }
    ++at;
    if (node == nullptr || effects.size() == room || !attempts.may_begin(now)) continue;
    SetTaints effect{.node = name, .taints = {}, .version = node->metadata.resource_version};
    // The list of taints is atomic: it is written whole, with the version that it was read at, so
    // that a taint that another client has set meanwhile is not lost.
    std::copy_if(node->spec.taints.begin(), node->spec.taints.end(),
                 std::back_inserter(effect.taints),
                 [](const kube::Taint& taint) { return !is_our_taint(taint); });
    if (wants(name)) {
      effect.taints.push_back({.key = std::string{kube::kTaintManaged},
                               .effect = std::string{kube::kTaintManagedEffect}});
    }
    attempts.begin();
    effects.push_back(std::move(effect));
  }
  return effects;
}

// A race is lost to whatever else changes the Node, such as kubelet's heartbeats: the newer version
// is known soon, and no failure is counted.
void NodeTaints::answered(const TaintsSet& outcome, base::Instant now) {
  const auto found = to_write_.find(outcome.node);
  if (found == to_write_.end()) return;
  Attempts& attempts = found->second;
  if (outcome.result.ok()) {
    attempts.succeeded();
  } else if (outcome.result.error().code == base::Code::kConflict) {
    attempts.lost_race();
  } else {
    attempts.failed(now);
  }
  // Without the rest the node would look unwritten until its watch event arrives, and be written
  // again.
  attempts.rest_until(now + kTaintRest);
}

base::Instant NodeTaints::next_due(base::Instant now) const {
  base::Instant due = base::kNever;
  for (const auto& [name, attempts] : to_write_) {
    if (attempts.due() > now) due = std::min(due, attempts.due());
  }
  return due;
}

}  // namespace control
