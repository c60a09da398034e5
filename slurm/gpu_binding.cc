#include "slurm/gpu_binding.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "slurm/text.h"

namespace slurm {
namespace {

constexpr std::uint64_t kMost = 65'535;  // devices of a node, and tasks on it

std::optional<std::uint64_t> number(std::string_view text, int base, std::uint64_t most) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value, base);
  if (read.ec != std::errc{} || read.ptr != end || value > most) return std::nullopt;
  return value;
}

// Reads "0*2,1" as 0, 0, 1; masks have 16 as their base, with or without "0x". Empty: it is none.
std::vector<std::uint64_t> values_of(std::string_view list, bool are_masks) {
  std::vector<std::uint64_t> values;
  for (const std::string& entry : split(list, ',')) {
    std::string_view text = entry;
    const std::size_t times = text.find('*');
    const auto count = times == std::string_view::npos ? std::optional<std::uint64_t>{1}
                                                       : number(text.substr(times + 1), 10, kMost);
    text = text.substr(0, times);
    if (are_masks && text.starts_with("0x")) text.remove_prefix(2);
    const auto value = are_masks ? number(text, 16, ~std::uint64_t{0}) : number(text, 10, kMost);
    if (!value || !count || *count == 0 || values.size() + *count > kMost) return {};
    values.insert(values.end(), *count, *value);
  }
  return values;
}

}  // namespace

std::vector<std::size_t> GpuBinding::of_task(std::size_t task, std::size_t gpus) const {
  std::vector<std::size_t> own;
  const auto add = [&](std::size_t gpu) {
    if (gpu < gpus) own.push_back(gpu);
  };
  switch (kind) {
    case Kind::kAll:
    case Kind::kNone:
      for (std::size_t gpu = 0; gpu < gpus; ++gpu) add(gpu);
      break;
    case Kind::kSingle:
      add(task / count % std::max<std::size_t>(gpus, 1));
      break;
    case Kind::kPerTask:
      for (std::size_t gpu = task * count; gpu < (task + 1) * count && gpu < gpus; ++gpu) add(gpu);
      break;
    case Kind::kMap:
      add(values[task % values.size()]);
      break;
    case Kind::kMask:
      for (std::size_t gpu = 0; gpu < 64; ++gpu) {
        if ((values[task % values.size()] >> gpu & 1) != 0) add(gpu);
      }
      break;
  }
  if (own.empty()) add(0);  // SOURCE: recorded: the first, with a complaint of slurmstepd
  return own;
}

base::Result<GpuBinding> parse_gpu_binding(std::string_view value) {
  const auto invalid = [&] {
    return base::invalid_argument(
        "--gpu-bind \"" + std::string{value} +
        "\": must be none, closest, single:N, per_task:N, map_gpu:LIST or "
        "mask_gpu:LIST");
  };
  std::string_view text = value;
  for (const std::string_view word : {"verbose,", "quiet,", "v,", "q,"}) {
    if (same_word(text.substr(0, word.size()), word)) {
      text.remove_prefix(word.size());
      break;
    }
  }
  GpuBinding binding;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    if (same_word(text, "closest")) return binding;
    if (!same_word(text, "none")) return invalid();
    binding.kind = GpuBinding::Kind::kNone;
    return binding;
  }
  const std::string_view word = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  if (same_word(word, "single") || same_word(word, "per_task")) {
    const auto count = number(rest, 10, kMost);
    if (!count || *count == 0) return invalid();
    binding.kind =
        same_word(word, "single") ? GpuBinding::Kind::kSingle : GpuBinding::Kind::kPerTask;
    binding.count = *count;
    return binding;
  }
  const bool are_masks = same_word(word, "mask_gpu");
  if (!are_masks && !same_word(word, "map_gpu")) return invalid();
  binding.kind = are_masks ? GpuBinding::Kind::kMask : GpuBinding::Kind::kMap;
  binding.values = values_of(rest, are_masks);
  if (binding.values.empty()) return invalid();
  return binding;
}

}  // namespace slurm
