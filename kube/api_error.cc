#include "kube/api_error.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

#include "base/cut_text.h"
#include "kube/api/json_text.h"
#include "kube/api/meta.h"
#include "kube/url.h"

namespace kube {
namespace {

using base::Code;
using nlohmann::json;

bool has_cause(const json& status, std::string_view field, std::string_view value) {
  const auto details = status.find("details");
  if (details == status.end() || !details->is_object()) return false;
  const auto causes = details->find("causes");
  if (causes == details->end() || !causes->is_array()) return false;
  return std::ranges::any_of(*causes, [&](const json& cause) {
    return cause.is_object() && text_at(cause, field) == value;
  });
}

// Returns true if the server refused a write for the object's UID: a patch that names the UID of an
// object that was deleted and created again is answered with 422, not 409, since the field is
// immutable. To the caller both are a conflict.
bool blames_uid(const json& status) {
  return has_cause(status, "field", "metadata.uid");
}

// Returns true if the server's cache does not know the version yet, or its store was set back. It
// comes as a time-out, with status 504.
bool is_too_new(const json& status) {
  return has_cause(status, "reason", "ResourceVersionTooLarge");
}

// Returns true if the Status is the answer to a request with that path: it names no object, or one
// of those in the path (the object itself, or the namespace of one that should be made).
bool is_about(const json& status, std::string_view path) {
  const auto details = status.find("details");
  if (details == status.end() || !details->is_object()) return true;
  const std::string name = text_at(*details, "name");
  if (name.empty()) return true;
  const std::string segment = "/" + percent_encode(name);
  const std::string_view segments = path.substr(0, path.find('?'));
  for (std::size_t at = segments.find(segment); at != std::string_view::npos;
       at = segments.find(segment, at + 1)) {
    const std::size_t end = at + segment.size();
    if (end == segments.size() || segments[end] == '/') return true;
  }
  return false;
}

// Returns what the caller may do, which is the meaning of a Code: retry, list again, adopt, give
// up. The status alone does not always say it. A 409 is a name that is taken or a version that is
// old, told apart by `reason`; a 422 is a wrong field or another object of that name.
Code code_of(int http_status, const std::string& reason, bool uid_blamed, bool too_new) {
  if (too_new) return Code::kGone;
  // An expired version may come with status 410, or in an event whose code says something else.
  if (reason == "Expired" || reason == "Gone") return Code::kGone;
  switch (http_status) {
    case 400:
    case 405:
    case 406:
    case 415:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return reason == "NotFound" ? Code::kNotFound : Code::kUnavailable;
    case 408:
    case 504:
      return Code::kTimeout;
    case 409:
      return reason == "AlreadyExists" ? Code::kAlreadyExists : Code::kConflict;
    case 410:  // without the reason above
      return Code::kUnavailable;
    case 413:
      return Code::kTooLarge;
    case 422:
      return uid_blamed ? Code::kConflict : Code::kInvalidArgument;
    case 429:
      return Code::kUnavailable;
    default:
      // 500 as well: etcd timeouts and lost leaders of etcd come as InternalError, and pass.
      return http_status >= 500 ? Code::kUnavailable : Code::kInternal;
  }
}

bool is_status(const json& body) {
  return body.is_object() && text_at(body, "kind") == "Status";
}

base::Error error_of(int http_status, const json& status) {
  // Bodies of custom API servers and webhooks may lack the message. For an invalid object it quotes
  // every invalid value, in any number and length.
  const std::string message = base::shortened(text_at(status, "message"), kStatusMessageBytesMax);
  const std::string fallback = "HTTP status " + std::to_string(http_status);
  return {code_of(http_status, text_at(status, "reason"), blames_uid(status), is_too_new(status)),
          message.empty() ? fallback : message};
}

}  // namespace

base::Error error_from_response(const Response& response, std::string_view path) {
  // A proxy or load balancer in front of the API server answers with HTML, plain text or JSON of
  // its own; then its beginning is quoted, which mostly names the culprit.
  const json body = json::parse(response.body, nullptr, false);
  if (is_status(body)) {
    base::Error error = error_of(response.status, body);
    if (error.code != Code::kNotFound || is_about(body, path)) return error;
    return {Code::kUnavailable, "not an answer to this request: " + error.message};
  }
  constexpr std::size_t kQuotedBytesMax = 200;
  std::string quoted = response.body.substr(0, kQuotedBytesMax);
  quoted.erase(quoted.find_last_not_of(" \t\r\n") + 1);  // a page ends its line, a message does not
  return {code_of(response.status, "", false, false),
          "HTTP status " + std::to_string(response.status) +
              (quoted.empty() ? std::string{} : ": " + quoted)};
}

base::Error error_from_status(const json& status) {
  if (!status.is_object()) return {Code::kInternal, "an error without a status"};
  const auto code = status.find("code");
  // Without a code it counts as a failure of the server, which a retry may mend.
  const bool known = code != status.end() && code->is_number_integer();
  return error_of(known ? code->get<int>() : 500, status);
}

// The header's other form, a date, is not sent by API servers.
std::optional<base::Duration> retry_after(const Response& response) {
  const auto found = response.headers.find("retry-after");
  if (found == response.headers.end()) return std::nullopt;
  std::int64_t seconds = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  // Before it is made a duration: 10^18 seconds would overflow as microseconds.
  if (seconds > 3600) return kRetryAfterMax;
  return std::min<base::Duration>(std::chrono::seconds{seconds}, kRetryAfterMax);
}

}  // namespace kube
