#include "kube/testing/api_server/resource_type.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

using nlohmann::json;

// A built-in kind as `kubectl api-resources` prints it; all are of version v1.
struct BuiltinRow {
  const char* group;
  const char* kind;
  const char* plural;
  const char* singular;
  std::vector<std::string> short_names;
  bool namespaced;
  bool has_status;
};

// For ASCII, which names of kinds are.
std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// Adds a cause, in a real server's words, unless the field is a text that is not empty.
void require_text(const json& object, const std::string& field, const std::string& path,
                  std::vector<Cause>& causes) {
  if (!object.contains(field) || !object[field].is_string() ||
      object[field].get_ref<const std::string&>().empty()) {
    causes.push_back({"FieldValueRequired", path + "." + field, "Required value"});
  }
}

// Each version needs a name and a structural schema, and exactly one is stored.
void validate_versions(const json& spec, std::vector<Cause>& causes) {
  const json versions = spec.value("versions", json::array());
  if (!versions.is_array() || versions.empty()) {
    causes.push_back({"FieldValueRequired", "spec.versions", "Required value"});
    return;
  }
  // Objects are stored in one version and converted for the others, here without any change.
  int stored = 0;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string path = "spec.versions[" + std::to_string(i) + "]";
    require_text(versions[i], "name", path, causes);
    if (versions[i].value("storage", false)) ++stored;
    const json schema =
        versions[i].value("schema", json::object()).value("openAPIV3Schema", json());
    if (!schema.is_object()) {
      causes.push_back({"FieldValueRequired", path + ".schema.openAPIV3Schema",
                        "Required value: schemas are required"});
      continue;
    }
    const auto parsed = Schema::parse(schema);
    if (!parsed.ok()) {
      causes.push_back({"FieldValueInvalid", path + ".schema.openAPIV3Schema",
                        "Invalid value: " + parsed.error().message});
    }
  }
  if (stored != 1) {
    causes.push_back({"FieldValueInvalid", "spec.versions",
                      "Invalid value: must have exactly one version marked as storage version"});
  }
}

// A definition without columns gets the age, as a real server shows it.
std::vector<PrinterColumn> columns_of(const json& version) {
  // Absent fields get the defaults of a real server.
  std::vector<PrinterColumn> columns;
  for (const json& source : version.value("additionalPrinterColumns", json::array())) {
    columns.push_back({.name = source.value("name", ""),
                       .type = source.value("type", "string"),
                       .format = source.value("format", ""),
                       .description = source.value("description", ""),
                       .priority = source.value("priority", 0),
                       .json_path = source.value("jsonPath", "")});
  }
  if (columns.empty()) {
    columns.push_back({.name = "Age",
                       .type = "date",
                       .format = "",
                       .description = "Time since it was created.",
                       .priority = 0,
                       .json_path = ".metadata.creationTimestamp"});
  }
  return columns;
}

// Makes "spec.x" of ".spec.x": a CRD writes a JSONPath, a request's field selector does not.
std::vector<std::string> selectable_fields_of(const json& version) {
  std::vector<std::string> fields;
  for (const json& source : version.value("selectableFields", json::array())) {
    const std::string path = source.value("jsonPath", "");
    fields.push_back(path.starts_with('.') ? path.substr(1) : path);
  }
  return fields;
}

}  // namespace

