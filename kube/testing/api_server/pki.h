// A certificate authority that lives as long as the process: ECDSA keys, made within milliseconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace devcluster {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateRequest {
  std::string common_name;                 // the user's name, of a client
  std::vector<std::string> organizations;  // the user's groups
  std::vector<std::string> dns_names;      // of a server
  std::vector<std::string> addresses;
  bool server = false;
  base::Instant not_before{};
  base::Instant not_after{};
};

// Thread-safe after creation.
class CertificateAuthority {
 public:
  // Valid for ten years from `now` (less one hour, for clocks that differ).
  static base::Result<std::unique_ptr<CertificateAuthority>> create(const std::string& common_name,
                                                                    base::Instant now);
  ~CertificateAuthority();

  const std::string& certificate_pem() const;
  // kInternal: OpenSSL refused, with its reason.
  base::Result<KeyPair> issue(const CertificateRequest& request) const;

 private:
  struct Parts;
  explicit CertificateAuthority(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace devcluster
