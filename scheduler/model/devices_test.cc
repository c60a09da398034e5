#include "scheduler/model/devices.h"

#include <gtest/gtest.h>

#include <utility>

namespace sched {
namespace {

Devices gpus(const char* type, int count) {
  return {{{"gpu", type}, count}};
}

// Compares what scripts write with the products' labels, in lower case.
TEST(Devices, ATypeIsAWordOfTheProductsName) {
  const std::pair<const char*, const char*> kMet[] = {
      {"a100", "nvidia-a100-sxm4-80gb"},
      {"a100", "nvidia-a100-pcie-40gb"},
      {"80gb", "nvidia-a100-sxm4-80gb"},
      {"h100", "nvidia-h100-80gb-hbm3"},
      {"h200", "nvidia-h200"},
      {"gh200", "nvidia-gh200-480gb"},
      {"b200", "nvidia-b200"},
      {"v100", "tesla-v100-sxm2-32gb"},
      {"p100", "tesla-p100-pcie-16gb"},
      {"p40", "tesla-p40"},
      {"k80", "tesla-k80"},
      {"t4", "tesla-t4"},
      {"l4", "nvidia-l4"},
      {"l40", "nvidia-l40"},
      {"l40s", "nvidia-l40s"},
      {"a10", "nvidia-a10"},
      {"a30", "nvidia-a30"},
      {"a40", "nvidia-a40"},
      {"a6000", "nvidia-rtx-a6000"},
      {"rtx_a5000", "nvidia-rtx-a5000"},
      {"rtx8000", "quadro-rtx-8000"},
      {"rtx6000", "quadro-rtx-6000"},
      {"2080ti", "nvidia-geforce-rtx-2080-ti"},
      {"rtx2080ti", "nvidia-geforce-rtx-2080-ti"},
      {"rtx_3090", "nvidia-geforce-rtx-3090"},
      {"gtx1080ti", "nvidia-geforce-gtx-1080-ti"},
      {"mi250x", "amd-instinct-mi250x"},
      {"1g.5gb", "1g.5gb"},
  };
  for (const auto& [asked, product] : kMet) {
    EXPECT_TRUE(have_devices(gpus(product, 1), gpus(asked, 1))) << asked << " " << product;
  }
  const std::pair<const char*, const char*> kNotMet[] = {
      {"a10", "nvidia-a100-sxm4-80gb"},
      {"100", "nvidia-a100-sxm4-80gb"},
      {"l4", "nvidia-l40s"},
      {"v100", ""},
      {"2080", "nvidia-rtx-20"},
      {"1080ti", "nvidia-geforce-gtx-1080"},
  };
  for (const auto& [asked, product] : kNotMet) {
    EXPECT_FALSE(have_devices(gpus(product, 1), gpus(asked, 1))) << asked << " " << product;
  }
}

TEST(Devices, OfNoTypeAreTakenInTheNodesOrder) {
  const Devices node = {{{"gpu", "a"}, 2}, {{"gpu", "b"}, 1}, {{"nic", ""}, 1}};
  EXPECT_TRUE(have_devices(node, gpus("", 3)));
  EXPECT_FALSE(have_devices(node, gpus("", 4)));
  EXPECT_EQ(to_string(devices_given(node, gpus("", 3))), "gpu:a:2,gpu:b:1");
  EXPECT_EQ(to_string(devices_given(node, gpus("b", 1))), "gpu:b:1");
  EXPECT_EQ(to_string(devices_left(node, gpus("a", 2))), "gpu:b:1,nic:1");
  Devices held;
  add_devices(held, {"gpu", "a"}, 2);
  add_devices(held, {"gpu", "a"}, -2);
  EXPECT_TRUE(held.empty());
}

// A job began before the product's label came, went or was spelled as it is now. A type of another
// product is not the same under another name.
TEST(Devices, OfAJobAreHeldUnderWhateverNameTheNodeHasForThem) {
  const auto left = [](const char* node, const char* held) {
    return to_string(devices_left(gpus(node, 4), gpus(held, 3)));
  };
  EXPECT_EQ(left("nvidia-tesla-t4", "tesla-t4"), "gpu:nvidia-tesla-t4:1");
  EXPECT_EQ(left("amd-instinct-mi300x", "instinct_mi300x"), "gpu:amd-instinct-mi300x:1");
  EXPECT_EQ(left("nvidia-a100-sxm4-80gb", "nvidia"), "gpu:nvidia-a100-sxm4-80gb:1");
  EXPECT_EQ(left("nvidia", "nvidia-a100-sxm4-80gb"), "gpu:nvidia:1");
  EXPECT_EQ(left("nvidia-a100-pcie-40gb", "nvidia-a100-sxm4-80gb"), "gpu:nvidia-a100-pcie-40gb:1");
  EXPECT_EQ(left("a", ""), "gpu:a:1");
  EXPECT_EQ(left("", "a"), "gpu:1");
  EXPECT_EQ(left("nvidia-a100", "amd"), "gpu:nvidia-a100:4");
  EXPECT_EQ(left("nvidia-a100", "1g.5gb"), "gpu:nvidia-a100:4");
  // Devices that are held under either name count together.
  Devices held = gpus("nvidia", 2);
  add_devices(held, {"gpu", "nvidia-a100"}, 1);
  EXPECT_EQ(to_string(devices_left(gpus("nvidia-a100", 4), held)), "gpu:nvidia-a100:1");
  EXPECT_EQ(to_string(in_words_of(gpus("nvidia-a100", 4), held)), "gpu:nvidia-a100:3");
  EXPECT_EQ(to_string(devices_left({{{"nic", ""}, 1}}, held)), "nic:1");
}

}  // namespace
}  // namespace sched
