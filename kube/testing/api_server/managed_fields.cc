#include "kube/testing/api_server/managed_fields.h"

#include <map>
#include <nlohmann/json.hpp>

#include "kube/api/json_text.h"

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

void append_name(std::string& out, std::string_view kind, std::string_view name) {
  kube::append_compact(out, std::string_view{std::string{kind} + std::string{name}});
  out += ':';
}

// SOURCE: sigs.k8s.io/structured-merge-diff, FieldsV1: a set of paths as nested objects. Lists of
// plain values are one field.
void append_fields(std::string& out, const json& value) {
  const bool is_list = value.is_array() && !value.empty() && value.front().is_object();
  if (!is_list && (!value.is_object() || value.empty())) {
    out += "{}";
    return;
  }
  out += R"({".":{})";
  if (is_list) {
    // Elements with one key are one field.
    std::map<std::string, const json*> elements;
    for (const json& element : value) elements[element_name(element)] = &element;
    for (const auto& [name, element] : elements) {
      out += ',';
      append_name(out, "", name);
      append_fields(out, *element);
    }
  } else {
    for (auto member = value.begin(); member != value.end(); ++member) {
      out += ',';
      append_name(out, "f:", member.key());
      append_fields(out, *member);
    }
  }
  out += '}';
}

// Appends the metadata that users and controllers set: the server's own fields have no manager.
void append_metadata(std::string& out, const json& metadata) {
  char before = '{';
  for (const char* field : {"annotations", "labels", "ownerReferences"}) {
    const auto found = metadata.find(field);
    if (found == metadata.end()) continue;
    out += before;
    before = ',';
    append_name(out, "f:", field);
    append_fields(out, *found);
  }
  out += before == '{' ? "{}" : "}";
}

// A real object has an entry for each program that has written to it, with the time of its last
// write. One manager does here, as only the size matters: what a client reads and throws away.
void append_entry(std::string& out, std::string_view api_version, const json& metadata,
                  std::string_view subresource, std::string_view fields) {
  out += R"({"apiVersion":)";
  kube::append_compact(out, api_version);
  out += R"(,"fieldsType":"FieldsV1","fieldsV1":)";
  out += fields;
  out += R"(,"manager":"manager","operation":"Update",)";
  if (!subresource.empty()) (out += R"("subresource":")").append(subresource) += R"(",)";
  out += R"("time":)";
  kube::append_compact(out, std::string_view{metadata.value("creationTimestamp", "")});
  out += '}';
}

}  // namespace

void append_managed_fields(std::string& out, const json& object, std::string_view api_version) {
  const json& metadata = object["metadata"];
  std::string fields = R"({"f:metadata":)";
  append_metadata(fields, metadata);
  if (const auto spec = object.find("spec"); spec != object.end()) {
    append_fields(fields += R"(,"f:spec":)", *spec);
  }
  out += '[';
  append_entry(out, api_version, metadata, "", fields += '}');
  if (const auto status = object.find("status"); status != object.end() && !status->empty()) {
    append_fields(fields = R"({"f:status":)", *status);
    out += ',';
    append_entry(out, api_version, metadata, "status", fields += '}');
  }
  out += ']';
}

}  // namespace devcluster
