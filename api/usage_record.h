// UsageRecord: what namespaces and QOS have used, as the operator has counted it; a new leader goes
// on with it. There is one, `default`. SOURCE: api.md "UsageRecord".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/api/meta.h"

namespace kube {

inline constexpr std::string_view kUsageRecordName = "default";

struct NamespaceUsage {
  std::string account{};
  std::string ns{};                  // "namespace"
  std::int64_t billed = 0;           // thousandths of billing units × seconds, decayed
  std::int64_t run_time_millis = 0;  // of all its jobs, decayed

  friend bool operator==(const NamespaceUsage&, const NamespaceUsage&) = default;
};

struct QosUsage {
  std::string name{};
  std::int64_t billed = 0;
  std::int64_t run_time_millis = 0;

  friend bool operator==(const QosUsage&, const QosUsage&) = default;
};

struct UsageRecordSpec {
  std::optional<base::Instant> as_of{};     // when the last period ended: decay is up to then
  std::optional<base::Instant> taken_at{};  // jobs that ended until then have been charged
  std::vector<NamespaceUsage> namespaces{};
  std::vector<QosUsage> qos{};
  // The jobs that had nodes then, and how many seconds of their run time have been charged:
  // "42:300,43:0".
  std::string jobs{};

  friend bool operator==(const UsageRecordSpec&, const UsageRecordSpec&) = default;
};

struct UsageRecord {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "usagerecords", "UsageRecord",
                                          false};

  ObjectMeta metadata{};
  UsageRecordSpec spec{};

  friend bool operator==(const UsageRecord&, const UsageRecord&) = default;
};

template <>
base::Result<UsageRecord> decode<UsageRecord>(const JsonView& object);
template <>
const KnownFields& known_fields<UsageRecord>();
nlohmann::json encode(const UsageRecord& record);

}  // namespace kube
