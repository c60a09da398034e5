// Gatekeeper: decides which requests of a browser are served. A one-time code, which only the user
// sees, becomes a cookie; so does a token, where there are several readers. Host and Origin must be
// a name of the page's own, so that no page of another site reaches us through a reader's browser
// (DNS rebinding, cross-site requests).
//
// One thread. Tokens are kept in memory alone.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

#include "dashboard/http_request.h"

namespace dashboard {

class Gatekeeper {
 public:
  struct Refusal {
    int status = 403;
    std::string why{};
  };
  // `secret` returns a new secret at each call. `hosts`: the names besides 127.0.0.1 and localhost
  // by which browsers reach the page, over https.
  Gatekeeper(int port, std::function<std::string()> secret, std::vector<std::string> hosts = {});

  // Returns the code that opens the page, once.
  const std::string& code() const { return code_; }
  // Returns why a request, to whatever path, is not served; nullopt if it may be.
  std::optional<Refusal> refuses(const HttpRequest& request) const;
  // Returns true if the request has the cookie of a browser that has signed in.
  bool is_signed_in(const HttpRequest& request) const;
  // Takes the code from the body. Returns the value of Set-Cookie; nullopt if the code is wrong or
  // has been used. After a success there is a new code.
  std::optional<std::string> sign_in(const HttpRequest& request);

  // Returns a request's token, where several readers have tokens: that of its header Authorization,
  // which a proxy may have set, else the one given when the session of its cookie began.
  std::optional<std::string> token_of(const HttpRequest& request, base::Duration now) const;
  // Begins a session of a token that has been found to be good. Returns the value of Set-Cookie.
  std::string begin_session(const HttpRequest& request, std::string token, base::Duration now);
  // Ends the session of the request's cookie. Returns the value of Set-Cookie that removes it.
  std::string end_session(const HttpRequest& request);
  // Ends all sessions with this token.
  void forget(const std::string& token);

 private:
  // The oldest is forgotten; one user hardly uses more browsers.
  static constexpr std::size_t kSessionsMax = 16;
  // For several readers.
  static constexpr std::size_t kTokensMax = 1000;
  static constexpr base::Duration kSessionLives = std::chrono::hours{12};

  struct TokenSession {
    std::string secret;
    std::string token;
    base::Duration since{};
  };

  std::string cookie_name(const HttpRequest& request) const;

  const int port_;
  const std::function<std::string()> secret_;
  const std::vector<std::string> hosts_;
  std::string code_;
  std::deque<std::string> sessions_;
  std::deque<TokenSession> token_sessions_;
};

// 32 hexadecimal digits from the kernel.
std::string random_secret();

}  // namespace dashboard
