// Partition.spec.taintNodes: the taint kubegang.io/managed:NoSchedule on its nodes keeps other pods
// off (architecture.md 4). The key is ours: a node of no such partition loses it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {
namespace {

bool is_ours(const kube::Taint& taint) {
  return taint.key == kube::kTaintManaged && taint.effect == kube::kTaintManagedEffect;
}

}  // namespace

bool ControlLoop::taint_differs(const NodeRecord& record) const {
  if (record.node == nullptr) return false;
  const auto& taints = record.node->spec.taints;
  return std::any_of(taints.begin(), taints.end(), is_ours) != record.wants_taint;
}

// Which nodes want it, of the partitions as accepted.
void ControlLoop::choose_taints() {
  for (auto& [name, record] : nodes_) record.wants_taint = false;
  for (const auto& partition : configuration_.partitions) {
    const auto status = partition_status_.find(partition.name);
    if (status == partition_status_.end() || !status->second.wanted.accepted) continue;
    if (!status->second.wanted.accepted->taint_nodes.value_or(false)) continue;
    for (const std::string& name : partition.nodes) {
      if (const auto node = nodes_.find(name); node != nodes_.end())
        node->second.wants_taint = true;
    }
  }
  for (const auto& [name, record] : nodes_) {
    if (taint_differs(record)) untainted_.insert(name);
  }
}

void ControlLoop::write_due_taints() {
  for (auto at = untainted_.begin(); at != untainted_.end();) {
    const auto found = nodes_.find(*at);
    if (found == nodes_.end() || !taint_differs(found->second)) {
      at = untainted_.erase(at);
      continue;
    }
    NodeRecord& record = found->second;
    if (!record.is_tainting && record.taint_retry_at <= now_) write_taint(*at, record);
    ++at;
  }
}

void ControlLoop::write_taint(const std::string& name, NodeRecord& record) {
  kube::Node changed;
  for (const kube::Taint& taint : record.node->spec.taints) {
    if (!is_ours(taint)) changed.spec.taints.push_back(taint);
  }
  if (record.wants_taint) {
    changed.spec.taints.push_back({.key = std::string{kube::kTaintManaged},
                                   .effect = std::string{kube::kTaintManagedEffect}});
  }
  nlohmann::json taints = nullptr;  // a merge patch replaces lists as a whole
  if (!changed.spec.taints.empty()) taints = kube::encode(changed)["spec"]["taints"];
  record.is_tainting = true;
  log(record.wants_taint ? "node tainted" : "node untainted", "node=" + name);
  writer_.submit({.point = "taint",
                  .run = [this, client = client_, name, taints,
                          version = record.node->metadata.resource_version] {
                    auto result = client.patch<kube::Node>({.ns = "", .name = name},
                                                           {{"spec", {{"taints", taints}}}},
                                                           {.resource_version = version});
                    return [this, name, result = std::move(result)] {
                      const auto found = nodes_.find(name);
                      if (found == nodes_.end()) return;
                      NodeRecord& node = found->second;
                      node.is_tainting = false;
                      node.taint_retry_at =
                          now_ + std::chrono::seconds{1};  // the watch tells the rest
                      if (result.ok()) {
                        inbox_.changed<kube::Node>(std::make_shared<const kube::Node>(*result));
                        return;
                      }
                      if (result.error().code == base::Code::kConflict) return;
                      ++counters_.write_failures;
                      node.taint_retry_at = now_ + std::chrono::seconds{10};
                      warn("node's taint not written",
                           "node=" + name + " error=\"" + result.error().message + "\"");
                    };
                  }});
}

}  // namespace control
