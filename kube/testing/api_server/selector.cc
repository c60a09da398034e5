#include "kube/testing/api_server/selector.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "kube/testing/api_server/trimmed.h"

namespace devcluster {
namespace {

using nlohmann::json;

// Splits at commas that stand outside parentheses. The empty text has no parts, and a comma at the
// end adds none; an empty part elsewhere stays, and is refused as a requirement without a key.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

// The characters of a label's key, not its form: the objects themselves have been validated.
bool is_label_key(std::string_view key) {
  if (key.empty()) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '/';
  });
}

// Reads "a, b" of "key in (a, b)".
std::vector<std::string> values_in_parentheses(std::string_view text) {
  std::vector<std::string> values;
  for (const std::string& value : parts_of(text)) values.emplace_back(trimmed(value));
  return values;
}

// A requirement that cannot be read is refused: skipped, it would select all objects.
ApiError unparsable(std::string_view text) {
  return bad_request("unable to parse requirement: " + std::string{text});
}

// Reads "key in (a,b)", "key notin (a)", "key!=a", "key=a", "key==a", "!key" or "key", tried in
// this order: a value may contain no operator, so the first that is found is meant.
Outcome<LabelRequirement> parse_requirement(std::string_view part) {
  LabelRequirement wanted;
  using Operator = LabelRequirement::Operator;
  const std::size_t open = part.find('(');
  if (open != std::string_view::npos) {
    std::string_view head = trimmed(part.substr(0, open));
    if (part.back() != ')') return unparsable(part);
    const std::size_t space = head.find(' ');
    if (space == std::string_view::npos) return unparsable(part);
    const std::string_view word = trimmed(head.substr(space));
    if (word != "in" && word != "notin") return unparsable(part);
    wanted.key = head.substr(0, space);
    wanted.op = word == "in" ? Operator::kIn : Operator::kNotIn;
    wanted.values = values_in_parentheses(part.substr(open + 1, part.size() - open - 2));
  } else if (const std::size_t unequal = part.find("!="); unequal != std::string_view::npos) {
    wanted.key = trimmed(part.substr(0, unequal));
    wanted.op = Operator::kNotIn;
    wanted.values = {std::string{trimmed(part.substr(unequal + 2))}};
  } else if (const std::size_t equal = part.find('='); equal != std::string_view::npos) {
    const std::size_t value = part.substr(equal).starts_with("==") ? equal + 2 : equal + 1;
    wanted.key = trimmed(part.substr(0, equal));
    wanted.values = {std::string{trimmed(part.substr(value))}};
  } else if (part.starts_with('!')) {
    wanted.key = trimmed(part.substr(1));
    wanted.op = Operator::kAbsent;
  } else {
    wanted.key = part;
    wanted.op = Operator::kExists;
  }
  if (!is_label_key(wanted.key)) return unparsable(part);
  return wanted;
}

// `notin` and `!=` also match objects without the label.
bool label_matches(const LabelRequirement& wanted, const json& labels) {
  using Operator = LabelRequirement::Operator;
  const auto found = labels.find(wanted.key);
  const bool present = found != labels.end() && found->is_string();
  const auto is_listed = [&] {
    return std::find(wanted.values.begin(), wanted.values.end(), found->get<std::string>()) !=
           wanted.values.end();
  };
  switch (wanted.op) {
    case Operator::kExists:
      return present;
    case Operator::kAbsent:
      return !present;
    case Operator::kIn:
      return present && is_listed();
    case Operator::kNotIn:
      return !present || !is_listed();
  }
  return false;
}

// Returns the value at "a.b.c" as text; "" if absent. The two booleans are false if absent, as Go's
// types have it.
std::string field_text(const json& object, std::string_view path) {
  const json* at = &object;
  const bool is_flag = path == "spec.unschedulable" || path == "spec.hostNetwork";
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string key{path.substr(0, dot)};
    if (!at->is_object() || !at->contains(key)) return is_flag ? "false" : "";
    at = &(*at)[key];
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  if (at->is_string()) return at->get<std::string>();
  return at->is_null() ? "" : at->dump();
}

