// The project's CustomResourceDefinitions: consistent, described, bounded.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kube/testing/api_server/resource_type.h"
#include "kube/testing/api_server/yaml_json.h"

namespace devcluster {
namespace {

using nlohmann::json;

// Returns the CRDs of the folder crds/, each from a file of its own that is named after it.
std::vector<json> all_crds() {
  std::vector<json> crds;
  for (const auto& entry : std::filesystem::directory_iterator{KUBEGANG_SOURCE_DIR "/crds"}) {
    if (entry.path().extension() != ".yaml") continue;
    const auto documents = read_yaml_file(entry.path().string());
    EXPECT_TRUE(documents.ok()) << documents.error().message;
    EXPECT_EQ(documents->size(), 1U) << entry.path();
    crds.push_back(json::parse(documents->front()));
    const json& spec = crds.back()["spec"];
    EXPECT_EQ(entry.path().filename(),
              "kubegang.io_" + spec["names"]["plural"].get<std::string>() + ".yaml");
  }
  return crds;
}

// Calls visit(node, path) for the schema and everything below.
template <typename Visit>
void walk(const json& node, const std::string& path, const Visit& visit) {
  visit(node, path);
  const json properties = node.value("properties", json::object());
  for (const auto& [name, child] : properties.items()) walk(child, path + "." + name, visit);
  if (node.contains("items")) walk(node["items"], path + "[]", visit);
  if (node.contains("additionalProperties") && node["additionalProperties"].is_object()) {
    walk(node["additionalProperties"], path + "{}", visit);
  }
}

const json& schema_of(const json& crd) {
  return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

// A short name that two kinds have would make kubectl choose one of them. The status subresource is
// there exactly for kinds with a status: without it, each write of the object could change the
// status, too.
TEST(Crds, AreValidAndNamedConsistently) {
  const std::vector<json> crds = all_crds();
  ASSERT_EQ(crds.size(), 7U);
  std::set<std::string> short_names;
  for (const json& crd : crds) {
    const json& spec = crd["spec"];
    SCOPED_TRACE(crd["metadata"]["name"]);
    EXPECT_TRUE(validate_crd(crd).empty());
    EXPECT_EQ(spec["group"], "kubegang.io");
    EXPECT_EQ(spec["names"]["categories"], json({"kubegang"}));
    EXPECT_EQ(spec["names"]["listKind"], spec["names"]["kind"].get<std::string>() + "List");
    EXPECT_EQ(spec["versions"][0]["name"], "v1alpha1");
    const bool has_status = schema_of(crd)["properties"].contains("status");
    EXPECT_EQ(spec["versions"][0].value("subresources", json::object()).contains("status"),
              has_status);
    for (const json& name : spec["names"].value("shortNames", json::array())) {
      EXPECT_TRUE(short_names.insert(name).second) << name;
    }
  }
}

// The schema is the reference that users have at hand: `kubectl explain` prints these texts.
TEST(Crds, DescribeEveryFieldAndColumn) {
  for (const json& crd : all_crds()) {
    walk(
        schema_of(crd), crd["spec"]["names"]["kind"],
        [](const json& node, const std::string& path) {
          // A real server refuses a description of the top-level metadata.
          if (std::count(path.begin(), path.end(), '.') == 1 && path.ends_with(".metadata")) return;
          const std::string description = node.value("description", "");
          EXPECT_FALSE(description.empty()) << path;
          // "min is the fewest …": kubectl explain shows it without what stands around it.
          const std::string field = path.substr(path.rfind('.') + 1);
          if (path.find('.') == std::string::npos || path.ends_with("[]") || path.ends_with("{}")) {
            return;
          }
          EXPECT_TRUE(description.starts_with(field + " ")) << path << ": " << description;
        });
    for (const json& column : crd["spec"]["versions"][0]["additionalPrinterColumns"]) {
      EXPECT_FALSE(column.value("description", "").empty()) << column;
    }
  }
}

// The API server refuses a CRD whose rules could cost too much, and assumes the worst of lists and
// texts that have no bound.
TEST(Crds, BoundEveryListAndText) {
  for (const json& crd : all_crds()) {
    walk(schema_of(crd), crd["spec"]["names"]["kind"],
         [](const json& node, const std::string& path) {
           const std::string type = node.value("type", "");
           if (type == "array") {
             EXPECT_TRUE(node.contains("maxItems")) << path;
             EXPECT_TRUE(node.contains("x-kubernetes-list-type") || path.ends_with("[]")) << path;
           }
           const bool top = path.ends_with(".apiVersion") || path.ends_with(".kind");
           if (type == "string" && !top && !node.contains("enum") && !node.contains("format")) {
             EXPECT_TRUE(node.contains("maxLength")) << path;
           }
           if (node.value("x-kubernetes-int-or-string", false) && node.contains("pattern")) {
             EXPECT_TRUE(node.contains("maxLength") && node.contains("minimum")) << path;
           }
         });
  }
}

// YAML reads an unquoted `No` as a boolean, and the API server would refuse a manifest that looks
// right.
TEST(Crds, SpellEnumsInCamelCaseThatYamlLeavesAlone) {
  const std::set<std::string> yaml_words = {"Yes", "No", "On", "Off", "True", "False", "Null"};
  for (const json& crd : all_crds()) {
    walk(schema_of(crd), crd["spec"]["names"]["kind"],
         [&](const json& node, const std::string& path) {
           if (path.ends_with("conditions[].status")) return;  // metav1.Condition's own spelling
           for (const json& word : node.value("enum", json::array())) {
             const std::string text = word;
             EXPECT_TRUE(text[0] >= 'A' && text[0] <= 'Z') << path << " " << text;
             EXPECT_FALSE(yaml_words.contains(text)) << path << " " << text;
           }
         });
  }
}

// As a map by type, two writers of different conditions do not undo each other's. UsageRecord has
// no status, so it has no conditions.
TEST(Crds, ConditionsAreMapsByType) {
  for (const json& crd : all_crds()) {
    const json& properties = schema_of(crd)["properties"];
    if (!properties.contains("status")) continue;  // UsageRecord
    const json& conditions = properties["status"]["properties"]["conditions"];
    EXPECT_EQ(conditions["x-kubernetes-list-type"], "map");
    EXPECT_EQ(conditions["x-kubernetes-list-map-keys"], json({"type"}));
    EXPECT_TRUE(conditions["items"]["properties"].contains("observedGeneration"));
  }
}

}  // namespace
}  // namespace devcluster
