// The problems of one spec, collected: whole sentences that name the field, the value and what to
// do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/partition.h"
#include "base/time.h"

namespace control {

class SpecProblems {
 public:
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  // An absent value has no problems.
  template <typename T>
  void range(std::string_view field, const std::optional<T>& value, std::int64_t min,
             std::int64_t max) {
    if (!value || (*value >= min && *value <= max)) return;
    add(std::string{field} + ": " + std::to_string(*value) + " is out of range; use " +
        std::to_string(min) + " to " + std::to_string(max));
  }
  void range(std::string_view field, const std::optional<base::Duration>& value, base::Duration min,
             base::Duration max);
  void not_negative(std::string_view field, const std::optional<base::Duration>& value);
  // Checks numbers of GPUs by their types.
  void by_gpu_type(const std::string& field, const std::map<std::string, std::int64_t>& values,
                   std::int64_t max);
  // metadata.name, which is the value of a label.
  void name(const std::string& name);
  void memory(std::string_view field, const std::optional<kube::MemoryLimits>& limits);

  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

}  // namespace control
