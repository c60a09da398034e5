#include "e2e/contract/bad_manifests.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "kube/testing/api_server/yaml_json.h"

namespace contract {
namespace {

// Returns the value of a head line "# KEY: value"; "" if there is none. The head ends with the
// first line that is not a comment.
std::string head_value(const std::string& text, const std::string& key) {
  const std::string prefix = "# " + key + ": ";
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line) && line.starts_with("#");) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return "";
}

// nullopt if the text is none of the three.
std::optional<RejectedBy> parse_rejected_by(const std::string& text) {
  if (text == "Schema") return RejectedBy::kSchema;
  if (text == "CEL") return RejectedBy::kCel;
  if (text == "Operator") return RejectedBy::kOperator;
  return std::nullopt;
}

// A file's head says in comments what is expected of it; the last document is the one to refuse,
// those before it are its surroundings (as a partition that it names).
base::Result<BadManifest> load(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  BadManifest manifest;
  manifest.name = path.stem();
  manifest.says = head_value(text, "Says");
  manifest.operator_names = head_value(text, "Operator names");
  const auto rejected_by = parse_rejected_by(head_value(text, "Rejected by"));
  // A file whose head has a mistake fails the tests by itself: otherwise it would be tested for
  // nothing.
  if (!rejected_by) {
    return base::invalid_argument(path.string() +
                                  ": # Rejected by: must be Schema, CEL or Operator");
  }
  manifest.rejected_by = *rejected_by;
  // Objects that only the operator refuses get in; the API server says nothing.
  if (manifest.says.empty() && *rejected_by != RejectedBy::kOperator) {
    return base::invalid_argument(path.string() + ": # Says: is missing");
  }
  if (manifest.operator_names.empty()) {
    return base::invalid_argument(path.string() + ": # Operator names: is missing");
  }
  auto documents = devcluster::yaml_documents(text);
  if (!documents.ok()) return documents.error().with_context(path.string());
  if (documents->empty()) return base::invalid_argument(path.string() + ": has no document");
  manifest.refused = std::move(documents->back());
  documents->pop_back();
  manifest.before = std::move(*documents);
  return manifest;
}

}  // namespace

// The first file with a mistake ends it.
base::Result<std::vector<BadManifest>> load_bad_manifests(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  if (error) return base::Error{base::Code::kNotFound, folder + ": " + error.message()};
  // Folders list files in any order.
  std::sort(paths.begin(), paths.end());
  std::vector<BadManifest> manifests;
  for (const std::filesystem::path& path : paths) {
    auto manifest = load(path);
    if (!manifest.ok()) return manifest.error();
    manifests.push_back(std::move(*manifest));
  }
  return manifests;
}

}  // namespace contract
