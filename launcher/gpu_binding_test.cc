#include "launcher/gpu_binding.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace launcher {
namespace {

// Returns what task `local` of `tasks` sees of four GPUs.
std::map<std::string, std::string> seen(const Environment& asked, std::size_t local,
                                        std::size_t tasks,
                                        const std::string& list = "CUDA_VISIBLE_DEVICES") {
  Environment environment{list + "=0,1,2,3", "SLURM_GPUS_ON_NODE=4", "SLURM_STEP_GPUS=7"};
  for (const std::string& entry : asked) environment.push_back(entry);
  bind_gpus(environment, local, tasks);
  std::map<std::string, std::string> values;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    values[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return values;
}
using Values = std::map<std::string, std::string>;

std::string each(const std::string& value) {
  return kGpusOfEachTask + ("=" + value);
}
std::string bound(const std::string& value) {
  return kGpuBinding + ("=" + value);
}

// SOURCE: recorded (session gpu_bind): --gpus-per-task is both.
TEST(BindGpus, ATaskSeesItsOwn) {
  const Environment one{each("1"), bound("per_task:1")};
  EXPECT_EQ(seen(one, 1, 2), (Values{{"CUDA_VISIBLE_DEVICES", "1"},
                                     {"SLURM_STEP_GPUS", "1"},
                                     {"SLURM_GPUS_ON_NODE", "2"}}));
  const Environment two{each("2"), bound("per_task:2")};
  EXPECT_EQ(seen(two, 1, 2, "ROCR_VISIBLE_DEVICES"), (Values{{"ROCR_VISIBLE_DEVICES", "2,3"},
                                                             {"SLURM_STEP_GPUS", "2,3"},
                                                             {"SLURM_GPUS_ON_NODE", "4"}}));
  EXPECT_EQ(seen({each("2"), bound("per_task:2")}, 2, 3)["CUDA_VISIBLE_DEVICES"], "0");
  EXPECT_EQ(seen({bound("single:1")}, 5, 6)["CUDA_VISIBLE_DEVICES"], "1");
  EXPECT_EQ(seen({}, 1, 2)["CUDA_VISIBLE_DEVICES"], "0,1,2,3");
  EXPECT_EQ(seen({}, 1, 2)["SLURM_STEP_GPUS"], "0,1,2,3");
}

TEST(BindGpus, ATaskThatIsAloneSeesAllOfItsStep) {
  EXPECT_EQ(seen({bound("single:1")}, 0, 1)["CUDA_VISIBLE_DEVICES"], "0,1,2,3");
  EXPECT_EQ(seen({bound("none")}, 0, 1)["CUDA_VISIBLE_DEVICES"], "0,1,2,3");
  EXPECT_EQ(seen({each("1"), bound("per_task:1")}, 0, 1)["CUDA_VISIBLE_DEVICES"], "0");
}

TEST(BindGpus, WithoutABindingTheTaskSeesItsContainers) {
  EXPECT_EQ(seen({bound("none")}, 0, 2), (Values{{"SLURM_GPUS_ON_NODE", "4"}}));
}

TEST(BindGpus, AStepWithoutGpusSeesNone) {
  EXPECT_EQ(seen({each("0")}, 0, 2), (Values{{"CUDA_VISIBLE_DEVICES", ""}}));
}

TEST(BindGpus, APodWithoutGpusHasNoVariables) {
  Environment environment{each("1"), bound("per_task:1")};
  bind_gpus(environment, 0, 2);
  EXPECT_EQ(environment, Environment{});
}

TEST(BindGpus, CountsDevices) {
  EXPECT_EQ(devices_in("2"), 2U);
  EXPECT_EQ(devices_in("a100:2"), 2U);
  EXPECT_EQ(devices_in("a100:1,v100:1"), 2U);
  EXPECT_EQ(devices_in("gpu"), 1U);
  EXPECT_EQ(devices_in(""), 0U);
}

}  // namespace
}  // namespace launcher
