// A port between two pods that passes all bytes on, slowly enough that some of them are always on
// the way, and that forgets its connections as firewalls do.
#pragma once

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <list>
#include <string>

#include "launcher/loop.h"
#include "launcher/net.h"

namespace launcher {

class Proxy {
 public:
  static constexpr std::size_t kPieceBytes = 3'001;  // of one step

  Proxy(Loop& loop, std::uint16_t to)
      : loop_{loop}, to_{to}, listener_{*listen_on("127.0.0.1", 0)} {
    loop_.watch(listener_, EPOLLIN, [this](std::uint32_t) { accept(); });
  }
  ~Proxy() {
    cut();
    loop_.forget(listener_);
    ::close(listener_);
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

  // Both ends of each connection are reset, and what is on the way is lost. Not from within a call
  // of the loop.
  void cut() {
    for (Pair& pair : pairs_) {
      for (const int fd : pair.ends) {
        if (!pair.is_over) loop_.forget(fd);
        reset(fd);
      }
    }
    pairs_.clear();
  }
  // Makes it reset each connection that is opened from now on; or accept them again.
  void close_for_all(bool is_closed) { is_closed_ = is_closed; }
  int connections() const { return connections_; }

 private:
  struct Pair {
    std::array<int, 2> ends{};
    std::array<std::string, 2> waiting{};  // to be sent to that end
    bool is_over = false;
  };

  static void reset(int fd) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(fd);
  }

  void accept() {
    const int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (near < 0) return;
    ++connections_;
    const auto far = connect_to("127.0.0.1", to_);
    if (is_closed_ || !far) {
      reset(near);
      if (far) ::close(*far);
      return;
    }
    const auto pair = pairs_.insert(pairs_.end(), Pair{.ends = {near, *far}});
    for (const std::size_t end : {0U, 1U}) {
      loop_.watch(pair->ends[end], EPOLLIN, [this, pair, end](std::uint32_t) { pass(*pair, end); });
    }
  }

  // A piece that has come from this end, and one that waits for it. The end of one is the end of
  // both.
  void pass(Pair& pair, std::size_t end) {
    const std::size_t other = 1 - end;
    if (pair.waiting[other].empty()) {
      std::array<char, kPieceBytes> piece{};
      const ssize_t count = ::recv(pair.ends[end], piece.data(), piece.size(), 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return close(pair);
      if (count > 0) pair.waiting[other].assign(piece.data(), static_cast<std::size_t>(count));
    }
    for (const std::size_t to : {other, end}) {
      std::string& waiting = pair.waiting[to];
      if (waiting.empty()) continue;
      const ssize_t sent = ::send(pair.ends[to], waiting.data(), waiting.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != ENOTCONN) return close(pair);
      if (sent > 0) waiting.erase(0, static_cast<std::size_t>(sent));
    }
    for (const std::size_t at : {end, other}) {
      const bool is_read = pair.waiting[1 - at].empty();
      const bool is_written = !pair.waiting[at].empty();
      loop_.change(pair.ends[at], (is_read ? std::uint32_t{EPOLLIN} : 0U) |
                                      (is_written ? std::uint32_t{EPOLLOUT} : 0U));
    }
  }

  void close(Pair& pair) {
    if (pair.is_over) return;
    pair.is_over = true;
    for (const int fd : pair.ends) {
      loop_.forget(fd);
      ::shutdown(fd, SHUT_WR);
    }
  }

  Loop& loop_;
  const std::uint16_t to_;
  const int listener_;
  std::list<Pair> pairs_;
  bool is_closed_ = false;
  int connections_ = 0;
};

}  // namespace launcher
