#include "kube/base64.h"

#include <cstdint>

namespace kube {
namespace {

// The standard alphabet (RFC 4648, section 4), which Kubernetes uses for Secrets and certificates.
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

// Digits are collected in `bits`, six at a time, and each whole byte is taken off at once:
// `bits_count` is how many bits have not been used. Line breaks and blanks are passed over, since
// files are wrapped; after the padding no digit may follow. nullopt for any other character.
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
    // The bits above were used before; the mask drops them.
    out += static_cast<char>((bits >> bits_count) & 0xffU);
  }
  // Padding may be missing, but a single digit is less than a byte.
  if (digits % 4 == 1) return std::nullopt;
  return out;
}

// Three bytes become four digits. The last group is filled with zero bits, and padding says how
// many bytes are missing.
std::string encode_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      const char c = i + j < bytes.size() ? bytes[i + j] : '\0';
      group = (group << 8U) | static_cast<unsigned char>(c);
    }
    // One byte needs two digits, two bytes need three.
    const std::size_t digits = bytes.size() - i >= 3 ? 4 : bytes.size() - i + 1;
    for (unsigned digit = 0; digit < 4; ++digit) {
      out += digit < digits ? kAlphabet[(group >> (18U - 6U * digit)) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace kube
