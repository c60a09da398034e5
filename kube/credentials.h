// The proof of a request's sender: a token, user and password, or what an exec plugin says.
// Thread-safe; a plugin runs for one caller while the others wait for its answer.
#pragma once

#include <mutex>
#include <string>

#include "base/result.h"
#include "kube/clock.h"
#include "kube/exec_plugin.h"
#include "kube/token_source.h"
#include "kube/transport_config.h"

namespace kube {

struct Credential {
  std::string authorization{};  // the header's value; "" = none
  std::string client_certificate_pem{};
  std::string client_key_pem{};

  friend bool operator==(const Credential&, const Credential&) = default;
};

class Credentials {
 public:
  // `config` and `clock` must live longer.
  Credentials(const TransportConfig& config, const Clock& clock)
      : config_{config}, clock_{clock}, tokens_{config.bearer_token, config.token_file, clock} {}

  // Runs the plugin when it has not run yet, or when what it said has expired.
  // kUnauthenticated: the token file cannot be read, or the plugin failed.
  base::Result<Credential> get();

  // Call if the server refused `refused`: asks the file or the plugin again, unless another thread
  // did meanwhile. Returns true if there is another credential.
  bool refresh(const Credential& refused);

 private:
  base::Result<Credential> of_plugin_locked();
  std::string header_of(const std::string& token) const;

  const TransportConfig& config_;
  const Clock& clock_;
  TokenSource tokens_;

  std::mutex mu_;
  std::optional<ExecCredential> from_plugin_;  // guarded by mu_
};

}  // namespace kube
