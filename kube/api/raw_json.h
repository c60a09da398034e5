// A piece of JSON that is kept as it came: a Job's template, a probe, an affinity. Immutable and
// shared, so copies of an object cost a pointer; an informer drops it by assigning {}.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kube {

class RawJson {
 public:
  RawJson() = default;  // absent
  explicit RawJson(const nlohmann::json& value);

  // kInvalidArgument if the text is not JSON.
  static base::Result<RawJson> parse_text(std::string_view text);

  bool empty() const { return text_ == nullptr; }
  // Compact JSON; "" when absent.
  const std::string& text() const;
  // Returns a fresh tree; null when absent. Cost: parses the text.
  nlohmann::json json() const;

  friend bool operator==(const RawJson& a, const RawJson& b) { return a.text() == b.text(); }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace kube
