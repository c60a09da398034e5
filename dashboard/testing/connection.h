// Raw HTTP to a page's server on this machine, for tests: what a client sends need not be right.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include "linux/file_descriptor.h"

namespace dashboard::testing {

inline os::FileDescriptor connect_to(int port) {
  os::FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  // Longer than any answer on a busy machine.
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  return socket;
}

inline void send_text(const os::FileDescriptor& socket, const std::string& text) {
  EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// `line`: method and path. `headers`: each with its line end.
inline std::string request_text(const std::string& line, const std::string& host,
                                const std::string& headers, const std::string& body = "") {
  return line + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Until `end` has come; "" means until the server hangs up.
inline std::string read_until(const os::FileDescriptor& socket, const std::string& end) {
  std::string text;
  std::array<char, 65536> piece;
  while (end.empty() || text.find(end) == std::string::npos) {
    const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (count <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace dashboard::testing
