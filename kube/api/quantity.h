// Kubernetes quantities ("512Mi", "100m", "1e3").
// SOURCE: k8s.io/apimachinery pkg/api/resource, "Quantity".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strong_int.h"

namespace kube {

// An amount of memory.
using Bytes = base::StrongInt<struct BytesTag, std::int64_t>;
// Thousandths of a CPU, as requests and limits count them.
using MilliCpu = base::StrongInt<struct MilliCpuTag, std::int64_t>;

// Any resource: cpu, memory, pods, nvidia.com/gpu. Held in thousandths of its unit, which reaches
// 9.2 PB of memory. An amount beyond that is read as the largest, as Kubernetes does beyond 2^63 -
// 1 units. Finer fractions are rounded up, as Kubernetes does, too.
class Quantity {
 public:
  constexpr Quantity() = default;
  static constexpr Quantity from_milli(std::int64_t milli) { return Quantity{milli}; }
  // REQUIRES: |units| <= 9.2e15.
  static constexpr Quantity from_units(std::int64_t units) { return Quantity{units * 1000}; }

  constexpr std::int64_t milli() const { return milli_; }
  // Returns whole units, rounded up.
  constexpr std::int64_t units() const { return milli_ / 1000 + (milli_ % 1000 > 0 ? 1 : 0); }
  constexpr Bytes bytes() const { return Bytes{units()}; }
  constexpr MilliCpu milli_cpu() const { return MilliCpu{milli_}; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  constexpr explicit Quantity(std::int64_t milli) : milli_{milli} {}
  std::int64_t milli_ = 0;
};

// Keyed by resource name.
using ResourceList = std::map<std::string, Quantity>;

// kInvalidArgument quotes the text.
base::Result<Quantity> parse_quantity(std::string_view text);

// Returns "512Mi", "1Gi", "1000": the largest binary suffix that divides it.
std::string format_bytes(Bytes bytes);
// Returns "100m", "2".
std::string format_decimal(Quantity quantity);
// Writes binary units for memory and storage and decimal ones for the rest, as usual.
std::string format_quantity(std::string_view resource_name, Quantity quantity);

}  // namespace kube
