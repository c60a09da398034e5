#include "kube/credentials.h"

#include "kube/base64.h"

namespace kube {

// A plugin runs with the lock held, so that a person is asked once and not by each thread. Without
// a plugin nothing is shared but the token, which has its own lock.
base::Result<Credential> Credentials::get() {
  if (config_.exec) {
    const std::lock_guard lock{mu_};
    return of_plugin_locked();
  }
  Credential credential{.client_certificate_pem = config_.client_certificate_pem,
                        .client_key_pem = config_.client_key_pem};
  const auto token = tokens_.token();
  if (!token.ok()) return token.error();
  credential.authorization = header_of(*token);
  return credential;
}

// A token comes before user and password; "" if there is neither.
std::string Credentials::header_of(const std::string& token) const {
  if (!token.empty()) return "Bearer " + token;
  if (config_.username.empty() && config_.password.empty()) return {};
  return "Basic " + encode_base64(config_.username + ":" + config_.password);
}

// Called after the server has refused a credential.
// Returns true if a credential other than the refused one is there now.
bool Credentials::refresh(const Credential& refused) {
  if (!config_.exec) {
    constexpr std::string_view kBearer = "Bearer ";
    // A password or a certificate does not change, so there is nothing to try.
    const bool has_token = refused.authorization.starts_with(kBearer);
    return has_token && tokens_.refresh(refused.authorization.substr(kBearer.size()));
  }
  const std::lock_guard lock{mu_};
  const auto now = of_plugin_locked();
  // Another thread has run the plugin since. Many requests are refused together, and one run is
  // enough for all of them.
  if (!now.ok() || !(*now == refused)) return now.ok();
  from_plugin_.reset();
  const auto again = of_plugin_locked();
  return again.ok() && !(*again == refused);
}

// REQUIRES: mu_ is held.
base::Result<Credential> Credentials::of_plugin_locked() {
  // Without an expiry the plugin's answer holds until the server refuses it, as in client-go.
  if (from_plugin_ && from_plugin_->expires && clock_.wall() >= *from_plugin_->expires) {
    from_plugin_.reset();
  }
  if (!from_plugin_) {
    auto answer = config_.login->run_exec_plugin(config_);
    if (!answer.ok()) return answer.error();
    from_plugin_ = std::move(*answer);
  }
  Credential credential{.authorization = header_of(from_plugin_->token),
                        .client_certificate_pem = from_plugin_->client_certificate_pem,
                        .client_key_pem = from_plugin_->client_key_pem};
  // A plugin that prints only a token leaves the certificate of the kubeconfig in use.
  if (credential.client_key_pem.empty()) {
    credential.client_certificate_pem = config_.client_certificate_pem;
    credential.client_key_pem = config_.client_key_pem;
  }
  return credential;
}

}  // namespace kube
