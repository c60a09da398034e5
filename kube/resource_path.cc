#include "kube/resource_path.h"

#include "kube/url.h"

namespace kube {

// The group named core is "" and has its own root. Without a namespace the path is that of all
// namespaces.
std::string collection_path(const ResourceInfo& resource, std::string_view ns) {
  std::string path =
      resource.group.empty() ? "/api/" : "/apis/" + std::string{resource.group} + "/";
  path += resource.version;
  // Names come from users and tools: one with a slash must not reach another path.
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  path += "/";
  path += resource.plural;
  return path;
}

std::string object_path(const ResourceInfo& resource, const ObjectKey& key) {
  return collection_path(resource, key.ns) + "/" + percent_encode(key.name);
}

// Parameters without a value are left out, so callers list all that they may have. "" if none is
// left.
std::string query_text(const std::vector<std::pair<std::string_view, std::string>>& parameters) {
  std::string out;
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    out += out.empty() ? "?" : "&";
    out += name;
    out += "=" + percent_encode(value);
  }
  return out;
}

}  // namespace kube
