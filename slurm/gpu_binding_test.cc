#include "slurm/gpu_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slurm {
namespace {

using Tasks = std::vector<std::vector<std::size_t>>;

Tasks bound(const std::string& value, std::size_t tasks, std::size_t gpus) {
  const auto binding = parse_gpu_binding(value);
  Tasks all;
  for (std::size_t task = 0; task < tasks && binding.ok(); ++task) {
    all.push_back(binding->of_task(task, gpus));
  }
  return all;
}

// SOURCE: recorded (session gpu_bind).
TEST(GpuBinding, ATaskSeesItsGpus) {
  EXPECT_EQ(bound("closest", 2, 2), (Tasks{{0, 1}, {0, 1}}));
  EXPECT_EQ(bound("single:1", 3, 2), (Tasks{{0}, {1}, {0}}));
  EXPECT_EQ(bound("single:2", 3, 2), (Tasks{{0}, {0}, {1}}));
  EXPECT_EQ(bound("verbose,single:1", 2, 2), (Tasks{{0}, {1}}));
  EXPECT_EQ(bound("per_task:1", 3, 2), (Tasks{{0}, {1}, {0}}));
  EXPECT_EQ(bound("per_task:2", 3, 3), (Tasks{{0, 1}, {2}, {0}}));
  EXPECT_EQ(bound("map_gpu:1,0", 3, 2), (Tasks{{1}, {0}, {1}}));
  EXPECT_EQ(bound("map_gpu:0*2,1", 3, 2), (Tasks{{0}, {0}, {1}}));
  EXPECT_EQ(bound("map_gpu:7", 2, 2), (Tasks{{0}, {0}}));
  EXPECT_EQ(bound("mask_gpu:3,0x2", 2, 2), (Tasks{{0, 1}, {1}}));
  EXPECT_EQ(bound("Single:1", 1, 0), (Tasks{{}}));
  EXPECT_EQ(parse_gpu_binding("none")->kind, GpuBinding::Kind::kNone);
}

TEST(GpuBinding, WhatMeansNothingIsRefused) {
  for (const char* value :
       {"", "nosuch", "single", "single:", "single:0", "single:x", "per_task:0",
        "map_gpu:", "map_gpu:0,x", "map_gpu:0*0", "map_gpu:1*99999999", "mask_gpu:g", "verbose"}) {
    EXPECT_FALSE(parse_gpu_binding(value).ok()) << value;
  }
  EXPECT_EQ(parse_gpu_binding("map").error().message,
            "--gpu-bind \"map\": must be none, closest, single:N, per_task:N, map_gpu:LIST or "
            "mask_gpu:LIST");
}

}  // namespace
}  // namespace slurm
