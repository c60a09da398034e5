#include "kube/proxy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "kube/base64.h"
#include "kube/login.h"
#include "kube/proxy_end.h"

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

// CONNECT asks the proxy for a tunnel: after a 2xx all bytes go to the server and back. SOURCE: RFC
// 9110, section 9.3.6. The password is sent to the proxy only, in clear.
Status connect_by_http(ProxyEnd& proxy_end, const Url& proxy, const Url& target) {
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
                   base::Duration timeout, const Login* login) {
  const Url target{.scheme = "", .host = host, .port = port};
  ProxyEnd proxy_end{descriptor, proxy, timeout};
  if (proxy.scheme == "http") return connect_by_http(proxy_end, proxy, target);
  CHECK(login != nullptr, "HttpTransport::create refuses such a proxy");
  return login->connect_by_socks(proxy_end, proxy, target);
}

}  // namespace kube
