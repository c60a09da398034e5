#include "kube/url.h"

#include <algorithm>
#include <charconv>

namespace kube {
namespace {

// Returns the port of a URL that names none; 0 = a scheme that is not known here.
int default_port(std::string_view scheme) {
  if (scheme == "https") return 443;
  if (scheme == "http") return 80;
  if (scheme == "socks5" || scheme == "socks5h") return 1080;
  return 0;
}

// -1 if it is none.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Splits "user:password@" off.
// The user's name may have a colon only if it is encoded; the password may have any.
void take_user(std::string_view& authority, Url& url) {
  // The last one: a password may contain an @ that was not encoded.
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return;
  const std::string_view user = authority.substr(0, at);
  const std::size_t colon = std::min(user.find(':'), user.size());
  url.user = percent_decode(user.substr(0, colon));
  if (colon < user.size()) url.password = percent_decode(user.substr(colon + 1));
  authority.remove_prefix(at + 1);
}

// "host:port", "[fd00::1]:port", with or without the port.
// False if there is no host, or what follows it is not a port from 1 to 65535.
bool take_host(std::string_view authority, Url& url) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return false;
  if (port.empty()) return true;
  // An absent port leaves the one of the scheme, which the caller has set.
  const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), url.port);
  const bool whole = error == std::errc{} && end == port.data() + port.size();
  return port[0] == ':' && whole && url.port >= 1 && url.port <= 65535;
}

}  // namespace

// Encodes byte by byte, so UTF-8 is encoded as it is transmitted. SOURCE: RFC 3986, section 2.
std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

// A % that two hexadecimal digits do not follow stays: passwords may have one that was not encoded.
std::string percent_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool encoded = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                         hex_digit(text[i + 2]) >= 0;
    if (encoded) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_blank ? ' ' : text[i];
    }
  }
  return out;
}

// A colon in the host means an IPv6 address, whose brackets were taken off when it was read.
std::string Url::host_and_port() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// For messages, so without user and password.
std::string Url::text() const {
  return scheme + "://" + host_and_port();
}

// <scheme>://[user[:password]@]host[:port][/path]. Query and fragment are not split off: neither a
// server nor a proxy has one.
base::Result<Url> parse_url(std::string_view text) {
  const base::Error bad = base::invalid_argument("it is not a URL");
  Url url;
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return bad;
  url.scheme = text.substr(0, scheme_end);
  // Before the host is read: a port in the text takes its place.
  url.port = default_port(url.scheme);
  if (url.port == 0) return bad;
  text.remove_prefix(scheme_end + 3);
  const std::size_t slash = std::min(text.find('/'), text.size());
  url.path = text.substr(slash);
  // Paths of the API begin with a slash of their own.
  while (url.path.ends_with('/')) url.path.pop_back();
  std::string_view authority = text.substr(0, slash);
  take_user(authority, url);
  if (!take_host(authority, url)) return bad;
  return url;
}

}  // namespace kube
