#include "translation/spec_problems.h"

#include "kube/api/time_format.h"

namespace control {
namespace {

// A bound of Kubernetes.
constexpr std::size_t kLabelValueMax = 63;

}  // namespace

// Both bounds belong to the range.
void SpecProblems::range(std::string_view field, const std::optional<base::Duration>& value,
                         base::Duration min, base::Duration max) {
  if (!value || (*value >= min && *value <= max)) return;
  add(std::string{field} + ": " + kube::format_duration(*value) + " is out of range; use " +
      kube::format_duration(min) + " to " + kube::format_duration(max));
}

void SpecProblems::not_negative(std::string_view field,
                                const std::optional<base::Duration>& value) {
  if (!value || value->count() >= 0) return;
  add(std::string{field} + ": " + kube::format_duration(*value) + " is negative; use 0s or more");
}

void SpecProblems::by_gpu_type(const std::string& field,
                               const std::map<std::string, std::int64_t>& values,
                               std::int64_t max) {
  for (const auto& [type, value] : values) {
    if (type.empty()) add(field + ": has an empty type");
    range(field + "." + type, std::optional{value}, 0, max);
  }
}

// The characters need no check: those of names are legal in labels.
void SpecProblems::name(const std::string& name) {
  if (name.size() <= kLabelValueMax) return;
  add("metadata.name: \"" + name + "\" has " + std::to_string(name.size()) +
      " characters, at most " + std::to_string(kLabelValueMax) +
      " are possible; create it under a shorter name");
}

// Checks the memory of a partition or of the cluster. Zero is Slurm's spelling of "no limit", which
// an absent field says here, so a 0 is mostly a mistake.
void SpecProblems::memory(std::string_view field, const std::optional<kube::MemoryLimits>& limits) {
  if (!limits) return;
  // C16: at one level, one form of a default and of a maximum.
  if (limits->default_per_cpu && limits->default_per_node) {
    add(std::string{field} + ": defaultPerCPU and defaultPerNode exclude each other; remove one");
  }
  if (limits->max_per_cpu && limits->max_per_node) {
    add(std::string{field} + ": maxPerCPU and maxPerNode exclude each other; remove one");
  }
  for (const auto& value : {limits->default_per_cpu, limits->default_per_node, limits->max_per_cpu,
                            limits->max_per_node, limits->default_per_gpu}) {
    if (value && value->value() <= 0) {
      add(std::string{field} + ": " + kube::format_bytes(*value) +
          " is not possible; use more than 0, or leave it out for none");
    }
  }
}

}  // namespace control
