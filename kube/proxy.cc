#include "kube/proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "kube/base64.h"

namespace kube {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

// Real proxies answer with a few hundred bytes.
constexpr std::size_t kHeadBytesMax = 8U << 10U;  // of a proxy's answer

// Capitals first: both spellings are in use, and Go reads them in this order.
std::string environment_of(const char* capitals, const char* small) {
  for (const char* name : {capitals, small}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

// An address in network byte order; IPv4 ones have 4 bytes, IPv6 ones 16.
struct Address {
  std::array<unsigned char, 16> bytes{};
  std::size_t size = 0;
};

// Returns nullopt for names, which NO_PROXY matches by their text.
std::optional<Address> parse_address(const std::string& text) {
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

// Returns true for a machine's own addresses, which never take the proxy, as with Go's clients.
bool is_local(const std::string& host) {
  if (host == "localhost") return true;
  const auto address = parse_address(host);
  if (!address) return false;
  if (address->size == 4) return address->bytes[0] == 127;
  return std::all_of(address->bytes.begin(), address->bytes.end() - 1,
                     [](unsigned char byte) { return byte == 0; }) &&
         address->bytes.back() == 1;
}

// Returns true if the network (a base address, a slash, a count of bits) contains the address.
// False for anything else, since an entry of NO_PROXY may be a name.
// "10.0.0.0/8"
// IPv4 and IPv6 are never compared with each other.
bool network_has(std::string_view network, const Address& address) {
  const std::size_t slash = network.find('/');
  if (slash == std::string_view::npos) return false;
  const auto base_address = parse_address(std::string{network.substr(0, slash)});
  unsigned bits = 0;
  const char* end = network.data() + network.size();
  const auto parsed = std::from_chars(network.data() + slash + 1, end, bits);
  if (!base_address || parsed.ec != std::errc{} || parsed.ptr != end) return false;
  if (base_address->size != address.size || bits > address.size * 8) return false;
  // Bit by bit from the most significant one on, in network byte order.
  for (unsigned bit = 0; bit < bits; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if ((base_address->bytes[bit / 8] & mask) != (address.bytes[bit / 8] & mask)) return false;
  }
  return true;
}

// An entry of NO_PROXY, read as Go reads it: "*", a network, or a host with or without a port.
// "example.com" covers its subdomains too, ".example.com" and "*.example.com" only those.
// 1. everything
// 2. a network, if the server is named by its address
// 3. a host, whose port must be the server's if it is named
bool entry_covers(std::string_view entry, const Url& server) {
  if (entry == "*") return true;
  if (const auto address = parse_address(server.host); address) {
    if (network_has(entry, *address)) return true;
  }
  const std::string port = ":" + std::to_string(server.port);
  // The last colon of an IPv6 address without brackets is not that of a port.
  const bool bare_v6 = std::count(entry.begin(), entry.end(), ':') > 1 && !entry.starts_with('[');
  if (const std::size_t colon = entry.rfind(':');
      colon != std::string_view::npos && !bare_v6 && !entry.ends_with(']')) {
    if (entry.substr(colon) != port) return false;
    entry = entry.substr(0, colon);
  }
  if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
  if (entry.starts_with("*.")) entry.remove_prefix(1);
  if (entry.empty()) return false;
  if (server.host == entry) return true;
  const std::string suffix = (entry.starts_with('.') ? "" : ".") + std::string{entry};
  return server.host.ends_with(suffix);
}

// Returns true if any entry of the list covers the server.
// A list with commas; blanks around an entry are allowed.
bool no_proxy_covers(std::string_view list, const Url& server) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (!entry.empty() && entry_covers(entry, server)) return true;
  }
  return false;
}

// Bytes over a socket, with one deadline for all of them.
// One conversation before TLS begins. The deadline is for all of it together: a proxy that sends
// one byte a second must not keep a request for hours.
class Conversation {
 public:
  Conversation(int descriptor, const Url& proxy, base::Duration timeout)
      : descriptor_{descriptor},
        proxy_{proxy},
        until_{std::chrono::steady_clock::now() + timeout} {}

  // poll(2) says first that the socket is ready, so that a call does not block past the deadline.
  Status send(std::string_view bytes) {
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
  Result<std::string> receive(std::size_t size) {
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
  Error refused(const std::string& why) const {
    return {Code::kUnavailable, "the proxy " + proxy_.text() + " refused: " + why};
  }

 private:
  // True readiness comes before the deadline, or the error says which program did not answer.
  Status wait(short events) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
    pollfd one{.fd = descriptor_, .events = events, .revents = 0};
    const int ready = left.count() <= 0 ? 0 : poll(&one, 1, static_cast<int>(left.count()));
    // The deadline stays, so the repetition ends.
    if (ready < 0 && errno == EINTR) return wait(events);
    if (ready > 0) return {};
    return Error{Code::kTimeout, "the proxy " + proxy_.text() + " did not answer in time"};
  }
  // Also for errors of recv(2) and send(2): to the user a reset is a closed connection.
  Error broke() const {
    return {Code::kUnavailable, "the proxy " + proxy_.text() + " closed the connection"};
  }

  const int descriptor_;
  const Url& proxy_;
  const std::chrono::steady_clock::time_point until_;
};

// CONNECT asks the proxy for a tunnel: after a 2xx all bytes go to the server and back. SOURCE: RFC
// 9110, section 9.3.6. The password is sent to the proxy only, in clear.
Status connect_by_http(Conversation& proxy_end, const Url& proxy, const Url& target) {
  std::string request =
      // The request line and the Host header are the same: the proxy learns where to, and nothing
      // of the request itself.
      "CONNECT " + target.host_and_port() + " HTTP/1.1\r\nHost: " + target.host_and_port() + "\r\n";
  if (!proxy.user.empty()) {
    request +=
        "Proxy-Authorization: Basic " + encode_base64(proxy.user + ":" + proxy.password) + "\r\n";
  }
  if (auto status = proxy_end.send(request + "\r\n"); !status.ok()) return status;
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    if (head.size() > kHeadBytesMax) return proxy_end.refused("its answer is above 8 KiB");
    // One at a time: what follows the head is the server's already, and TLS must find it.
    const auto byte = proxy_end.receive(1);
    if (!byte.ok()) return byte.error();
    head += *byte;
  }
  // "HTTP/1.1 200 Connection established"
  const std::string line = head.substr(0, head.find("\r\n"));
  const std::size_t blank = line.find(' ');
  if (!line.starts_with("HTTP/1.") || blank == std::string::npos) {
    return proxy_end.refused("its answer is not HTTP");
  }
  const std::string answer = line.substr(blank + 1);
  // 407 asks for a password, 403 says that the target is not allowed; the error has the proxy's own
  // words.
  if (!answer.starts_with("2")) return proxy_end.refused(answer);
  return {};
}

// Returns the codes of RFC 1928, section 6; 0 is success.
std::string_view socks_error(unsigned char code) {
  constexpr std::array<std::string_view, 9> kErrors = {"",
                                                       "general failure",
                                                       "the connection is not allowed",
                                                       "the network is not reachable",
                                                       "the host is not reachable",
                                                       "the connection was refused",
                                                       "it took too long",
                                                       "it does not know the command",
                                                       "it does not know the kind of address"};
  return code < kErrors.size() ? kErrors[code] : "an unknown error";
}

// Logs in with user and password (RFC 1929). Lengths are one byte, so longer words cannot be sent.
// User and password (RFC 1929).
Status log_in_to_socks(Conversation& proxy_end, const Url& proxy) {
  if (proxy.user.size() > 255 || proxy.password.size() > 255) {
    return proxy_end.refused("user and password have at most 255 characters");
  }
  std::string message{'\x01'};
  for (const std::string& word : {proxy.user, proxy.password}) {
    message += static_cast<char>(word.size());
    message += word;
  }
  if (auto status = proxy_end.send(message); !status.ok()) return status;
  const auto answer = proxy_end.receive(2);
  if (!answer.ok()) return answer.error();
  // The first byte is the version of this exchange, the second 0 for success.
  if ((*answer)[1] != 0) return proxy_end.refused("user or password are wrong");
  return {};
}

// Three exchanges; every length is known before it is read, so no byte of the server's is taken.
// SOURCE: RFC 1928.
Status connect_by_socks(Conversation& proxy_end, const Url& proxy, const Url& target) {
  // 1. agree how to log in
  const bool has_user = !proxy.user.empty();
  // Version 5, the number of methods, the methods: 0 is "none", 2 is user and password.
  const std::string methods =
      has_user ? std::string{"\x05\x02\x00\x02", 4} : std::string{"\x05\x01\x00", 3};
  if (auto status = proxy_end.send(methods); !status.ok()) return status;
  const auto chosen = proxy_end.receive(2);
  if (!chosen.ok()) return chosen.error();
  if ((*chosen)[0] != 5) return proxy_end.refused("it does not speak SOCKS 5");
  // A proxy that wants a password although none was offered answers 0xff, which ends up in the last
  // branch.
  if ((*chosen)[1] == 2 && has_user) {
    if (auto status = log_in_to_socks(proxy_end, proxy); !status.ok()) return status;
  } else if ((*chosen)[1] != 0) {
    return proxy_end.refused("it wants a user and a password");
  }
  // 2. ask for the connection; a name is resolved by the proxy
  if (target.host.size() > 255) return proxy_end.refused("the host's name is too long");
  std::string request{"\x05\x01\x00", 3};
  // The kinds of addresses: 1 is IPv4, 4 is IPv6, 3 a name with its length before it.
  if (const auto address = parse_address(target.host); address) {
    request += address->size == 4 ? '\x01' : '\x04';
    request.append(reinterpret_cast<const char*>(address->bytes.data()), address->size);
  } else {
    request += '\x03';
    request += static_cast<char>(target.host.size());
    request += target.host;
  }
  // Network byte order.
  request += static_cast<char>(target.port >> 8);
  request += static_cast<char>(target.port & 0xff);
  if (auto status = proxy_end.send(request); !status.ok()) return status;
  // 3. the answer, with an address that has one of three lengths
  // Version, code, a reserved byte, the kind of address, and its first byte, which is the length of
  // a name.
  const auto head = proxy_end.receive(5);
  if (!head.ok()) return head.error();
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>((*head)[at]); };
  if (byte(1) != 0) return proxy_end.refused(std::string{socks_error(byte(1))});
  const std::size_t address = byte(3) == 1 ? 4U : byte(3) == 4 ? 16U : 1U + byte(4);
  const auto rest = proxy_end.receive(address - 1 + 2);  // one byte of it was read; the port
  return rest.ok() ? Status{} : Status{rest.error()};
}

}  // namespace

// A proxy without a scheme ("10.0.0.9:3128") is an http one, as Go takes it.
// 1. none for this machine's own addresses
// 2. the variable for the server's scheme
// 3. unless NO_PROXY covers the server
std::string proxy_from_environment(const Url& server) {
  if (is_local(server.host)) return {};
  const std::string proxy = server.scheme == "https" ? environment_of("HTTPS_PROXY", "https_proxy")
                                                     : environment_of("HTTP_PROXY", "http_proxy");
  if (proxy.empty()) return {};
  if (no_proxy_covers(environment_of("NO_PROXY", "no_proxy"), server)) return {};
  return proxy.find("://") == std::string::npos ? "http://" + proxy : proxy;
}

Status open_tunnel(int descriptor, const Url& proxy, const std::string& host, int port,
                   base::Duration timeout) {
  const Url target{.scheme = "", .host = host, .port = port};
  Conversation proxy_end{descriptor, proxy, timeout};
  return proxy.scheme == "http" ? connect_by_http(proxy_end, proxy, target)
                                : connect_by_socks(proxy_end, proxy, target);
}

}  // namespace kube
