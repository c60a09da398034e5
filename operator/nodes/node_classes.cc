#include "operator/nodes/node_classes.h"

#include <algorithm>

#include "translation/job_translation.h"

namespace control {

void NodeClasses::observe(const std::string& name, std::shared_ptr<const kube::Node> node) {
  if (node == nullptr) {
    nodes_.erase(name);
    return;
  }
  std::erase_if(lists_, [&](auto& each) {
    auto& [one, list] = each;
    if (list.use_count() == 1) return true;  // no job has it
    const bool was_usable = !std::ranges::binary_search(*list, name);
    if (was_usable == can_use(one.node_selector, one.tolerations, *node)) return false;
    // Jobs of the list are judged again now, and the first of them has the list built again.
    outdated_.insert(std::move(list));
    return true;
  });
  nodes_.insert_or_assign(name, std::move(node));
}

NodeClasses::Names NodeClasses::unusable_for(const TemplateFacts& pod_template) {
  const auto [found, is_new] =
      lists_.try_emplace({pod_template.node_selector, pod_template.tolerations});
  const auto& [one, list] = *found;
  if (!is_new) return list;
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (!can_use(one.node_selector, one.tolerations, *node)) names.push_back(name);
  }
  found->second = std::make_shared<const std::vector<std::string>>(std::move(names));
  return list;
}

}  // namespace control
