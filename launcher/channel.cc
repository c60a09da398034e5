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
namespace {

// Returns false for the end of the other process: it closes its connections, which is an end
// without an error, or EPIPE if something was sent after it.
bool tells_of_a_cut(int error) {
  return error != 0 && error != EPIPE;
}

}  // namespace

Channel::Channel(Loop& loop, int fd, Tls::Connection tls, Calls calls)
    : loop_{loop}, fd_{fd}, tls_{std::move(tls)}, calls_{std::move(calls)}, is_open_{!tls_} {
  has_been_open_ = is_open_;
  events_ = EPOLLIN | (tls_ ? std::uint32_t{EPOLLOUT} : 0U);
  loop_.watch(fd_, events_, [this](std::uint32_t events) { ready(events); });
}

// The kernel resets a connection that is closed with unread input, which looks like a cut. So the
// other end gets the end of the stream first.
Channel::~Channel() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
  drop_socket();
}

void Channel::drop_socket() {
  if (fd_ < 0) return;
  if (!has_ended_) loop_.forget(fd_);
  tls_.reset();
  ::close(std::exchange(fd_, -1));
}

void Channel::send(const Message& message) {
  if (has_ended_) return;
  std::string bytes = encode(message);
  if (!is_cut_) to_send_ += bytes;
  if (calls_.cut) ledger_.said(std::move(bytes));
  if (is_cut_) return;
  // The next event of the socket reports an end that shows itself here.
  if (is_open_) (void)flush();
  watch_again();
}

void Channel::read(bool reads) {
  reads_ = reads;
  watch_again();
}

void Channel::resume(int fd, Tls::Connection tls, Message hello) {
  drop_socket();
  hello.kind = Kind::kResume;
  hello.number = ledger_.acknowledged();
  fd_ = fd;
  tls_ = std::move(tls);
  is_open_ = false;
  handshake_writes_ = true;
  lost_.reset();
  reader_ = {};
  to_send_ = encode(hello);
  sent_ = 0;
  events_ = EPOLLIN | std::uint32_t{EPOLLOUT};
  loop_.watch(fd_, events_, [this](std::uint32_t events) { ready(events); });
}

void Channel::resume(Channel& fresh, std::uint32_t heard) {
  if (has_ended_ || fresh.fd_ < 0) return;
  drop_socket();
  loop_.forget(fresh.fd_);
  fresh.has_ended_ = true;
  fd_ = std::exchange(fresh.fd_, -1);
  tls_ = std::move(fresh.tls_);
  is_open_ = true;
  is_cut_ = false;
  lost_.reset();
  reader_ = {};
  events_ = EPOLLIN;
  loop_.watch(fd_, events_, [this](std::uint32_t events) { ready(events); });
  if (!ledger_.has_come(heard)) return end(Outcome::kEnd);
  to_send_ = encode({.kind = Kind::kResume, .number = ledger_.acknowledged()}) + ledger_.kept();
  sent_ = 0;
  (void)flush();
  watch_again();
  if (calls_.sent) calls_.sent();
}

