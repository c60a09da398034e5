#include "operator/gang/image_volume.h"

#include <gtest/gtest.h>

namespace control {
namespace {

// SOURCE: releases of Kubernetes and containerd; what nodes of both say of themselves.
TEST(ImageVolume, NeedsAKubeletAndAContainerdThatHaveIt) {
  const auto can = [](const char* kubelet, const char* runtime) {
    return mounts_images({.container_runtime_version = runtime, .kubelet_version = kubelet});
  };
  EXPECT_TRUE(can("v1.35.0", "containerd://2.1.0"));
  EXPECT_TRUE(can("v1.36.1+k3s1", "containerd://2.2.0-k3s1"));
  EXPECT_TRUE(can("v2.0.0", "containerd://3.0.0-beta.1"));
  EXPECT_FALSE(can("v1.34.9", "containerd://2.1.0"));
  EXPECT_FALSE(can("v1.35.0", "containerd://2.0.7"));
  EXPECT_FALSE(can("v1.35.0", "containerd://1.7.28"));
  EXPECT_FALSE(can("v1.35.0", "cri-o://1.35.0")) << "not seen yet";
  EXPECT_FALSE(can("v1.35.0", "process://0.1.0"));
  for (const char* text : {"", "v", "v1", "v1.", "vx.35", "1.35.0"}) {
    EXPECT_FALSE(can(text, "containerd://2.1.0")) << text;
    EXPECT_FALSE(can("v1.35.0", text)) << text;
  }
}

}  // namespace
}  // namespace control
