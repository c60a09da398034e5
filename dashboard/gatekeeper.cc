#include "dashboard/gatekeeper.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
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

// The value of a cookie; "" if the header has none of that name.
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

}  // namespace

Gatekeeper::Gatekeeper(int port, std::function<std::string()> secret)
    : cookie_name_{"kubegang_" + std::to_string(port)},
      secret_{std::move(secret)},
      code_{secret_()} {}

// The client's port may differ from the server's: `ssh -L 9000:127.0.0.1:8080` is how people reach
// a login node. A page of another site has another name there, and one on another port of this
// machine another Origin.
std::optional<Gatekeeper::Refusal> Gatekeeper::refuses(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "POST") return Refusal{405, "GET and POST only"};
  const std::string host = request.header("host");
  const std::string name = host.substr(0, host.find(':'));
  if (name != "127.0.0.1" && name != "localhost") {
    return Refusal{403, "the page is served as 127.0.0.1 and localhost only"};
  }
  const std::string origin = request.header("origin");
  const bool has_origin = request.headers.contains("origin");
  if (has_origin && origin != "http://" + host) return Refusal{403, "a page of another site asks"};
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
  const std::string_view value = cookie(header, cookie_name_);
  return !value.empty() && std::ranges::any_of(sessions_, [&](const std::string& session) {
    return is_same_secret(session, value);
  });
}

std::optional<std::string> Gatekeeper::sign_in(const HttpRequest& request) {
  if (!is_same_secret(request.body, code_)) return std::nullopt;
  code_ = secret_();
  sessions_.push_back(secret_());
  if (sessions_.size() > kSessionsMax) sessions_.pop_front();
  return cookie_name_ + "=" + sessions_.back() + "; Path=/; HttpOnly; SameSite=Strict";
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
