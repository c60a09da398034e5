#include "operator/gang/image_volume.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace control {
namespace {

using Version = std::pair<int, int>;  // major and minor number

constexpr Version kKubeletMin{1, 35};
constexpr Version kContainerdMin{2, 1};

// {0, 0} for what is none.
Version version_of(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  return minor.ec == std::errc{} ? version : Version{};
}

// Behind its prefix: "v1.35.2", "containerd://2.1.4".
Version version_of(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? version_of(text.substr(prefix.size())) : Version{};
}

}  // namespace

bool mounts_images(const kube::NodeSystemInfo& node) {
  return version_of(node.kubelet_version, "v") >= kKubeletMin &&
         version_of(node.container_runtime_version, "containerd://") >= kContainerdMin;
}

}  // namespace control
