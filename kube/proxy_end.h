// ProxyEnd: bytes to a proxy and back over a socket, before TLS begins. The deadline is for all of
// it together: a proxy that sends one byte a second must not keep a request for hours.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "kube/url.h"

namespace kube {

// An address in network byte order; IPv4 ones have 4 bytes, IPv6 ones 16.
struct Address {
  std::array<unsigned char, 16> bytes{};
  std::size_t size = 0;
};

// Returns nullopt for names, which NO_PROXY matches by their text.
inline std::optional<Address> parse_address(const std::string& text) {
  Address address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.size = 4;
    return address;
  }
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.size = 16;
    return address;
  }
  return std::nullopt;
}

class ProxyEnd {
 public:
  ProxyEnd(int descriptor, const Url& proxy, base::Duration timeout)
      : descriptor_{descriptor},
        proxy_{proxy},
        until_{std::chrono::steady_clock::now() + timeout} {}

  // poll(2) says first that the socket is ready, so that a call does not block past the deadline.
  base::Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (auto status = wait(POLLOUT); !status.ok()) return status;
      // MSG_NOSIGNAL: a proxy that closes the connection must not end the process with SIGPIPE.
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count <= 0) return broke();
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  // Receives exactly `size` bytes: those behind them belong to the server behind the proxy.
  base::Result<std::string> receive(std::size_t size) {
    std::string bytes;
    while (bytes.size() < size) {
      if (auto status = wait(POLLIN); !status.ok()) return status.error();
      std::array<char, 512> buffer{};
      const ssize_t count =
          ::recv(descriptor_, buffer.data(), std::min(buffer.size(), size - bytes.size()), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count <= 0) return broke();
      bytes.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return bytes;
  }

  // Returns the address of the proxy without its password, and why. kUnavailable: another try may
  // reach the proxy at a better moment.
  base::Error refused(const std::string& why) const {
    return {base::Code::kUnavailable, "the proxy " + proxy_.text() + " refused: " + why};
  }

 private:
  // True readiness comes before the deadline, or the error says which program did not answer.
  base::Status wait(short events) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
    pollfd one{.fd = descriptor_, .events = events, .revents = 0};
    const int ready = left.count() <= 0 ? 0 : poll(&one, 1, static_cast<int>(left.count()));
    // The deadline stays, so the repetition ends.
    if (ready < 0 && errno == EINTR) return wait(events);
    if (ready > 0) return {};
    return base::Error{base::Code::kTimeout,
                       "the proxy " + proxy_.text() + " did not answer in time"};
  }
  // Also for errors of recv(2) and send(2): to the user a reset is a closed connection.
  base::Error broke() const {
    return {base::Code::kUnavailable, "the proxy " + proxy_.text() + " closed the connection"};
  }

  const int descriptor_;
  const Url& proxy_;
  const std::chrono::steady_clock::time_point until_;
};

}  // namespace kube
