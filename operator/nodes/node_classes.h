// NodeClasses: the nodes that the pods of a template cannot use. They follow from its nodeSelector
// and its tolerations. Few of these exist in a cluster, so jobs whose templates have the same ones
// are a class and share one list: a list for each job would cost jobs x nodes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "translation/template_check.h"

namespace control {

// Belongs to the loop's thread.
class NodeClasses {
 public:
  using Names = std::shared_ptr<const std::vector<std::string>>;

  // Null: the node is gone. It stays in the lists in which it is; they are read by name.
  // Cost: the number of classes.
  void observe(const std::string& name, std::shared_ptr<const kube::Node> node);

  // Sorted; not null. Templates of one class get the same pointer until a node changes sides.
  // Cost: all nodes for the first template of a class, and after such a change.
  Names unusable_for(const TemplateFacts& pod_template);

  // Returns the lists that are wrong since the last call. Jobs with one of them need another.
  std::set<Names> take_outdated() { return std::exchange(outdated_, {}); }

 private:
  struct Class {
    kube::Labels node_selector;
    std::vector<kube::Toleration> tolerations;
    friend auto operator<=>(const Class&, const Class&) = default;
  };

  std::map<std::string, std::shared_ptr<const kube::Node>> nodes_;
  std::map<Class, Names> lists_;
  std::set<Names> outdated_;
};

}  // namespace control
