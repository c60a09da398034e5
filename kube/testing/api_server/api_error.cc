#include "kube/testing/api_server/api_error.h"

#include <nlohmann/json.hpp>

namespace devcluster {
namespace {

// Returns an error with details that name an object; clients (client-go's IsNotFound and the like)
// read the reason and not the code, which several reasons share.
ApiError about(int code, std::string_view reason, const GroupResource& what, std::string_view name,
               std::string message) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.message = std::move(message);
  error.name = name;
  error.group = what.group;
  error.kind = what.resource;
  return error;
}

// Without details: the refusal is not about one object.
ApiError plain(int code, std::string_view reason, std::string message) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.message = std::move(message);
  return error;
}

// Returns "pods \"a\"", with the group behind the plural if there is one.
std::string quoted(const GroupResource& what, std::string_view name) {
  return what.qualified() + " \"" + std::string{name} + "\"";
}

}  // namespace

ApiError bad_request(std::string message) {
  return plain(400, "BadRequest", std::move(message));
}

// Refuses by an admission rule of this server; rights are not checked.
ApiError forbidden(const GroupResource& what, std::string_view name, std::string why) {
  return about(403, "Forbidden", what, name, quoted(what, name) + " is forbidden: " + why);
}

ApiError not_found(const GroupResource& what, std::string_view name) {
  return about(404, "NotFound", what, name, quoted(what, name) + " not found");
}

// The path itself is not served. The same code and reason as of a missing object, with other words
// and without details, as on a real server.
ApiError no_such_path() {
  return plain(404, "NotFound", "the server could not find the requested resource");
}

ApiError method_not_allowed() {
  return plain(405, "MethodNotAllowed",
               "the server does not allow this method on the requested resource");
}

ApiError not_acceptable(std::string_view accepted) {
  return plain(406, "NotAcceptable",
               "only the following media types are accepted: " + std::string{accepted});
}

ApiError already_exists(const GroupResource& what, std::string_view name) {
  return about(409, "AlreadyExists", what, name, quoted(what, name) + " already exists");
}

// The object has another version than the client's. It shares code 409 with already_exists(), and
// only the reason tells them apart.
ApiError conflict(const GroupResource& what, std::string_view name, std::string why) {
  return about(409, "Conflict", what, name,
               "Operation cannot be fulfilled on " + quoted(what, name) + ": " + why);
}

// Answers a watch or a page token from before the oldest change that is kept: the client must
// list again.
ApiError expired(std::string message) {
  return plain(410, "Expired", std::move(message));
}

ApiError unsupported_media_type(std::string message) {
  return plain(415, "UnsupportedMediaType", std::move(message));
}

// Several causes stand in brackets, as Go's ErrorList prints them.
ApiError invalid(std::string_view group, std::string_view kind, std::string_view name,
                 std::vector<Cause> causes) {
  GroupResource what{std::string{group}, std::string{kind}};
  std::string list;
  for (const Cause& cause : causes) {
    list += (list.empty() ? "" : ", ") + cause.field + ": " + cause.message;
  }
  if (causes.size() > 1) list = "[" + list + "]";
  ApiError error = about(422, "Invalid", what, name, quoted(what, name) + " is invalid: " + list);
  error.causes = std::move(causes);
  return error;
}

// 504 and not 400: to a real server it is a version that its cache has not reached yet, so it asks
// the client to come back in a second.
ApiError too_large_resource_version(std::string_view asked, std::string_view current) {
  ApiError error = plain(
      504, "Timeout",
      "Too large resource version: " + std::string{asked} + ", current: " + std::string{current});
  error.causes = {{"ResourceVersionTooLarge", "", "Too large resource version"}};
  error.retry_after_seconds = 1;
  return error;
}

// For injected failures: the reason that a real server sends with that code, since clients read it.
ApiError error_of_code(int code, int retry_after_seconds) {
  ApiError error = plain(code, "", "injected failure");
  switch (code) {
    case 401:
      error.reason = "Unauthorized";
      break;
    case 403:
      error.reason = "Forbidden";
      break;
    case 404:
      error.reason = "NotFound";
      break;
    case 409:
      error.reason = "Conflict";
      break;
    case 410:
      error.reason = "Expired";
      break;
    case 422:
      error.reason = "Invalid";
      break;
    case 429:
      error.reason = "TooManyRequests";
      break;
    case 500:
      error.reason = "InternalError";
      break;
    case 503:
      error.reason = "ServiceUnavailable";
      break;
    case 504:
      error.reason = "Timeout";
      break;
    default:
      error.reason = "Unknown";
      break;
  }
  error.retry_after_seconds = retry_after_seconds;
  return error;
}

// Makes a Status object, the body of each refusal. Leaves out empty parts, as Go's omitempty does.
nlohmann::json to_json(const ApiError& error) {
  nlohmann::json details = nlohmann::json::object();
  if (!error.name.empty()) details["name"] = error.name;
  if (!error.group.empty()) details["group"] = error.group;
  if (!error.kind.empty()) details["kind"] = error.kind;
  if (!error.uid.empty()) details["uid"] = error.uid;
  if (error.retry_after_seconds > 0) details["retryAfterSeconds"] = error.retry_after_seconds;
  for (const Cause& cause : error.causes) {
    nlohmann::json entry = {{"reason", cause.reason}, {"message", cause.message}};
    if (!cause.field.empty()) entry["field"] = cause.field;
    details["causes"].push_back(std::move(entry));
  }
  nlohmann::json status = {
      {"kind", "Status"},    {"apiVersion", "v1"},       {"metadata", nlohmann::json::object()},
      {"status", "Failure"}, {"message", error.message}, {"code", error.code}};
  if (!error.reason.empty()) status["reason"] = error.reason;
  if (!details.empty()) status["details"] = std::move(details);
  return status;
}

}  // namespace devcluster
