// Importer: Slurm's configuration becomes YAML of kubegang's kinds. Pure.
//
// The importer takes everything that the API can say and reports the rest, line by line: a
// parameter, or a word of its list, is taken if the spec that it becomes means the same to the
// operator, translated back. Objects that the operator would not accept are left out. Nodes are
// Kubernetes' objects: a comment names them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cli {

// A slurm.conf, a gres.conf, what `sacctmgr dump` wrote, or what `sacctmgr --parsable2 show qos`
// printed.
struct ImportFile {
  std::string name;
  std::string text;
};

struct Imported {
  std::string yaml;
  // "slurm.conf:12: …": what is lost, who may use what, parameters, notes. Then what was counted
  // only, and a summary, if any file said anything.
  std::vector<std::string> remarks;
  bool object_lost = false;   // or an included file, or a line
  bool setting_lost = false;  // or a rule about access was changed
};
// Reads a file that another one includes.
using ReadInclude = std::function<base::Result<std::string>(const std::string& path)>;
Imported import_slurm(const std::vector<ImportFile>& files, const ReadInclude& read_include);

}  // namespace cli
