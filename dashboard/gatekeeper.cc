#include "dashboard/gatekeeper.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/check.h"

namespace dashboard {
namespace {

// Takes as long for a text that is nearly right as for any other of its length.
bool is_same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return differs == 0;
}

// Returns the value of a cookie; "" if the header has none of that name.
std::string_view cookie(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    std::string_view pair = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(pair.size() + 1, header.size()));
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.substr(0, pair.find('=')) == name && pair.size() > name.size()) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

std::string name_in(const std::string& host) {
  return host.substr(0, host.find(':'));
}

bool is_loopback(const std::string& name) {
  return name == "127.0.0.1" || name == "localhost";
}

constexpr std::string_view kBearer = "bearer ";

// Browsers send a Secure cookie to this machine's own names over http, too, but not all of them
// take one from there.
std::string attributes_for(const HttpRequest& request) {
  const bool is_local = is_loopback(name_in(request.header("host")));
  return std::string{"; Path=/; HttpOnly; SameSite=Strict"} + (is_local ? "" : "; Secure");
}

}  // namespace

Gatekeeper::Gatekeeper(int port, std::function<std::string()> secret,
                       std::vector<std::string> hosts)
    : port_{port}, secret_{std::move(secret)}, hosts_{std::move(hosts)}, code_{secret_()} {}

// With the port where the name is a machine's: cookies do not tell ports apart. Elsewhere with the
// prefix that keeps other hosts of a domain from setting it.
std::string Gatekeeper::cookie_name(const HttpRequest& request) const {
  if (!is_loopback(name_in(request.header("host")))) return "__Host-kubegang";
  return "kubegang_" + std::to_string(port_);
}

// The client's port may differ from the server's: `ssh -L 9000:127.0.0.1:8080` is how people reach
// a login node. A page of another site has another name there, and one on another port of this
// machine another Origin.
std::optional<Gatekeeper::Refusal> Gatekeeper::refuses(const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "POST") return Refusal{405, "GET and POST only"};
  const std::string host = request.header("host");
  const bool is_local = is_loopback(name_in(host));
  if (!is_local && std::ranges::find(hosts_, name_in(host)) == hosts_.end()) {
    return Refusal{403, hosts_.empty() ? "the page is served as 127.0.0.1 and localhost only"
                                       : "the page is not served by this name"};
  }
  const std::string origin = request.header("origin");
  const bool has_origin = request.headers.contains("origin");
  if (has_origin && origin != (is_local ? "http://" : "https://") + host) {
    return Refusal{403, "a page of another site asks"};
  }
  if (!has_origin && request.method == "POST") return Refusal{403, "no Origin"};
  const std::string site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none" &&
      !(request.header("sec-fetch-mode") == "navigate" && request.method == "GET")) {
    return Refusal{403, "a page of another site asks"};
  }
  return std::nullopt;
}

bool Gatekeeper::is_signed_in(const HttpRequest& request) const {
  const std::string header = request.header("cookie");
  const std::string_view value = cookie(header, cookie_name(request));
  return !value.empty() && std::ranges::any_of(sessions_, [&](const std::string& session) {
    return is_same_secret(session, value);
  });
}

std::optional<std::string> Gatekeeper::sign_in(const HttpRequest& request) {
  if (!is_same_secret(request.body, code_)) return std::nullopt;
  code_ = secret_();
  sessions_.push_back(secret_());
  if (sessions_.size() > kSessionsMax) sessions_.pop_front();
  return cookie_name(request) + "=" + sessions_.back() + attributes_for(request);
}

// A request with both is the proxy's: it knows who asks now.
std::optional<std::string> Gatekeeper::token_of(const HttpRequest& request,
                                                base::Duration now) const {
  const std::string header = request.header("authorization");
  const bool is_bearer =
      std::ranges::equal(header.substr(0, kBearer.size()), kBearer,
                         [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
  if (is_bearer && header.size() > kBearer.size()) return header.substr(kBearer.size());
  const std::string cookies = request.header("cookie");
  const std::string_view value = cookie(cookies, cookie_name(request));
  if (value.empty()) return std::nullopt;
  for (const TokenSession& session : token_sessions_) {
    if (is_same_secret(session.secret, value) && now - session.since < kSessionLives) {
      return session.token;
    }
  }
  return std::nullopt;
}

std::string Gatekeeper::begin_session(const HttpRequest& request, std::string token,
                                      base::Duration now) {
  token_sessions_.push_back({.secret = secret_(), .token = std::move(token), .since = now});
  if (token_sessions_.size() > kTokensMax) token_sessions_.pop_front();
  return cookie_name(request) + "=" + token_sessions_.back().secret + attributes_for(request);
}

std::string Gatekeeper::end_session(const HttpRequest& request) {
  const std::string cookies = request.header("cookie");
  const std::string_view value = cookie(cookies, cookie_name(request));
  std::erase_if(token_sessions_,
                [&](const TokenSession& session) { return is_same_secret(session.secret, value); });
  return cookie_name(request) + "=" + attributes_for(request) + "; Max-Age=0";
}

void Gatekeeper::forget(const std::string& token) {
  std::erase_if(token_sessions_,
                [&](const TokenSession& session) { return session.token == token; });
}

std::string random_secret() {
  std::array<unsigned char, 16> bytes{};
  const auto count = ::getrandom(bytes.data(), bytes.size(), 0);
  CHECK(count == static_cast<ssize_t>(bytes.size()), "the kernel gives no random bytes");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace dashboard
