#include "kube/testing/api_server/open_api.h"

#include <cstdio>
#include <vector>

#include <nlohmann/json.hpp>

// One document for each group and version, and an index with a hash for each, by which kubectl
// caches them. kubectl needs: the schema of each kind (explain, client-side validation), its
// x-kubernetes-group-version-kind to find it, and for patch operations the parameter
// fieldValidation, from which it concludes that the server checks fields.
namespace devcluster {
namespace {

using nlohmann::json;

constexpr const char* kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr const char* kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr const char* kSchemaPrefix = "#/components/schemas/";

// Describes a text, or a map of texts, with the sentence that `kubectl explain` shows.
json text_field(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

json text_map(const char* description) {
  return {{"type", "object"},
          {"description", description},
          {"additionalProperties", {{"type", "string"}}}};
}

// Written by hand: the definitions of custom resources leave metadata to the server.
json object_meta_schema() {
  json owner = {
      {"type", "object"},
      {"description", "An object that this one depends on."},
      {"properties",
       {{"apiVersion", text_field("API version of the owner.")},
        {"kind", text_field("Kind of the owner.")},
        {"name", text_field("Name of the owner.")},
        {"uid", text_field("UID of the owner.")},
        {"controller", {{"type", "boolean"}, {"description", "It manages this object."}}},
        {"blockOwnerDeletion", {{"type", "boolean"}, {"description", "Of no effect here."}}}}}};
  return {
      {"type", "object"},
      {"description", "Metadata that every object has."},
      {"properties",
       {{"name", text_field("Name, unique within the namespace and kind.")},
        {"generateName", text_field("Prefix of a name that the server completes.")},
        {"namespace", text_field("Namespace of the object.")},
        {"labels", text_map("Labels to select objects by.")},
        {"annotations", text_map("Arbitrary data of tools.")},
        {"uid", text_field("Unique in time and space, given by the server.")},
        {"resourceVersion", text_field("Changes with every write.")},
        {"generation",
         {{"type", "integer"},
          {"format", "int64"},
          {"description", "Number of the desired state."}}},
        {"creationTimestamp",
         {{"type", "string"}, {"format", "date-time"}, {"description", "When it was created."}}},
        {"deletionTimestamp",
         {{"type", "string"}, {"format", "date-time"}, {"description", "When it will be gone."}}},
        {"deletionGracePeriodSeconds",
         {{"type", "integer"}, {"format", "int64"}, {"description", "Time to end gracefully."}}},
        {"finalizers",
         {{"type", "array"},
          {"items", {{"type", "string"}}},
          {"description", "The finalizers that must be removed before it is deleted."}}},
        {"ownerReferences",
         {{"type", "array"},
          {"items", std::move(owner)},
          {"description", "It is deleted when all of these are gone."}}}}}};
}

// Returns a real server's schema, without the fields that no list here has.
json list_meta_schema() {
  return {
      {"type", "object"},
      {"description", "Metadata of a list."},
      {"properties",
       {{"resourceVersion", text_field("Version of the whole list.")},
        {"continue", text_field("Token for the next page.")},
        {"remainingItemCount",
         {{"type", "integer"}, {"format", "int64"}, {"description", "Objects that follow."}}}}}};
}

// Returns "kubegang.io" → "io.kubegang", as real servers name schemas. The core group, whose name
// is empty, has the package name "io.k8s.api.core".
std::string schema_name(const ResourceType& type) {
  std::string reversed;
  std::string group = type.group.empty() ? "core.api.k8s.io" : type.group;
  while (true) {
    const std::size_t dot = group.rfind('.');
    const std::string part = dot == std::string::npos ? group : group.substr(dot + 1);
    reversed += (reversed.empty() ? "" : ".") + part;
    if (dot == std::string::npos) break;
    group.resize(dot);
  }
  return reversed + "." + type.version + "." + type.kind;
}

// Returns the mark by which kubectl finds the schema of a kind in a document of many.
json kind_of(const ResourceType& type) {
  return {{"group", type.group}, {"version", type.version}, {"kind", type.kind}};
}

// Describes a field about which nothing is said: everything in it is valid.
json open_field(const char* description) {
  return {{"type", "object"},
          {"description", description},
          {"x-kubernetes-preserve-unknown-fields", true}};
}

// Custom resources have their CRD's schema; built-in kinds an open one, so that kubectl accepts
// whatever it is given.
json schema_of(const ResourceType& type) {
  json schema;
  if (type.open_api) {
    schema = *type.open_api;
  } else {
    schema = {{"type", "object"},
              {"description", type.kind + ", as far as this development API server knows it."},
              {"x-kubernetes-preserve-unknown-fields", true},
              {"properties",
               {{"apiVersion", text_field("Version of the API.")}, {"kind", text_field("Kind.")}}}};
    for (const char* field : {"spec", "status"}) {
      if (type.has_status) schema["properties"][field] = open_field("Not described here.");
    }
  }
  schema["properties"]["metadata"] = {
      {"description", "Standard object metadata."},
      {"allOf", {{{"$ref", std::string{kSchemaPrefix} + kObjectMeta}}}}};
  schema["x-kubernetes-group-version-kind"] = json::array({kind_of(type)});
  return schema;
}

// Written for every kind alike: lists differ in nothing but the schema of their items.
json list_schema_of(const ResourceType& type) {
  return {
      {"type", "object"},
      {"description", "A list of " + type.kind + " objects."},
      {"properties",
       {{"apiVersion", text_field("Version of the API.")},
        {"kind", text_field("Kind.")},
        {"metadata", {{"$ref", std::string{kSchemaPrefix} + kListMeta}}},
        {"items", {{"type", "array"}, {"items", {{"$ref", kSchemaPrefix + schema_name(type)}}}}}}},
      {"x-kubernetes-group-version-kind",
       json::array(
           {{{"group", type.group}, {"version", type.version}, {"kind", type.list_kind}}})}};
}

// Describes a text, as all parameters are in a URL.
json query_parameter(const char* name, const char* description) {
  return {{"name", name},
          {"in", "query"},
          {"description", description},
          {"schema", {{"type", "string"}, {"uniqueItems", true}}}};
}

// `action`: the word of a real server ("list", "put"), which is not always the HTTP method.
json operation(const ResourceType& type, const char* action, bool writes) {
  json parameters = json::array();
  if (writes) {
    parameters.push_back(query_parameter("dryRun", "All: nothing is stored."));
    if (std::string{action} != "delete") {
      parameters.push_back(
          query_parameter("fieldValidation", "Ignore, Warn or Strict: unknown and double fields."));
    }
  }
  return {{"operationId", std::string{action} + type.kind},
          {"x-kubernetes-action", action},
          {"x-kubernetes-group-version-kind", kind_of(type)},
          {"parameters", std::move(parameters)},
          {"responses", {{"200", {{"description", "OK"}}}}}};
}

// kubectl looks for the patch operation here, to see whether the server validates fields.
json paths_of(const ResourceType& type) {
  const std::string root =
      type.group.empty() ? "/api/" + type.version : "/apis/" + type.group + "/" + type.version;
  const std::string all = root + (type.namespaced ? "/namespaces/{namespace}/" : "/") + type.plural;
  json paths;
  paths[all]["post"] = operation(type, "post", true);
  if (type.create_only) return paths;
  paths[all]["get"] = operation(type, "list", false);
  const std::string one = all + "/{name}";
  paths[one]["get"] = operation(type, "get", false);
  paths[one]["put"] = operation(type, "put", true);
  paths[one]["patch"] = operation(type, "patch", true);
  paths[one]["delete"] = operation(type, "delete", true);
  return paths;
}

// Changes whenever the document does; it has no other purpose.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llX", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace

// All documents at once, since a change of the kinds is rare: CRDs are loaded at the start. The
// hash in the URL is new when a document is, so kubectl's cache on disk never shows an old one.
void OpenApi::refresh(const ResourceRegistry& registry) {
  std::map<std::string, json> documents;
  for (const ResourceTypePtr& type : registry.all()) {
    const std::string path =
        (type->group.empty() ? "api/" : "apis/" + type->group + "/") + type->version;
    json& document = documents[path];
    document["openapi"] = "3.0.0";
    document["info"] = {{"title", "Kubernetes"}, {"version", "kubegang-devcluster"}};
    json& schemas = document["components"]["schemas"];
    schemas[kObjectMeta] = object_meta_schema();
    schemas[kListMeta] = list_meta_schema();
    schemas[schema_name(*type)] = schema_of(*type);
    schemas[schema_name(*type) + "List"] = list_schema_of(*type);
    document["paths"].update(paths_of(*type));
  }
  json index;
  documents_.clear();
  for (const auto& [path, document] : documents) {
    std::string text = document.dump();
    index["paths"][path]["serverRelativeURL"] = "/openapi/v3/" + path + "?hash=" + hash_of(text);
    documents_[path] = std::move(text);
  }
  index_ = index.dump();
  generation_ = registry.generation();
}

// Returns the index for the empty path. Documents are built again only after the kinds have
// changed, which the registry's generation shows.
std::optional<std::string> OpenApi::document(const ResourceRegistry& registry,
                                             const std::string& path) {
  if (generation_ != registry.generation()) refresh(registry);
  if (path.empty()) return index_;
  const auto found = documents_.find(path);
  if (found == documents_.end()) return std::nullopt;
  return found->second;
}

}  // namespace devcluster