void Channel::ready(std::uint32_t events) {
  if (!is_open_) {
    const Outcome outcome = shake_hands();
    if (outcome == Outcome::kWait) return watch_again();
    if (outcome != Outcome::kDone) return end(outcome);
    is_open_ = true;
    has_been_open_ = true;
  }
  const std::size_t waited = to_send_.size() - sent_;
  const Outcome outcome = flush();
  if (outcome == Outcome::kEnd || outcome == Outcome::kCut) return end(outcome);
  if (to_send_.size() - sent_ < waited && calls_.sent) calls_.sent();
  // An end is heard of also while nothing is read.
  const bool has_ended = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (((events & EPOLLIN) != 0 && (reads_ || is_cut_)) || has_ended) {
    const Outcome read = receive();
    if (read == Outcome::kEnd || read == Outcome::kCut) return end(read);
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

// Returns false if the message breaks a rule, or ends the connection.
bool Channel::hear(const Message& message) {
  if (is_cut_) {
    const bool is_refused = message.kind == Kind::kRefused;
    if (message.kind != Kind::kResume && !is_refused) return false;
    is_cut_ = false;
    if (is_refused || !ledger_.has_come(message.number)) return false;
    to_send_ += ledger_.kept();
    (void)flush();
    if (calls_.sent) calls_.sent();
    return true;
  }
  if (calls_.cut && message.kind == Kind::kAck) {
    if (!ledger_.has_come(message.number)) return false;
    if (calls_.sent) calls_.sent();
    return true;
  }
  if (calls_.cut && message.kind != Kind::kResume) ledger_.heard();
  calls_.message(message);
  return true;
}

// Reads one piece of a plain stream, or all that TLS has taken from the socket already: of that
// epoll knows nothing.
Channel::Outcome Channel::receive() {
  std::array<char, kChunkBytesMax> bytes{};
  do {
    ssize_t count = 0;
    bool is_cut = false;
    if (tls_) {
      ERR_clear_error();
      errno = 0;
      count = SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
      const int error = errno;
      const int result = static_cast<int>(count);
      const int why = count > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), result);
      if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return Outcome::kWait;
      is_cut = why == SSL_ERROR_SYSCALL && tells_of_a_cut(error);
    } else {
      count = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Outcome::kWait;
      is_cut = count < 0 && tells_of_a_cut(errno);
    }
    if (count <= 0) return is_cut ? Outcome::kCut : Outcome::kEnd;
    reader_.add({bytes.data(), static_cast<std::size_t>(count)});
    while (const std::optional<Message> message = reader_.next()) {
      if (!hear(*message)) return Outcome::kEnd;
    }
    if (reader_.is_broken()) return Outcome::kEnd;
    if (calls_.cut) acknowledge(static_cast<std::size_t>(count));
  } while (tls_ && SSL_pending(tls_.get()) > 0);
  return Outcome::kDone;
}

void Channel::acknowledge(std::size_t bytes) {
  const auto count = ledger_.to_acknowledge(bytes);
  if (!count) return;
  to_send_ += encode({.kind = Kind::kAck, .number = *count});
  (void)flush();
}

Channel::Outcome Channel::flush() {
  if (lost_) return *lost_;
  Outcome outcome = Outcome::kDone;
  while (sent_ < to_send_.size()) {
    const char* const from = to_send_.data() + sent_;
    const std::size_t size = std::min<std::size_t>(to_send_.size() - sent_, kPiledUpBytesMax);
    ssize_t count = 0;
    if (tls_) {
      ERR_clear_error();
      errno = 0;
      count = SSL_write(tls_.get(), from, static_cast<int>(size));
      const int error = errno;
      const int result = static_cast<int>(count);
      const int why = count > 0 ? SSL_ERROR_NONE : SSL_get_error(tls_.get(), result);
      const bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
      const bool is_cut = why == SSL_ERROR_SYSCALL && tells_of_a_cut(error);
      if (count <= 0 && !waits) lost_ = is_cut ? Outcome::kCut : Outcome::kEnd;
    } else {
      count = ::send(fd_, from, size, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      // The end of what is read reports an end, after what the other end has sent last.
    }
    if (count <= 0) {
      outcome = lost_.value_or(Outcome::kWait);
      break;
    }
    sent_ += static_cast<std::size_t>(count);
  }
  if (sent_ == to_send_.size() || sent_ > kPiledUpBytesMax) {
    to_send_.erase(0, std::exchange(sent_, 0));
  }
  return outcome;
}

void Channel::watch_again() {
  if (has_ended_ || fd_ < 0) return;
  std::uint32_t events = 0;
  if (!is_open_) {
    events = handshake_writes_ ? std::uint32_t{EPOLLOUT} : std::uint32_t{EPOLLIN};
  } else {
    events = (reads_ || is_cut_ ? std::uint32_t{EPOLLIN} : 0U) |
             (sent_ < to_send_.size() ? std::uint32_t{EPOLLOUT} : 0U);
  }
  if (events != std::exchange(events_, events)) loop_.change(fd_, events);
}

// While a connection is being resumed, any end of its socket counts as a cut, because the other end
// has not answered yet.
void Channel::end(Outcome outcome) {
  const bool is_cut = outcome == Outcome::kCut && has_been_open_;
  if (calls_.cut && (is_cut || is_cut_)) {
    drop_socket();
    is_open_ = false;
    is_cut_ = true;
    to_send_.clear();
    sent_ = 0;
    return calls_.cut();
  }
  if (std::exchange(has_ended_, true)) return;
  loop_.forget(fd_);
  calls_.closed();
}

}  // namespace launcher
