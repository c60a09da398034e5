// Label and field selectors, parsed from the query parameters of list, watch and deletecollection.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kube/testing/api_server/api_error.h"
#include "kube/testing/api_server/resource_type.h"

namespace devcluster {

struct LabelRequirement {
  enum class Operator { kIn, kNotIn, kExists, kAbsent };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;
};

struct FieldRequirement {
  std::string path;  // "spec.nodeName"
  std::string value;
  bool negated = false;
};

// The objects that a list or watch is about. Immutable after parsing.
struct Selector {
  std::string ns;    // "" = all
  std::string name;  // "" = all
  std::vector<LabelRequirement> labels;
  std::vector<FieldRequirement> fields;

  bool matches(const nlohmann::json& object) const;
  bool is_everything() const { return labels.empty() && fields.empty(); }
};

// Parses "a=b,c!=d,e in (f,g),h notin (i),j,!k"; refuses what does not parse with 400.
Outcome<std::vector<LabelRequirement>> parse_label_selector(std::string_view text);

// "metadata.name=x,status.phase!=Running"; refuses fields that this resource cannot be selected by.
Outcome<std::vector<FieldRequirement>> parse_field_selector(std::string_view text,
                                                            const ResourceType& type);

}  // namespace devcluster
