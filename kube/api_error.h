// The meaning of an answer of the API server with status >= 400, and back-off after it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "kube/transport.h"

namespace kube {

// Builds the Error from the HTTP status and the metav1.Status in the body, whose message becomes
// the Error's, shortened to kStatusMessageBytesMax. A body that is not a Status is quoted, at most
// 200 bytes of it. A write under a UID that the object no longer has is kConflict, even if the
// server says 422.
//
// Only the API server's own word says that something does not exist or is over: kNotFound needs a
// Status with reason NotFound, about an object that `path` names if it names one at all; kGone a
// Status with reason Expired or Gone. Any other 404 or 410 comes from something in between (a load
// balancer that fails over, a path that is not served for a moment) and is kUnavailable.
// REQUIRES: response.status >= 400 or unexpected.
base::Error error_from_response(const Response& response, std::string_view path);

// Does the same for a metav1.Status as JSON: the object of a watch's ERROR event.
base::Error error_from_status(const nlohmann::json& status);

// Returns the header's whole seconds, at most kRetryAfterMax; nothing without the header (its date
// form is not used by API servers).
std::optional<base::Duration> retry_after(const Response& response);

inline constexpr base::Duration kRetryAfterMax = std::chrono::seconds{60};

}  // namespace kube
