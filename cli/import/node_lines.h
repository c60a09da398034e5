// NodeLines: what a slurm.conf says of its nodes. Nodes are Kubernetes' own objects, so the import
// makes none: it needs their names, and the rest becomes commands for kubectl.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/devices_config.h"
#include "base/result.h"
#include "cli/import/remarks.h"
#include "scheduler/model/devices.h"
#include "slurm/text.h"

namespace cli {

class NodeLines {
 public:
  // Reads a line NodeName=…; DEFAULT lines hold for the lines behind them. Values that Kubernetes
  // has no place for are reported.
  void add_nodes(FilePlace place, const std::vector<slurm::KeyValue>& keys, Remarks& remarks);
  // Adds a line of gres.conf. REQUIRES: all nodes and sets were added.
  void add_gres_line(FilePlace place, const std::vector<slurm::KeyValue>& keys, Remarks& remarks);
  // Adds a line DownNodes=…
  void add_down(FilePlace place, const std::vector<slurm::KeyValue>& keys, Remarks& remarks);
  // Adds a line NodeSet=…, the nodes of a feature, a list or both. REQUIRES: all nodes were added.
  void add_set(FilePlace place, const std::vector<slurm::KeyValue>& keys, Remarks& remarks);

  const std::vector<std::string>& names() const { return names_; }
  // Returns the nodes of a list in which names of sets may stand, or of ALL.
  base::Result<std::vector<std::string>> resolve(std::string_view list) const;
  // Returns the devices of nodes beside GPUs, each with a resource that stands for the real one:
  // nothing in the files says what that is called.
  std::vector<kube::DeviceResource> devices() const;
  // Commands that say the same of the nodes of Kubernetes.
  std::vector<std::string> commands() const;

 private:
  void add_gres(FilePlace place, const std::string& value, const std::vector<std::string>& nodes,
                Remarks& remarks);
  void add_device(FilePlace place, const std::string& text, const sched::DeviceKind& kind,
                  Remarks& remarks);

  std::vector<slurm::KeyValue> defaults_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<std::string>> nodes_of_feature_;
  std::map<std::string, std::vector<std::string>> sets_;
  // The arguments of "kubectl label node": the labels, and the nodes that get them.
  std::map<std::string, std::vector<std::string>> labeled_;
  std::vector<std::string> cordoned_;
  std::map<std::string, std::set<std::string>> devices_;  // types by name; "" = without one
  std::set<std::string> typed_gpus_;                      // nodes of which a type is named
};

}  // namespace cli
