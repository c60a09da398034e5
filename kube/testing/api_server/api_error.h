// A refusal of the API server: HTTP code, reason, sentence and details of a
// metav1.Status, in the words of a real kube-apiserver (callers and kubectl look at them). Internal
// to the server; clients see the JSON of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/check.h"

namespace devcluster {

// One entry of details.causes.
struct Cause {
  std::string reason;   // FieldValueInvalid, FieldValueRequired, …
  std::string field;    // "spec.nodes.min"
  std::string message;  // without the field: "Invalid value: 0: …"
  friend bool operator==(const Cause&, const Cause&) = default;
};

struct ApiError {
  int code = 500;
  std::string reason;
  std::string message;
  // Details; empty parts are left out.
  std::string name;
  std::string group;
  std::string kind;  // the plural resource, or the kind where the object is invalid
  std::string uid;
  std::vector<Cause> causes;
  int retry_after_seconds = 0;
};

// Plural resource and group: "jobs.kubegang.io", "pods".
struct GroupResource {
  std::string group;
  std::string resource;
  std::string qualified() const { return group.empty() ? resource : resource + "." + group; }
  friend auto operator<=>(const GroupResource&, const GroupResource&) = default;
};

ApiError bad_request(std::string message);                                              // 400
ApiError forbidden(const GroupResource& what, std::string_view name, std::string why);  // 403
ApiError not_found(const GroupResource& what, std::string_view name);                   // 404
ApiError no_such_path();                                                                // 404
ApiError method_not_allowed();                                                          // 405
ApiError not_acceptable(std::string_view accepted);                                     // 406
ApiError already_exists(const GroupResource& what, std::string_view name);              // 409
ApiError conflict(const GroupResource& what, std::string_view name, std::string why);   // 409
ApiError expired(std::string message);                                                  // 410
ApiError unsupported_media_type(std::string message);                                   // 415
ApiError invalid(std::string_view group, std::string_view kind, std::string_view name,
                 std::vector<Cause> causes);                                            // 422
ApiError too_large_resource_version(std::string_view asked, std::string_view current);  // 504
// Returns the reason that a real server gives with this code, for injected failures.
ApiError error_of_code(int code, int retry_after_seconds);

// metav1.Status.
nlohmann::json to_json(const ApiError& error);

// A T, or the refusal.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_{std::in_place_index<0>, std::move(value)} {}         // NOLINT
  Outcome(ApiError error) : state_{std::in_place_index<1>, std::move(error)} {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  ApiError& error() { return std::get<1>(state_); }
  const ApiError& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, ApiError> state_;
};

}  // namespace devcluster
