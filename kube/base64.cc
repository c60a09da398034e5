#include "kube/base64.h"

#include <cstdint>

namespace kube {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  unsigned bits_count = 0;
  std::size_t digits = 0;
  bool padded = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      padded = true;
      continue;
    }
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padded) return std::nullopt;
    ++digits;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    bits_count += 6;
    if (bits_count < 8) continue;
    bits_count -= 8;
    out += static_cast<char>((bits >> bits_count) & 0xffU);
  }
  // Padding may be missing, but a single digit is less than a byte.
  if (digits % 4 == 1) return std::nullopt;
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      const char c = i + j < bytes.size() ? bytes[i + j] : '\0';
      group = (group << 8U) | static_cast<unsigned char>(c);
    }
    const std::size_t digits = bytes.size() - i >= 3 ? 4 : bytes.size() - i + 1;
    for (unsigned digit = 0; digit < 4; ++digit) {
      out += digit < digits ? kAlphabet[(group >> (18U - 6U * digit)) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace kube
