#include "launcher/channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace launcher {

Channel::Channel(Loop& loop, int fd, Tls::Connection tls, Calls calls)
    : loop_{loop}, fd_{fd}, tls_{std::move(tls)}, calls_{std::move(calls)}, is_open_{!tls_} {
  events_ = EPOLLIN | (tls_ ? std::uint32_t{EPOLLOUT} : 0U);
  loop_.watch(fd_, events_, [this](std::uint32_t events) { ready(events); });
}

Channel::~Channel() {
  if (!has_ended_) loop_.forget(fd_);
  tls_.reset();
  ::close(fd_);
}

void Channel::send(const Message& message) {
  if (has_ended_) return;
  to_send_ += encode(message);
  // The next event of the socket reports an end that shows itself here.
  if (is_open_) (void)flush();
  watch_again();
}

void Channel::read(bool reads) {
  reads_ = reads;
  watch_again();
}

void Channel::ready(std::uint32_t events) {
  if (!is_open_) {
    const Outcome outcome = shake_hands();
    if (outcome == Outcome::kEnd) return end();
    if (outcome == Outcome::kWait) return watch_again();
    is_open_ = true;
  }
  const std::size_t waited = to_send_.size() - sent_;
  if (flush() == Outcome::kEnd) return end();
  if (to_send_.size() - sent_ < waited && calls_.sent) calls_.sent();
  // An end is heard of also while nothing is read.
  const bool has_ended = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (((events & EPOLLIN) != 0 && reads_) || has_ended) {
    if (receive() == Outcome::kEnd) return end();
  }
  watch_again();
}

Channel::Outcome Channel::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(tls_.get());
  if (result == 1) return Outcome::kDone;
  const int why = SSL_get_error(tls_.get(), result);
  handshake_writes_ = why == SSL_ERROR_WANT_WRITE;
  const bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
  return waits ? Outcome::kWait : Outcome::kEnd;
}

// Reads one piece of a plain stream, or all that TLS has taken from the socket already: of that
// epoll knows nothing.
Channel::Outcome Channel::receive() {
  std::array<char, kChunkBytesMax> bytes{};
  do {
    ssize_t count = 0;
    if (tls_) {
      ERR_clear_error();
      count = SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
      const int result = static_cast<int>(count);
      const int why = count > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), result);
      if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Outcome::kWait;
    } else {
      count = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Outcome::kWait;
    }
    if (count <= 0) return Outcome::kEnd;
    reader_.add({bytes.data(), static_cast<std::size_t>(count)});
    while (const std::optional<Message> message = reader_.next()) calls_.message(*message);
    if (reader_.is_broken()) return Outcome::kEnd;
  } while (tls_ && SSL_pending(tls_.get()) > 0);
  return Outcome::kDone;
}

Channel::Outcome Channel::flush() {
  Outcome outcome = Outcome::kDone;
  while (sent_ < to_send_.size()) {
    const char* const from = to_send_.data() + sent_;
    const std::size_t size = std::min<std::size_t>(to_send_.size() - sent_, kPiledUpBytesMax);
    ssize_t count = 0;
    if (tls_) {
      ERR_clear_error();
      count = SSL_write(tls_.get(), from, static_cast<int>(size));
      const int result = static_cast<int>(count);
      const int why = count > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), result);
      const bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
      if (count <= 0) outcome = waits ? Outcome::kWait : Outcome::kEnd;
    } else {
      count = ::send(fd_, from, size, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      // The end of what is read reports an end, after what the other end has sent last.
      if (count < 0) outcome = Outcome::kWait;
    }
    if (count <= 0) break;
    sent_ += static_cast<std::size_t>(count);
  }
  if (sent_ == to_send_.size() || sent_ > kPiledUpBytesMax) {
    to_send_.erase(0, std::exchange(sent_, 0));
  }
  return outcome;
}

void Channel::watch_again() {
  if (has_ended_) return;
  std::uint32_t events = 0;
  if (!is_open_) {
    events = handshake_writes_ ? std::uint32_t{EPOLLOUT} : std::uint32_t{EPOLLIN};
  } else {
    events = (reads_ ? std::uint32_t{EPOLLIN} : 0U) |
             (sent_ < to_send_.size() ? std::uint32_t{EPOLLOUT} : 0U);
  }
  if (events != std::exchange(events_, events)) loop_.change(fd_, events);
}

void Channel::end() {
  if (std::exchange(has_ended_, true)) return;
  loop_.forget(fd_);
  calls_.closed();
}

}  // namespace launcher
