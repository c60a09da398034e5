// The kernel's way to write a set of CPUs: "0-3,8".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace os {

// Returns the CPUs in the order in which they are written. nullopt if the text is not a list, or an
// empty one. SOURCE: cpuset(7) "List format".
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// Keeps this order; neighbors that ascend by one become a range.
std::string format_cpu_list(const std::vector<int>& cpus);

}  // namespace os
