#include "launcher/net.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <resolv.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace launcher {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSrunBacklog = 128;
constexpr std::size_t kRandomBytes = 16;
constexpr int kSilenceS = 20;       // before the first question
constexpr int kQuestionEachS = 10;  // and how many of them
constexpr int kQuestions = 4;
constexpr int kNoAnswerMs = 60'000;  // to what was sent
constexpr int kAnswerBytesMax = 4096;
constexpr std::chrono::milliseconds kTurn{200};
// SOURCE: RFC 6895, 3.1: kinds of records for private use begin there.
constexpr int kPrivateKind = 65'280;
constexpr int kPrivateKinds = 250;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

base::Error failed(const std::string& what, const std::string& address, std::uint16_t port) {
  return {base::Code::kUnavailable,
          what + " " + address + " port " + std::to_string(port) + ": " + std::strerror(errno)};
}

Address address_of(const std::string& text, std::uint16_t port) {
  Address address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.size = sizeof *four;
  } else if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.size = sizeof *six;
  }
  return address;
}

int stream_socket(const Address& address) {
  return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Makes an address of the abstract name space. 0 and errno: the name is too long.
socklen_t local_address(const std::string& name, sockaddr_un& address) {
  if (name.size() + 1 >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return 0;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

// Returns the first address of that kind in a section of an answer; "" if there is none.
std::string first_of(std::span<const unsigned char> answer, ns_sect section, ns_type type) {
  ns_msg message;
  if (ns_initparse(answer.data(), static_cast<int>(answer.size()), &message) != 0) return "";
  for (int i = 0; i < ns_msg_count(message, section); ++i) {
    ns_rr record;
    if (ns_parserr(&message, section, i, &record) != 0) return "";
    const std::size_t want = type == ns_t_a ? sizeof(in_addr) : sizeof(in6_addr);
    if (ns_rr_type(record) != type || ns_rr_rdlen(record) != want) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = type == ns_t_a ? AF_INET : AF_INET6;
    if (::inet_ntop(family, ns_rr_rdata(record), text.data(), text.size()) == nullptr) return "";
    return text.data();
  }
  return "";
}

// Asks the name servers of /etc/resolv.conf.
class NameServers {
 public:
  NameServers() {
    is_ready_ = ::res_ninit(&state_) == 0;
    state_.retrans = 1;
    state_.retry = 2;
  }
  ~NameServers() {
    if (is_ready_) ::res_nclose(&state_);
  }
  NameServers(const NameServers&) = delete;
  NameServers& operator=(const NameServers&) = delete;

  bool is_ready() const { return is_ready_; }
  // Empty: there is no such record. A name without a dot at its end is looked for by the search
  // list, too.
  std::span<const unsigned char> ask(const std::string& name, ns_type type) {
    const int size = ::res_nsearch(&state_, name.c_str(), ns_c_in, type, answer_.data(),
                                   static_cast<int>(answer_.size()));
    has_name_ = size > 0 || state_.res_h_errno == NO_DATA;
    if (size <= 0 || size > static_cast<int>(answer_.size())) return {};
    return std::span{answer_}.first(static_cast<std::size_t>(size));
  }
  // Returns whether there is something of the name that was asked for last, of whatever kind.
  bool has_name() const { return has_name_; }

 private:
  struct __res_state state_ {};
  bool is_ready_ = false;
  bool has_name_ = false;
  std::array<unsigned char, kAnswerBytesMax> answer_{};
};

base::Error not_known(const std::string& name) {
  return {base::Code::kUnavailable, "no name server knows " + name};
}

base::Error no_servers() {
  return {base::Code::kUnavailable, "/etc/resolv.conf cannot be read"};
}

}  // namespace

base::Result<int> listen_on(const std::string& address, std::uint16_t port) {
  const Address own = address_of(address, port);
  const int fd = own.size == 0 ? -1 : stream_socket(own);
  const int one = 1;
  if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&own.storage), own.size) != 0 ||
      ::listen(fd, kBacklog) != 0) {
    const base::Error error = failed("listening at", address, port);
    if (fd >= 0) ::close(fd);
    return error;
  }
  return fd;
}

base::Result<std::string> resolve(const std::string& name) {
  if (address_of(name, 0).size > 0) return name;
  NameServers servers;
  if (!servers.is_ready()) return no_servers();
  for (const ns_type type : {ns_t_a, ns_t_aaaa}) {
    std::string found = first_of(servers.ask(name, type), ns_s_an, type);
    if (!found.empty()) return found;
  }
  return not_known(name);
}

base::Result<std::string> resolve_port(const std::string& name) {
  NameServers servers;
  if (!servers.is_ready()) return no_servers();
  const std::span<const unsigned char> answer = servers.ask(name, ns_t_srv);
  if (answer.empty()) return not_known(name);
  std::string address = first_of(answer, ns_s_ar, ns_t_a);
  return address.empty() ? first_of(answer, ns_s_ar, ns_t_aaaa) : address;
}

bool is_known(const std::string& name, std::chrono::system_clock::time_point now) {
  NameServers servers;
  if (!servers.is_ready()) return false;
  const auto kind = kPrivateKind + now.time_since_epoch() / kTurn % kPrivateKinds;
  (void)servers.ask(name, static_cast<ns_type>(kind));
  return servers.has_name();
}

std::string name_in_turn(std::string_view pattern, int count,
                         std::chrono::system_clock::time_point now) {
  const std::size_t at = std::min(pattern.find('%'), pattern.size());
  std::string name{pattern.substr(0, at)};
  name += std::to_string(now.time_since_epoch() / kTurn % count);
  name += pattern.substr(std::min(at + 1, pattern.size()));
  return name;
}

base::Result<int> connect_to(const std::string& address, std::uint16_t port) {
  const Address other = address_of(address, port);
  const int fd = other.size == 0 ? -1 : stream_socket(other);
  if (fd < 0) return failed("connecting to", address, port);
  const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&other.storage), other.size);
  if (result == 0 || errno == EINPROGRESS) return fd;
  const base::Error error = failed("connecting to", address, port);
  ::close(fd);
  return error;
}

void keep_alive(int fd) {
  const auto put = [&](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  put(SOL_SOCKET, SO_KEEPALIVE, 1);
  put(IPPROTO_TCP, TCP_KEEPIDLE, kSilenceS);
  put(IPPROTO_TCP, TCP_KEEPINTVL, kQuestionEachS);
  put(IPPROTO_TCP, TCP_KEEPCNT, kQuestions);
  put(IPPROTO_TCP, TCP_USER_TIMEOUT, kNoAnswerMs);
  put(IPPROTO_TCP, TCP_NODELAY, 1);
}

std::string random_text() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  std::array<unsigned char, kRandomBytes> random{};
  const auto count = ::getrandom(random.data(), random.size(), 0);
  if (count != static_cast<ssize_t>(random.size())) return text;
  for (const unsigned char byte : random) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

int listen_locally(const std::string& name) {
  sockaddr_un address{};
  const socklen_t size = local_address(name, address);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (size == 0 || fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd, kSrunBacklog) != 0) {
    if (fd >= 0) ::close(fd);
    return -1;
  }
  return fd;
}

int accept_own(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return -1;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid()) {
    return fd;
  }
  ::close(fd);
  return -1;
}

int connect_locally(const std::string& name) {
  sockaddr_un address{};
  const socklen_t size = local_address(name, address);
  if (size == 0) return -1;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  errno = why;
  return -1;
}

}  // namespace launcher
