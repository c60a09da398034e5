// Certificates and keys, parsed once and checked for their dates. Internal to kube/.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace kube {

struct OpenSslDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using CertificatePointer = std::unique_ptr<X509, OpenSslDeleter>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpenSslDeleter>;

// A client certificate with its key; both empty if requests carry a token or nothing.
struct Identity {
  std::vector<CertificatePointer> certificates;  // the client's first, then its chain
  KeyPointer key;
};

// Parses an identity; an empty certificate gives an empty identity. kInvalidArgument: one of the
// two is malformed, or they do not belong together, which OpenSSL would find out in the handshake
// only, with words that name neither.
base::Result<Identity> parse_identity(std::string_view certificate_pem, std::string_view key_pem);

// Reads all certificates of the text, in order; kInvalidArgument: there is none, or one is broken.
base::Result<std::vector<CertificatePointer>> parse_certificates(std::string_view pem);
base::Result<KeyPointer> parse_private_key(std::string_view pem);

base::Instant not_before(const X509& certificate);
base::Instant not_after(const X509& certificate);

// kUnauthenticated with both times when `now` is outside of the certificate's.
base::Status check_dates(const X509& certificate, base::Instant now);

}  // namespace kube
