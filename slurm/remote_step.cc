#include "slurm/remote_step.h"

#include <cstdint>

namespace slurm {
namespace {

constexpr std::size_t kHeadBytes = 5;
constexpr std::string_view kKinds = "VAEDRIZSTNOFHX";
constexpr unsigned kByteBits = 8;

}  // namespace

std::string encode(const RemoteMessage& message) {
  std::string out(1, static_cast<char>(message.kind));
  const auto size = static_cast<std::uint32_t>(message.text.size());
  for (unsigned i = 0; i < kHeadBytes - 1; ++i) {
    out += static_cast<char>(size >> (kByteBits * i) & 0xFFU);
  }
  return out + message.text;
}

std::optional<RemoteMessage> RemoteReader::next() {
  if (is_broken_ || pending_.size() < kHeadBytes) return std::nullopt;
  std::size_t size = 0;
  for (unsigned i = 0; i < kHeadBytes - 1; ++i) {
    size |= std::size_t{static_cast<unsigned char>(pending_[1 + i])} << (kByteBits * i);
  }
  if (kKinds.find(pending_[0]) == std::string_view::npos || size > kRemoteBytesMax) {
    is_broken_ = true;
    return std::nullopt;
  }
  if (pending_.size() < kHeadBytes + size) return std::nullopt;
  RemoteMessage message{static_cast<RemoteKind>(pending_[0]), pending_.substr(kHeadBytes, size)};
  pending_.erase(0, kHeadBytes + size);
  return message;
}

}  // namespace slurm
