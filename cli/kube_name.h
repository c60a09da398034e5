// Slurm's names as Kubernetes can have them. One rule: `import` names objects by it, and `submit`
// finds them by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

// Annotation of an object that has another name than in Slurm: the name there.
inline constexpr std::string_view kAnnotationSlurmName = "kubegang.io/slurm-name";

// Lower case letters, digits, '-' and '.': "Debug_Q" is debug-q. Each part between dots begins and
// ends with a letter or a digit. Two names may become one ("a_b" and "A-b"). "" if no character is
// left.
inline std::string kube_name(std::string_view name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::string result;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const char lower = is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    result += is_plain(lower) || c == '.' ? lower : '-';
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    const bool is_between =
        i > 0 && i + 1 < result.size() && is_plain(result[i - 1]) && is_plain(result[i + 1]);
    if (result[i] == '.' && !is_between) result[i] = '-';
  }
  const auto begin = std::find_if(result.begin(), result.end(), is_plain);
  if (begin == result.end()) return {};
  const auto end = std::find_if(result.rbegin(), result.rend(), is_plain).base();
  return {begin, end};
}

// Does the same for a namespace, whose name has no dots.
inline std::string kube_namespace(std::string_view name) {
  std::string result = kube_name(name);
  std::replace(result.begin(), result.end(), '.', '-');
  return result;
}

}  // namespace cli
