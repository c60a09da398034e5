#include "kube/api/raw_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/api/json_text.h"

namespace kube {

// Stored in its compact form, whatever blanks and order of members it came with: == compares texts,
// and so sees only changes that mean something. Null counts as absent, as for any field.
RawJson::RawJson(const nlohmann::json& value)
    : text_{value.is_null() ? nullptr
                            : std::make_shared<const std::string>(compact_text(value))} {}

base::Result<RawJson> RawJson::parse_text(std::string_view text) {
  const auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return base::invalid_argument("not valid JSON");
  return RawJson{value};
}

const std::string& RawJson::text() const {
  static const std::string kNothing;
  return text_ == nullptr ? kNothing : *text_;
}

nlohmann::json RawJson::json() const {
  return empty() ? nlohmann::json(nullptr) : nlohmann::json::parse(*text_, nullptr, false);
}

}  // namespace kube
