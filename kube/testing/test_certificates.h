// A certificate authority for tests: issues certificates for 127.0.0.1 and localhost with the dates
// that a test wants. ECDSA, since RSA keys take long to make.
#pragma once

#include <string>

#include "base/time.h"

namespace kube {

struct PemPair {
  std::string certificate;
  std::string key;
};

struct CertificateOptions {
  std::string common_name = "test";
  std::string organization{};
  std::string host = "IP:127.0.0.1,DNS:localhost";  // subjectAltName; "" = none
  // Relative to the machine's clock.
  base::Duration valid_from = -std::chrono::hours{1};
  base::Duration valid_until = std::chrono::hours{1};
};

class TestAuthority {
 public:
  TestAuthority();

  const std::string& certificate() const { return own_.certificate; }
  PemPair issue(const CertificateOptions& options) const;

 private:
  PemPair own_;
};

}  // namespace kube
