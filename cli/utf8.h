// UTF-8: text that goes into JSON must be valid, since JSON knows no other and its writer ends the
// program at the first byte that is not.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace cli {

// Returns the number, from 1 on, of the first line that is not UTF-8; nullopt if all lines are.
// Overlong forms, surrogates and code points above U+10FFFF are not valid (RFC 3629).
std::optional<std::size_t> line_that_is_not_utf8(std::string_view text);

}  // namespace cli
