// Gatekeeper: decides which requests of a browser are served. A one-time code, which only the user
// sees, becomes a cookie; Host and Origin must be this machine's own name, so that no page of
// another site reaches us through the user's browser (DNS rebinding, cross-site requests).
//
// One thread.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "dashboard/http_request.h"

namespace dashboard {

class Gatekeeper {
 public:
  struct Refusal {
    int status = 403;
    std::string why{};
  };
  // `secret` returns a new secret at each call.
  Gatekeeper(int port, std::function<std::string()> secret);

  // The code that opens the page, once.
  const std::string& code() const { return code_; }
  // Returns why a request, to whatever path, is not served; nullopt if it may be.
  static std::optional<Refusal> refuses(const HttpRequest& request);
  // Returns true if the request has the cookie of a browser that has signed in.
  bool is_signed_in(const HttpRequest& request) const;
  // Takes the code from the body. Returns the value of Set-Cookie; nullopt if the code is wrong or
  // has been used. After a success there is a new code.
  std::optional<std::string> sign_in(const HttpRequest& request);

 private:
  // The oldest is forgotten: nobody reads in more browsers.
  static constexpr std::size_t kSessionsMax = 16;

  const std::string cookie_name_;  // with the port: cookies do not tell ports apart
  const std::function<std::string()> secret_;
  std::string code_;
  std::deque<std::string> sessions_;
};

// 32 hexadecimal digits from the kernel.
std::string random_secret();

}  // namespace dashboard
