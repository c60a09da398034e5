// Standard base64 (RFC 4648, section 4), as kubeconfigs and Secrets have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

// nullopt if the text is not base64. Line breaks and blanks are skipped, padding may be missing.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace kube
