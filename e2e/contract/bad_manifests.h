// The table of manifests that must be refused: a folder of YAML files, each with who refuses it and
// in which words. The API server's part is tried by bad_manifests_test.cc, the operator's by the
// operator's tests, which also try what CEL refuses (the operator checks that once more).
//
//   # Rejected by: Schema | CEL | Operator
//   # Says: a part of the API server's sentence (Schema and CEL)
//   # Operator names: a part of the operator's sentence, the field or value that is wrong
//   (documents: those before the last are created first; the last one is refused. It replaces an
//   object of the same name. A document's status is written through the status subresource.)
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace contract {

enum class RejectedBy { kSchema, kCel, kOperator };

struct BadManifest {
  std::string name;  // of the file, without ".yaml"
  RejectedBy rejected_by = RejectedBy::kSchema;
  std::string says;
  std::string operator_names;
  std::vector<std::string> before;  // JSON of the documents before the last
  std::string refused;              // JSON of the last
};

// Reads all files of a folder, by name. kInvalidArgument names a file without head or documents.
base::Result<std::vector<BadManifest>> load_bad_manifests(const std::string& folder);

}  // namespace contract
