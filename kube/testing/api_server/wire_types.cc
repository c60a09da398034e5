#include "kube/testing/api_server/wire_types.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

// A real server decodes JSON into Go structs, which fails with 400 if a field has another type.
// This server keeps JSON, whose library throws if code reads a number as a text. So the fields that
// the code reads are listed here once, with their types, and every body is checked before any code
// looks at it.
namespace devcluster {
namespace {

using nlohmann::json;

// kStringMap: labels and the like. kInteger: 1.0 is none, as Go's decoder has it.
enum class Is { kString, kInteger, kBoolean, kObject, kList, kStringMap };

// "spec.containers[].name": every element of the list.
struct Field {
  std::string_view path;
  Is is;
};

constexpr Field kTop[] = {{"apiVersion", Is::kString}, {"kind", Is::kString}};

constexpr Field kMetadata[] = {{"metadata", Is::kObject},
                               {"metadata.name", Is::kString},
                               {"metadata.generateName", Is::kString},
                               {"metadata.namespace", Is::kString},
                               {"metadata.uid", Is::kString},
                               {"metadata.resourceVersion", Is::kString},
                               {"metadata.generation", Is::kInteger},
                               {"metadata.creationTimestamp", Is::kString},
                               {"metadata.deletionTimestamp", Is::kString},
                               {"metadata.deletionGracePeriodSeconds", Is::kInteger},
                               {"metadata.labels", Is::kStringMap},
                               {"metadata.annotations", Is::kStringMap},
                               {"metadata.finalizers", Is::kList},
                               {"metadata.finalizers[]", Is::kString},
                               {"metadata.ownerReferences", Is::kList},
                               {"metadata.ownerReferences[]", Is::kObject},
                               {"metadata.ownerReferences[].apiVersion", Is::kString},
                               {"metadata.ownerReferences[].kind", Is::kString},
                               {"metadata.ownerReferences[].name", Is::kString},
                               {"metadata.ownerReferences[].uid", Is::kString},
                               {"metadata.ownerReferences[].controller", Is::kBoolean},
                               {"metadata.ownerReferences[].blockOwnerDeletion", Is::kBoolean}};

// The parts of kinds with a Kubernetes spec and status.
constexpr Field kParts[] = {{"spec", Is::kObject},
                            {"status", Is::kObject},
                            {"status.phase", Is::kString},
                            {"status.conditions", Is::kList},
                            {"status.conditions[]", Is::kObject},
                            {"status.conditions[].type", Is::kString},
                            {"status.conditions[].status", Is::kString}};

constexpr Field kPod[] = {{"spec.nodeName", Is::kString},
                          {"spec.restartPolicy", Is::kString},
                          {"spec.schedulerName", Is::kString},
                          {"spec.serviceAccountName", Is::kString},
                          {"spec.terminationGracePeriodSeconds", Is::kInteger},
                          {"spec.containers", Is::kList},
                          {"spec.containers[]", Is::kObject},
                          {"spec.containers[].name", Is::kString},
                          {"spec.containers[].image", Is::kString},
                          {"spec.containers[].resources", Is::kObject},
                          {"spec.containers[].resources.requests", Is::kObject},
                          {"spec.containers[].resources.limits", Is::kObject},
                          {"spec.initContainers", Is::kList},
                          {"spec.initContainers[]", Is::kObject},
                          {"spec.initContainers[].name", Is::kString},
                          {"spec.initContainers[].image", Is::kString},
                          {"status.containerStatuses", Is::kList},
                          {"status.containerStatuses[]", Is::kObject},
                          {"status.containerStatuses[].ready", Is::kBoolean},
                          {"status.containerStatuses[].restartCount", Is::kInteger},
                          {"status.initContainerStatuses", Is::kList},
                          {"status.initContainerStatuses[]", Is::kObject}};

constexpr Field kNode[] = {{"spec.taints", Is::kList},
                           {"spec.taints[]", Is::kObject},
                           {"spec.unschedulable", Is::kBoolean},
                           {"status.addresses", Is::kList},
                           {"status.addresses[]", Is::kObject},
                           {"status.addresses[].type", Is::kString},
                           {"status.addresses[].address", Is::kString}};

constexpr Field kService[] = {{"spec.type", Is::kString},
                              {"spec.clusterIP", Is::kString},
                              {"spec.selector", Is::kStringMap},
                              {"spec.ports", Is::kList},
                              {"spec.ports[]", Is::kObject},
                              {"spec.ports[].port", Is::kInteger},
                              {"spec.ports[].protocol", Is::kString}};

// Both groups of events; each has fields of its own.
constexpr Field kEvent[] = {
    {"involvedObject", Is::kObject},      {"involvedObject.kind", Is::kString},
    {"involvedObject.name", Is::kString}, {"involvedObject.namespace", Is::kString},
    {"regarding", Is::kObject},           {"regarding.namespace", Is::kString}};

// ConfigMaps, Secrets and ServiceAccounts.
constexpr Field kData[] = {{"data", Is::kObject}, {"secrets", Is::kList}, {"type", Is::kString}};

constexpr Field kCrd[] = {{"spec.group", Is::kString},
                          {"spec.scope", Is::kString},
                          {"spec.names", Is::kObject},
                          {"spec.names.kind", Is::kString},
                          {"spec.names.listKind", Is::kString},
                          {"spec.names.plural", Is::kString},
                          {"spec.names.singular", Is::kString},
                          {"spec.names.shortNames", Is::kList},
                          {"spec.names.shortNames[]", Is::kString},
                          {"spec.names.categories", Is::kList},
                          {"spec.names.categories[]", Is::kString},
                          {"spec.versions", Is::kList},
                          {"spec.versions[]", Is::kObject},
                          {"spec.versions[].name", Is::kString},
                          {"spec.versions[].served", Is::kBoolean},
                          {"spec.versions[].storage", Is::kBoolean},
                          {"spec.versions[].schema", Is::kObject},
                          {"spec.versions[].schema.openAPIV3Schema", Is::kObject},
                          {"spec.versions[].subresources", Is::kObject},
                          {"spec.versions[].additionalPrinterColumns", Is::kList},
                          {"spec.versions[].additionalPrinterColumns[]", Is::kObject},
                          {"spec.versions[].additionalPrinterColumns[].name", Is::kString},
                          {"spec.versions[].additionalPrinterColumns[].type", Is::kString},
                          {"spec.versions[].additionalPrinterColumns[].format", Is::kString},
                          {"spec.versions[].additionalPrinterColumns[].description", Is::kString},
                          {"spec.versions[].additionalPrinterColumns[].priority", Is::kInteger},
                          {"spec.versions[].additionalPrinterColumns[].jsonPath", Is::kString},
                          {"spec.versions[].selectableFields", Is::kList},
                          {"spec.versions[].selectableFields[]", Is::kObject},
                          {"spec.versions[].selectableFields[].jsonPath", Is::kString}};

// Null is none of them; nulls of built-in kinds were dropped before.
bool has_type(const json& value, Is is) {
  switch (is) {
    case Is::kString:
      return value.is_string();
    case Is::kInteger:
      return value.is_number_integer();
    case Is::kBoolean:
      return value.is_boolean();
    case Is::kObject:
      return value.is_object();
    case Is::kList:
      return value.is_array();
    case Is::kStringMap:
      if (!value.is_object()) return false;
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return false;
      }
      return true;
  }
  return false;
}

// Returns the name in the sentence of refusal.
const char* name_of(Is is) {
  switch (is) {
    case Is::kString:
      return "string";
    case Is::kInteger:
      return "integer";
    case Is::kBoolean:
      return "boolean";
    case Is::kObject:
      return "object";
    case Is::kList:
      return "array";
    case Is::kStringMap:
      return "object of strings";
  }
  return "";
}

// Returns the first value at `path` that does not have the type, or null. Absent values are fine:
// whether a field is required is the validation's matter.
const json* find_wrong(const json& object, std::string_view path, Is is) {
  // 1. at the end of the path: the value itself
  if (path.empty()) return has_type(object, is) ? nullptr : &object;
  // 2. at a list: each of its elements with what is left of the path
  if (path.starts_with("[]")) {
    if (!object.is_array()) return nullptr;  // said by the list's own entry
    path.remove_prefix(path.starts_with("[].") ? 3 : 2);
    for (const json& element : object) {
      if (const json* wrong = find_wrong(element, path, is)) return wrong;
    }
    return nullptr;
  }
  // 3. at a field: its value, if it is there
  const std::size_t end = std::min(path.find_first_of(".["), path.size());
  if (!object.is_object()) return nullptr;
  const auto member = object.find(path.substr(0, end));
  if (member == object.end()) return nullptr;
  path.remove_prefix(end);
  if (path.starts_with(".")) path.remove_prefix(1);
  return find_wrong(*member, path, is);
}

// Drops fields that are null, as Go's decoder takes null for the zero value. (Custom resources keep
// it, since a schema may allow it.)
// An element of a list that is null stays: Go would make an empty struct of it, which no test
// sends.
void drop_nulls(json& value) {
  if (value.is_object()) {
    for (auto at = value.begin(); at != value.end();) {
      if (at->is_null()) {
        at = value.erase(at);
      } else {
        drop_nulls(*at);
        ++at;
      }
    }
  } else if (value.is_array()) {
    for (json& element : value) drop_nulls(element);
  }
}

// The first wrong field is enough: the body was written by a program, and a person reads one
// sentence.
std::optional<ApiError> check(const ResourceType& type, const json& object,
                              std::span<const Field> fields) {
  for (const Field& field : fields) {
    const json* wrong = find_wrong(object, field.path, field.is);
    if (wrong == nullptr) continue;
    return bad_request(type.kind + " in version \"" + type.version + "\" cannot be handled as a " +
                       type.kind + ": " + std::string{field.path} + " must be of type " +
                       name_of(field.is) + ", not " + wrong->type_name());
  }
  return std::nullopt;
}

// The fields that the code reads of every object, of every object with a spec, and of this kind.
std::vector<std::span<const Field>> tables_of(const ResourceType& type) {
  // The order matters: a wrong kind is reported before a wrong field of it.
  std::vector<std::span<const Field>> tables{kTop, kMetadata};
  if (type.custom) return tables;  // their schema has the rest
  static const std::map<std::string_view, std::span<const Field>> kKinds = {
      {"pods", kPod},
      {"nodes", kNode},
      {"services", kService},
      {"events", kEvent},
      {"secrets", kData},
      {"configmaps", kData},
      {"serviceaccounts", kData},
      {"customresourcedefinitions", kCrd}};
  tables.emplace_back(kParts);
  if (const auto kind = kKinds.find(type.plural); kind != kKinds.end()) {
    tables.push_back(kind->second);
  }
  return tables;
}

}  // namespace

std::optional<ApiError> check_types(const ResourceType& type, json& object) {
  if (!type.custom) {
    drop_nulls(object);
  } else if (object.contains("metadata")) {
    drop_nulls(object["metadata"]);
    if (object["metadata"].is_null()) object.erase("metadata");
  }
  for (const std::span<const Field> fields : tables_of(type)) {
    if (auto error = check(type, object, fields)) return error;
  }
  return std::nullopt;
}

}  // namespace devcluster
