#include "kube/testing/api_server/discovery.h"

#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

// Two forms of the same list: one document for each group and version, which old clients fetch one
// by one, and the aggregated one, which today's kubectl asks for first. SOURCE: k8s.io/api
// apidiscovery/v2, meta/v1 APIResourceList.
namespace devcluster {
namespace {

using nlohmann::json;

// A path behind an object. Its kind may be of another group: an eviction is of policy/v1.
struct Subresource {
  std::string name;
  std::string group;  // of its kind
  std::string version;
  std::string kind;
  std::vector<std::string> verbs;
};

// kubectl refuses a command by these verbs before it sends anything.
std::vector<std::string> verbs_of(const ResourceType& type) {
  if (type.create_only) return {"create"};
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

// Returns those that this server answers.
std::vector<Subresource> subresources_of(const ResourceType& type) {
  std::vector<Subresource> found;
  if (type.plural == "pods" && !type.custom) {
    found.push_back({"eviction", "policy", "v1", "Eviction", {"create"}});
    found.push_back({"log", "", "v1", "Pod", {"get"}});
  }
  if (type.has_status) {
    found.push_back({"status", type.group, type.version, type.kind, {"get", "patch", "update"}});
  }
  return found;
}

// Group → version → types; the core group "" first.
using Groups = std::map<std::string, std::map<std::string, std::vector<ResourceTypePtr>>>;

Groups groups_of(const ResourceRegistry& registry) {
  Groups groups;
  for (const ResourceTypePtr& type : registry.all()) {
    groups[type->group][type->version].push_back(type);
  }
  return groups;
}

// /api/v1, /apis/GROUP/VERSION: each resource, behind it its subresources as "pods/log".
json resource_list(const std::string& group_version, const std::vector<ResourceTypePtr>& types) {
  json resources = json::array();
  for (const ResourceTypePtr& type : types) {
    json entry = {{"name", type->plural},
                  {"singularName", type->singular},
                  {"namespaced", type->namespaced},
                  {"kind", type->kind},
                  {"verbs", verbs_of(*type)}};
    if (!type->short_names.empty()) entry["shortNames"] = type->short_names;
    if (!type->categories.empty()) entry["categories"] = type->categories;
    resources.push_back(std::move(entry));
    for (const Subresource& sub : subresources_of(*type)) {
      json child = {{"name", type->plural + "/" + sub.name},
                    {"singularName", ""},
                    {"namespaced", type->namespaced},
                    {"kind", sub.kind},
                    {"verbs", sub.verbs}};
      if (sub.group != type->group) {
        child["group"] = sub.group;
        child["version"] = sub.version;
      }
      resources.push_back(std::move(child));
    }
  }
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", group_version},
          {"resources", std::move(resources)}};
}

// The first version is the preferred one; each group has one here.
json group_document(const std::string& group,
                    const std::map<std::string, std::vector<ResourceTypePtr>>& versions) {
  json list = json::array();
  for (const auto& [version, types] : versions) {
    list.push_back({{"groupVersion", group + "/" + version}, {"version", version}});
  }
  return {{"name", group}, {"versions", list}, {"preferredVersion", list.front()}};
}

// Returns the kind of the answer, which for a subresource is not always that of the object.
json response_kind(const std::string& group, const std::string& version, const std::string& kind) {
  return {{"group", group}, {"version", version}, {"kind", kind}};
}

// Makes the same entry as in resource_list(), in the newer form, with the subresources within it.
json aggregated_resource(const ResourceType& type) {
  json entry = {{"resource", type.plural},
                {"responseKind", response_kind(type.group, type.version, type.kind)},
                {"scope", type.namespaced ? "Namespaced" : "Cluster"},
                {"singularResource", type.singular},
                {"verbs", verbs_of(type)}};
  if (!type.short_names.empty()) entry["shortNames"] = type.short_names;
  if (!type.categories.empty()) entry["categories"] = type.categories;
  for (const Subresource& sub : subresources_of(type)) {
    entry["subresources"].push_back(
        {{"subresource", sub.name},
         {"responseKind", response_kind(sub.group, sub.version, sub.kind)},
         {"verbs", sub.verbs}});
  }
  return entry;
}

// /api has the core group only, /apis all others.
json aggregated_document(const Groups& groups, bool core) {
  json items = json::array();
  for (const auto& [group, versions] : groups) {
    if (group.empty() != core) continue;
    json listed = json::array();
    for (const auto& [version, types] : versions) {
      json resources = json::array();
      for (const ResourceTypePtr& type : types) resources.push_back(aggregated_resource(*type));
      listed.push_back(
          {{"version", version}, {"resources", std::move(resources)}, {"freshness", "Current"}});
    }
    json metadata = {{"creationTimestamp", nullptr}};
    if (!core) metadata["name"] = group;
    items.push_back({{"metadata", std::move(metadata)}, {"versions", std::move(listed)}});
  }
  return {{"kind", "APIGroupDiscoveryList"},
          {"apiVersion", "apidiscovery.k8s.io/v2"},
          {"metadata", json::object()},
          {"items", std::move(items)}};
}

// The old answers of /api and /apis, for clients that do not ask for the aggregated form.
json api_versions() {
  return {
      {"kind", "APIVersions"}, {"versions", {"v1"}}, {"serverAddressByClientCIDRs", json::array()}};
}

json group_list(const Groups& groups) {
  json list = json::array();
  for (const auto& [group, versions] : groups) {
    if (!group.empty()) list.push_back(group_document(group, versions));
  }
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(list)}};
}

}  // namespace

bool wants_aggregated_discovery(std::string_view accept) {
  return accept.find("g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList") !=
         std::string_view::npos;
}

// `segments` of the path: "api" or "apis"; "api", VERSION; "apis", GROUP; "apis", GROUP, VERSION.
// nullopt: there is nothing at such a path, or no such group or version.
std::optional<json> discovery_document(const ResourceRegistry& registry,
                                       const std::vector<std::string>& segments, bool aggregated) {
  const Groups groups = groups_of(registry);
  if (segments.size() == 1 && (segments[0] == "api" || segments[0] == "apis")) {
    const bool core = segments[0] == "api";
    if (aggregated) return aggregated_document(groups, core);
    return core ? api_versions() : group_list(groups);
  }
  const bool core = segments.size() == 2 && segments[0] == "api";
  if (!core && (segments.size() < 2 || segments.size() > 3 || segments[0] != "apis")) {
    return std::nullopt;
  }
  const auto versions = groups.find(core ? "" : segments[1]);
  if (versions == groups.end()) return std::nullopt;
  if (!core && segments.size() == 2) {
    json document = group_document(segments[1], versions->second);
    document["kind"] = "APIGroup";
    document["apiVersion"] = "v1";
    return document;
  }
  const auto types = versions->second.find(segments.back());
  if (types == versions->second.end()) return std::nullopt;
  return resource_list(core ? segments[1] : segments[1] + "/" + segments[2], types->second);
}

// kubectl warns if its own minor version differs from the server's by more than one.
json version_document() {
  return {{"major", "1"},
          {"minor", "33"},
          {"gitVersion", "v1.33.0-kubegang-devcluster+" KUBEGANG_VERSION},
          {"gitCommit", ""},
          {"gitTreeState", "clean"},
          {"buildDate", "1970-01-01T00:00:00Z"},
          {"goVersion", "none"},
          {"compiler", "g++"},
          {"platform", "linux/amd64"}};
}

}  // namespace devcluster
