// WebSocket (RFC 6455) over a connection that the caller made: the messages of one end. The
// frames are wslay's work; it does no I/O of its own, so TLS, proxies and credentials stay those of
// the connection.
//
// Belongs to one thread.
#pragma once

#include <sys/types.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kube {

// Returns the value of Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string web_socket_accept(const std::string& key);
// Returns a new Sec-WebSocket-Key.
std::string web_socket_key();

class WebSocket {
 public:
  static constexpr std::size_t kMessageBytesMax = 1U << 20U;
  enum class Side { kClient, kServer };
  struct Calls {
    // Returns what has arrived, at most `size` bytes: 0 if nothing has, less at the end.
    std::function<ssize_t(char* out, std::size_t size)> read;
    // False: the connection broke.
    std::function<bool(std::string_view bytes)> write;
    std::function<void(std::string_view message)> message;
    // The answer to a ping, with its text.
    std::function<void(std::string_view text)> pong{};
  };

  WebSocket(Side side, Calls calls);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Sends one binary message. False: the connection broke, or was closed.
  bool send(std::string_view message);
  // Asks the other end for an answer, which it gives when it has taken all that was sent before.
  // False: as send().
  bool ping(const std::string& text);
  // Takes what has arrived, and answers pings. False: the other end has closed, the connection
  // broke, or the other end broke a rule.
  bool receive();
  // Says goodbye.
  void close();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace kube
