// YAML files as kubectl reads them: documents turned into JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace devcluster {

// Returns each document of the text as JSON; empty documents are left out. kInvalidArgument with
// line and column where it does not parse. Plain scalars follow YAML 1.1 as kubectl's parser has it
// for booleans, numbers and null; quoted ones stay strings.
base::Result<std::vector<std::string>> yaml_documents(std::string_view text);

// Does the same for a file; kNotFound where it cannot be read. Messages name the file.
base::Result<std::vector<std::string>> read_yaml_file(const std::string& path);

}  // namespace devcluster
