#include "launcher/gpu_binding.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "slurm/gpu_binding.h"

namespace launcher {
namespace {

std::vector<std::string> entries_of(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    entries.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return entries;
}

std::optional<std::string> take(Environment& environment, const char* name) {
  const auto value = value_of(environment, name);
  unset(environment, name);
  return value;
}

}  // namespace

std::size_t devices_in(const std::string& text) {
  std::size_t all = 0;
  for (const std::string& entry : entries_of(text)) {
    all += number_or(entry.substr(entry.rfind(':') + 1), 1);
  }
  return all;
}

void bind_gpus(Environment& environment, std::size_t local, std::size_t tasks) {
  const auto each = take(environment, kGpusOfEachTask);
  const auto asked = take(environment, kGpuBinding);
  unset(environment, "SLURM_STEP_GPUS");
  const auto here = value_of(environment, "SLURM_GPUS_ON_NODE");
  if (!here) return;
  const std::size_t all = number_or(*here, 0);
  const std::size_t of_step = each ? std::min(all, number_or(*each, 0) * tasks) : all;
  if (of_step == 0) {
    // Slurm takes the lists away, which shows a program all GPUs of its container.
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
      if (value_of(environment, name)) set(environment, name, "");
    }
    unset(environment, "SLURM_GPUS_ON_NODE");
    return;
  }
  set(environment, "SLURM_GPUS_ON_NODE", std::to_string(of_step));
  const auto binding = slurm::parse_gpu_binding(tasks > 1 ? asked.value_or("closest") : "closest");
  if (!binding) return;
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    const auto list = value_of(environment, name);
    if (!list) continue;
    if (binding->kind == slurm::GpuBinding::Kind::kNone) {
      unset(environment, name);
      continue;
    }
    const std::vector<std::string> entries = entries_of(*list);
    std::string own;
    for (const std::size_t gpu : binding->of_task(local, std::min(entries.size(), of_step))) {
      own += (own.empty() ? "" : ",") + entries[gpu];
    }
    set(environment, name, own);
    set(environment, "SLURM_STEP_GPUS", own);
  }
}

}  // namespace launcher
