#include "operator/publish/mirror.h"

#include <charconv>
#include <optional>

namespace control {
namespace {

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

bool is_newer_version(const std::string& a, const std::string& b) {
  const auto left = number_of(a);
  const auto right = number_of(b);
  // Resource versions are opaque by contract, and ascending numbers in fact (etcd's revisions). If
  // they are not numbers, any other version counts as newer.
  return left && right ? *left > *right : a != b;
}

}  // namespace control
