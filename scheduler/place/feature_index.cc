#include "scheduler/place/feature_index.h"

#include <algorithm>
#include <utility>

namespace sched {
namespace {

bool has_feature(const NodeSpec& node, const std::string& feature) {
  return std::ranges::find(node.features, feature) != node.features.end();
}

}  // namespace

// Only features that a job has asked for are kept up to date; the others are read when one asks.
void FeatureIndex::node_changed(int rank) {
  const NodeSpec& node = cluster_.spec_at(rank);
  for (auto& [feature, nodes] : nodes_with_) nodes.assign(rank, has_feature(node, feature));
}

const NodeSet& FeatureIndex::nodes_with(const std::string& feature) {
  const auto known = nodes_with_.find(feature);
  if (known != nodes_with_.end()) return known->second;
  // Names come from users' constraints, so without a bound they would pile up. Features in use come
  // back at once.
  if (nodes_with_.size() == kKeptMax) nodes_with_.clear();
  NodeSet nodes = cluster_.no_nodes();
  for (int rank = 0; rank < cluster_.node_count(); ++rank) {
    if (has_feature(cluster_.spec_at(rank), feature)) nodes.set(rank);
  }
  return nodes_with_.emplace(feature, std::move(nodes)).first->second;
}

}  // namespace sched