// Events are one kind in two groups, stored once: storage_group says where. Reviews are answered
// and never stored, hence create_only.
std::vector<ResourceType> builtin_resource_types() {
  // The kinds that the operator, kubectl and the tests use; everything else is answered with 404.
  const std::vector<BuiltinRow> rows = {
      {"", "ConfigMap", "configmaps", "configmap", {"cm"}, true, false},
      {"", "Event", "events", "event", {"ev"}, true, false},
      {"", "Namespace", "namespaces", "namespace", {"ns"}, false, true},
      {"", "Node", "nodes", "node", {"no"}, false, true},
      {"", "Pod", "pods", "pod", {"po"}, true, true},
      {"", "Secret", "secrets", "secret", {}, true, false},
      {"", "ServiceAccount", "serviceaccounts", "serviceaccount", {"sa"}, true, false},
      {"", "Service", "services", "service", {"svc"}, true, true},
      {"apiextensions.k8s.io",
       "CustomResourceDefinition",
       "customresourcedefinitions",
       "customresourcedefinition",
       {"crd", "crds"},
       false,
       true},
      {"authentication.k8s.io",
       "SelfSubjectReview",
       "selfsubjectreviews",
       "selfsubjectreview",
       {},
       false,
       false},
      {"authorization.k8s.io",
       "SelfSubjectAccessReview",
       "selfsubjectaccessreviews",
       "selfsubjectaccessreview",
       {},
       false,
       false},
      {"authorization.k8s.io",
       "SelfSubjectRulesReview",
       "selfsubjectrulesreviews",
       "selfsubjectrulesreview",
       {},
       false,
       false},
      {"batch", "Job", "jobs", "job", {}, true, true},
      {"coordination.k8s.io", "Lease", "leases", "lease", {}, true, false},
      {"events.k8s.io", "Event", "events", "event", {"ev"}, true, false},
  };
  std::vector<ResourceType> types;
  for (const BuiltinRow& row : rows) {
    ResourceType type;
    type.group = row.group;
    type.kind = row.kind;
    type.list_kind = type.kind + "List";
    type.plural = row.plural;
    type.singular = row.singular;
    type.short_names = row.short_names;
    type.namespaced = row.namespaced;
    type.has_status = row.has_status;
    type.create_only =
        type.group == "authentication.k8s.io" || type.group == "authorization.k8s.io";
    type.storage_group = type.plural == "events" ? "" : type.group;
    if (type.plural == "pods" || type.plural == "services") type.categories = {"all"};
    if (type.kind == "CustomResourceDefinition") type.categories = {"api-extensions"};
    types.push_back(std::move(type));
  }
  return types;
}

// The built-in kinds are there from the beginning; those of CRDs come and go.
ResourceRegistry::ResourceRegistry() {
  for (ResourceType& type : builtin_resource_types()) add(std::move(type));
}

// Null if the kind is not served in this group and version. A linear search: kinds are few.
ResourceTypePtr ResourceRegistry::find(const std::string& group, const std::string& version,
                                       const std::string& plural) const {
  for (const ResourceTypePtr& type : types_) {
    if (type->plural == plural && type->group == group && type->version == version) return type;
  }
  return nullptr;
}

// Finds by the group in which a kind is stored: for events, which have two groups, the core one.
ResourceTypePtr ResourceRegistry::find_storage(const GroupResource& storage) const {
  for (const ResourceTypePtr& type : types_) {
    if (type->plural == storage.resource && type->storage_group == storage.group &&
        type->group == storage.group) {
      return type;
    }
  }
  return nullptr;
}

// Returns them in the order of group, version and name.
std::vector<ResourceTypePtr> ResourceRegistry::all() const {
  return types_;
}

// The generation tells OpenApi that its documents are of an older set of kinds.
void ResourceRegistry::add(ResourceType type) {
  ++generation_;
  // Sorted by group, version and name, so discovery documents are the same in each run.
  auto place = std::find_if(types_.begin(), types_.end(), [&](const ResourceTypePtr& other) {
    return std::tie(type.group, type.version, type.plural) <
           std::tie(other->group, other->version, other->plural);
  });
  types_.insert(place, std::make_shared<const ResourceType>(std::move(type)));
}

// All versions of the kind at once.
void ResourceRegistry::remove(const GroupResource& resource) {
  ++generation_;
  std::erase_if(types_,
                [&](const ResourceTypePtr& type) { return type->group_resource() == resource; });
}

