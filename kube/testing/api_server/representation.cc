#include "kube/testing/api_server/representation.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include <nlohmann/json.hpp>

#include "kube/api/json_text.h"
#include "kube/api/time_format.h"
#include "kube/testing/api_server/age_text.h"
#include "kube/testing/api_server/builtin_table.h"
#include "kube/testing/api_server/json_path.h"
#include "kube/testing/api_server/managed_fields.h"
#include "kube/testing/api_server/object_rules.h"
#include "kube/testing/api_server/trimmed.h"

// kubectl get asks for a Table, controllers for plain objects, the garbage collector and the like
// for metadata only; all three are views of the same stored objects. SOURCE: Kubernetes API
// concepts, "Receiving resources as Tables".
namespace devcluster {
namespace {

using nlohmann::json;

// Reads one alternative of an Accept header.
std::optional<Representation::Form> form_of(std::string_view alternative) {
  const std::size_t semicolon = alternative.find(';');
  const std::string_view type = trimmed(alternative.substr(0, semicolon));
  if (type != "application/json" && type != "*/*" && type != "application/*") return std::nullopt;
  if (semicolon == std::string_view::npos) return Representation::Form::kPlain;
  const std::string_view parameters = alternative.substr(semicolon);
  if (parameters.find("as=") == std::string_view::npos) return Representation::Form::kPlain;
  // kubectl asks for a Table of v1 first and of v1beta1 after it; only the first is served.
  if (parameters.find("v=v1beta1") != std::string_view::npos) return std::nullopt;
  if (parameters.find("as=Table") != std::string_view::npos) return Representation::Form::kTable;
  if (parameters.find("as=PartialObjectMetadata") != std::string_view::npos) {
    return Representation::Form::kMetadata;
  }
  return std::nullopt;
}

// The type of the column decides how the value at its path is shown; a value of another type leaves
// the cell empty.
json cell_of(const PrinterColumn& column, const json& object, base::Instant now) {
  const json* value = find_path(object, column.json_path);
  if (value == nullptr || value->is_null()) {
    return column.type == "date" ? json("<unknown>") : json();
  }
  if (column.type == "string") return value->is_string() ? *value : json(value->dump());
  if (column.type == "boolean") return value->is_boolean() ? *value : json();
  if (column.type == "integer") {
    if (value->is_number_float()) return static_cast<std::int64_t>(value->get<double>());
    return value->is_number() ? *value : json();
  }
  if (column.type == "number") return value->is_number() ? *value : json();
  const auto instant = kube::parse_instant(value->is_string() ? value->get<std::string>() : "");
  return instant.ok() ? json(age_text(now - *instant)) : json("<invalid>");
}

// The name first, which is in no additionalPrinterColumns.
json custom_cells(const ResourceType& type, const json& object, base::Instant now) {
  json cells = json::array({object["metadata"]["name"]});
  for (const PrinterColumn& column : type.columns) {
    // Dates that are absent stay empty, as a real server has it for custom resources.
    json cell = cell_of(column, object, now);
    if (column.type == "date" && cell == "<unknown>") cell = nullptr;
    cells.push_back(std::move(cell));
  }
  return cells;
}

json column_json(const PrinterColumn& column) {
  return {{"name", column.name},
          {"type", column.type},
          {"format", column.format},
          {"description", column.description},
          {"priority", column.priority}};
}

bool is_event_of_its_group(const ResourceType& type) {
  return type.plural == "events" && type.group == "events.k8s.io";
}

// Spec and status are not sent at all: that is what its callers ask for.
json metadata_only(const json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object["metadata"]}};
}

void append_members(std::string& out, const json& object, std::initializer_list<const char*> but) {
  for (auto member = object.begin(); member != object.end(); ++member) {
    const auto is_it = [&](const char* name) { return member.key() == name; };
    if (std::any_of(but.begin(), but.end(), is_it)) continue;
    kube::append_compact(out += ',', std::string_view{member.key()});
    kube::append_compact(out += ':', *member);
  }
}

// The same as encode_plain(). managedFields are made for the answer and never stored: only a test
// that measures clients wants them, and all others would pay for them with every copy.
void append_plain(std::string& out, const ResourceType& type, const Representation& representation,
                  const json& object) {
  if (is_event_of_its_group(type)) return kube::append_compact(out, encode_plain(type, object));
  kube::append_compact(out += R"({"apiVersion":)", std::string_view{type.api_version()});
  kube::append_compact(out += R"(,"kind":)", std::string_view{type.kind});
  const auto metadata = object.find("metadata");
  if (!representation.managed_fields || metadata == object.end() || !metadata->is_object()) {
    append_members(out, object, {"apiVersion", "kind"});
  } else {
    append_managed_fields(out += R"(,"metadata":{"managedFields":)", object, type.api_version());
    append_members(out, *metadata, {"managedFields"});
    append_members(out += '}', object, {"apiVersion", "kind", "metadata"});
  }
  out += '}';
}

