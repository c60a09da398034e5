// Importer: Slurm's configuration becomes YAML of our kinds. Pure.
//
// The importer takes everything that the API can say and tells the rest, line by line: a parameter,
// or a word of its list, is taken if the spec that it becomes means the same to the operator,
// translated back. Objects that the operator would not accept are left out. Nodes are not objects
// of ours: they are named in a comment.
#pragma once

#include <string>
#include <vector>

namespace cli {

// A slurm.conf, what `sacctmgr dump` wrote, or what `sacctmgr --parsable2 show qos` printed.
struct ImportFile {
  std::string name;
  std::string text;
};

struct Imported {
  std::string yaml;
  std::vector<std::string> remarks;  // "slurm.conf:12: …", in the order of files and lines
};
Imported import_slurm(const std::vector<ImportFile>& files);

}  // namespace cli
