// A stream of messages over a socket, plain or with TLS. Never blocks. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/loop.h"
#include "launcher/message.h"
#include "launcher/tls.h"

namespace launcher {

// The most that waits to be sent, and of input that a task has not read: above it the source waits.
inline constexpr std::size_t kPiledUpBytesMax = 1U << 20U;

class Channel {
 public:
  // All are called from Loop::wait(), none from within send() or close().
  struct Calls {
    std::function<void(const Message&)> message;
    std::function<void()> closed;  // by the other end, or it broke a rule; called once
    std::function<void()> sent{};  // less waits to be sent than before
  };

  // Takes over the socket, which does not block. Its handshake, if there is one, is made before
  // anything else is read.
  Channel(Loop& loop, int fd, Tls::Connection tls, Calls calls);
  // Closes it. Not from within one of its own calls: use Loop::later.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Drops the message after the end; the call `closed` reports that.
  void send(const Message& message);
  // Reads no more messages, or goes on. Those of the piece that was read last still come.
  void read(bool reads);
  bool is_piled_up() const { return to_send_.size() - sent_ > kPiledUpBytesMax; }
  // Both ends have shown that they know the key; true without TLS.
  bool is_open() const { return is_open_; }

 private:
  enum class Outcome { kDone, kWait, kEnd };

  void ready(std::uint32_t events);
  Outcome shake_hands();
  Outcome receive();
  Outcome flush();
  void watch_again();
  void end();

  Loop& loop_;
  const int fd_;
  Tls::Connection tls_;
  const Calls calls_;
  MessageReader reader_;
  std::string to_send_;
  std::size_t sent_ = 0;  // of to_send_
  std::uint32_t events_ = 0;
  bool is_open_ = false;
  bool reads_ = true;
  bool has_ended_ = false;
  // A client begins its handshake when the socket can be written to.
  bool handshake_writes_ = true;
};

}  // namespace launcher
