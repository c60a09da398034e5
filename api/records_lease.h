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

// The Lease's annotations: every state of every Job up to this resourceVersion is on the disk.
inline constexpr std::string_view kRecordedVersion = "kubegang.io/recorded-version";
// The version of the list since which Jobs are watched without a gap: what came and went before it
// may never have been seen.
inline constexpr std::string_view kRecordedSince = "kubegang.io/recorded-since";

// Parses a resourceVersion; nullopt if it is not a number.
inline std::optional<std::int64_t> version_number(std::string_view version) {
  std::int64_t number = 0;
  const char* const end = version.data() + version.size();
  const auto read = std::from_chars(version.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 0) return std::nullopt;
  return number;
}

struct RecordedVersions {
  std::int64_t version = -1;  // -1: it says none
  std::int64_t since = -1;    // likewise

  friend bool operator==(const RecordedVersions&, const RecordedVersions&) = default;
};

inline RecordedVersions recorded_versions(const Lease& lease) {
  const auto number_of = [&](std::string_view name) {
    const auto found = lease.metadata.annotations.find(std::string{name});
    if (found == lease.metadata.annotations.end()) return std::int64_t{-1};
    return version_number(found->second).value_or(-1);
  };
  return {.version = number_of(kRecordedVersion), .since = number_of(kRecordedSince)};
}

}  // namespace kube
