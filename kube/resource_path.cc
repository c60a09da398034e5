#include "kube/resource_path.h"

namespace kube {

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string collection_path(const ResourceInfo& resource, std::string_view ns) {
  std::string path =
      resource.group.empty() ? "/api/" : "/apis/" + std::string{resource.group} + "/";
  path += resource.version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  path += "/";
  path += resource.plural;
  return path;
}

std::string object_path(const ResourceInfo& resource, const ObjectKey& key) {
  return collection_path(resource, key.ns) + "/" + percent_encode(key.name);
}

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