// The fields that a real server can select by: anything else is refused there as well, so code that
// relies on another field fails in tests.
bool can_select(const ResourceType& type, const std::string& path) {
  static const std::set<std::string> kPod = {
      "spec.nodeName",    "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
      "spec.hostNetwork", "status.phase",       "status.podIP",       "status.nominatedNodeName"};
  static const std::set<std::string> kEvent = {"involvedObject.kind",
                                               "involvedObject.namespace",
                                               "involvedObject.name",
                                               "involvedObject.uid",
                                               "involvedObject.apiVersion",
                                               "involvedObject.resourceVersion",
                                               "involvedObject.fieldPath",
                                               "reason",
                                               "reportingComponent",
                                               "source",
                                               "type"};
  if (path == "metadata.name" || (path == "metadata.namespace" && type.namespaced)) return true;
  if (type.custom) {
    const auto& fields = type.selectable_fields;
    return std::find(fields.begin(), fields.end(), path) != fields.end();
  }
  if (type.plural == "pods") return kPod.contains(path);
  if (type.plural == "events") return kEvent.contains(path);
  if (type.plural == "nodes") return path == "spec.unschedulable";
  if (type.plural == "namespaces") return path == "status.phase";
  if (type.plural == "secrets") return path == "type";
  return false;
}

}  // namespace

// All requirements must hold, the cheap ones first: a list goes over all objects of a kind.
bool Selector::matches(const json& object) const {
  static const json kNoLabels = json::object();
  const json& metadata = object["metadata"];
  if (!ns.empty() && metadata.value("namespace", "") != ns) return false;
  if (!name.empty() && metadata.value("name", "") != name) return false;
  if (!labels.empty()) {
    const json& have = metadata.contains("labels") ? metadata["labels"] : kNoLabels;
    for (const LabelRequirement& wanted : labels) {
      if (!label_matches(wanted, have)) return false;
    }
  }
  for (const FieldRequirement& wanted : fields) {
    if ((field_text(object, wanted.path) == wanted.value) == wanted.negated) return false;
  }
  return true;
}

// Reads "a=b,c in (d,e)". The empty text selects everything.
Outcome<std::vector<LabelRequirement>> parse_label_selector(std::string_view text) {
  std::vector<LabelRequirement> wanted;
  for (const std::string& part : parts_of(text)) {
    auto requirement = parse_requirement(trimmed(part));
    if (!requirement.ok()) return requirement.error();
    wanted.push_back(std::move(*requirement));
  }
  return wanted;
}

// Reads "status.phase=Running,metadata.name!=a": equality only, since fields have no sets. "!=" is
// looked for before '=', which is a part of it.
Outcome<std::vector<FieldRequirement>> parse_field_selector(std::string_view text,
                                                            const ResourceType& type) {
  std::vector<FieldRequirement> wanted;
  for (const std::string& part : parts_of(text)) {
    std::size_t at = part.find("!=");
    FieldRequirement field;
    field.negated = at != std::string::npos;
    std::size_t value = at + 2;
    if (!field.negated) {
      at = part.find('=');
      if (at == std::string::npos) {
        return bad_request("invalid field selector: " + part + "; can't understand '" + part + "'");
      }
      value = part.compare(at, 2, "==") == 0 ? at + 2 : at + 1;
    }
    field.path = part.substr(0, at);
    field.value = part.substr(value);
    if (!can_select(type, field.path)) {
      return bad_request("field label not supported: " + field.path);
    }
    // events.k8s.io and core store one object; the unspecified source of an event is its component.
    if (field.path == "source") field.path = "source.component";
    wanted.push_back(std::move(field));
  }
  return wanted;
}

}  // namespace devcluster
