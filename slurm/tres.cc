#include "slurm/tres.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "slurm/conf_actions.h"
#include "slurm/limits.h"
#include "slurm/quantities.h"

namespace slurm {
namespace {

// The trackable resources (TRES) that this scheduler counts. Slurm's names, as in
// AccountingStorageTRES.
constexpr std::array<std::pair<std::string_view, sched::Tres>, 5> kNames = {
    {{"cpu", sched::Tres::kCpu},
     {"mem", sched::Tres::kMemory},
     {"node", sched::Tres::kNode},
     {"billing", sched::Tres::kBilling},
     {"gres/gpu", sched::Tres::kGpu}}};

// Returns the type of "gres/gpu:a100"; nothing for other words.
std::optional<std::string> gpu_type_of(std::string_view name) {
  constexpr std::string_view kGpus = "gres/gpu:";
  if (name.size() <= kGpus.size() || !same_word(name.substr(0, kGpus.size()), kGpus)) return {};
  return std::string{name.substr(kGpus.size())};
}

// Reads each "kind=value" with read(kind, value), a Result. A kind that is named twice has its last
// value. Kinds that are not named keep the default of `Values`, which for limits is none and for
// weights zero.
template <typename Values, typename Read>
base::Result<Values> parse_each(std::string_view what, std::string_view text, const Read& read) {
  Values values;
  for (const std::string& item : split(text, ',')) {
    const auto [name, value] = split_option(item);
    if (const auto type = gpu_type_of(name)) {
      const auto one = read(sched::Tres::kGpu, value);
      if (!one) return one.error();
      values.of_gpu_type[*type] = *one;
      continue;
    }
    bool known = false;
    for (const auto& [word, kind] : kNames) {
      if (!same_word(word, name)) continue;
      known = true;
      const auto one = read(kind, value);
      if (!one) return one.error();
      values[kind] = *one;
    }
    if (known) continue;
    // Resources that Slurm has and this scheduler does not (gres/fpga, fs/disk, energy): another
    // message than for a misspelling.
    if (name.find('/') != std::string_view::npos || same_word(name, "energy")) {
      return not_supported(std::string{what} + " " + std::string{name});
    }
    return unknown_word(what, name, {"cpu", "mem", "node", "billing", "gres/gpu"});
  }
  // A limit that was taken back.
  std::erase_if(values.of_gpu_type,
                [](const auto& each) { return each.second == decltype(each.second){}; });
  return values;
}

}  // namespace

// -1 takes a limit back, memory is in MiB unless it has a unit, everything else is a count. A limit
// of 0 is not "no limit": it keeps every job out.
base::Result<sched::TresLimits> parse_tres_limits(std::string_view what, std::string_view text) {
  using Limit = base::Result<std::optional<std::int64_t>>;
  return parse_each<sched::TresLimits>(
      what, text, [&](sched::Tres kind, std::string_view value) -> Limit {
        if (value == "-1") return std::optional<std::int64_t>{};
        if (kind == sched::Tres::kMemory) {
          const base::Result<sched::MemoryMiB> memory = parse_memory(what, value);
          if (!memory) return memory.error();
          return std::optional{memory->value()};
        }
        const base::Result<std::int64_t> count = parse_integer(what, value, {.min = 0});
        if (!count) return count.error();
        return std::optional{*count};
      });
}

// The weight multiplies the job's part of the partition's total (R9.3), so it has no unit and
// memory takes no suffix. Slurm's are decimal numbers. Priorities are whole ones: a fraction would
// add less than 1 to any of them, so it must be zero.
base::Result<sched::TresWeights> parse_tres_weights(std::string_view what, std::string_view text) {
  return parse_each<sched::TresWeights>(
      what, text, [&](sched::Tres, std::string_view value) -> base::Result<std::int64_t> {
        const std::size_t point = value.find('.');
        if (point != std::string_view::npos &&
            value.find_first_not_of('0', point + 1) != std::string_view::npos) {
          const base::Result<std::int64_t> decimal = parse_millionths(what, value);
          if (!decimal) return decimal;
          return base::invalid_argument(std::string{what} + " " + in_quotes(value) +
                                        ": must be a whole number; the fraction adds less than 1 "
                                        "to a priority");
        }
        return parse_integer(what, value.substr(0, point), {.min = 0, .max = kUint32Max});
      });
}

// Without floating point, so that a weight is the same number on every machine. Digits behind the
// sixth place are cut off. A part that is missing counts as 0, so "1." and ".5" are read, too.
base::Result<std::int64_t> parse_millionths(std::string_view what, std::string_view text) {
  if (text.starts_with('-')) {  // -0.5 has no negative part that is an integer
    return base::invalid_argument(std::string{what} + " " + in_quotes(text) +
                                  ": must not be negative");
  }
  const std::size_t point = text.find('.');
  std::string digits{text.substr(0, point)};
  std::string after = point == std::string_view::npos ? "" : std::string{text.substr(point + 1)};
  if (digits.empty()) digits = "0";
  constexpr std::size_t kPlaces = 6;
  if (after.size() > kPlaces) after.resize(kPlaces);
  after.resize(kPlaces, '0');
  const base::Result<std::int64_t> whole =
      parse_integer(what, digits, {.min = 0, .max = 1'000'000'000});
  if (!whole) return whole.error();
  const base::Result<std::int64_t> part = parse_integer(what, after, {.min = 0, .max = 999'999});
  if (!part) return part.error();
  return *whole * 1'000'000 + *part;
}

// Memory=0.25G is a quarter of a unit for each GiB. Memory is counted in MiB, so the weight for a
// MiB is 1/1024 of that for a GiB, and 1024 times that for a KiB. It is rounded to the nearest
// millionth, as the operator rounds the weight of a Partition.
base::Result<sched::TresWeights> parse_billing_weights(std::string_view what,
                                                       std::string_view text) {
  return parse_each<sched::TresWeights>(
      what, text, [&](sched::Tres kind, std::string_view value) -> base::Result<std::int64_t> {
        // Integers only. The largest weight is 10^9 units, that is 10^15 millionths, and 1024 times
        // that still fits into 64 bits.
        std::int64_t multiply = 1;
        std::int64_t divide = 1;
        if (kind == sched::Tres::kMemory && !value.empty()) {
          const char unit = value.back();
          if (unit == 'K' || unit == 'k') multiply = 1024;
          if (unit == 'G' || unit == 'g') divide = 1024;
          if (unit == 'T' || unit == 't') divide = 1024 * 1024;
          if (std::string_view{"KkMmGgTt"}.find(unit) != std::string_view::npos) {
            value.remove_suffix(1);
          }
        }
        const base::Result<std::int64_t> weight = parse_millionths(what, value);
        if (!weight) return weight.error();
        return (*weight * multiply + divide / 2) / divide;
      });
}

}  // namespace slurm