// A real server checks much more; these are the mistakes that people make.
std::vector<Cause> validate_crd(const json& crd) {
  std::vector<Cause> causes;
  const json spec = crd.value("spec", json::object());
  const json names = spec.value("names", json::object());
  require_text(spec, "group", "spec", causes);
  require_text(spec, "scope", "spec", causes);
  require_text(names, "plural", "spec.names", causes);
  require_text(names, "kind", "spec.names", causes);
  // The checks that follow read these fields.
  if (!causes.empty()) return causes;
  const std::string scope = spec["scope"];
  if (scope != "Namespaced" && scope != "Cluster") {
    causes.push_back(
        {"FieldValueNotSupported", "spec.scope",
         "Unsupported value: \"" + scope + "\": supported values: \"Cluster\", \"Namespaced\""});
  }
  // The name of a definition follows from what it defines, so two definitions cannot define one
  // kind.
  const std::string wanted =
      names["plural"].get<std::string>() + "." + spec["group"].get<std::string>();
  const std::string name = crd.value("metadata", json::object()).value("name", "");
  if (name != wanted) {
    causes.push_back(
        {"FieldValueInvalid", "metadata.name",
         "Invalid value: \"" + name + "\": must be spec.names.plural+\".\"+spec.group"});
  }
  validate_versions(spec, causes);
  return causes;
}

// Fills in what a definition may leave out, and the status that a real server's controllers write.
void accept_crd(json& crd, const std::string& now) {
  json& names = crd["spec"]["names"];
  // REQUIRES: validate_crd() found nothing.
  const std::string kind = names["kind"];
  if (!names.contains("listKind")) names["listKind"] = kind + "List";
  if (!names.contains("singular")) names["singular"] = lower(kind);
  if (!crd["spec"].contains("conversion")) crd["spec"]["conversion"] = {{"strategy", "None"}};
  json& status = crd["status"];
  // A real server sets these conditions a moment later, by a controller; clients that wait for
  // Established need not wait here.
  status["acceptedNames"] = names;
  status["storedVersions"] = json::array();
  for (const json& version : crd["spec"]["versions"]) {
    if (version.value("storage", false)) status["storedVersions"].push_back(version["name"]);
  }
  status["conditions"] = {{{"type", "NamesAccepted"},
                           {"status", "True"},
                           {"reason", "NoConflicts"},
                           {"message", "no conflicts found"},
                           {"lastTransitionTime", now}},
                          {{"type", "Established"},
                           {"status", "True"},
                           {"reason", "InitialNamesAccepted"},
                           {"message", "the initial names have been accepted"},
                           {"lastTransitionTime", now}}};
}

// Makes one type per served version; their objects are stored together, under group and plural.
base::Result<std::vector<ResourceType>> types_of_crd(const json& crd) {
  const json& spec = crd["spec"];
  const json& names = spec["names"];
  std::vector<ResourceType> types;
  for (const json& version : spec["versions"]) {
    // A version that is not served has no path.
    if (!version.value("served", true)) continue;
    const json& open_api = version["schema"]["openAPIV3Schema"];
    auto schema = Schema::parse(open_api);
    if (!schema.ok()) return schema.error();
    ResourceType type;
    type.group = spec["group"];
    type.version = version["name"];
    type.kind = names["kind"];
    type.list_kind = names.value("listKind", type.kind + "List");
    type.plural = names["plural"];
    type.singular = names.value("singular", lower(type.kind));
    type.short_names = names.value("shortNames", std::vector<std::string>{});
    type.categories = names.value("categories", std::vector<std::string>{});
    type.namespaced = spec["scope"] == "Namespaced";
    type.has_status = version.value("subresources", json::object()).contains("status");
    type.custom = true;
    type.schema = *schema;
    // The document as it was written, for `kubectl explain`, beside the schema that is checked.
    type.open_api = std::make_shared<const json>(open_api);
    type.columns = columns_of(version);
    type.selectable_fields = selectable_fields_of(version);
    type.storage_group = type.group;
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace devcluster
