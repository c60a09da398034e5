// URLs of API servers and proxies, and how characters are written in one.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kube {

struct Url {
  std::string scheme;  // "https"
  std::string user{};  // of "http://user:password@proxy:3128"; percent-decoded
  std::string password{};
  std::string host;    // an IPv6 address is without its brackets
  int port = 0;        // 1 to 65535; the scheme's own one where the URL names none
  std::string path{};  // "" or "/k8s/clusters/a", without a slash at its end

  // Returns "https://10.0.0.1:6443": what messages name. Without user, password and path.
  std::string text() const;
  // Returns "10.0.0.1:6443", "[fd00::1]:6443".
  std::string host_and_port() const;
};

// http, https, socks5 and socks5h. kInvalidArgument with no more than "it is not a URL", since what
// is around it says which one; a password is never part of the message.
base::Result<Url> parse_url(std::string_view text);

// Writes all but unreserved characters (letters, digits, "-._~") as %XX.
std::string percent_encode(std::string_view text);
// Goes the other way; what is not %XX stays. In a query a plus is a blank.
std::string percent_decode(std::string_view text, bool plus_is_blank = false);

}  // namespace kube
