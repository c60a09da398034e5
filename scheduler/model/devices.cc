#include "scheduler/model/devices.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/product_words.h"

namespace sched {
namespace {

bool meets(const DeviceKind& kind, const DeviceKind& asked) {
  return kind.name == asked.name && (asked.type.empty() || base::has_words(kind.type, asked.type));
}

std::string_view first_word(std::string_view product) {
  std::size_t end = 0;
  while (end < product.size() && !base::is_word_separator(product[end])) ++end;
  return product.substr(0, end);
}

// Returns the kind under which the node has what jobs hold as `held`; null: it has none such.
const DeviceKind* renamed(const Devices& all, const DeviceKind& held) {
  const auto find = [&](const auto& is_it) -> const DeviceKind* {
    const auto found = std::ranges::find_if(all, is_it, &DeviceCount::kind);
    return found == all.end() ? nullptr : &found->kind;
  };
  if (const auto* kind = find([&](const DeviceKind& k) { return k == held; })) return kind;
  if (const auto* kind = find([&](const DeviceKind& k) { return meets(k, held); })) return kind;
  if (const auto* kind = find([&](const DeviceKind& k) { return meets(held, k); })) return kind;
  return find([&](const DeviceKind& k) {
    return k.name == held.name && first_word(k.type) == first_word(held.type);
  });
}

Devices subtract(const Devices& all, const Devices& held) {
  Devices left;
  for (const DeviceCount& there : all) {
    const auto taken = std::ranges::find(held, there.kind, &DeviceCount::kind);
    const int count = there.count - (taken == held.end() ? 0 : taken->count);
    if (count > 0) left.push_back({there.kind, count});
  }
  return left;
}

}  // namespace

void add_devices(Devices& to, const DeviceKind& kind, int count) {
  const auto known = std::ranges::find(to, kind, &DeviceCount::kind);
  if (known == to.end()) {
    if (count != 0) to.push_back({kind, count});
  } else if ((known->count += count) == 0) {
    to.erase(known);
  }
}

Devices in_words_of(const Devices& all, const Devices& held) {
  Devices translated;
  for (const DeviceCount& each : held) {
    const DeviceKind* const kind = renamed(all, each.kind);
    add_devices(translated, kind == nullptr ? each.kind : *kind, each.count);
  }
  return translated;
}

// A held kind is rarely one that the node does not name, so that nothing is copied.
Devices devices_left(const Devices& all, const Devices& held) {
  const bool known = std::ranges::all_of(held, [&](const DeviceCount& each) {
    return std::ranges::find(all, each.kind, &DeviceCount::kind) != all.end();
  });
  return known ? subtract(all, held) : subtract(all, in_words_of(all, held));
}

int count_of(const Devices& there, const DeviceKind& kind) {
  int count = 0;
  for (const DeviceCount& here : there) {
    if (meets(here.kind, kind)) count += here.count;
  }
  return count;
}

bool have_devices(const Devices& there, const Devices& asked) {
  return std::ranges::all_of(asked, [&](const DeviceCount& wanted) {
    return count_of(there, wanted.kind) >= wanted.count;
  });
}

Devices devices_given(const Devices& there, const Devices& asked) {
  Devices given;
  for (const DeviceCount& wanted : asked) {
    int missing = wanted.count;
    for (const DeviceCount& here : there) {
      if (missing == 0) break;
      if (!meets(here.kind, wanted.kind)) continue;
      const int taken = std::min(missing, here.count);
      given.push_back({here.kind, taken});
      missing -= taken;
    }
  }
  return given;
}

std::string to_string(const DeviceCount& devices) {
  const std::string type = devices.kind.type.empty() ? "" : ":" + devices.kind.type;
  return devices.kind.name + type + ":" + std::to_string(devices.count);
}

std::string to_string(const Devices& devices) {
  std::string text;
  for (const DeviceCount& each : devices) text += (text.empty() ? "" : ",") + to_string(each);
  return text;
}

}  // namespace sched
