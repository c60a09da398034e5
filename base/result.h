// Result<T> and Status: what a call that touches the outside world returns. Our code never throws;
// exceptions of libraries are caught in the function that calls the library and become an Error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace base {

// The kind of failure, by what the caller may do about it. The names follow the API server's
// reasons where one exists.
enum class Code {
  kInvalidArgument,   // give up: the input is wrong (HTTP 400, 422; a file that does not parse)
  kUnauthenticated,   // give up or re-read credentials (401)
  kPermissionDenied,  // give up (403, EACCES, EPERM)
  kNotFound,          // ignore on delete (404, ENOENT)
  kAlreadyExists,     // adopt or give up (409 on create)
  kConflict,          // read again and retry (409 on update)
  kGone,              // list again (410)
  kTooLarge,          // give up (413)
  kUnavailable,       // retry with back-off (429, 5xx, connection refused or reset)
  kTimeout,           // retry with back-off (deadline of the call passed)
  kCancelled,         // our own stop was requested
  kInternal,          // unexpected answer; retry with back-off
};

// Lower case with dashes, as in log lines: "permission-denied".
constexpr std::string_view to_string(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid-argument";
    case Code::kUnauthenticated:
      return "unauthenticated";
    case Code::kPermissionDenied:
      return "permission-denied";
    case Code::kNotFound:
      return "not-found";
    case Code::kAlreadyExists:
      return "already-exists";
    case Code::kConflict:
      return "conflict";
    case Code::kGone:
      return "gone";
    case Code::kTooLarge:
      return "too-large";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kTimeout:
      return "timeout";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

// message: what, on which object, the offending value; lower case, no full stop.
struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  std::string message;

  // Returns the same error with "context: " in front. Add context once on the way up.
  Error with_context(std::string_view context) const {
    return {code, std::string{context} + ": " + message};
  }
  friend bool operator==(const Error&, const Error&) = default;
};

// Makes the most frequent error of readers.
inline Error invalid_argument(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

// Ok, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_{std::move(error)} {}  // NOLINT: `return error;` is the point

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  // REQUIRES: !ok().
  const Error& error() const {
    CHECK(error_.has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

// A T, or an Error. Implicit from both, so that a function returns either as it is. Reading the one
// that is not there is a mistake of the caller and aborts with the error's message.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_{std::in_place_index<0>, std::move(value)} {}      // NOLINT
  Result(Error error) : state_{std::in_place_index<1>, std::move(error)} {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & {
    CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok(), error_text());
    return std::get<0>(std::move(state_));
  }
  // As value(): these abort, too, if there is an error.
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const {
    CHECK(!ok());
    return std::get<1>(state_);
  }
  // For callers that pass the error on and do not need the value.
  Status status() const { return ok() ? Status{} : Status{error()}; }

 private:
  // For the message of a CHECK that fails: the error that the caller has overlooked.
  std::string error_text() const { return ok() ? std::string{} : std::get<1>(state_).message; }

  std::variant<T, Error> state_;
};

}  // namespace base
