// The key of a record, a start and its pods: the UID of the Job's object, or of a task of an array
// "UID/17". Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace control {

inline std::string record_key(std::string uid, std::optional<int> task) {
  if (task) uid += "/" + std::to_string(*task);
  return uid;
}

// Returns the UID of the object.
inline std::string uid_in(std::string_view key) {
  return std::string{key.substr(0, key.find('/'))};
}

inline std::optional<int> task_in(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  int task = 0;
  const char* const end = key.data() + key.size();
  const auto parsed = std::from_chars(key.data() + slash + 1, end, task);
  if (parsed.ec != std::errc{} || parsed.ptr != end || task < 0) return std::nullopt;
  return task;
}

}  // namespace control