json list_metadata(const ObjectList& list) {
  json metadata = {{"resourceVersion", list.resource_version}};
  if (!list.continue_token.empty()) metadata["continue"] = list.continue_token;
  if (list.remaining_count) metadata["remainingItemCount"] = *list.remaining_count;
  return metadata;
}

}  // namespace

// Quality values are not read: clients list what they prefer first.
std::optional<Representation> choose_representation(std::string_view accept,
                                                    const std::string& include_object) {
  Representation chosen;
  if (include_object == "None") chosen.include = Representation::Include::kNone;
  if (include_object == "Object") chosen.include = Representation::Include::kObject;
  if (accept.empty()) return chosen;
  while (!accept.empty()) {
    const std::size_t comma = accept.find(',');
    if (const auto form = form_of(trimmed(accept.substr(0, comma)))) {
      chosen.form = *form;
      return chosen;
    }
    accept = comma == std::string_view::npos ? std::string_view{} : accept.substr(comma + 1);
  }
  return std::nullopt;
}

// Objects are stored without a version; apiVersion and kind are those of the path that was asked.
json encode_plain(const ResourceType& type, const json& object) {
  json encoded = object;
  if (is_event_of_its_group(type)) event_from_core(encoded);
  encoded["apiVersion"] = type.api_version();
  encoded["kind"] = type.kind;
  return encoded;
}

// Each row carries its object as far as `include` says: nothing, its metadata, or all of it, as
// kubectl get --sort-by asks for.
json encode_table(const ResourceType& type, Representation::Include include,
                  const std::vector<ObjectPtr>& objects, base::Instant now) {
  json columns = json::array();
  if (type.custom) {
    columns.push_back(column_json({.name = "Name",
                                   .type = "string",
                                   .format = "name",
                                   .description = "Name of the object.",
                                   .priority = 0,
                                   .json_path = ""}));
    for (const PrinterColumn& column : type.columns) columns.push_back(column_json(column));
  } else {
    for (const PrinterColumn& column : builtin_columns(type))
      columns.push_back(column_json(column));
  }
  json rows = json::array();
  for (const ObjectPtr& object : objects) {
    json row = {{"cells", type.custom ? custom_cells(type, *object, now)
                                      : builtin_cells(type, *object, now)}};
    if (include == Representation::Include::kMetadata) row["object"] = metadata_only(*object);
    if (include == Representation::Include::kObject) row["object"] = encode_plain(type, *object);
    rows.push_back(std::move(row));
  }
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", json::object()},
          {"columnDefinitions", std::move(columns)},
          {"rows", std::move(rows)}};
}

// A Table of a single object is a table with one row.
std::string encode_object(const ResourceType& type, const Representation& representation,
                          const json& object, base::Instant now) {
  std::string out;
  switch (representation.form) {
    case Representation::Form::kPlain:
      append_plain(out, type, representation, object);
      break;
    case Representation::Form::kMetadata:
      kube::append_compact(out, metadata_only(object));
      break;
    case Representation::Form::kTable: {
      json table =
          encode_table(type, representation.include, {std::make_shared<const json>(object)}, now);
      table["metadata"]["resourceVersion"] = object["metadata"].value("resourceVersion", "");
      kube::append_compact(out, table);
      break;
    }
  }
  return out;
}

// Items of a plain list have apiVersion and kind here; a real server leaves them out of lists of
// built-in kinds. The metadata comes last, as in a real server's lists of custom resources.
std::string encode_list(const ResourceType& type, const Representation& representation,
                        const ObjectList& list, base::Instant now) {
  if (representation.form == Representation::Form::kTable) {
    json table = encode_table(type, representation.include, list.items, now);
    table["metadata"] = list_metadata(list);
    return kube::compact_text(table);
  }
  const bool plain = representation.form == Representation::Form::kPlain;
  std::string out = R"({"apiVersion":)";
  kube::append_compact(out, std::string_view{plain ? type.api_version() : "meta.k8s.io/v1"});
  out += R"(,"items":[)";
  bool is_first = true;
  for (const ObjectPtr& object : list.items) {
    if (!std::exchange(is_first, false)) out += ',';
    if (plain) {
      append_plain(out, type, representation, *object);
    } else {
      kube::append_compact(out, metadata_only(*object));
    }
  }
  kube::append_compact(out += R"(],"kind":)",
                       std::string_view{plain ? type.list_kind : "PartialObjectMetadataList"});
  kube::append_compact(out += R"(,"metadata":)", list_metadata(list));
  return out += '}';
}

}  // namespace devcluster
