// The place of a kind in the API: each typed object has a `static constexpr ResourceInfo
// kResource`, from which the client builds paths.
#pragma once

#include <string_view>

namespace kube {

struct ResourceInfo {
  std::string_view group;  // "" = the core group
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;

  friend constexpr bool operator==(const ResourceInfo&, const ResourceInfo&) = default;
};

inline constexpr std::string_view kGroup = "kubegang.io";
inline constexpr std::string_view kGroupVersion = "v1alpha1";

}  // namespace kube
