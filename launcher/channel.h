// A stream of messages over a socket, plain or with TLS. Never blocks. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/ledger.h"
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
    // The connection was lost, and the other end has not closed it. If this call is set, both ends
    // keep the messages that have not arrived until resume(); else a lost connection is closed.
    std::function<void()> cut{};
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
  bool is_piled_up() const {
    const std::size_t waits = to_send_.size() - sent_;
    return (calls_.cut ? ledger_.kept_bytes() : waits) > kPiledUpBytesMax;
  }
  // Both ends have shown that they know the key; true without TLS.
  bool is_open() const { return is_open_; }
  // True from `cut` until both ends know how many messages the other one has got.
  bool is_cut() const { return is_cut_; }

  // Makes the client's end of a connection that is cut go on over this socket. `hello` says which
  // connection it is. The other end answers with Resume; or with Refused, then this end is closed.
  void resume(int fd, Tls::Connection tls, Message hello);
  // Makes the server's end go on over the socket of `fresh`, which has got a Resume: the client has
  // got this many messages. Must be called from Loop::later.
  void resume(Channel& fresh, std::uint32_t heard);

 private:
  enum class Outcome { kDone, kWait, kEnd, kCut };

  void ready(std::uint32_t events);
  bool hear(const Message& message);
  Outcome shake_hands();
  Outcome receive();
  void acknowledge(std::size_t bytes);
  Outcome flush();
  void watch_again();
  void drop_socket();
  void end(Outcome outcome);

  Loop& loop_;
  int fd_;
  Tls::Connection tls_;
  const Calls calls_;
  MessageReader reader_;
  Ledger ledger_;  // in use where `cut` is set
  std::string to_send_;
  std::size_t sent_ = 0;  // of to_send_
  std::uint32_t events_ = 0;
  bool is_open_ = false;
  bool reads_ = true;
  bool has_ended_ = false;
  bool has_been_open_ = false;
  bool is_cut_ = false;
  std::optional<Outcome> lost_{};  // by writing; a read after it shows another end
  // A client begins its handshake when the socket can be written to.
  bool handshake_writes_ = true;
};

}  // namespace launcher
