#include "kube/merge_patch.h"

#include <nlohmann/json.hpp>

namespace kube {

// RFC 7386 the other way round: the patch that makes `to` of `from`. Lists are replaced as a whole,
// and a member that is null in `to` counts as absent, since a merge patch cannot store a null.
nlohmann::json merge_patch(const nlohmann::json& from, const nlohmann::json& to) {
  if (!from.is_object() || !to.is_object()) return to;
  nlohmann::json patch = nlohmann::json::object();
  // First all that was there: it is removed, changed inside, or replaced. A patch of an inner
  // object that says nothing is left out, so that equal objects give {} and cause no write.
  for (const auto& [name, value] : from.items()) {
    const auto kept = to.find(name);
    if (kept == to.end() || kept->is_null()) {
      patch[name] = nullptr;
    } else if (value.is_object() && kept->is_object()) {
      nlohmann::json inner = merge_patch(value, *kept);
      if (!inner.empty()) patch[name] = std::move(inner);
    } else if (value != *kept) {
      patch[name] = *kept;
    }
  }
  // Then all that is new.
  for (const auto& [name, value] : to.items()) {
    if (!from.contains(name) && !value.is_null()) patch[name] = value;
  }
  return patch;
}

}  // namespace kube
