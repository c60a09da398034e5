// Instants and durations as the Kubernetes API writes them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace kube {

// RFC 3339 with any offset and 0 to 9 fractional digits (finer than a microsecond is cut off):
// metav1.Time and MicroTime. An offset does not lead out of the years 0 to 9999.
// kInvalidArgument quotes the text.
base::Result<base::Instant> parse_instant(std::string_view text);

// metav1.Time, "2026-01-01T00:00:30Z": whole seconds, rounded down.
// REQUIRES of both: a year from 1 to 9999.
std::string format_time(base::Instant t);
// MicroTime, "2026-01-01T00:00:30.000000Z".
std::string format_micro_time(base::Instant t);

// Go's durations, as metav1.Duration has them: "1h30m", "1.5s", "100ms", "0s", "0". Finer than a
// microsecond is cut off; more than the 292 years at which Go's end is read as these.
base::Result<base::Duration> parse_duration(std::string_view text);
// Returns the shortest of Go's spellings that keeps the value: "1h30m", "2.5s", "100ms", "0s".
std::string format_duration(base::Duration d);

}  // namespace kube
