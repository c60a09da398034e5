// The Lease by which kubegang-records says how far it has stored Jobs: the operator deletes those
// that have ended no sooner (docs/design/records.md). Versions of Jobs are numbers that rise with
// each write, of whichever Job.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kube/api/lease.h"

namespace kube {

// Its annotation: every state of every Job up to this resourceVersion is on the disk.
inline constexpr std::string_view kRecordedVersion = "kubegang.io/recorded-version";

// nullopt: it is no number.
inline std::optional<std::int64_t> version_number(std::string_view version) {
  std::int64_t number = 0;
  const char* const end = version.data() + version.size();
  const auto read = std::from_chars(version.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 0) return std::nullopt;
  return number;
}

inline std::optional<std::int64_t> recorded_version(const Lease& lease) {
  const auto found = lease.metadata.annotations.find(std::string{kRecordedVersion});
  if (found == lease.metadata.annotations.end()) return std::nullopt;
  return version_number(found->second);
}

}  // namespace kube
