// The messages that one end of a connection has sent and that the other end has not acknowledged,
// and how many it has got: enough to go on over another connection with no message lost or doubled.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace launcher {

class Ledger {
 public:
  // The other end keeps fewer messages and bytes than these of those that have arrived.
  static constexpr std::uint32_t kAckEach = 64;          // messages
  static constexpr std::size_t kAckBytes = 256U << 10U;  // or bytes

  void said(std::string message) {
    kept_bytes_ += message.size();
    kept_.push_back(std::move(message));
  }

  void heard() { ++heard_; }
  // Returns the number to acknowledge after a piece of the stream; nullopt if it is too early.
  std::optional<std::uint32_t> to_acknowledge(std::size_t bytes) {
    bytes_ += bytes;
    const std::uint32_t count = heard_ - acknowledged_;
    if (count == 0 || (count < kAckEach && bytes_ < kAckBytes)) return std::nullopt;
    return acknowledged();
  }
  // Returns the number to acknowledge now.
  std::uint32_t acknowledged() {
    bytes_ = 0;
    return acknowledged_ = heard_;
  }

  // Drops the messages that the other end has got, which are `count` since the beginning; numbers
  // begin again after 2^32. Returns false if fewer were sent, or if it had got more before.
  bool has_come(std::uint32_t count) {
    const std::uint32_t come = count - come_;
    if (come > kept_.size()) return false;
    for (std::uint32_t i = 0; i < come; ++i) {
      kept_bytes_ -= kept_.front().size();
      kept_.pop_front();
    }
    come_ = count;
    return true;
  }

  std::size_t kept_bytes() const { return kept_bytes_; }
  // Returns the messages that must be sent again, in their order.
  std::string kept() const {
    std::string all;
    all.reserve(kept_bytes_);
    for (const std::string& message : kept_) all += message;
    return all;
  }

 private:
  std::deque<std::string> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint32_t come_ = 0;  // messages before those that are kept
  std::uint32_t heard_ = 0;
  std::uint32_t acknowledged_ = 0;  // of heard_
  std::size_t bytes_ = 0;           // that have come since
};

}  // namespace launcher
