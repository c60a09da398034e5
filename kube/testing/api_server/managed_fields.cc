#include "kube/testing/api_server/managed_fields.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace devcluster {
namespace {

using nlohmann::json;

// "k:{"name":"main"}": elements of lists are named by a key that makes them unique: containers by
// their name, conditions by their type, owners by their UID, tolerations by their key. Others stand
// with all that is in them.
std::string element_name(const json& element) {
  for (const char* key : {"name", "type", "uid", "key"}) {
    if (element.is_object() && element.contains(key)) {
      return "k:" + json{{key, element[key]}}.dump();
    }
  }
  return "v:" + element.dump(-1, ' ', false, json::error_handler_t::replace);
}

// SOURCE: sigs.k8s.io/structured-merge-diff, FieldsV1: a set of paths as nested objects. Lists of
// plain values are one field.
json fields_of(const json& value) {
  json fields = json::object();
  if (value.is_object()) {
    if (!value.empty()) fields["."] = json::object();
    for (const auto& [name, inner] : value.items()) fields["f:" + name] = fields_of(inner);
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    fields["."] = json::object();
    for (const json& element : value) fields[element_name(element)] = fields_of(element);
  }
  return fields;
}

// A real object has an entry for each program that has written to it, with the time of its last
// write. One manager does here, as only the size matters: what a client reads and throws away.
json entry(const json& object, std::string_view manager, std::string_view subresource,
           json fields) {
  json out{{"apiVersion", object.value("apiVersion", "v1")},
           {"fieldsType", "FieldsV1"},
           {"fieldsV1", std::move(fields)},
           {"manager", manager},
           {"operation", "Update"},
           {"time", object["metadata"].value("creationTimestamp", "")}};
  if (!subresource.empty()) out["subresource"] = subresource;
  return out;
}

}  // namespace

// Of the metadata, only what users and controllers set: the server's own fields have no manager.
void add_managed_fields(json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return;
  json whole = json::object();
  for (const char* field : {"labels", "annotations", "ownerReferences"}) {
    if (metadata->contains(field)) {
      whole["f:metadata"]["f:" + std::string{field}] = fields_of((*metadata)[field]);
    }
  }
  if (object.contains("spec")) whole["f:spec"] = fields_of(object["spec"]);
  json entries = json::array({entry(object, "manager", "", std::move(whole))});
  if (const auto status = object.find("status"); status != object.end() && !status->empty()) {
    entries.push_back(entry(object, "manager", "status", {{"f:status", fields_of(*status)}}));
  }
  (*metadata)["managedFields"] = std::move(entries);
}

}  // namespace devcluster
