// Names and comments of Jobs as people see them: as submitted, or as changed since. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/job.h"

namespace kube {

std::optional<std::string> annotation_of(const Job& job, std::string_view name);

// Returns the name that users see, which may be empty.
std::string shown_name(const Job& job);
std::string shown_comment(const Job& job);

}  // namespace kube
