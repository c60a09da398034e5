#include "cli/cluster/check_crds.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/job.h"
#include "cli/files.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using base::Result;

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;
constexpr std::size_t kFieldsShown = 8;
// Their specs are the operator's, and one of another version writes them as it knows them.
constexpr std::array kWrittenByOperator{"nodetimetables", "usagerecords"};

// Requirements of a CRD.
struct Crd {
  std::string kind;
  std::string path;  // of the list in all namespaces
  YAML::Node spec;   // the schema of its field `spec`
};

bool is_crd(const YAML::Node& document) {
  return document.IsMap() && document["kind"] && document["kind"].IsScalar() &&
         document["kind"].Scalar() == "CustomResourceDefinition";
}

// REQUIRES: is_crd. Throws what yaml-cpp throws if it is not what an API server would take.
void add_crd(const YAML::Node& document, std::vector<Crd>& crds) {
  const YAML::Node spec = document["spec"];
  const std::string group = spec["group"].as<std::string>();
  const std::string plural = spec["names"]["plural"].as<std::string>();
  if (group != "kubegang.io" || std::ranges::count(kWrittenByOperator, plural) > 0) return;
  for (const YAML::Node& version : spec["versions"]) {
    if (!version["served"].as<bool>()) continue;
    const YAML::Node schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    crds.push_back(
        {.kind = spec["names"]["kind"].as<std::string>(),
         .path = "/apis/" + group + "/" + version["name"].as<std::string>() + "/" + plural,
         .spec = schema});
    return;
  }
}

base::Status add_crds(const std::string& path, std::vector<Crd>& crds) {
  const Result<std::string> text = read_file(path, kFileBytesMax);
  if (!text) return text.error();
  try {
    for (const YAML::Node& document : YAML::LoadAll(*text)) {
      if (is_crd(document)) add_crd(document, crds);
    }
  } catch (const YAML::Exception& problem) {
    return base::invalid_argument(path + ": " + problem.what());
  }
  return {};
}

Result<std::vector<Crd>> read_crds(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::directory_iterator{path, error}) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
    if (error) return base::invalid_argument(path + ": " + error.message());
  }
  std::ranges::sort(files);
  std::vector<Crd> crds;
  for (const std::string& file : files) {
    if (base::Status added = add_crds(file, crds); !added) return added.error();
  }
  if (crds.empty()) {
    return base::invalid_argument(paths.front() + ": no CRD of kubegang.io is in it");
  }
  return crds;
}

bool keeps_unknown_fields(const YAML::Node& schema) {
  const YAML::Node keeps = schema["x-kubernetes-preserve-unknown-fields"];
  return keeps && keeps.as<bool>();
}

bool allows(const YAML::Node& values, const std::string& value) {
  return std::ranges::any_of(
      values, [&](const YAML::Node& each) { return each.IsScalar() && each.Scalar() == value; });
}

// Adds the places in `value` of which an API server with that schema would drop the field, or whose
// value it would refuse.
void add_unknown(const nlohmann::json& value, const YAML::Node& schema, const std::string& path,
                 std::vector<std::string>& found) {
  if (value.is_array()) {
    const YAML::Node items = schema["items"];
    for (std::size_t i = 0; items && i < value.size(); ++i) {
      add_unknown(value[i], items, path + "[" + std::to_string(i) + "]", found);
    }
    return;
  }
  if (value.is_string() && schema["enum"] && !allows(schema["enum"], value)) {
    found.push_back(path + ": " + value.get<std::string>());
  }
  if (!value.is_object()) return;
  const YAML::Node properties = schema["properties"];
  const YAML::Node others = schema["additionalProperties"];
  for (const auto& [key, inner] : value.items()) {
    std::string at = path;
    at.append(".").append(key);
    if (properties && properties[key]) {
      add_unknown(inner, properties[key], at, found);
    } else if (others && others.IsMap()) {
      add_unknown(inner, others, at, found);
    } else if (!others && !keeps_unknown_fields(schema)) {
      found.push_back(at);
    }
  }
}

bool has_ended(const nlohmann::json& object) {
  const auto state =
      kube::parse_enum<kube::JobState>(object.value("/status/state"_json_pointer, ""));
  return state && kube::is_final(*state);
}

std::string name_of(const nlohmann::json& object) {
  const nlohmann::json& metadata = object["metadata"];
  const std::string ns = metadata.value("namespace", "");
  return (ns.empty() ? "" : ns + "/") + metadata.value("name", "");
}

std::string sentence(const std::string& kind, const nlohmann::json& object,
                     const std::vector<std::string>& fields) {
  std::string text = kind + " " + name_of(object) + ":";
  for (std::size_t i = 0; i < std::min(fields.size(), kFieldsShown); ++i) {
    text += (i == 0 ? " " : ", ") + fields[i];
  }
  if (fields.size() > kFieldsShown) {
    text += " and " + std::to_string(fields.size() - kFieldsShown) + " more";
  }
  return text + "\n";
}

// Writes a line for each object of the kind that has such fields, and returns their number.
Result<int> check(const Session& session, const Crd& crd, Output output) {
  int objects = 0;
  for (std::string next;;) {
    const auto page = session.client.call_json(
        kube::Method::kGet, crd.path + "?limit=500" + (next.empty() ? "" : "&continue=" + next));
    // A kind that this cluster does not have has no objects.
    if (!page && page.error().code == base::Code::kNotFound) return objects;
    if (!page) return page.error();
    for (const nlohmann::json& object : page->value("items", nlohmann::json::array())) {
      if (crd.kind == "Job" && has_ended(object)) continue;
      std::vector<std::string> fields;
      if (object.contains("spec")) add_unknown(object["spec"], crd.spec, "spec", fields);
      if (fields.empty()) continue;
      ++objects;
      output.out << sentence(crd.kind, object, fields);
    }
    next = page->value("/metadata/continue"_json_pointer, "");
    if (next.empty()) return objects;
  }
}

}  // namespace

int run_check_crds(const Session& session, const CheckCrdsOptions& options, Output output) {
  const auto fail = [&](const base::Error& error) {
    output.err << "kubectl-gang check-crds: " << error.message << "\n";
    return kExitFailed;
  };
  const Result<std::vector<Crd>> crds = read_crds(options.paths);
  if (!crds) return fail(crds.error());
  int objects = 0;
  for (const Crd& crd : *crds) {
    const Result<int> checked = check(session, crd, output);
    if (!checked) return fail(checked.error());
    objects += *checked;
  }
  if (objects == 0) {
    output.out << "Every object fits these CRDs.\n";
    return kExitOk;
  }
  output.err << "kubectl-gang check-crds: these CRDs do not know the fields and values above, and "
                "would lose them; end, cancel or change the "
             << objects << (objects == 1 ? " object" : " objects") << " first\n";
  return kExitFailed;
}

}  // namespace cli
